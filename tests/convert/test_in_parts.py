"""Datasets made part by part: the sequences of one conversion, readable while they are made, whatever comes between."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from naive_conversion import END, make_documents, tree
from stopped_runs import encode_or_fail, options

import bpe
import convert.driver.append
import convert.encode.worker
import flat_tokens
from convert import convert as run_conversion
from convert import convert_in_parts
from convert.__main__ import main
from convert.errors import BadInput, Refused, UsageError
from engines.inline_engine import InlineEngine
from flat_tokens import DatasetError, verify_dataset

FILES = ["en.txt", "b.txt", "c.txt", "d.txt"]


@pytest.fixture
def files(here: Path) -> Path:
    """The folder with four files."""
    for seed, name in enumerate(FILES[1:], 6):
        (here / name).write_text(END.join(make_documents(25, seed=seed)), newline="")
    return here


def given(**other: Any) -> Any:
    return options(**{"inputs": FILES, **other})


def ids(path: Any, split: str, **version: Any) -> list[list[int]]:
    return [found.tolist() for found in flat_tokens.open(path, **version)[split]]


def same_as_whole(path: Any) -> None:
    run_conversion(given(output="whole"), InlineEngine())
    for split in ("train", "validation"):
        assert ids(path, split) == ids("whole", split)
    assert verify_dataset(path).ok


@pytest.mark.parametrize("part_bytes", [1, 5000, 10**9])
def test_as_one_conversion(files: Path, part_bytes: int) -> None:
    versions = []
    for summary in convert_in_parts(given(), part_bytes, InlineEngine()):
        dataset = flat_tokens.open("out")  # a part is read while others are still to be made
        assert Path(summary.output) == Path("out") / (f"part-{dataset.version}" if dataset.version else "")
        versions.append(dataset.train.seq_count + dataset.validation.seq_count)
    assert versions == sorted(versions)
    assert len(versions) == (len(FILES) if part_bytes == 1 else 1) or 1 < len(versions) < len(FILES)
    same_as_whole("out")
    batches = [
        [batch.inputs.tolist() for batch in flat_tokens.Loader(flat_tokens.open(path).train, 2, 16, seed=1)]
        for path in ("out", "whole")
    ]
    assert batches[0] == batches[1]
    assert list(convert_in_parts(given(), part_bytes, InlineEngine())) == []  # all of it is there


def test_on_a_store(files: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    url = f"memory://{uuid4().hex}/out"
    assert len(list(convert_in_parts(given(output=url), 1, InlineEngine()))) == len(FILES)
    same_as_whole(url)


def test_validation_files_go_with_the_first(files: Path) -> None:
    (files / "held.txt").write_text(END.join(make_documents(9, seed=3)), newline="")
    own = given(validation=["held.txt"], validation_fraction=None)
    list(convert_in_parts(own, 1, InlineEngine()))
    run_conversion(given(output="whole", validation=["held.txt"], validation_fraction=None), InlineEngine())
    assert ids("out", "validation") == ids("whole", "validation") == ids("out", "validation", version=0)
    assert ids("out", "train") == ids("whole", "train")


def test_a_run_that_was_stopped_goes_on(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = convert_in_parts(given(), 1, InlineEngine())
    next(parts)
    next(parts)
    before = tree(files / "out")
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", encode_or_fail)
        with pytest.raises(BadInput) as caught:
            next(parts)
    assert Path(caught.value.work_at).name == "part-2.partial"  # type: ignore[attr-defined]
    assert flat_tokens.open("out").version == 1
    made = [summary.output for summary in convert_in_parts(given(), 1, InlineEngine())]
    assert [Path(path).name for path in made] == ["part-2", "part-3"]
    after = tree(files / "out")
    assert {path: after[path] for path in before} == before
    same_as_whole("out")


def test_killed_between_a_part_and_its_version(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    parts = convert_in_parts(given(), 1, InlineEngine())
    next(parts)
    with monkeypatch.context() as patch:
        patch.setattr(convert.driver.append, "write_version", killed)
        with pytest.raises(KeyboardInterrupt):
            next(parts)
    assert flat_tokens.open("out").version == 0
    made = [summary.output for summary in convert_in_parts(given(), 1, InlineEngine())]
    assert [Path(path).name for path in made] == ["part-2", "part-3"]
    same_as_whole("out")


@pytest.mark.parametrize("number", [0, 1])
def test_a_run_that_was_killed_when_a_part_had_its_name_left_its_folder(files: Path, number: int) -> None:
    command = [
        *FILES,
        "--tokenizer",
        str(given().tokenizer),
        "--output",
        "out",
        "--part-bytes",
        "1",
        "--workers",
        "1",
    ]
    script = (
        f"import os, sys; sys.path.insert(0, {str(Path(convert.__file__).parents[1])!r})\n"
        "import convert.places.workspace as w\n"
        f"calls = iter([*range({number}), None])\n"
        "w.sync = lambda _: os._exit(9) if next(calls) is None else None\n"
        "from convert.__main__ import main\n"
        f"main({command!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=files, check=False)
    assert done.returncode == 9
    assert [path.name for path in files.rglob("*.partial")] == [("out.partial", "part-1.partial")[number]]
    assert main(command) == 0
    assert list(files.rglob("*.partial")) == []
    assert flat_tokens.open("out").version == len(FILES) - 1
    assert verify_dataset("out").ok


@pytest.mark.parametrize(
    ("change", "part_bytes", "what"),
    [
        ({"inputs": ["en.txt", "c.txt"]}, 1, "version 1 was made of b.txt"),
        ({"inputs": ["b.txt", "en.txt"]}, 1, "version 0 was made of en.txt"),
        ({}, 10**9, "version 0 was made of 1 files, the run has 4 for it"),
        ({"validation_fraction": 0.5}, 1, "version 0 was made with validation_fraction"),
        ({"append_token": END}, 1, "version 0 was made with append_token None, the run has .*<|endoftext|>"),
    ],
)
def test_another_run_is_refused(files: Path, change: dict[str, Any], part_bytes: int, what: str) -> None:
    parts = convert_in_parts(given(), 1, InlineEngine())
    next(parts)
    next(parts)
    before = tree(files / "out")
    with pytest.raises(Refused, match=what):
        list(convert_in_parts(given(**change), part_bytes, InlineEngine()))
    assert tree(files / "out") == before


def test_another_tokenizer_is_refused_though_all_is_made(files: Path) -> None:
    list(convert_in_parts(given(), 10**9, InlineEngine()))
    bpe.train([b"another"], 257).save("other.json")
    with pytest.raises(DatasetError, match="made with another tokenizer"):
        list(convert_in_parts(given(tokenizer="other.json"), 10**9, InlineEngine()))


def test_records_whose_other_part_is_to_be_learned_are_refused(here: Path) -> None:
    (here / "a.jsonl").write_text('{"text": "a", "q": "b", "a": "c"}\n')
    marked = {"inputs": ["a.jsonl"], "prompt_field": "q", "completion_field": "a"}
    list(convert_in_parts(given(**marked), 1, InlineEngine()))
    for change, said in (
        ({"inputs": ["a.jsonl"]}, "prompt_field q, the run has None"),
        ({**marked, "prompt_field": "text"}, "prompt_field q, the run has text"),
    ):
        with pytest.raises(Refused, match=said):
            list(convert_in_parts(given(**change), 1, InlineEngine()))
    assert list(convert_in_parts(given(**marked), 1, InlineEngine())) == []


@pytest.mark.parametrize(
    ("change", "part_bytes", "what"),
    [
        ({"inputs": ["-"]}, 1, "standard input is one source"),
        ({"validation_docs": 3, "validation_fraction": None}, 1, "--validation-docs are chosen among all"),
        ({"overwrite": True}, 1, "remove it instead of --overwrite"),
        ({}, 0, "--part-bytes must be at least 1"),
    ],
)
def test_what_goes_not_with_it(files: Path, change: dict[str, Any], part_bytes: int, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        next(convert_in_parts(given(**change), part_bytes, InlineEngine()))


def test_the_command(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = given().tokenizer
    command = [*FILES, "--tokenizer", tokenizer, "--output", "out", "--part-bytes", "1", "--workers", "1"]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert [line.split(":")[0] for line in told.splitlines() if line.endswith("verified")] == [
        "out",
        "out/part-1",
        "out/part-2",
        "out/part-3",
    ]
    assert main(command) == 0
    assert capsys.readouterr().out == "out: all its parts were made before\n"
    assert main([*FILES, "--tokenizer", tokenizer, "--append-to", "out", "--part-bytes", "1"]) == 2
    assert "--part-bytes goes with --output" in capsys.readouterr().err
