"""Folders that Hugging Face's `save_to_disk` wrote: which of their files hold the rows, and in which order.

A Dataset is `state.json`, which lists its Arrow files, and `dataset_info.json`; a DatasetDict is `dataset_dict.json`,
which lists the folders of its splits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path

from corpus.errors import BadInput

_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"


def saved_parts(folder: str, names: Collection[bytes]) -> list[bytes] | None:
    """The names in the folder that are to be read, in order; None if it is none of these. BadInput: a damaged one."""
    if _SPLITS.encode() in names:
        return _listed(folder, _SPLITS, names)
    if _STATE.encode() in names and _INFO.encode() in names:
        return _listed(folder, _STATE, names)
    return None


def _listed(folder: str, name: str, names: Collection[bytes]) -> list[bytes]:
    path = Path(folder) / name
    try:
        content = json.loads(path.read_bytes())
        if name == _STATE:
            if content.get("_indices_data_files"):
                raise BadInput(
                    f"{path}: its rows are a selection, which is not read; save it by flatten_indices() first"
                )
            found = [os.fsencode(entry["filename"]) for entry in content["_data_files"]]
        else:
            found = [os.fsencode(split) for split in content["splits"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(f"{path}: is no such file as save_to_disk writes") from None
    if missing := [part for part in found if part not in names]:
        raise BadInput(f"{path}: lists {os.fsdecode(missing[0])}, which is not there; save the dataset again")
    return found
