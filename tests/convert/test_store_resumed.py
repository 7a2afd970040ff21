"""Drivers of an output on a store that end at any request: the next run is right and harms no other run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

import pytest
from runs import Inline, convert, error_of, tree
from store_runs import OPTIONS, HarmedStore, Killed, Output, expired_leases

from convert.errors import Refused
from tokenmill.stores import StoreError, open_store

pytest.importorskip("obstore", reason="obstore is not installed")


@pytest.fixture(autouse=True)
def clean(here: Path) -> Iterator[dict[str, bytes]]:
    """The dataset of en.txt on a disk."""
    convert(Inline(), output="clean", **OPTIONS)
    with expired_leases():
        yield tree("clean")


@pytest.mark.parametrize("is_url", [False, True])
def test_a_resumed_run_continues_where_the_shards_are(is_url: bool, clean: dict[str, bytes]) -> None:
    one, two = (f"memory://{uuid4().hex}/s" for _ in range(2)) if is_url else ("one", "two")
    for name in ("one", "two"):
        Path(name).mkdir()
    for begun, given in [(one, two), (one, None), (None, one)]:
        output = Output()
        output.stop(scratch=begun)
        assert output.run(scratch=given).reused_shards >= 5
        assert output.objects() == clean
    assert not list(open_store(one).list())
    assert not list(open_store(two).list())


class Harm:
    """Something happens at the request with this number, counted from 0 over puts and deletes.

    kind: the driver is killed before or after the request, or the request fails, or is done but reported as failed.
    """

    def __init__(self, at: int = -1, kind: str = "before") -> None:
        self.at, self.kind, self.is_dead = at, kind, False
        self.requests: list[str] = []

    def ask(self, request: str, do: Callable[[], Any]) -> Any:
        if self.is_dead:
            raise Killed
        if not request.startswith(("put", "delete")):
            return do()
        number = len(self.requests)
        self.requests.append(request)
        if number == self.at and self.kind in ("before", "fails"):
            self._strike()
        result = do()
        if number == self.at:
            self._strike()
        return result

    def _strike(self) -> None:
        if self.kind in ("fails", "lost"):
            raise StoreError("connection failed. Check the network.")
        self.is_dead = True
        raise Killed


def run_harmed(output: Output, harm: Harm, **more: Any) -> None:
    def harmed(*arguments: Any) -> HarmedStore:
        return HarmedStore(open_store(*arguments), harm.ask)

    with mock.patch("convert.workdir.store.open_store", harmed):
        output.run(**more)


KINDS = ["before", "after", "fails", "lost"]


@pytest.mark.slow
@pytest.mark.promise("resume")
@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_that_ends_at_any_request(kind: str, clean: dict[str, bytes]) -> None:
    counted = Harm()
    run_harmed(Output(), counted)
    for at in range(3 * KINDS.index(kind), len(counted.requests), 12):  # tests/stress/test_jobs.py: all
        output, harm = Output(), Harm(at, kind)
        with suppress(Killed, StoreError, Refused):
            run_harmed(output, harm)
        with suppress(Refused):  # it was published
            output.run()
        assert output.objects() == clean, harm.requests[at]


@pytest.mark.slow
@pytest.mark.promise("overwrite")
def test_a_driver_that_is_killed_while_it_replaces_a_dataset(clean: dict[str, bytes]) -> None:
    first, counted = Output(), Harm()
    first.run(seed=3, validation_fraction=0.3)
    former = first.objects()
    run_harmed(first, counted, overwrite=True)
    for at in range(0, len(counted.requests), 8):
        output, harm = Output(), Harm(at)
        for key, data in former.items():
            output.target.put(key, data)
        with pytest.raises(Killed):
            run_harmed(output, harm, overwrite=True)
        output.run(overwrite=True)
        assert output.objects() == clean, harm.requests[at]


@pytest.mark.slow
@pytest.mark.promise("lease")
@pytest.mark.parametrize("stop", range(2, 30, 3))
def test_a_run_that_was_taken_over_ends_and_harms_nothing(stop: int, clean: dict[str, bytes]) -> None:
    """The first run pauses in the middle while another run starts and finishes."""
    output = Output()

    def take_over(number: int) -> None:
        if number == stop:
            output.run()

    try:
        output.run(Inline(take_over))
    except Refused:
        assert error_of(Inline(), output=output.url, **OPTIONS).exit_code == 6  # removes late objects
    assert output.objects() == clean


def test_a_late_object_of_another_plan_ends_the_run(clean: dict[str, bytes]) -> None:
    output = Output()

    def put_late(number: int) -> None:
        if number == 19:  # the first merge task
            output.target.put("train/encoded_tokens/c/0", b"of another plan")

    assert error_of(Inline(put_late), output=output.url, **OPTIONS).exit_code == 4
    assert output.run().reused_shards > 10
    assert output.objects() == clean
