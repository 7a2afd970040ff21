"""The commands export and import: options, wrong arguments, and existing outputs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
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


def documents(path: Path) -> dict[str, list[list[int]]]:
    """Return all documents of a dataset, by split."""
    dataset = flat_tokens.open(path)
    return {split: [ids.tolist() for ids in dataset[split]] for split in ("train", "validation")}


def test_nanogpt_keeps_documents_by_a_token(make_dataset: Callable[..., Path], tmp_path: Path) -> None:
    dataset = make_dataset([[1, 2], [3, 4, 5], [6, 7, 8]], [[9]], SMALL)
    out = tmp_path / "out"
    arguments = ["export", str(dataset), "--to", "nanogpt", "--append-token", "50256", "--output", str(out)]
    assert main(arguments) == 0
    expected = [id_ for ids in documents(dataset)["train"] for id_ in [*ids, 50_256]]
    assert np.fromfile(out / "train.bin", np.uint16).tolist() == expected
    for place, change in (
        ("last", lambda ids: [*ids, 50_256]),
        ("dropped", lambda ids: ids),
    ):
        arguments = [
            "import",
            str(out / "train.bin"),
            "--validation",
            str(out / "val.bin"),
            "--from",
            "nanogpt",
        ]
        arguments += [
            "--separator-token",
            "50256",
            "--separator-place",
            place,
            "--output",
            str(tmp_path / place),
        ]
        assert main(arguments) == 0
        assert documents(tmp_path / place) == {
            split: [change(ids) for ids in found] for split, found in documents(dataset).items()
        }
    # A dataset with end tokens is exported with them.
    arguments = ["export", str(tmp_path / "last"), "--to", "nanogpt", "--output", str(tmp_path / "again")]
    assert main(arguments) == 0
    assert (tmp_path / "again/train.bin").read_bytes() == (out / "train.bin").read_bytes()
    for folder in ("out", "again"):  # the second manifest had null, as if no token ended its documents
        assert json.loads((tmp_path / folder / "export.json").read_text())["append_token"] == 50_256


@pytest.mark.parametrize("highest", [9, 60_000, 200_000])
def test_ids_of_32_bits_were_read_as_twice_as_many(
    highest: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`tokenmill encode` and `export` write such .bin files for IDs above 65,535. Every second ID was 0, and
    documents were split.
    """
    ids = np.random.default_rng(7).integers(0, highest, 40, np.uint32)
    ids.tofile(tmp_path / "wide.bin")
    out = str(tmp_path / "out")
    command = [
        "import",
        str(tmp_path / "wide.bin"),
        "--from",
        "nanogpt",
        "--separator-token",
        "none",
        "--output",
        out,
    ]
    assert main(command) == 3
    assert re.search(r"wide\.bin: .*--dtype uint32", capsys.readouterr().err)
    for dtype, count in (("uint32", 40), ("uint16", 80)):
        assert main([*command, "--dtype", dtype, "--overwrite"]) == 0
        assert flat_tokens.open(out).train.token_count == count
    for few in (np.arange(40) % 5, np.repeat([7, 0], 8)):  # small IDs, and too few to decide
        few.astype(np.uint16).tofile(tmp_path / "wide.bin")
        assert main([*command, "--overwrite"]) == 0


def test_ids_above_uint16_need_uint32_of_nanogpt(
    make_dataset: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = make_dataset([[1, WIDE], [3]], [[2]])
    out = tmp_path / "out"
    arguments = ["export", str(dataset), "--to", "nanogpt", "--append-token", "7", "--output", str(out)]
    assert main(arguments) == 2
    assert "--dtype uint32" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]
    assert main([*arguments, "--dtype", "uint32"]) == 0
    assert np.fromfile(out / "train.bin", np.uint32).tolist() == [1, WIDE, 7, 3, 7]
    arguments = ["import", str(out / "train.bin"), "--from", "nanogpt", "--dtype", "uint32"]
    arguments += [
        "--separator-token",
        "7",
        "--separator-place",
        "dropped",
        "--output",
        str(tmp_path / "back"),
    ]
    assert main(arguments) == 0
    assert documents(tmp_path / "back")["train"] == [[1, WIDE], [3]]


def test_jsonl_has_text_on_request(make_dataset: Callable[..., Path], tmp_path: Path) -> None:
    dataset = make_dataset([[7, 8, 26, 0], [25] * 50], [])
    arguments = [
        "export",
        str(dataset),
        "--to",
        "jsonl",
        "--text",
        "--split",
        "train",
        "--append-token",
        "28",
    ]
    assert main([*arguments, "--output", str(tmp_path / "out")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "out/train.jsonl").read_text().splitlines()]
    assert lines == [
        {"tokens": [7, 8, 26, 0, 28], "text": "hi a<|end|>"},
        {"tokens": [25] * 50 + [28], "text": "z" * 50 + "<|end|>"},
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["export.json", "train.jsonl"]


def test_empty_documents_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", np.array([1, 2, 3], np.int64))
    np.save(tmp_path / "a.offsets.npy", np.array([0, 0, 2, 2, 2, 3, 3], np.int64))
    arguments = ["import", str(tmp_path / "a.npy"), "--from", "npy", "--output", str(tmp_path / "d")]
    assert main(arguments) == 0
    assert "3 tokens in 2 documents, 4 empty documents skipped" in capsys.readouterr().out
    manifest = flat_tokens.open(tmp_path / "d").manifest
    assert manifest is not None
    assert manifest.options["empty_documents"] == {"train": 4, "validation": 0}
    assert documents(tmp_path / "d")["train"] == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["--to", "nanogpt"], "--append-token"),
        (["--to", "npy", "--text"], "--text"),
        (["--to", "npy", "--dtype", "int8"], "--dtype"),
        (["--to", "jsonl", "--dtype", "uint16"], "--dtype"),
        (["--to", "npy", "--append-token", "4294967295"], "--append-token"),
        (["--to", "jsonl", "--text", "--tokenizer", "nowhere.json"], "--tokenizer"),
        (["--to", "npy", "--output", "DATASET/x"], "--output"),
    ],
)
def test_wrong_arguments_of_export_are_one_line(
    arguments: list[str],
    flag: str,
    make_dataset: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dataset = make_dataset()
    words = [word.replace("DATASET", str(dataset)) for word in arguments]
    assert main(["export", str(dataset), "--output", str(tmp_path / "out"), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tokenmill: error: {flag}: ")
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]


@pytest.mark.parametrize(
    ("arguments", "code", "where"),
    [
        (["--from", "nanogpt"], 2, "a.bin: "),
        (["--from", "nanogpt", "--separator-token", "2", "--dtype", "int8"], 2, "--dtype: "),
        (["--from", "nanogpt", "--separator-token", "2", "--column", "x"], 2, "--column: "),
        (["--from", "nanogpt", "--separator-token", "2", "--vocabulary", "3"], 3, "a.bin: token 2: "),
        (["--from", "nanogpt", "--separator-token", "2", "--tokenizer", "no.json"], 2, "--tokenizer: "),
        (["--from", "nanogpt", "--separator-token", "2", "--validation", "nowhere.bin"], 2, "nowhere.bin: "),
        (["--from", "nanogpt", "--separator-token", "2", "--validation", "."], 2, "error: .: "),
        (["--from", "nanogpt", "--separator-token", "2", "--dtype", "uint32"], 3, "a.bin: "),
        (["--from", "npy"], 3, "a.bin: "),
    ],
)
def test_wrong_arguments_of_import_are_one_line(
    arguments: list[str], code: int, where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.array([1, 2, 3], np.uint16).tofile(tmp_path / "a.bin")
    words = ["import", str(tmp_path / "a.bin"), *arguments, "--output", str(tmp_path / "d")]
    assert main(words) == code
    error = capsys.readouterr().err
    assert where in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bin"]


def test_only_our_outputs_are_replaced_and_on_request(
    make_dataset: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, out = make_dataset(), tmp_path / "out"
    export = ["export", str(dataset), "--to", "npy", "--output", str(out)]
    out.mkdir()  # an empty folder is accepted
    assert main(export) == 0
    assert main(export) == 6
    assert main([*export, "--overwrite", "--split", "train"]) == 0
    assert not (out / "validation.npy").exists()
    (out / "mine.txt").write_text("x")
    assert main([*export, "--overwrite"]) == 6
    assert "mine.txt" in capsys.readouterr().err
    back = ["import", str(out / "train.npy"), "--from", "npy", "--output", str(tmp_path / "back")]
    assert main(back) == 0
    assert main(back) == 6
    assert main([*back, "--overwrite"]) == 0
    assert main([*back[:-1], str(out), "--overwrite"]) == 2  # it contains the input
    (tmp_path / "no dataset").mkdir()
    (tmp_path / "no dataset/mine.txt").write_text("x")
    assert main([*back[:-1], str(tmp_path / "no dataset"), "--overwrite"]) == 6
    assert (out / "mine.txt").exists()
    (tmp_path / "other.partial").mkdir()
    (tmp_path / "other.partial/plan.json").write_text("{}")
    assert main([*back[:-1], str(tmp_path / "other")]) == 6


def test_a_separator_token_inside_documents_is_reported(
    make_dataset: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = make_dataset([[1, 9, 2], [9]], [])
    arguments = ["export", str(dataset), "--to", "nanogpt", "--append-token", "9"]
    assert main([*arguments, "--output", str(tmp_path / "out")]) == 0
    assert re.search(r"note: train: token 9 .* 2 times", capsys.readouterr().err)


def test_a_killed_export_never_reads_as_finished(tmp_path: Path) -> None:
    ids = np.arange(3_000_000, dtype=np.uint32) % 50_000
    ids.tofile(tmp_path / "a.bin")
    words = [sys.executable, "-m", "flat_tokens", "import", "a.bin", "--from", "nanogpt", "--dtype", "uint32"]
    words += ["--separator-token", "0", "--output", "d"]
    environment = os.environ | {"PYTHONPATH": str(Path(flat_tokens.__file__).parents[1])}
    for _ in range(3):
        process = subprocess.Popen(words, cwd=tmp_path, env=environment)
        while process.poll() is None and not list(tmp_path.glob("d.partial/result/train/encoded_tokens/*")):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "d").exists()
    subprocess.run(words, cwd=tmp_path, env=environment, check=True)
    assert np.concatenate(list(flat_tokens.open(tmp_path / "d").train)).tolist() == ids.tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bin", "d"]


def test_the_second_of_two_concurrent_exports_is_refused(
    make_dataset: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from flat_tokens.exchange.export_dataset import not_an_export
    from flat_tokens.unfinished import Unfinished

    dataset, out = make_dataset(), tmp_path / "out"
    with Unfinished(out, False, not_an_export):
        assert main(["export", str(dataset), "--to", "npy", "--output", str(out)]) == 6
        assert "another run" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]


def test_on_a_network_disk_a_folder_was_left(
    make_dataset: Callable[..., Path], tmp_path: Path, open_files_keep_names: None
) -> None:
    """The lock was still open and kept a name in the folder."""
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial/.nfs01").touch()  # from a killed process
    assert main(["export", str(make_dataset()), "--to", "npy", "--output", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "out"]


def test_leftovers_of_a_run_killed_at_its_end_stayed(
    make_dataset: Callable[..., Path], tmp_path: Path
) -> None:
    command = ["export", str(make_dataset()), "--to", "npy", "--output", str(tmp_path / "out")]
    assert main(command) == 0
    (tmp_path / "out.partial/replaced").mkdir(parents=True)
    (tmp_path / "out.partial/lock").touch()
    assert main(command) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "out"]


def test_a_former_output_comes_back_if_its_successor_was_killed(
    make_dataset: Callable[..., Path], tmp_path: Path
) -> None:
    dataset, out = make_dataset(), tmp_path / "out"
    assert main(["export", str(dataset), "--to", "npy", "--output", str(out)]) == 0
    (tmp_path / "out.partial").mkdir()
    out.rename(tmp_path / "out.partial/replaced")
    assert main(["export", str(dataset), "--to", "npy", "--output", str(out)]) == 6
    assert (out / "train.npy").exists()


def test_a_damaged_dataset_is_not_exported(
    make_dataset: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = make_dataset([[1] * 64] * 4, [], SMALL)
    chunk = dataset / "train/encoded_tokens/3"
    data = bytearray(chunk.read_bytes())
    data[-1] ^= 1
    chunk.write_bytes(data)
    assert main(["export", str(dataset), "--to", "npy", "--output", str(tmp_path / "out")]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]


def test_an_export_describes_itself(make_dataset: Callable[..., Path], tmp_path: Path) -> None:
    arguments = ["export", str(make_dataset()), "--to", "megatron", "--append-token", "28"]
    assert main([*arguments, "--output", str(tmp_path / "out")]) == 0
    note: dict[str, Any] = json.loads((tmp_path / "out/export.json").read_text())
    assert note["dtype"] == "uint16"
    assert note["append_token"] == 28
    assert note["splits"]["train"] == {"tokens": 11, "documents": 3, "files": ["train.bin", "train.idx"]}
    assert note["tokenizer"]["path"] == "tokenizer.json"
