"""A standalone HTML page about a dataset: sizes, lengths, entries, and sequences with colored tokens.

`figures` reads a bounded part of the dataset, and `page` writes HTML with the components of `tokenmill.html`. The bytes
of the page follow from the dataset and the arguments alone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flat_tokens import opening
from flat_tokens.arguments import tokenizer_file
from flat_tokens.errors import ArgumentError, RefusedError, printable
from flat_tokens.opening import Dataset
from flat_tokens.report.figures import Bounds, gather
from flat_tokens.report.page import MARK, render
from flat_tokens.storage.places import Place, name_of
from tokenmill.stores.apart import check_apart
from tokenmill.stores.names import write_whole

__all__ = ["Bounds", "report_html", "write_report"]


def report_html(dataset: Dataset, bounds: Bounds | None = None, name: str | None = None) -> str:
    """Return the page.

    name: name of the dataset on the page (default: the last part of its path).

    Cost: at most about 10 s and 300 MB with the default bounds. Raise DatasetError for damage that is found.
    """
    return render(gather(dataset, bounds or Bounds()), name or name_of(dataset.path))


def write_report(
    dataset: Place, output: Path | None, bounds: Bounds, tokenizer: Path | None, overwrite: bool
) -> Path | None:
    """Write the page, whole or not at all, and return its path, None for stdout.

    output: "-" for stdout (default: NAME.report.html in the current folder).

    Raise ArgumentError for a path that cannot be written, RefusedError for a file that is not a report, unless
    `overwrite`.
    """
    tokenizer_file(tokenizer)
    name = name_of(dataset)
    path = output or Path(f"{name.removesuffix('.zarr')}.report.html")
    is_stdout = path == Path("-")
    if not is_stdout:
        _check_output(path, dataset, tokenizer, overwrite)
    page = render(gather(opening.open(dataset), bounds, tokenizer), name)
    if is_stdout:
        sys.stdout.write(page)
        return None
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}.tmp")
    write_whole(path, [page.encode()], temporary, synced=False)
    return path


def _check_output(path: Path, dataset: Place, tokenizer: Path | None, overwrite: bool) -> None:
    where = printable(str(path))
    if path.is_dir():
        raise ArgumentError(f"--output: must be a file, not a folder (got {where})")
    if not path.parent.is_dir():
        raise ArgumentError(f"--output: its folder does not exist (got {where}). Create it first.")
    check_apart(path, [dataset, tokenizer])
    if tokenizer is not None and path.exists() and path.samefile(tokenizer):  # a hard link
        raise ArgumentError(f"--output: would replace the tokenizer (got {where}). Choose another --output.")
    if path.exists() and not overwrite:
        with path.open("rb") as file:
            if MARK.encode() not in file.read(200):
                raise RefusedError(
                    f"{where}: already exists and is not a report. "
                    "Pass --overwrite to replace it, or choose another --output."
                )
