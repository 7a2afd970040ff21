"""Folders written by `save_to_disk` of Hugging Face datasets: the files that hold the rows, in order.

A Dataset has `state.json`, which lists its Arrow files, and `dataset_info.json`. A DatasetDict has `dataset_dict.json`,
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


def saved_parts(folder: str, names: Collection[bytes]) -> list[bytes] | None:
    """Return the names in a saved folder to read, in order, or None for other folders. Raise BadInput if damaged."""
    name = next((name for name in LISTS if is_list(name, names)), None)
    if name is None:
        return None
    path = Path(folder) / name
    try:
        return listed(str(path), path.read_bytes(), names)
    except OSError:
        raise _damaged(str(path)) from None


def is_list(name: str, names: Collection[bytes]) -> bool:
    """Whether `name` lists the parts of a saved folder, which holds these names."""
    return name.encode() in names and (name != _STATE or _INFO.encode() in names)


def listed(path: str, data: bytes, names: Collection[bytes]) -> list[bytes]:
    """Return the parts that a list holds. All must be among the names."""
    try:
        content = json.loads(data)
        if path.endswith(_STATE):
            if content.get("_indices_data_files"):
                raise BadInput(
                    f"{path}: row selections are not supported. Call flatten_indices() and save it again."
                )
            parts = [os.fsencode(entry["filename"]) for entry in content["_data_files"]]
        else:
            parts = [os.fsencode(split) for split in content["splits"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(path) from None
    if missing := [part for part in parts if part not in names]:
        raise BadInput(
            f"{path}: lists a missing file (got {os.fsdecode(missing[0])}). Save the dataset again."
        )
    return parts


def _damaged(path: str) -> BadInput:
    return BadInput(f"{path}: not a file of save_to_disk. Save the dataset again.")
