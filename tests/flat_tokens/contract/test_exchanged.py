"""export and import: every format round-trips the documents, and damage gives one line."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import exchange_layouts as foreign
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from flat_tokens import ArrayLayout
from flat_tokens.__main__ import main
from tests.flat_tokens.contract.drawn_datasets import SPLITS, Drawn, Sequences, content, datasets, sequences

SUFFIXES = {"megatron": "", "npy": ".npy", "nanogpt": ".bin"}


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Shrink blocks, so that small datasets have many."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("transfer.BLOCK_TOKENS", 32), ("files.BLOCK_TOKENS", 24), ("files.PIECE", 5)):
            patch.setattr(f"flat_tokens.exchange.{name}", size)
        patch.setattr("flat_tokens.exchange.mds.BLOCK_TOKENS", 24)
        yield


def run(*words: object) -> int:
    """Run a command of flat_tokens."""
    return main([str(word) for word in words])


@pytest.mark.slow
@pytest.mark.promise("exchange")
@given(datasets(), st.sampled_from([*SUFFIXES, "jsonl"]))
def test_documents_are_the_same_there_and_back(drawn: Drawn, name: str) -> None:
    end = 65_000
    splits = drawn.splits
    if name == "nanogpt":  # a token that occurs in no document separates the documents
        splits = {split: [[id_ % end for id_ in ids] for ids in rows] for split, rows in splits.items()}
        drawn = Drawn(drawn.layout, splits, drawn.masks)
    with TemporaryDirectory() as folder:
        root, out, back = (Path(folder, part) for part in ("d", "out", "back"))
        drawn.write(root)
        words = ["--append-token", end] if name == "nanogpt" else []
        assert run("export", root, "--to", name, "--output", out, *words) == 0
        if name == "jsonl":
            for split, rows in splits.items():
                lines = [json.loads(line) for line in (out / f"{split}.jsonl").read_text().splitlines()]
                assert [line["tokens"] for line in lines] == rows
                if drawn.masks is not None:
                    assert [line["loss_mask"] for line in lines] == drawn.masks[split]
            return
        names = {split: split for split in SPLITS} | ({"validation": "val"} if name == "nanogpt" else {})
        train, validation = (out / f"{names[split]}{SUFFIXES[name]}" for split in SPLITS)
        words = ["--separator-token", end, "--separator-place", "dropped"] if name == "nanogpt" else []
        command = ["import", train, "--validation", validation, "--from", name, "--output", back]
        assert run(*command, *words) == 0
        assert content(back) == splits
        assert sorted(path.name for path in Path(folder).iterdir()) == ["back", "d", "out"]


@given(st.lists(st.sampled_from([9, 9, 1, 2]), max_size=80), st.sampled_from(["last", "first", "dropped"]))
def test_documents_are_cut_at_the_separator(ids: list[int], place: str) -> None:
    expected: Sequences = [[]]
    for id_ in ids:
        if id_ != 9:
            expected[-1].append(id_)
        elif place == "first":
            expected.append([9])
        else:
            expected[-1] += [9] if place == "last" else []
            expected.append([])
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.bin")
        np.array(ids, np.uint16).tofile(path)
        words = ["--separator-token", 9, "--separator-place", place, "--dtype", "uint16"]
        assert run("import", path, "--from", "nanogpt", *words, "--output", Path(folder, "d")) == 0
        assert content(Path(folder, "d"))["train"] == [ids for ids in expected if ids]


FOREIGN: dict[str, Callable[[Path, Sequences, str], None]] = {
    "megatron": foreign.write_megatron,
    "datatrove": foreign.write_datatrove,
    "mds": foreign.write_mds,
    "mds zstd": lambda path, rows, dtype: foreign.write_mds(path, rows, dtype, zstd=True),
    "litdata": foreign.write_litdata,
    "litdata zstd": lambda path, rows, dtype: foreign.write_litdata(path, rows, dtype, zstd=True),
}
TYPES = {
    "megatron": ["uint8", "int8", "int16", "int32", "int64", "uint16"],
    "datatrove": ["uint16", "uint32"],
    "mds": ["uint16", "int32", "uint32"],
    "litdata": ["uint16", "int32", "int64"],
}


def imported(folder: Path, case: str) -> int:
    """Import the files of a FOREIGN writer as folder/out."""
    name = case.split()[0]
    path = folder / ("a.ds" if name == "datatrove" else "a")
    return run("import", path, "--from", name, "--output", folder / "out", "--overwrite")


def make(folder: Path, case: str, rows: Sequences, dtype: str) -> None:
    FOREIGN[case](folder / ("a.ds" if case == "datatrove" else "a"), rows, dtype)


@pytest.mark.promise("exchange")
@given(st.data(), st.sampled_from(list(FOREIGN)))
def test_documented_layouts_are_read(data: Any, case: str) -> None:
    dtype = data.draw(st.sampled_from(TYPES[case.split()[0]]))
    rows = data.draw(sequences(min(np.iinfo(dtype).max, 2**31 - 1), least=0))
    with TemporaryDirectory() as folder:
        make(Path(folder), case, rows, dtype)
        assert imported(Path(folder), case) == 0
        assert content(Path(folder, "out"))["train"] == [ids for ids in rows if ids]


@given(sequences(), st.sampled_from(["uint16", "int32"]))
@examples(0.5)
def test_megatron_is_written_as_documented(rows: Sequences, dtype: str) -> None:
    rows = [[id_ % np.iinfo(dtype).max for id_ in ids] for ids in rows]
    with TemporaryDirectory() as folder:
        root, out = Path(folder, "d"), Path(folder, "out")
        Drawn(ArrayLayout.create(2, 16), {"train": rows, "validation": []}, None).write(root)
        assert run("export", root, "--to", "megatron", "--dtype", dtype, "--output", out) == 0
        assert foreign.read_megatron(out / "train") == rows


@pytest.mark.slow
@pytest.mark.parametrize("case", FOREIGN)
def test_any_changed_byte_is_read_or_reported(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plausible documents or one line, never a traceback, and no files remain on error."""
    rng = random.Random(case)
    make(tmp_path, case, [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]], "uint16")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    for _ in range(60):
        path = rng.choice(files)
        sound = path.read_bytes()
        data = bytearray(sound)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        code = imported(tmp_path, case)
        error = capsys.readouterr().err
        assert code in (0, 2, 3), error
        assert code == 0 or error.count("\n") == 1
        assert not (tmp_path / "out.partial").exists()
        path.write_bytes(sound)
