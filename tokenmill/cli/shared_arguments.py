"""Options that several commands share. Each function takes the `add_argument` of a parser or of a group."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Callable
from typing import Any, Final

from tokenmill.cli.words import integer, name_and_value, seconds
from tokenmill.engines.choose import EXECUTORS, STALL_SECONDS, START_METHODS
from tokenmill.inputs.kinds import INPUT_FORMATS

INPUT_HELP: Final = "files, folders, quoted globs, URLs (s3, gs, az, https, hf), or - for standard input"
COMPRESSIONS: Final = ("zstd", "none")  # of datasets that commands write
_Add = Callable[..., Any]


def add_input_format(add: _Add) -> None:
    """Add --input-format, and --text-field with its aliases."""
    about = "format of all inputs (default: auto, by file extension; text if unknown)"
    add("--input-format", choices=INPUT_FORMATS, default="auto", help=about)
    about = "field or column with the text, or a JSON pointer such as /a/b (default: text)"
    add("--text-field", default="text", metavar="NAME", help=about)
    add("--text-key", "--json-key", "--column", dest="text_field", default=SUPPRESS, help=SUPPRESS)


def add_exclude(add: _Add) -> None:
    """Add --exclude, which may be repeated."""
    about = "skip files and folders that match, such as '*.md' or 'drafts/*'; repeatable"
    add("--exclude", action="append", default=[], metavar="GLOB", help=about)


def add_storage_option(add: _Add) -> None:
    """Add --storage-option, which may be repeated."""
    about = "object store setting, such as region=eu-west-1; repeatable (default: environment variables)"
    add(
        "--storage-option", type=name_and_value, action="append", default=[], metavar="NAME=VALUE", help=about
    )


def add_layout(add: _Add) -> None:
    """Add --zarr-format and --compression."""
    about = "Zarr format; 3 has shards and checksums (default: 2)"
    add("--zarr-format", type=integer, choices=(2, 3), default=2, help=about)
    about = "compression of the arrays (default: zstd)"
    add("--compression", choices=COMPRESSIONS, default="zstd", help=about)


def add_engine(add: _Add, executor_help: str = SUPPRESS, has_scratch: bool = True) -> None:
    """Add the options that select where tasks run; `tokenmill.engines.choose.executor_of` reads them."""
    add("--executor", choices=EXECUTORS, help=executor_help)
    about = "number of worker processes (default: number of usable CPUs)"
    add("--workers", type=integer, metavar="N", help=about)
    about = "run on the dask cluster with this scheduler, such as tcp://host:8786"
    add("--scheduler", default="", metavar="ADDRESS", help=about)
    about = "run on the Ray cluster at this address, such as host:6379; auto finds a running cluster"
    add("--address", default="", metavar="ADDRESS", help=about)
    if has_scratch:
        about = "folder for temporary files, visible to all workers (default: next to the output)"
        add("--scratch", metavar="DIR", help=about)
    add("--start-method", choices=START_METHODS, default="auto", help=SUPPRESS)
    add("--stall-timeout", type=seconds, default=STALL_SECONDS, metavar="S", help=SUPPRESS)


def add_debug(add: _Add) -> None:
    """Add --debug, which each `main` reads."""
    add("--debug", action="store_true", help="print the traceback of an error")
