"""Writing the page to a file: whole or not at all, and over nothing but an earlier report."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flat_tokens import opening
from flat_tokens.arguments import no_folder, output_outside, tokenizer_file
from flat_tokens.errors import ArgumentError, RefusedError, printable
from flat_tokens.report.figures import Bounds, gather
from flat_tokens.report.page import MARK, render
from flat_tokens.storage.places import Place, name_of
from tokenmill.stores.names import rename


def write_report(
    dataset: Place,
    output: Path | None,
    bounds: Bounds,
    tokenizer: Path | None,
    overwrite: bool,
) -> Path | None:
    """Write the page, and return where it is; None after "-", which is stdout.

    output: None for NAME.report.html in the current folder. ArgumentError for a place that
    cannot take it, RefusedError for a file that is no report, unless `overwrite`."""
    tokenizer_file(tokenizer)
    name = name_of(dataset)
    if output == Path("-"):
        sys.stdout.write(_page(dataset, name, bounds, tokenizer))
        return None
    path = output if output is not None else Path(f"{name.removesuffix('.zarr')}.report.html")
    _check_place(path, dataset, tokenizer, overwrite)
    page = _page(dataset, name, bounds, tokenizer)
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            file.write(page)
        rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def _page(dataset: Place, name: str, bounds: Bounds, tokenizer: Path | None) -> str:
    return render(gather(opening.open(dataset), bounds, tokenizer), name)


def _check_place(path: Path, dataset: Place, tokenizer: Path | None, overwrite: bool) -> None:
    where = printable(str(path))
    if path.is_dir():
        raise ArgumentError(f"--output: must be a file, not a folder (got {where})")
    if not path.parent.is_dir():
        raise no_folder(path)
    if tokenizer is not None and path.exists() and path.samefile(tokenizer):
        raise ArgumentError(f"--output: must differ from --tokenizer (got {where}). Choose another path.")
    output_outside(path, dataset)
    if path.exists() and not overwrite:
        with path.open("rb") as file:
            if MARK.encode() not in file.read(200):
                raise RefusedError(
                    f"{where}: already exists and is not a report. "
                    "Pass --overwrite to replace it, or choose another --output."
                )
