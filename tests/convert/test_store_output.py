"""Outputs on a store: the bytes of a local one, whatever happens to the driver, and nothing beside them at the end."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from naive_conversion import END, make_documents, tree
from servers import BUCKET, KEY, SECRET, moto_server, s3_options
from stopped_runs import options
from store_runs import MORE, Place, whole

import convert.encode.encode_task
from convert import convert as run_conversion
from convert.__main__ import main
from convert.driver.conversion import dry_run
from convert.errors import BadInput, Refused, UsageError
from flat_tokens import verify_dataset
from flat_tokens.storage.places import StorePath
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.stores import AlreadyThere, Entry, lease, open_store
from tokenmill.stores.object import ObjectStore

pytest.importorskip("obstore", reason="obstore is not installed")
pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with moto_server() as address:
        yield address


# -- the same bytes


def write_inputs(here: Path) -> None:
    documents = make_documents(40, seed=9)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in documents).encode()
    (here / "lines.jsonl.gz").write_bytes(gzip.compress(lines + b"{no json\n" + lines, mtime=0))
    (here / "bad.txt").write_bytes(END.join(documents).encode() + b"<|endoftext|>bad \xff<|endoftext|>good")
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": documents}), here / "table.parquet", row_group_size=7)


CASES: dict[str, dict[str, Any]] = {
    "text": {},
    "jsonl.gz": {"inputs": ("lines.jsonl.gz",), "on_error": "skip"},
    "parquet": {"inputs": ("table.parquet",)},
    "quarantine": {"inputs": ("bad.txt", "lines.jsonl.gz"), "on_error": "quarantine"},
    "validation documents": {"validation_docs": 5},
    "a token behind each document": {"append_token": END},
    "validation of its own": {"validation": ("bad.txt",), "on_error": "skip"},
    "uncompressed": {"compression": "none"},
    "no documents": {"inputs": ("empty.txt",)},
}


@pytest.mark.parametrize("case", CASES)
def test_the_bytes_of_a_local_output(here: Path, place: Place, case: str) -> None:
    write_inputs(here)
    (here / "empty.txt").write_bytes(b"")
    more = {**MORE, **CASES[case]}
    run_conversion(options(output="local", **more), InlineEngine())
    place.run(**more)
    assert whole(place, tree(here / "local"))
    assert not verify_dataset(StorePath(place.target)).problems


@pytest.mark.parametrize("scratch", [None, "url"])
def test_worker_processes_and_a_server(
    here: Path,
    moto: str,
    scratch: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_inputs(here)
    inputs = ("en.txt", "lines.jsonl.gz", "bad.txt")
    more = {**MORE, "inputs": inputs, "on_error": "quarantine"}
    run_conversion(options(output="local", **more), InlineEngine())
    home = here / "temporary"
    home.mkdir()
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setattr("tempfile.tempdir", None)
    place = Place(f"s3://{BUCKET}/{uuid4().hex}/out", s3_options(moto), here)
    command = [*inputs, "--tokenizer", "tok.json", "--output", place.url, "--on-error", "quarantine"]
    command += ["--chunk-tokens", "64", "--text-chunk-bytes", "200", "--workers", "2", "--quiet"]
    command += [f"--storage-option={name}={value}" for name, value in place.options.items()]
    shards = open_store(f"s3://{BUCKET}/{uuid4().hex}", place.options)
    if scratch is not None:
        command += ["--scratch", shards.url]
    assert main(command) == 0, capfd.readouterr().err
    assert whole(place, tree(here / "local"))
    assert [*home.iterdir(), *shards.list()] == []
    assert not any(SECRET.encode() in data or KEY.encode() in data for data in place.dataset().values())


# -- what is in the way


def test_a_finished_dataset_is_replaced_on_request_only(place: Place, expected: dict[str, bytes]) -> None:
    place.run(**MORE, seed=5, validation_fraction=0.5)
    before = place.dataset()
    with pytest.raises(Refused, match="--overwrite"):
        place.run(**MORE)
    assert whole(place, before)
    place.run(**MORE, overwrite=True)
    assert whole(place, expected)


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_not_ours_is_left_alone(place: Place, overwrite: bool) -> None:
    place.target.put("notes.txt", b"mine")
    with pytest.raises(Refused, match="notes.txt"):
        place.run(**MORE, overwrite=overwrite)
    place.target.delete(["notes.txt"])
    place.run(**MORE)
    place.target.put("train/notes.txt", b"mine")
    with pytest.raises(Refused, match="out: .*train/notes.txt" if overwrite else "out: .*--overwrite"):
        place.run(**MORE, overwrite=overwrite)
    place.target.put("part-1/notes.txt", b"mine")
    if overwrite:
        with pytest.raises(Refused, match="part-1/notes.txt"):
            place.run(**MORE, overwrite=True)
    place.target.put("manifest.json", b"{}")
    with pytest.raises(Refused):
        place.run(**MORE, overwrite=overwrite)
    assert place.target.read("train/notes.txt") == b"mine"
    assert place.debris() == []


def test_what_is_not_ours_beside_the_output_stays(place: Place, expected: dict[str, bytes]) -> None:
    """Objects of almost the same names were deleted, or crashed the run."""
    foreign = ["job-1", "jobs.txt", "journal/readme", "log/readme", "notes.txt"]
    for key in foreign:
        place.partial.put(key, b"mine")
    place.run(**MORE)
    assert place.dataset() == expected
    assert place.debris() == foreign


def test_a_dry_run_took_the_lease_and_deleted_what_a_killed_run_had_left(place: Place) -> None:
    place.run(**MORE)
    place.partial.put("shards/00000000-0.train", b"left")
    with pytest.raises(Refused):
        dry_run(options(output=place.url, **MORE))
    assert place.debris() == ["shards/00000000-0.train"]
    with pytest.raises(Refused):
        place.run(**MORE)
    assert place.debris() == []


def test_two_runs_at_a_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "TAKEN_OVER_SECONDS", 60.0)
    at_work, may_end = threading.Event(), threading.Event()

    def wait(*arguments: Any, **named: Any) -> Any:
        at_work.set()
        assert may_end.wait(30)
        raise BadInput("enough")

    monkeypatch.setattr(convert.encode.encode_task, "encode_chunk", wait)

    def first() -> None:
        with pytest.raises(BadInput, match="enough"):
            run_conversion(options(output=place.url, **MORE), InlineEngine())

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert at_work.wait(30)
        with pytest.raises(Refused, match=f"{os.getpid()}"):
            place.run(**MORE)
    finally:
        may_end.set()
        thread.join()
    assert place.debris() == []


def test_a_put_that_came_twice_was_taken_for_that_of_another_run(
    place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something on the way sends a put twice, and the answer of the second comes back: it is there already."""
    put = ObjectStore.put

    def twice(self: ObjectStore, key: str, data: Any, if_absent: bool = False) -> Entry:
        entry = put(self, key, data, if_absent)
        if if_absent and key.startswith(("journal/", "lease")):
            raise AlreadyThere(f"{key} is there")
        return entry

    monkeypatch.setattr(ObjectStore, "put", twice)
    place.run(**MORE)
    assert whole(place, expected)


def test_a_clock_that_is_wrong_takes_nothing_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    held = lease.Lease(place.partial, "out", Refused)
    held.acquire()
    monkeypatch.setattr(lease.time, "sleep", lambda _: held._write())
    with pytest.raises(Refused):
        place.run(**MORE)
    held.release()


def test_a_clock_that_was_set_back_held_a_killed_run_until_then(
    place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "TAKEN_OVER_SECONDS", 60.0)
    entry = {"holder": "1", "host": "here", "process": 1, "renewed": time.time() + 86400}
    place.partial.put("lease", json.dumps(entry).encode())
    place.run(**MORE)
    assert whole(place, expected)
    assert place.debris() == []


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'{"holder": 1, "renewed": "x"}', b'{"holder": 1, "renewed": NaN}']
)
def test_a_lease_that_cannot_be_read_is_taken_over(
    place: Place, content: bytes, expected: dict[str, bytes]
) -> None:
    place.partial.put("lease", content)
    place.run(**MORE)
    assert whole(place, expected)


@pytest.mark.parametrize(
    "argument", ["memory://{}", "memory://{}/a/", "memory://{}/**/*.txt", "memory://{}/a/out"]
)
def test_an_output_inside_an_input(here: Path, argument: str) -> None:
    name = uuid4().hex
    open_store(f"memory://{name}").put("a/b.txt", b"text")
    with pytest.raises(UsageError):
        Place(f"memory://{name}/a/out", {}, here).run(inputs=(argument.format(name),))
    Place(f"memory://{name}/a/out", {}, here).run(inputs=(f"memory://{name}/a/*.txt",))


def test_errors_of_the_store_are_one_line_each(
    here: Path, moto: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = {**s3_options(moto), "max_retries": "0"}
    unreachable = {**given, "endpoint": "http://127.0.0.1:9"}
    for output, settings, code, line in [
        ("s3://no-such-bucket/out", given, 3, "s3://no-such-bucket"),
        (f"s3://{BUCKET}/out", unreachable, 4, f"s3://{BUCKET}/out"),
        ("gopher://a/b", {}, 2, "gopher"),
        ("https://127.0.0.1/out", {}, 2, "error: https://127.0.0.1/out: "),
        ("s3://", {}, 2, "s3://"),
        (f"s3://{BUCKET}/", given, 2, f"error: s3://{BUCKET}/: "),
    ]:
        command = ["en.txt", "--tokenizer", "tok.json", "--output", output, "--progress", "none"]
        command += [f"--storage-option={name}={value}" for name, value in settings.items()]
        assert main(command) == code, output
        said = capfd.readouterr().err
        assert line in said
        assert said.count("\n") == 1
