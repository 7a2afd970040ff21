"""Stores behind a proxy that does harm: what a client must get over is got over, what it can't is one line."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from faulty_proxy import HARMLESS, Faults, Proxy, Strike, faulty_proxy
from servers import BUCKET, s3_options

import tokenmill.stores.object
from tokenmill.stores import (
    AlreadyThere,
    Store,
    StoreChanged,
    StoreDenied,
    StoreError,
    StoreNotFound,
    open_file,
    open_store,
)

DATA = random.Random(11).randbytes(400_000)


@contextmanager
def faulty(moto: str, faults: Faults, **options: str) -> Iterator[tuple[Store, Proxy, str]]:
    """A store with the object "x" behind a proxy whose faults begin after it was put, and its own address."""
    folder = f"s3://{BUCKET}/{uuid4().hex}"
    open_store(folder, s3_options(moto)).put("x", DATA)
    with faulty_proxy(moto, faults) as proxy:
        yield open_store(folder, {**s3_options(proxy.url), **options}), proxy, folder


@pytest.mark.parametrize("kind", [*HARMLESS, "lost"])
def test_a_read_gets_over(moto: str, kind: str) -> None:
    with faulty(moto, Faults(plan={0: kind, 1: kind, 3: kind})) as (store, proxy, _):
        version = store.head("x").version
        assert bytes(store.read("x", 5, 300_000, version)) == DATA[5:300_000]
        assert bytes(store.read("x")) == DATA
        assert proxy.struck[kind] >= 2


def test_a_stalled_server_is_asked_again(moto: str) -> None:
    plan = {0: "stall", 2: "stall"}
    with faulty(moto, Faults(plan=plan, stall_seconds=30), read_timeout="300ms") as (store, _, _):
        began = time.monotonic()
        assert bytes(store.read("x", 0, 10)) == DATA[:10]
        store.delete(["x", "y"])
        assert not list(store.list())
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("kind", ["refuse", "reset", "503", "500", "429", "lost"])
@pytest.mark.parametrize("if_absent", [False, True])
def test_a_put_gets_over(moto: str, kind: str, if_absent: bool) -> None:
    plan = Faults(plan={0: kind, 1: kind, 2: kind, 5: kind}, methods=("PUT",))
    with faulty(moto, plan) as (store, proxy, _):
        entry = store.put("new", DATA, if_absent=if_absent)
        assert entry == store.head("new")
        assert bytes(store.read("new")) == DATA
        assert proxy.struck[kind] >= 2
        with pytest.raises(AlreadyThere):
            store.put("new", DATA + b"!", if_absent=True)


def test_a_put_in_parts_gets_over(moto: str) -> None:
    whole = random.Random(3).randbytes(40 << 20)
    with faulty(moto, Faults(kinds=("reset", "503", "lost"), rate=0.8, seed=5, most=2)) as (store, proxy, _):
        store.put("large", (whole[place : place + (1 << 20)] for place in range(0, len(whole), 1 << 20)))
        assert sum(proxy.struck.values()) >= 1
        proxy.faults.rate = 0.0
        assert bytes(store.read_ranges("large", [(0, len(whole))])[0]) == whole


def test_an_answer_that_breaks_off_is_asked_for_again(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the client does not ask for again itself: of a listing, of a delete, that something is not there."""
    monkeypatch.setattr(tokenmill.stores.object, "_PAGE_OBJECTS", 20)  # as the server's are
    with faulty(moto, Faults(kinds=("cut",), rate=1.0, most=1)) as (store, proxy, folder):
        direct = open_store(folder, s3_options(moto))
        for number in range(50):
            direct.put(f"many/{number:03}", b"")
        assert [entry.key for entry in store.list("many")] == [f"many/{number:03}" for number in range(50)]
        store.delete(["many/000", "many/001"])
        assert next(iter(direct.list("many"))).key == "many/002"
        for ask in (store.read, store.head):
            with pytest.raises(StoreNotFound):
                ask("many/000")
        with pytest.raises(AlreadyThere):
            store.put("many/002", b"other", if_absent=True)
        assert proxy.struck["cut"] >= 6


@pytest.mark.parametrize("count", [1, 30, 50, 60])
def test_a_page_of_somebody_else_does_not_end_a_listing(
    moto: str, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """The client takes it for one without objects."""
    monkeypatch.setattr(tokenmill.stores.object, "_PAGE_OBJECTS", 20)  # as the server's are
    for first in range(3):
        with faulty(moto, Faults(strikes=[Strike("list-type=2", first, "portal")])) as (store, proxy, folder):
            direct = open_store(folder, s3_options(moto))
            names = [f"many/{number:03}" for number in range(count)]
            for name in names:
                direct.put(name, b"")
            listed = [entry.key for entry in store.list("many")]
            assert listed == (names if first else [])  # nothing at all is for the caller to notice
            assert proxy.struck["portal"] or first > count // 20


def test_many_faults_in_a_long_read(moto: str) -> None:
    whole = random.Random(4).randbytes(20 << 20)
    kinds = [kind for kind in HARMLESS if kind != "slow"]
    with faulty(moto, Faults(kinds=kinds, rate=0.4, seed=9, most=2)) as (_, proxy, folder):
        open_store(folder, s3_options(moto)).put("long", whole)
        with open_file(f"{folder}/long", s3_options(proxy.url)) as file:
            held = bytearray(len(whole))
            place = 0
            while got := file.readinto_at(place, memoryview(held)[place : place + 100_001]):
                place += got
        assert bytes(held) == whole
        assert sum(proxy.struck.values()) >= 2


def test_an_object_written_anew_while_it_is_read(moto: str) -> None:
    with faulty(moto, Faults(plan={1: "etag"})) as (store, _, _):
        version = store.head("x").version
        with pytest.raises(StoreChanged, match="/x"):
            store.read("x", 0, 10, version)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("expired", r"\(ExpiredToken\).*AWS_ACCESS_KEY_ID"),
        ("denied", r"\(AccessDenied\).*AWS_ACCESS_KEY_ID"),
        ("region", "AWS_REGION"),
    ],
)
def test_what_waiting_does_not_mend_is_asked_once(moto: str, kind: str, says: str) -> None:
    with faulty(moto, Faults(kinds=(kind,), rate=1.0, most=1000)) as (store, proxy, folder):
        for what in (
            lambda: store.read("x", 0, 10),
            lambda: store.head("x"),
            lambda: store.put("y", b""),
            lambda: store.put("y", b"", if_absent=True),
            lambda: list(store.list()),
        ):
            before = len(proxy.requests)
            with pytest.raises(StoreDenied, match=says) as raised:
                what()
            assert len(proxy.requests) - before <= 3
            message = str(raised.value)
            assert folder in message
            assert "\n" not in message
            assert "testing-" not in message


def test_a_server_that_always_fails_ends_within_bounds(moto: str) -> None:
    with faulty(moto, Faults(kinds=("503",), rate=1.0, most=1000), max_retries="2") as (store, proxy, _):
        for what in (lambda: store.read("x"), lambda: store.head("x"), lambda: store.put("y", b"")):
            with pytest.raises(StoreError):
                what()
        assert len(proxy.requests) <= 10


def test_a_server_that_is_gone(moto: str) -> None:
    options = {**s3_options("http://127.0.0.1:9"), "max_retries": "1"}
    store = open_store(f"s3://{BUCKET}", options)
    with pytest.raises(StoreError):
        store.read("x")
    with pytest.raises(StoreError):
        store.put("x", b"", if_absent=True)
