"""After any interruption the same call, or the same command, gives the bytes of an undisturbed run."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import limits, small
from runs import (
    Counts,
    Inline,
    command,
    convert,
    error_of,
    exit_code,
    finish,
    sample_documents,
    sample_text,
    start,
    stopping_at,
    tree,
    words,
    workplace,
)
from strategies import Conversion, conversions, examples, text_chunk_bytes

# -- stopped between two tasks, in this process


@pytest.mark.promise("resume")
@given(conversions(faults=True), st.lists(st.integers(0, 50), min_size=1, max_size=3), limits(), st.data())
@examples(0.5)
def test_stopped_at_any_tasks(
    conversion: Conversion, stops: list[int], sizes: dict[str, Any], data: st.DataObject
) -> None:
    corpus = conversion.corpus
    options = {"inputs": corpus.inputs, "validation": corpus.validation, **conversion.options}
    options["text_chunk_bytes"] = text_chunk_bytes(data.draw, corpus.size, tasks=40)
    options["on_error"] = "quarantine"
    with workplace(), small(sizes):
        corpus.write()
        convert(Inline(), output="clean", **options)
        for stop in stops:
            if not Path("out").exists():
                with suppress(KeyboardInterrupt):
                    convert(stopping_at(stop), **options)
        if not Path("out").exists():
            summary = convert(Inline(), workers=3, **options)
            Counts.of(summary.lines()).check()
        assert tree("out") == tree("clean")
        assert not Path("out.partial").exists()


@pytest.fixture
def stopped(folder: Path) -> dict[str, Any]:
    """The options of a conversion of two files that was stopped when about half of it was done."""
    Path("in.txt").write_bytes(sample_text(60))
    Path("more.txt").write_bytes(sample_text(20, seed=60))
    Path("other.json").write_bytes(Path("tok.json").read_bytes() + b"\n")
    options: dict[str, Any] = {"inputs": ["in.txt", "more.txt"], "text_chunk_bytes": 300, "chunk_tokens": 64}
    with pytest.raises(KeyboardInterrupt):
        convert(stopping_at(12), **options)
    assert Path("out.partial").is_dir()
    return options


def append() -> None:
    with Path("in.txt").open("ab") as file:
        file.write(b" more")


def edit() -> None:
    status = Path("in.txt").stat()
    Path("in.txt").write_bytes(b"#" + Path("in.txt").read_bytes()[1:])
    os.utime("in.txt", ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))


def truncate() -> None:
    os.truncate("in.txt", 10)


# The change, and text that the error must contain.
CHANGES: dict[str, tuple[dict[str, Any] | Callable[[], None], str]] = {
    "seed": ({"seed": 1}, "--seed 0 (now 1)"),
    "separator": ({"separator": " "}, "--separator '<|endoftext|>' (now ' ')"),
    "fraction": ({"validation_fraction": 0.4}, "--validation-fraction 0.005 (now 0.4)"),
    "number of validation documents": ({"validation_docs": 3}, "--validation-docs not given (now 3)"),
    "end token": ({"append_token": "<|endoftext|>"}, "--append-token not given (now '<|endoftext|>')"),
    "special tokens": ({"special_in_text": "text"}, "--special-in-text "),
    "zarr format": ({"zarr_format": 3}, "--zarr-format 2 (now 3)"),
    "template": ({"template": True}, "--template "),
    "compression": ({"compression": "none"}, "--compression 'zstd' (now 'none')"),
    "zarr chunks": ({"chunk_tokens": 128}, "--chunk-tokens 64 (now 128)"),
    "text chunks": ({"text_chunk_bytes": 500}, "--text-chunk-bytes 300 (now 500)"),
    "first input missing": ({"inputs": ["more.txt"]}, "in.txt"),
    "order of inputs": ({"inputs": ["more.txt", "in.txt"]}, "input 1 'in.txt' (now 'more.txt')"),
    "validation file": ({"inputs": ["in.txt"], "validation": ["more.txt"]}, "more.txt"),
    "tokenizer": ({"tokenizer": "other.json"}, "tokenizer"),
    "longer input": (append, "size of in.txt "),
    "edited input": (edit, "modification time of in.txt "),
}


@pytest.mark.slow
@pytest.mark.promise("no-mixture")
@pytest.mark.promise("restart")
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_run_is_refused_unless_it_starts_over(name: str, stopped: dict[str, Any]) -> None:
    (change, text), kept = CHANGES[name], tree("out.partial")
    if not isinstance(change, dict):
        change()
        change = {}
    for _ in range(2):  # a refusal removes nothing
        error = error_of(Inline(), **stopped | change)
        assert error.exit_code == 6
        assert text in str(error)
        assert "--restart" in str(error)
        assert tree("out.partial").keys() == kept.keys()
    convert(Inline(), **stopped | change, restart=True)
    convert(Inline(), output="expected", **stopped | change)
    assert tree("out") == tree("expected")
    assert not Path("out.partial").exists()


@pytest.mark.parametrize("change", [append, edit, truncate])
def test_an_input_that_changes_while_it_is_read(change: Callable[[], None], folder: Path) -> None:
    def before(number: int) -> None:
        if number == 4:
            change()

    (folder / "in.txt").write_bytes(sample_text(60))
    error = error_of(Inline(before), inputs=["in.txt"], text_chunk_bytes=300)
    assert error.exit_code == 3
    assert "in.txt" in str(error)
    assert not Path("out").exists()


def test_a_copy_of_an_input_with_the_same_time_is_the_same_input(stopped: dict[str, Any]) -> None:
    Path("in.txt").rename("other")
    shutil.copy2("other", "in.txt")
    assert any("reused " in line for line in convert(Inline(), **stopped).lines())


@pytest.mark.parametrize("change", [{"workers": 7}, {"start_method": "fork"}, {"on_error": "skip"}], ids=str)
def test_options_that_keep_the_tokens_may_change(change: dict[str, Any], stopped: dict[str, Any]) -> None:
    executor = None if "start_method" in change else Inline()
    summary = convert(executor, **stopped | change)
    assert any(re.search(r"reused +\d", line) for line in summary.lines())
    convert(Inline(), output="clean", **stopped | change)
    assert tree("out") == tree("clean")


@pytest.mark.promise("foreign-files")
@pytest.mark.parametrize("place", ["out.partial/mine", "out.partial/shards.txt", "out.partial/jobs.txt"])
def test_a_foreign_file_in_the_partial_folder_stays(place: str, stopped: dict[str, Any]) -> None:
    Path(place).write_text("mine")
    for more in ({}, {"restart": True}):
        assert exit_code(Inline(), **stopped, **more) == 6
        assert Path(place).read_text() == "mine"
    Path(place).unlink()
    convert(Inline(), **stopped)
    assert not Path("out.partial").exists()


@pytest.mark.promise("foreign-files")
@pytest.mark.parametrize("place", ["notes.txt", "train/notes.txt", "train/encoded_tokens/notes"])
def test_a_foreign_file_in_a_finished_dataset_stays(place: str, folder: Path) -> None:
    Path("in.txt").write_bytes(sample_text(9))
    convert(Inline(), inputs=["in.txt"])
    (folder / "out" / place).write_text("mine")
    before = tree("out")
    for more in ({}, {"overwrite": True}):
        assert exit_code(Inline(), inputs=["in.txt"], seed=1, **more) == 6
        assert tree("out") == before


@pytest.mark.promise("overwrite")
def test_overwrite_replaces_a_dataset_once_the_new_one_is_verified(folder: Path) -> None:
    (folder / "in.txt").write_bytes(sample_text(60))
    options: dict[str, Any] = {"inputs": ["in.txt"], "text_chunk_bytes": 300}
    convert(Inline(), **options)
    convert(Inline(), output="expected", seed=1, **options)
    before = tree("out")
    with pytest.raises(KeyboardInterrupt):
        convert(stopping_at(6), seed=1, overwrite=True, **options)
    assert tree("out") == before
    shutil.copytree("out", "out.partial/replaced")  # left by a run that ended right after it had published
    convert(Inline(), seed=1, overwrite=True, **options)
    assert tree("out") == tree("expected")
    assert not Path("out.partial").exists()


# -- the command, killed


@dataclass(frozen=True)
class Undisturbed:
    """A corpus in the current folder with the result of an undisturbed run, and the time that it took."""

    arguments: list[str]
    counts: Counts
    seconds: float

    @property
    def dataset(self) -> dict[str, bytes]:
        """The dataset, which is large to show."""
        return tree("clean")

    def begin(self) -> None:
        """Remove the output of an earlier test."""
        for name in ("out", "out.partial"):
            shutil.rmtree(name, ignore_errors=True)


@pytest.fixture(scope="module")
def undisturbed() -> Iterator[Undisturbed]:
    """A corpus of several kinds with bad records and an archive that is cut off."""
    with workplace() as root:
        lines = [json.dumps({"text": text}) for text in sample_documents(250, seed=9)]
        lines.insert(99, '{"text": 5}')
        packed = gzip.compress("\n".join(lines).encode(), mtime=0)
        for name, data in {
            "a.txt": sample_text(300),
            "b.jsonl": "\n".join(lines).encode(),
            "c.jsonl.gz": packed,
            "d.jsonl.gz": packed[: len(packed) // 2],
            "e.txt": b"no UTF-8 \xff<|endoftext|>good",
        }.items():
            (root / name).write_bytes(data)
        options = {"on_error": "quarantine", "text_chunk_bytes": 900, "chunk_tokens": 64, "workers": 2}
        inputs = sorted(path.name for path in root.iterdir() if path.name != "tok.json")
        begun = time.monotonic()
        code, out, err = command(*inputs, output="clean", **options)
        seconds = time.monotonic() - begun
        assert code == 0, err
        counts = Counts.of(out.splitlines())
        counts.check()
        arguments = words(*inputs, **options, progress="none")
        yield Undisturbed(arguments, counts, seconds)


def listing(folder: str) -> str:
    """The names and sizes of the files below a folder that changes."""
    with suppress(OSError):
        return str([(entry.name, entry.stat().st_size) for entry in Path(folder).rglob("*")])
    return ""


@pytest.mark.slow
@pytest.mark.promise("exit-codes")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_an_orderly_stop_leaves_no_worker(name: str, code: int, undisturbed: Undisturbed) -> None:
    undisturbed.begin()
    process = start(undisturbed.arguments)
    while process.poll() is None and len(listing("out.partial")) < 600:  # several files
        time.sleep(0.001)
    os.killpg(process.pid, getattr(signal, name))
    found, out, err = finish(process)
    assert (found, out, err.count("\n")) == (code, "", 1), err
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert finish(start(undisturbed.arguments))[0] == 0
    assert tree("out") == undisturbed.dataset


@pytest.mark.slow
@pytest.mark.promise("one-run")
def test_a_second_run_on_the_same_output_is_refused(undisturbed: Undisturbed) -> None:
    undisturbed.begin()
    first = start(undisturbed.arguments)
    while first.poll() is None and len(listing("out.partial")) < 600:
        time.sleep(0.001)
    os.killpg(first.pid, signal.SIGSTOP)
    try:
        code, _, err = finish(start(undisturbed.arguments))
        assert (code, err.count("\n")) == (6, 1), err
        assert str(first.pid) in err
    finally:
        os.killpg(first.pid, signal.SIGCONT)
    assert finish(first)[0] == 0
    assert tree("out") == undisturbed.dataset
