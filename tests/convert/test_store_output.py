"""Outputs on a store: the bytes of a local one, whatever happens to the driver, and nothing beside them at the end."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from google_server import google_options, google_server
from naive_conversion import END, make_documents, tree
from servers import BUCKET, KEY, SECRET, moto_server, s3_options
from stopped_runs import encode_or_fail, options
from store_runs import Harm, HarmedStore, Killed, Place, in_memory

import convert.encode.worker
from convert import convert as run_conversion
from convert.__main__ import main
from convert.driver import finalizer
from convert.errors import BadInput, Refused, StorageError, UsageError
from convert.places import store_log
from convert.places.unpublished import UnpublishedStore
from engines.inline_engine import InlineEngine
from flat_tokens import verify_dataset
from flat_tokens.storage.places import StorePath
from stores import AlreadyThere, Entry, StoreError, StoreNotFound, lease, open_store
from stores.object import ObjectStore

pytest.importorskip("obstore", reason="obstore is not installed")

MORE: dict[str, Any] = {"zarr_format": 3, "chunk_tokens": 64}


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed is taken over at once, and each batch of results is put at once."""
    monkeypatch.setattr(lease, "TAKEN_OVER_SECONDS", 0.0)
    monkeypatch.setattr(lease, "WATCHED_SECONDS", 0.0)
    monkeypatch.setattr(store_log, "PUT_SECONDS", 0.0)


@pytest.fixture
def place(here: Path) -> Place:
    return in_memory(here)


@pytest.fixture
def expected(here: Path) -> dict[str, bytes]:
    """The dataset of `Place.run` with MORE, made locally."""
    run_conversion(options(output="expected", **MORE), InlineEngine())
    return tree(here / "expected")


def whole(place: Place, expected: dict[str, bytes]) -> bool:
    """Whether the output is what it must be, and nothing lies beside it."""
    assert place.debris() == []
    return place.dataset() == expected


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
    with pytest.raises(Refused, match=r"^memory://.* exists, a finished dataset; .* --overwrite"):
        place.run(**MORE)
    assert whole(place, before)
    place.run(**MORE, overwrite=True)
    assert whole(place, expected)


def test_a_store_that_deletes_only_what_is_there(here: Path, expected: dict[str, bytes]) -> None:
    """Azure's and Google's: no conversion to them began, since first of all it takes away the manifest that may be."""
    with google_server() as address:
        place = Place(f"gs://{BUCKET}/{uuid4().hex}/out", google_options(address), here)
        place.run(**MORE, seed=5, validation_fraction=0.5)
        place.run(**MORE, overwrite=True)
        assert whole(place, expected)
        assert not verify_dataset(StorePath(place.target)).problems


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_not_ours_is_left_alone(place: Place, overwrite: bool) -> None:
    place.target.put("notes.txt", b"mine")
    with pytest.raises(Refused, match=r"holds notes.txt and no manifest: it is no dataset of ours"):
        place.run(**MORE, overwrite=overwrite)
    place.target.delete(["notes.txt"])
    place.run(**MORE)
    place.target.put("train/notes.txt", b"mine")
    what = "it holds train/notes.txt, which its manifest does not list" if overwrite else "exists, a finished"
    with pytest.raises(Refused, match=what):
        place.run(**MORE, overwrite=overwrite)
    place.target.put("part-1/notes.txt", b"mine")
    if overwrite:
        with pytest.raises(
            Refused, match=r"it grew, and what was appended .* \(part-1/notes.txt\); choose another"
        ):
            place.run(**MORE, overwrite=True)
    place.target.put("manifest.json", b"{}")
    with pytest.raises(Refused, match=r"is left alone: .*manifest"):
        place.run(**MORE, overwrite=overwrite)
    assert place.target.read("train/notes.txt") == b"mine"
    assert place.debris() == []


def test_what_is_not_ours_beside_the_output_stays(place: Place, expected: dict[str, bytes]) -> None:
    place.partial.put("notes.txt", b"mine")
    place.run(**MORE)
    assert place.dataset() == expected
    assert place.debris() == ["notes.txt"]


def test_two_runs_at_a_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "TAKEN_OVER_SECONDS", 60.0)
    at_work, may_end = threading.Event(), threading.Event()

    def wait(*arguments: Any) -> Any:
        at_work.set()
        assert may_end.wait(30)
        raise BadInput("enough")

    monkeypatch.setattr(convert.encode.worker, "encode_chunk", wait)

    def first() -> None:
        with pytest.raises(BadInput, match="enough"):
            run_conversion(options(output=place.url, **MORE), InlineEngine())

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert at_work.wait(30)
        with pytest.raises(
            Refused, match=rf"^another run \(process {os.getpid()} on .* is writing memory://"
        ):
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
        if if_absent and key.startswith(("log/", "lease")):
            raise AlreadyThere(f"{key} is there")
        return entry

    monkeypatch.setattr(ObjectStore, "put", twice)
    place.run(**MORE)
    assert whole(place, expected)


def test_a_clock_that_is_wrong_takes_nothing_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    held = lease.Lease(place.partial, "out", Refused)
    held.acquire()
    monkeypatch.setattr(lease.time, "sleep", lambda _: held._write())
    with pytest.raises(Refused, match="another run"):
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
    with pytest.raises(UsageError, match="lies inside the input memory://"):
        Place(f"memory://{name}/a/out", {}, here).run(inputs=(argument.format(name),))
    Place(f"memory://{name}/a/out", {}, here).run(inputs=(f"memory://{name}/a/*.txt",))


def test_errors_of_the_store_are_one_line_each(
    here: Path, moto: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = {**s3_options(moto), "max_retries": "0"}
    unreachable = {**given, "endpoint": "http://127.0.0.1:9"}
    for output, settings, code, line in [
        ("s3://no-such-bucket/out", given, 3, r"there is no such bucket"),
        (f"s3://{BUCKET}/out", unreachable, 4, "the connection failed again and again"),
        ("gopher://a/b", {}, 2, "gopher"),
        ("https://127.0.0.1/out", {}, 4, "web server"),
        ("s3://", {}, 2, "must name a bucket"),
        (f"s3://{BUCKET}/", given, 2, f"--output s3://{BUCKET}/ is all of a store; name a folder in it"),
    ]:
        command = ["en.txt", "--tokenizer", "tok.json", "--output", output, "--progress", "none"]
        command += [f"--storage-option={name}={value}" for name, value in settings.items()]
        assert main(command) == code, output
        said = capfd.readouterr().err
        assert line in said
        assert said.count("\n") == 1


# -- what ends early


def stop(place: Place, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """A run that ends at a bad record."""
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", encode_or_fail)
        with pytest.raises(BadInput):
            place.run(**MORE, **more)


def test_the_same_command_goes_on_from_another_machine(
    place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for same in (False, True, False):
        stop(place, monkeypatch, same_machine=same)
    assert "manifest.json" not in place.dataset()
    assert "lease" not in place.debris()
    summary = place.run(**MORE)
    assert summary.reused_shards >= 5
    assert whole(place, expected)


def test_other_options_are_refused_and_overwrite_begins_anew(
    place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(place, monkeypatch)
    with pytest.raises(Refused, match=r"memory:.*partial was begun with .*seed 0 \(now 1\)|was begun with"):
        place.run(**MORE, seed=1)
    summary = place.run(**MORE, seed=1, overwrite=True)
    assert summary.reused_shards == 0
    place.run(**MORE, overwrite=True)
    assert whole(place, expected)


def test_a_run_without_results_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> Any:
        raise BadInput("no")

    monkeypatch.setattr(convert.encode.worker, "encode_chunk", fail)
    with pytest.raises(BadInput):
        place.run(**MORE)
    assert place.dataset() == {}
    assert place.debris() == []


@pytest.mark.parametrize("kind", ["folder", "url"])
def test_shards_lie_where_they_were_begun(
    here: Path, place: Place, kind: str, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (here / name).mkdir()
    one, two = ("one", "two") if kind == "folder" else (f"memory://{uuid4().hex}/s" for _ in range(2))
    for begun, asked in [(one, two), (one, None), (None, one)]:
        stop(place, monkeypatch, scratch=begun)
        assert place.run(**MORE, scratch=asked).reused_shards >= 5
        assert whole(place, expected)
        place.target.delete(list(place.dataset()))
    left = [*(here / "one").iterdir(), *(here / "two").iterdir()]
    left += [] if kind == "folder" else [*open_store(one).list(), *open_store(two).list()]
    assert left == []


def test_a_scratch_folder_that_this_machine_does_not_see(
    here: Path, place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "one").mkdir()
    stop(place, monkeypatch, scratch="one")
    (here / "one").rename(here / "gone")
    place.run(**MORE)
    assert whole(place, expected)


@pytest.mark.parametrize(
    "kind", ["before", "after", "fails", "lost"]
)  # scripts/check_store_faults.py: all points
def test_a_driver_that_ends_at_any_of_its_requests(here: Path, kind: str, expected: dict[str, bytes]) -> None:
    counted = Harm()
    in_memory(here).run(counted, **MORE)
    for at in range(("before", "after", "fails", "lost").index(kind) * 3, len(counted.requests), 12):
        place, harm = in_memory(here), Harm(at, kind)
        with suppress(Killed, StoreError, Refused):
            place.run(harm, **MORE)
        with suppress(Refused):  # it had published
            place.run(same_machine=kind in ("before", "lost"), **MORE)
        assert whole(place, expected), harm.requests[at]


def test_a_driver_that_is_killed_while_it_replaces_a_dataset(here: Path, expected: dict[str, bytes]) -> None:
    other = in_memory(here)
    other.run(**MORE, seed=3, validation_fraction=0.3)
    former = other.dataset()
    counted = Harm()
    other.run(counted, **MORE, overwrite=True)
    for at in range(0, len(counted.requests), 8):
        place, harm = in_memory(here), Harm(at)
        for key, data in former.items():
            place.target.put(key, data)
        with pytest.raises(Killed):
            place.run(harm, **MORE, overwrite=True)
        place.run(**MORE, overwrite=True)
        assert whole(place, expected), harm.requests[at]


# -- late ones


def test_an_object_of_another_run_is_never_replaced(place: Place) -> None:
    store = UnpublishedStore(place.target, place.partial)
    store.put("train/c/0", b"abc")
    assert store.put("train/c/0", (part for part in (b"a", b"bc"))).size == 3
    with pytest.raises(StorageError, match=r"out/train/c/0 was written by another run just now"):
        store.put("train/c/0", b"abd")
    assert place.target.read("train/c/0") == b"abc"


def test_a_late_worker_of_another_plan_ends_the_run_and_the_next_one_is_right(
    place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = convert.encode.worker.merge_run

    def late_merge(*arguments: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(convert.encode.worker, "merge_run", merge)
            place.target.put("train/encoded_tokens/c/0", b"of another plan")
            return merge(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "merge_run", late_merge)
        with pytest.raises(
            StorageError, match="was written by another run just now; end it, and run the same"
        ):
            place.run(**MORE)
    assert place.run(**MORE).reused_shards > 10
    assert whole(place, expected)


def test_a_run_that_was_taken_over_ends_and_harms_nothing(
    place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run stands still for long in the middle: meanwhile another begins, and finishes."""
    encode = convert.encode.worker.encode_chunk

    def stand_still(chunk: Any, *more: Any) -> Any:
        if chunk.index == 9:
            with monkeypatch.context() as patch:
                patch.setattr(convert.encode.worker, "encode_chunk", encode)
                place.run(**MORE)
        return encode(chunk, *more)

    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", stand_still)
        with pytest.raises(Refused, match="another run has taken over the work at memory://"):
            place.run(**MORE)
    with pytest.raises(Refused, match="exists, a finished dataset"):  # and removes what was put late
        place.run(**MORE)
    assert whole(place, expected)


def test_names_of_the_log_are_written_by_one_run_alone(place: Place, tmp_path: Path) -> None:
    logs = [store_log.StoreLog(tmp_path, place.partial, "out", holder) for holder in ("a", "b")]
    logs[0].take_over()
    logs[1].take_over()
    with pytest.raises(Refused):
        logs[0].confirm()
    logs[1].confirm()
    place.partial.delete(list(place.debris()))
    for log in logs:  # all that they wrote is gone: a third run has finished
        with pytest.raises(Refused):
            log.confirm()
    with pytest.raises(StoreNotFound):
        place.partial.head("log/00000001")
    logs.append(store_log.StoreLog(tmp_path, place.partial, "out", "c"))
    logs[2].take_over()
    with pytest.raises(Refused):  # the claim that is there has the name of its own
        logs[0].confirm()
    logs[2].confirm()


def test_a_run_that_stands_still_in_the_middle_of_a_look_harms_nothing(place: Place, tmp_path: Path) -> None:
    """Another run begins, finishes and removes all between the two requests by which a run finds out whether it is the
    one that writes."""

    class StandsStill(HarmedStore):
        def delete_all_after(self, request: str) -> None:
            if counted.requests[-1:] == [request]:
                place.partial.delete(place.debris())

        def head(self, key: str) -> Entry:
            found = super().head(key)
            self.delete_all_after(f"head {key}")
            return found

        def put(self, key: str, data: Any, if_absent: bool = False) -> Entry:
            entry = super().put(key, data, if_absent)
            self.delete_all_after(f"put {key}")
            return entry

    counted = Harm(of=("head", "put"))
    log = store_log.StoreLog(tmp_path, place.partial, "out", "a")
    log.take_over()
    log._store = StandsStill(place.partial, counted)
    with pytest.raises(Refused):
        log.confirm()
    assert place.debris() == []


def test_what_another_run_took_away_is_told_as_that(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as data that is lost."""
    verify = finalizer.Finalizer.verify

    def take_away(*arguments: Any) -> None:
        place.partial.delete(place.debris())
        verify(*arguments)

    monkeypatch.setattr(finalizer.Finalizer, "verify", take_away)
    with pytest.raises(Refused, match="another run has taken over the work at memory://"):
        place.run(**MORE)
