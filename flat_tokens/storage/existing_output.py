"""Whether an existing output may be replaced: only an empty folder or a dataset of tokenmill."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from flat_tokens.errors import DatasetError, printable
from flat_tokens.storage.manifest import MANIFEST_NAME, read_files, read_manifest


def is_empty_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir() and not path.is_symlink() and next(path.iterdir(), None) is None
    return False


def not_ours(output: Path) -> str | None:
    """Why the dataset at `output` must not be replaced. None if it is one of tokenmill and contains nothing else."""
    if output.is_symlink():
        return "it is a link"
    if not output.is_dir():
        return "it is not a dataset of ours"
    try:
        manifest = read_manifest(output)
        files = () if manifest is None else read_files(output, manifest)
    except (DatasetError, OSError):
        manifest = None
    if manifest is None:
        return "not a dataset of this version of tokenmill (no valid manifest.json in it). Delete it first"
    listed = {MANIFEST_NAME, *(record.path for record in files)}
    for folder, _, names in os.walk(output):
        for name in names:
            path = (Path(folder) / name).relative_to(output).as_posix()
            if path not in listed:
                return why_it_stays(path)
    return None


def why_it_stays(path: str) -> str:
    """Why a dataset is not replaced that contains a file, by its path within it, that its manifest does not list."""
    return f"contains {printable(path)}, which manifest.json does not list"
