"""Counting on an engine writes the same file as one machine, and a failed run leaves no files."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from inline_engine import InlineEngine
from input_kinds import KINDS, write_kind
from servers import BUCKET, moto_server, s3_options
from test_counted_documents import Notes, documents_of

from bpe import count_files, count_pretokens
from bpe.__main__ import main
from bpe.errors import BadArgument, InvalidText
from tokenmill.engines.engine import attempt, pickled
from tokenmill.inputs.errors import BadInput
from tokenmill.stores import StoreError, open_store

END = "<|endoftext|>"


def on_one_machine(inputs: list[Path], output: Path, special_tokens: list[str], **more: Any) -> bytes:
    count_pretokens(inputs, special_tokens, **more).save(output)
    return output.read_bytes()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a glob of files of all kinds, some much longer than others, and an empty one."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number, kind in enumerate(KINDS):
        write_kind(folder / f"{number:02}", documents_of(number, 20 if number % 3 else 100), kind)
    (folder / "zz.txt").write_bytes(b"")
    return folder / "*"


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["gpt2", r"\w+|\W+"])
def test_files_of_all_kinds(
    pattern: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = on_one_machine([corpus], tmp_path / "one", [END], pattern=pattern)
    for chunk_bytes, fan_in in ((400, 3), (4000, 2), (1 << 30, 16)):
        monkeypatch.setattr("bpe.pretoken_counts.on_engine.FAN_IN", fan_in)
        output = tmp_path / f"{chunk_bytes}"
        count_files([corpus], output, [END], pattern, InlineEngine(), text_chunk_bytes=chunk_bytes)
        assert output.read_bytes() == expected
    assert not list(tmp_path.glob(".bpe*"))


def random_text(rng: random.Random, tokens: list[str], invalid: bool) -> bytes:
    """Return text with long spans that cannot be cut, or with many special tokens."""
    parts: list[bytes] = []
    for _ in range(rng.randrange(1, 12)):
        alphabet = rng.choice(
            [["a"], ["a", " "], ["é", "字", " ", "e\u0301"], ["\n", " ", "x"], ["a", *tokens]]
        )
        parts += [rng.choice(alphabet).encode() for _ in range(rng.choice([3, 60, 700]))]
        if invalid and rng.random() < 0.6:
            parts.append(rng.choice([b"\xff", b"\xe4\xb8", b"\x80\x80\x80\x80", b"\xc3"]))
    return b"".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_texts(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    tokens = rng.choice([[], [END], ["<|a|>", "<|a|>b", "<|end of a|>"], ["aa"], ["\n\n"], ["a<|b", "|b c"]])
    more = {
        "invalid": rng.choice(["error", "replace"]),
        "pattern": rng.choice(["gpt2", "o200k", "llama3", r"\w+|\W+"]),
        "normalizer": rng.choice([None, "NFC"]),
    }
    (tmp_path / "in").mkdir()
    for number in range(rng.randrange(1, 4)):
        text = random_text(rng, tokens, more["invalid"] == "replace")
        (tmp_path / f"in/{number}.txt").write_bytes(text)
    expected = on_one_machine([tmp_path / "in"], tmp_path / "one", tokens, **more)
    for chunk_bytes in (rng.randrange(30, 100), rng.randrange(100, 2000), 10_000):
        output = tmp_path / "out"
        count_files(
            [tmp_path / "in"], output, tokens, executor=InlineEngine(), text_chunk_bytes=chunk_bytes, **more
        )
        assert output.read_bytes() == expected, chunk_bytes


class KillsAWorker(Notes):
    """Kill a worker once something is counted."""

    killed = False

    def update(self, done: int) -> None:
        children = multiprocessing.active_children()
        if not self.killed and done and children:
            os.kill(children[0].pid or 0, signal.SIGKILL)
            self.killed = True


@pytest.mark.long
def test_processes_and_one_that_is_killed(corpus: Path, tmp_path: Path) -> None:
    expected = on_one_machine([corpus], tmp_path / "one", [END])
    (tmp_path / "scratch").mkdir()
    killer = KillsAWorker()
    more: dict[str, Any] = {"workers": 2, "scratch": tmp_path / "scratch", "progress": killer}
    count_files([corpus], tmp_path / "out", [END], text_chunk_bytes=1000, **more)
    assert killer.killed
    assert (tmp_path / "out").read_bytes() == expected
    assert not list((tmp_path / "scratch").iterdir())


class RunsTwice(InlineEngine):
    """Run each task again when its result is known, and all of them at the end, like tasks of lost workers."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls.append(pickled(fn, *args))
        attempt(self.calls[-1])
        return super().submit(fn, *args, **kwargs)


@pytest.mark.parametrize("place", ["folder", "store"])
def test_tasks_that_run_twice_and_late(place: str, corpus: Path, tmp_path: Path) -> None:
    scratch = str(tmp_path / "scratch")
    if place == "store":
        pytest.importorskip("obstore", reason="obstore is not installed")
        scratch = f"memory://{uuid4().hex}/scratch"
    else:
        Path(scratch).mkdir()
    expected = on_one_machine([corpus], tmp_path / "one", [END])
    engine = RunsTwice()
    more: dict[str, Any] = {"scratch": scratch, "text_chunk_bytes": 3000, "executor": engine}
    count_files([corpus], tmp_path / "out", [END], **more)
    assert (tmp_path / "out").read_bytes() == expected
    assert not list(open_store(scratch).list())
    for call in engine.calls:
        attempt(call)
    assert not list(open_store(scratch).list())
    if place == "folder":
        assert not list(Path(scratch).iterdir())


@pytest.mark.slow
def test_a_store(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    expected = on_one_machine([corpus], tmp_path / "one", [END])
    with moto_server() as address:
        options = s3_options(address)
        store = open_store(f"s3://{BUCKET}/x", options)
        words = [part for pair in options.items() for part in ("--storage-option", "=".join(pair))]
        command = ["count", str(corpus), "--special-token", END, "--quiet", *words]
        command += ["--output", f"s3://{BUCKET}/x/out.counts", "--text-chunk-bytes", "3000", "--workers", "2"]
        assert main([*command, "--executor", "process", "--scratch", f"s3://{BUCKET}/x/scratch"]) == 0
        assert [entry.key for entry in store.list()] == ["out.counts"]
        assert bytes(store.read("out.counts")) == expected
        store.delete(["out.counts"])
        # Scratch next to the output; and object-store inputs, which are read in parts.
        for name in ("00.txt", "10.jsonl", "05.jsonl"):
            found = next(corpus.parent.glob(f"{name[:2]}*"))
            store.put(f"in/{found.name}", found.read_bytes())
        urls = [f"s3://{BUCKET}/x/in/*"]
        count_pretokens(urls, [END], storage_options=options).save(tmp_path / "objects")
        with ThreadPoolExecutor(2) as pool:
            more: dict[str, Any] = {"executor": pool, "workers": 2, "storage_options": options}
            count_files(urls, f"s3://{BUCKET}/x/out", [END], text_chunk_bytes=2000, **more)
        assert bytes(store.read("out")) == (tmp_path / "objects").read_bytes()
        assert [entry.key for entry in store.list() if not entry.key.startswith("in/")] == ["out"]
        with pytest.raises(StoreError):
            count_files(urls, "s3://no-such-bucket/out", executor=InlineEngine(), storage_options=options)


def test_counts_files_are_added_and_an_output_is_an_object(tmp_path: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"{name} word{END}" * 500)
    first, both = tmp_path / "a.counts", tmp_path / "both.counts"
    count = ["count", "--special-token", END, "--quiet"]
    assert main([*count, str(tmp_path / "a.txt"), "--output", str(first)]) == 0
    more = [str(tmp_path / "b.txt"), "--counts", str(first)]
    assert main([*count, *more, "--output", str(both)]) == 0
    place = f"memory://{uuid4().hex}"
    assert main([*count, *more, "--output", f"{place}/one.counts"]) == 0
    assert main([*count, *more, "--output", f"{place}/two.counts", "--executor", "process"]) == 0
    store = open_store(place)
    assert [entry.key for entry in store.list()] == ["one.counts", "two.counts"]
    assert {bytes(store.read(entry.key)) for entry in store.list()} == {both.read_bytes()}


def test_bad_text_and_records(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"word " * 5000 + b"\xff" + b" word" * 5000)
    (tmp_path / "bad.jsonl").write_bytes(b'{"text": "a"}\n' * 500 + b'{"text": 5}\n')
    for name, error, message in (
        ("bad.txt", InvalidText, r"bad\.txt.*25000"),
        ("bad.jsonl", BadInput, r"bad\.jsonl: line"),
    ):
        with pytest.raises(error, match=message):
            count_files([tmp_path / name], tmp_path / "out", executor=InlineEngine(), text_chunk_bytes=3000)
    notes = Notes()
    more: dict[str, Any] = {"on_error": "skip", "invalid": "replace"}
    inputs = [tmp_path / "bad.txt", tmp_path / "bad.jsonl"]
    expected = on_one_machine(inputs, tmp_path / "one", [], **more)
    count_files(
        inputs, tmp_path / "out", executor=InlineEngine(), text_chunk_bytes=3000, progress=notes, **more
    )
    assert (tmp_path / "out").read_bytes() == expected
    assert len(notes.notes) == 2
    assert "U+FFFD" in notes.notes[0]
    assert f"first in {tmp_path / 'bad.jsonl'} at byte 7000" in notes.notes[1]
    assert not list(tmp_path.glob(".bpe*"))


def test_an_input_that_changes(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("word " * 4000)

    class Changes(InlineEngine):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            path.write_text("other " * 4000)
            return super().submit(fn, *args, **kwargs)

    with pytest.raises(BadInput, match=r"in\.txt"):
        count_files([path], tmp_path / "out", executor=Changes(), text_chunk_bytes=3000)
    assert not (tmp_path / "out").exists()


def test_options_that_do_not_go_together(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("text")
    for more, flag in {
        "--workers 2": "--workers",
        "--executor process --threads 2": "--threads",
        "--executor process --sample-bytes 20": "--sample-bytes",
        "--executor dask": "--executor dask",
        "--executor process --address auto": "--address",
    }.items():
        words = ["count", f"{tmp_path}/in.txt", "--output", f"{tmp_path}/out", "--quiet", *more.split()]
        assert main(words) == 2
        error = capfd.readouterr().err
        assert (error.count("\n"), f"{flag}: " in error) == (1, True), error
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_inputs_that_workers_cannot_open(tmp_path: Path) -> None:
    with Path(os.devnull).open("rb") as stream, pytest.raises(BadArgument):
        count_files([stream], tmp_path / "out", executor=InlineEngine())  # type: ignore[list-item]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_is_one_line_and_leaves_nothing(number: int, tmp_path: Path) -> None:
    rng = random.Random(1)
    text = " ".join(f"{rng.random()}" for _ in range(20_000))
    (tmp_path / "in.txt").write_text("\n".join([text] * 20))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = f"-m bpe count {tmp_path}/in.txt --output {tmp_path}/out --quiet --executor process"
    words += r" --text-chunk-bytes 100kB --pattern \w+|\W+"  # the regex package is slow
    command = [sys.executable, *words.split()]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    stop = time.monotonic() + 60
    while not list(tmp_path.glob(".bpe-counts-*/*.run")):
        assert time.monotonic() < stop
        time.sleep(0.005)
    process.send_signal(number)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert message.startswith("tokenmill: error: interrupted")
    assert message.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


needs_dask = pytest.mark.skipif(
    not sys.platform.startswith("linux") or importlib.util.find_spec("distributed") is None,
    reason="needs Linux and the extra cluster (distributed)",
)


@pytest.mark.slow
@needs_dask
def test_dask(corpus: Path, tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "convert/dask_cluster.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    expected = on_one_machine([corpus], tmp_path / "one", [END])
    with subprocess.Popen(
        [sys.executable, str(script), "2", "2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as cluster:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        more: dict[str, Any] = {"executor": "dask", "scheduler": address, "text_chunk_bytes": 3000}
        count_files([corpus], tmp_path / "out", [END], **more)
        assert (tmp_path / "out").read_bytes() == expected
        (tmp_path / "bad.txt").write_bytes(b"\xff")
        with pytest.raises(InvalidText, match=r"bad\.txt"):
            count_files([tmp_path / "bad.txt"], tmp_path / "none", **more)
        with suppress(BrokenPipeError):
            cluster.communicate(timeout=60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "in", "one", "out"]
