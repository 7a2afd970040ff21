"""The commands export and import: options, wrong arguments, and existing outputs."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.__main__ import main
from flat_tokens.storage.layout import ArrayLayout

SMALL = ArrayLayout(chunk_tokens=16, shard_tokens=16)
WIDE = 70_000  # above uint16
MakeDataset = Callable[..., Path]
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which `make_dataset` writes d."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> int:
    """Run a command of flat_tokens in the current folder."""
    return main(shlex.split(command))


def documents(path: Path | str) -> dict[str, list[list[int]]]:
    """Return all documents of a dataset, by split."""
    dataset = flat_tokens.open(path)
    return {split: [ids.tolist() for ids in dataset[split]] for split in ("train", "validation")}


def names(folder: str = ".") -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def test_nanogpt_keeps_documents_by_a_token(make_dataset: MakeDataset) -> None:
    make_dataset([[1, 2], [3, 4, 5], [6, 7, 8]], [[9]], SMALL)
    assert run("export d --to nanogpt --append-token 50256 --output out") == 0
    expected = [id_ for ids in documents("d")["train"] for id_ in [*ids, 50_256]]
    assert np.fromfile("out/train.bin", np.uint16).tolist() == expected
    back = "import out/train.bin --validation out/val.bin --from nanogpt --separator-token 50256"
    for place, end in (("last", [50_256]), ("dropped", [])):
        assert run(f"{back} --separator-place {place} --output {place}") == 0
        whole = {split: [ids + end for ids in found] for split, found in documents("d").items()}
        assert documents(place) == whole
    # A dataset with end tokens is exported with them.
    assert run("export last --to nanogpt --output again") == 0
    assert Path("again/train.bin").read_bytes() == Path("out/train.bin").read_bytes()
    for out in ("out", "again"):  # the second manifest had null, as if no token ended its documents
        assert json.loads(Path(out, "export.json").read_text())["append_token"] == 50_256


@pytest.mark.parametrize("highest", [9, 60_000, 200_000])
def test_ids_of_32_bits_were_read_as_twice_as_many(highest: int, capsys: Captured) -> None:
    """`tokenmill encode` and `export` write such .bin files for IDs above 65,535. Every second ID was 0, and
    documents were split.
    """
    np.random.default_rng(7).integers(0, highest, 40, np.uint32).tofile("wide.bin")
    command = "import wide.bin --from nanogpt --separator-token none --output out"
    assert run(command) == 3
    assert re.search(r"wide\.bin: .*--dtype uint32", capsys.readouterr().err)
    for dtype, count in (("uint32", 40), ("uint16", 80)):
        assert run(f"{command} --dtype {dtype} --overwrite") == 0
        assert flat_tokens.open("out").train.token_count == count
    for few in (np.arange(40) % 5, np.repeat([7, 0], 8)):  # small IDs, and too few to decide
        few.astype(np.uint16).tofile("wide.bin")
        assert run(f"{command} --overwrite") == 0


def test_ids_above_uint16_need_uint32_of_nanogpt(make_dataset: MakeDataset, capsys: Captured) -> None:
    make_dataset([[1, WIDE], [3]], [[2]])
    command = "export d --to nanogpt --append-token 7 --output out"
    assert run(command) == 2
    assert "--dtype uint32" in capsys.readouterr().err
    assert names() == ["d"]
    assert run(f"{command} --dtype uint32") == 0
    assert np.fromfile("out/train.bin", np.uint32).tolist() == [1, WIDE, 7, 3, 7]


def test_jsonl_has_text_on_request(make_dataset: MakeDataset) -> None:
    make_dataset([[7, 8, 26, 0], [25] * 50], [])
    assert run("export d --to jsonl --text --split train --append-token 28 --output out") == 0
    assert [json.loads(line) for line in Path("out/train.jsonl").read_text().splitlines()] == [
        {"tokens": [7, 8, 26, 0, 28], "text": "hi a<|end|>"},
        {"tokens": [25] * 50 + [28], "text": "z" * 50 + "<|end|>"},
    ]
    assert names("out") == ["export.json", "train.jsonl"]


def test_empty_documents_are_counted(capsys: Captured) -> None:
    np.save("a.npy", np.array([1, 2, 3], np.int64))
    np.save("a.offsets.npy", np.array([0, 0, 2, 2, 2, 3, 3], np.int64))
    assert run("import a.npy --from npy --output d") == 0
    assert "3 tokens in 2 documents, 4 empty documents skipped" in capsys.readouterr().out
    manifest = flat_tokens.open("d").manifest
    assert manifest is not None
    assert manifest.options["empty_documents"] == {"train": 4, "validation": 0}
    assert documents("d")["train"] == [[1, 2], [3]]


@pytest.mark.promise("foreign-files")
def test_only_our_outputs_are_replaced_and_on_request(make_dataset: MakeDataset, capsys: Captured) -> None:
    make_dataset()
    export = "export d --to npy --output out"
    Path("out").mkdir()  # an empty folder is accepted
    assert run(export) == 0
    assert run(export) == 6
    assert run(f"{export} --overwrite --split train") == 0
    assert not Path("out/validation.npy").exists()
    Path("out/mine.txt").write_text("x")
    assert run(f"{export} --overwrite") == 6
    assert "mine.txt" in capsys.readouterr().err
    back = "import out/train.npy --from npy --overwrite --output"
    assert run(f"{back.replace(' --overwrite', '')} back") == 0
    assert run(f"{back.replace(' --overwrite', '')} back") == 6
    assert run(f"{back} back") == 0
    assert run(f"{back} out") == 2  # it contains the input
    Path("mine").mkdir()
    Path("mine/mine.txt").write_text("x")
    assert run(f"{back} mine") == 6
    assert Path("out/mine.txt").exists()
    Path("other.partial").mkdir()
    Path("other.partial/plan.json").write_text("{}")
    assert run(f"{back} other") == 6


def test_a_separator_token_inside_documents_is_reported(make_dataset: MakeDataset, capsys: Captured) -> None:
    make_dataset([[1, 9, 2], [9]], [])
    assert run("export d --to nanogpt --append-token 9 --output out") == 0
    assert re.search(r"note: train: token 9 .* 2 times", capsys.readouterr().err)


def test_on_a_network_disk_a_folder_was_left(make_dataset: MakeDataset, open_files_keep_names: None) -> None:
    """The lock was still open and kept a name in the folder."""
    make_dataset()
    Path("out.partial").mkdir()
    Path("out.partial/.nfs01").touch()  # from a killed process
    assert run("export d --to npy --output out") == 0
    assert names() == ["d", "out"]


def test_leftovers_of_a_run_killed_at_its_end_stayed(make_dataset: MakeDataset) -> None:
    make_dataset()
    assert run("export d --to npy --output out") == 0
    Path("out.partial/replaced").mkdir(parents=True)
    Path("out.partial/lock").touch()
    assert run("export d --to npy --output out") == 6
    assert names() == ["d", "out"]


@pytest.mark.promise("overwrite")
def test_a_former_output_comes_back_if_its_successor_was_killed(make_dataset: MakeDataset) -> None:
    make_dataset()
    assert run("export d --to npy --output out") == 0
    Path("out.partial").mkdir()
    Path("out").rename("out.partial/replaced")
    assert run("export d --to npy --output out") == 6
    assert Path("out/train.npy").exists()


def test_an_export_describes_itself(make_dataset: MakeDataset) -> None:
    make_dataset()
    assert run("export d --to megatron --append-token 28 --output out") == 0
    note: dict[str, Any] = json.loads(Path("out/export.json").read_text())
    assert note["dtype"] == "uint16"
    assert note["append_token"] == 28
    assert note["splits"]["train"] == {"tokens": 11, "documents": 3, "files": ["train.bin", "train.idx"]}
    assert note["tokenizer"]["path"] == "tokenizer.json"
