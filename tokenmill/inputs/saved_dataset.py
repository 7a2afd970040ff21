"""Folders that Hugging Face's `save_to_disk` wrote: which of their files hold the rows, and in which order.

A Dataset is `state.json`, which lists its Arrow files, and `dataset_info.json`; a DatasetDict is `dataset_dict.json`,
which lists the folders of its splits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path

from tokenmill.inputs.errors import BadInput

_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
LISTS = (_SPLITS, _STATE)
"""What such a folder has one of: a list of its parts."""


def saved_parts(folder: str, names: Collection[bytes]) -> list[bytes] | None:
    """The names in the folder that are to be read, in order; None if it is none of these. BadInput: a damaged one."""
    name = next((name for name in LISTS if is_list(name, names)), None)
    if name is None:
        return None
    path = Path(folder) / name
    try:
        return listed(str(path), path.read_bytes(), names)
    except OSError:
        raise _no_list(str(path)) from None


def is_list(name: str, names: Collection[bytes]) -> bool:
    """Whether that one of LISTS is one in a folder where the names are."""
    return name.encode() in names and (name != _STATE or _INFO.encode() in names)


def listed(path: str, data: bytes, names: Collection[bytes]) -> list[bytes]:
    """The parts that a list holds, whose name is that of `path`; all must be among the names."""
    try:
        content = json.loads(data)
        if path.endswith(_STATE):
            if content.get("_indices_data_files"):
                raise BadInput(
                    f"{path}: row selections are not supported. Call flatten_indices() and save it again."
                )
            found = [os.fsencode(entry["filename"]) for entry in content["_data_files"]]
        else:
            found = [os.fsencode(split) for split in content["splits"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _no_list(path) from None
    if missing := [part for part in found if part not in names]:
        raise BadInput(
            f"{path}: lists a missing file (got {os.fsdecode(missing[0])}). Save the dataset again."
        )
    return found


def _no_list(path: str) -> BadInput:
    return BadInput(f"{path}: not a file of save_to_disk. Save the dataset again.")
