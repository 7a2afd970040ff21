"""Folders of save_to_disk, on a disk and on a store: the listed files in their order."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tokenmill.errors import BadArgument
from tokenmill.inputs.sources import find_sources
from tokenmill.stores import open_store


@pytest.fixture(params=["disk", "store"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder with a dataset of two splits, each of two files, as save_to_disk writes it."""
    if request.param == "store":
        pytest.importorskip("obstore", reason="obstore is not installed")
    root = str(tmp_path) if request.param == "disk" else f"memory://{uuid4().hex}"
    store = open_store(root)
    state = {"_data_files": [{"filename": "data-1.arrow"}, {"filename": "data-0.arrow"}]}
    for split in ("train", "test"):
        for name in ("data-0.arrow", "data-1.arrow", "cache-1.arrow", "dataset_info.json"):
            store.put(f"both/{split}/{name}", b"{}")
        store.put(f"both/{split}/state.json", json.dumps(state).encode())
    store.put("both/dataset_dict.json", b'{"splits": ["train", "test"]}')
    return root


def test_the_files_of_a_dataset_in_the_order_of_its_list(root: str) -> None:
    found = [source.path.removeprefix(f"{root}/both/") for source in find_sources([f"{root}/both"])]
    assert found == [f"{split}/data-{number}.arrow" for split in ("train", "test") for number in (1, 0)]
    assert len(find_sources([f"{root}/both/test/"])) == 2
    open_store(root).put("lines/state.json", b'{"text": "a"}')  # a name that any folder may have
    assert [source.path for source in find_sources([f"{root}/lines/"])] == [f"{root}/lines/state.json"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("both/dataset_dict.json", b"[]", "dataset_dict.json"),
        ("both/dataset_dict.json", b'{"splits": ["gone"]}', "gone"),
        ("both/test/state.json", b'{"_data_files": [{"filename": "gone.arrow"}]}', "gone.arrow"),
        ("both/test/state.json", b'{"_indices_data_files": [{}], "_data_files": []}', "flatten_indices"),
    ],
)
def test_a_damaged_list_is_refused(root: str, name: str, content: bytes, says: str) -> None:
    open_store(root).put(name, content)
    with pytest.raises(BadArgument, match=f"{name}: .*{says}" if "json" not in says else f"{name}: "):
        find_sources([f"{root}/both"])
