"""Folders of save_to_disk: the listed files in their order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tokenmill.errors import BadArgument
from tokenmill.inputs.sources import find_sources


def saved(folder: Path, parts: int) -> Path:
    """A folder as save_to_disk writes it, with a cache file that it does not list."""
    folder.mkdir(parents=True)
    names = [f"data-{number:05}-of-{parts:05}.arrow" for number in range(parts)]
    for name in (*names, "cache-123.arrow"):
        (folder / name).write_text("rows")
    (folder / "dataset_info.json").write_text("{}")
    state = {"_data_files": [{"filename": name} for name in reversed(names)], "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    return folder


def test_the_files_of_a_dataset_in_the_order_of_its_list(tmp_path: Path) -> None:
    folder = saved(tmp_path / "one", 3)
    names = [Path(source.path).name for source in find_sources([str(folder)])]
    assert names == [f"data-{number:05}-of-00003.arrow" for number in (2, 1, 0)]
    (folder / "state.json").write_text('{"_indices_data_files": [{"filename": "x"}], "_data_files": []}')
    with pytest.raises(BadArgument, match="flatten_indices"):
        find_sources([str(folder)])


def test_the_splits_of_a_dataset_dict(tmp_path: Path) -> None:
    for split in ("train", "test"):
        saved(tmp_path / "both" / split, 1)
    listed = tmp_path / "both/dataset_dict.json"
    listed.write_text('{"splits": ["train", "test"]}')
    folders = [Path(source.path).parent.name for source in find_sources([str(listed.parent)])]
    assert folders == ["train", "test"]
    for content in ("[]", '{"splits": ["train", "gone"]}'):
        listed.write_text(content)
        with pytest.raises(BadArgument, match=r"dataset_dict\.json: "):
            find_sources([str(listed.parent)])
