"""Outputs on a store whose driver ended or was overtaken: the next run is right, nothing of another is harmed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from stopped_runs import encode_or_fail
from store_runs import MORE, Harm, HarmedStore, Killed, Place, in_memory, whole

import convert.driver.conversion
import convert.encode.encode_task
import convert.shards.merge_task
from convert.errors import BadInput, Refused, StorageError
from convert.workdir.journal import StoreJournal
from convert.workdir.unpublished import UnpublishedStore
from tokenmill.stores import Entry, StoreError, StoreNotFound, open_store

pytest.importorskip("obstore", reason="obstore is not installed")
pytestmark = pytest.mark.usefixtures("at_once")


def stop(place: Place, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """A run that ends at a bad record."""
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.encode_task, "encode_chunk", encode_or_fail)
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


def test_a_file_that_cannot_be_read_leaves_an_unfinished_run(
    here: Path, place: Place, expected: dict[str, bytes]
) -> None:
    (here / "bad.txt.gz").write_text("no archive")
    with pytest.raises(BadInput, match="--on-error"):
        place.run(**MORE, inputs=["en.txt", "bad.txt.gz"])
    summary = place.run(**MORE, inputs=["en.txt", "bad.txt.gz"], exclude="bad*")
    assert summary.reused_shards > 0
    assert whole(place, expected)


def test_other_options_are_refused_and_restart_discards_the_work(
    place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(place, monkeypatch)
    with pytest.raises(Refused):
        place.run(**MORE, seed=1)
    summary = place.run(**MORE, seed=1, restart=True)
    assert summary.reused_shards == 0
    place.run(**MORE, overwrite=True)
    assert whole(place, expected)


def test_a_run_without_results_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **named: Any) -> Any:
        raise BadInput("no")

    monkeypatch.setattr(convert.encode.encode_task, "encode_chunk", fail)
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
)  # tools/check_store_faults.py: all points
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


def test_an_object_of_another_run_is_never_replaced(place: Place) -> None:
    store = UnpublishedStore(place.target, place.partial)
    store.put("train/c/0", b"abc")
    assert store.put("train/c/0", (part for part in (b"a", b"bc"))).size == 3
    with pytest.raises(StorageError, match="out/train/c/0"):
        store.put("train/c/0", b"abd")
    assert place.target.read("train/c/0") == b"abc"


def test_a_late_worker_of_another_plan_ends_the_run_and_the_next_one_is_right(
    place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = convert.shards.merge_task.merge

    def late_merge(*arguments: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(convert.shards.merge_task, "merge", merge)
            place.target.put("train/encoded_tokens/c/0", b"of another plan")
            return merge(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(convert.shards.merge_task, "merge", late_merge)
        with pytest.raises(StorageError):
            place.run(**MORE)
    assert place.run(**MORE).reused_shards > 10
    assert whole(place, expected)


def test_a_run_that_was_taken_over_ends_and_harms_nothing(
    place: Place, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run stands still for long in the middle: meanwhile another begins, and finishes."""
    encode = convert.encode.encode_task.encode_chunk

    def stand_still(chunk: Any, *more: Any, **named: Any) -> Any:
        if chunk.index == 9:
            with monkeypatch.context() as patch:
                patch.setattr(convert.encode.encode_task, "encode_chunk", encode)
                place.run(**MORE)
        return encode(chunk, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.encode_task, "encode_chunk", stand_still)
        with pytest.raises(Refused):
            place.run(**MORE)
    with pytest.raises(Refused):  # and removes what was put late
        place.run(**MORE)
    assert whole(place, expected)


def claimed(place: Place) -> StoreJournal:
    found = StoreJournal(place.partial, "out")
    found.claim()
    return found


def test_names_of_the_journal_are_written_by_one_run_alone(place: Place) -> None:
    logs = [claimed(place), claimed(place)]
    with pytest.raises(Refused):
        logs[0].confirm()
    logs[1].confirm()
    place.partial.delete(list(place.debris()))
    for log in logs:  # everything they wrote is gone: a third run has finished
        with pytest.raises(Refused):
            log.confirm()
    with pytest.raises(StoreNotFound):
        place.partial.head("journal/00000001")
    logs.append(claimed(place))
    with pytest.raises(Refused):  # a claim of the same name as its own
        logs[0].confirm()
    logs[2].confirm()


def test_a_run_that_stands_still_in_the_middle_of_a_look_harms_nothing(place: Place) -> None:
    """Another run begins, finishes and removes all between the two requests by which a run looks for its claim."""

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
    log = claimed(place)
    log._store = StandsStill(place.partial, counted)
    with pytest.raises(Refused):
        log.confirm()
    assert place.debris() == []


def test_what_another_run_took_away_is_told_as_that(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as data that is lost."""
    verify = convert.driver.conversion.verify

    def take_away(*arguments: Any) -> None:
        place.partial.delete(place.debris())
        verify(*arguments)

    monkeypatch.setattr(convert.driver.conversion, "verify", take_away)
    with pytest.raises(Refused):
        place.run(**MORE)
