"""The formats by name. A format is a module of this package with `read`, `write` or both, and a line in FORMATS.

read(path, options) -> iterator of Block: the documents of one input, as whole IDs and ends, or IDs without ends.
write(folder, contents, blocks) -> file names: writes a split and consumes all blocks.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import numpy as np

from flat_tokens.arguments import invalid


class Format(NamedTuple):
    """Facts about a format that do not need its module.

    about: its files, for --help.
    read_dtypes: values of --dtype for import, None if the format cannot be read.
    write_dtypes: values of --dtype for export, narrowest first; None if the format cannot be written.
    is_fixed: its readers know only the first type, so wider ones need --dtype.
    marks_documents: its readers find documents without a separator token.
    """

    about: str
    read_dtypes: tuple[str, ...] | None = None
    write_dtypes: tuple[str, ...] | None = None
    is_fixed: bool = False
    marks_documents: bool = True


BLOCK_TOKENS = 2**20  # per block, at most
NO_TOKEN = -1  # "none" for an option that takes a token ID
SHORT = ("uint16", "uint32")
FORMATS = {
    "megatron": Format("PREFIX.bin and PREFIX.idx of Megatron-LM, NeMo, GPT-NeoX", (), ("uint16", "int32")),
    "nanogpt": Format(
        "train.bin and val.bin of nanoGPT; shards of llm.c and modded-nanogpt", SHORT, SHORT, True, False
    ),
    "npy": Format("NAME.npy with IDs, NAME.offsets.npy with document offsets", (), SHORT),
    "jsonl": Format('one document per line, {"tokens": [...]}', write_dtypes=()),
    "mds": Format("a folder of mosaicml-streaming (MDSWriter)", (*SHORT, "int32", "int64")),
    "litdata": Format("a folder of litdata (optimize with TokensLoader)", ()),
    "datatrove": Format("NAME.ds and NAME.ds.index of datatrove, or a folder with several", SHORT),
}


class ReadOptions(NamedTuple):
    """Facts about an input from the user.

    dtype: type of the IDs, where the files do not state it.
    column: column of the IDs, where there are several.
    notes: lines to print at the end, to which readers append.
    """

    dtype: str | None
    column: str | None
    notes: list[str]


class Contents(NamedTuple):
    """A split to write. dtype: of the IDs. entries: bytes by ID, if text is written, too."""

    split: str
    tokens: int
    documents: int
    dtype: np.dtype[np.generic]
    entries: dict[int, bytes] | None


def module_of(name: str) -> ModuleType:
    """Return the module of a format."""
    return import_module(f"flat_tokens.exchange.{name}")


def check_dtype(name: str, dtypes: tuple[str, ...], dtype: str | None) -> None:
    """Raise ArgumentError unless the format has this type. dtypes: its types."""
    if dtype is not None and not dtypes:
        raise invalid("--dtype", f"not an option of {name}", dtype, "Omit it.")
    if dtype is not None and dtype not in dtypes:
        raise invalid("--dtype", f"for {name} must be one of {', '.join(dtypes)}", dtype)
