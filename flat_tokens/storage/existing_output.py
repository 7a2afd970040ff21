"""What stands where a dataset is to be made: nothing, an empty folder, a dataset to replace, or what must stay."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from flat_tokens.errors import DatasetError, printable
from flat_tokens.storage.files import read_whole
from flat_tokens.storage.manifest import LARGEST_MANIFEST_BYTES, LARGEST_WHOLE_BYTES, MANIFEST_NAME
from flat_tokens.storage.manifest_lines import read_lines
from flat_tokens.storage.versions import is_of_versions, is_part_name


def is_empty_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir() and not path.is_symlink() and next(path.iterdir(), None) is None
    return False


def is_part(output: Path) -> bool:
    """Whether this is the place of a part of a dataset, which is never replaced."""
    return is_part_name(output.name) and (output.absolute().parent / MANIFEST_NAME).is_file()


def not_ours(output: Path) -> str | None:
    """Why the dataset at `output` must not be replaced, None if it is one of ours and holds nothing else."""
    if output.is_symlink():
        return "it is a link"
    if is_part(output):
        return "it is a part of a dataset that grew"
    if not output.is_dir():
        return "it is not a dataset of ours"
    manifest_path = output / MANIFEST_NAME
    try:
        # Line by line if it is as we write it: there may be a million sources in it.
        found = read_lines(manifest_path, LARGEST_MANIFEST_BYTES, most_sources=0)
        manifest = (
            json.loads(read_whole(manifest_path, LARGEST_WHOLE_BYTES)) if found is None else found.value
        )
        listed = {entry["path"] for entry in manifest["files"]} | {MANIFEST_NAME}
    except (DatasetError, OSError, ValueError, KeyError, TypeError):
        return "not a dataset of tokenmill (no valid manifest.json in it)"
    for folder, _, names in os.walk(output):
        for name in names:
            path = (Path(folder) / name).relative_to(output).as_posix()
            if path not in listed:
                return why_it_stays(path)
    return None


def why_it_stays(path: str) -> str:
    """Why a dataset is not replaced that holds a file, by its path within it, which its manifest does not list."""
    if is_of_versions(path):
        return f"contains appended data ({printable(path)}), which is never replaced"
    return f"contains {printable(path)}, which manifest.json does not list"
