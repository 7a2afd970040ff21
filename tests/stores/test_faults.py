"""Object stores through a proxy that injects faults: clients retry, or report the cause in one line."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from faulty_proxy import HARMLESS, Faults, Proxy, Strike, faulty_proxy
from servers import BUCKET, s3_options

from tokenmill.stores import (
    AlreadyThere,
    Store,
    StoreChanged,
    StoreDenied,
    StoreNotFound,
    StoreUnavailable,
    open_store,
    requests,
)
from tokenmill.stores import object as object_module

DATA = random.Random(11).randbytes(400_000)


@contextmanager
def faulty(moto: str, faults: Faults, **options: str) -> Iterator[tuple[Store, Proxy, str]]:
    """A store with the object "x" through a proxy that injects faults after the put, and the URL of the store."""
    folder = f"s3://{BUCKET}/{uuid4().hex}"
    open_store(folder, s3_options(moto)).put("x", DATA)
    with faulty_proxy(moto, faults) as proxy:
        yield open_store(folder, {**s3_options(proxy.url), **options}), proxy, folder


def accesses(store: Store) -> list[Any]:
    return [
        lambda: store.read("x", 0, 10),
        lambda: store.head("x"),
        lambda: store.put("y", b""),
        lambda: store.put("y", b"", if_absent=True),
        lambda: list(store.list()),
    ]


@pytest.mark.slow
@pytest.mark.promise("stores")
@pytest.mark.parametrize("kind", [*HARMLESS, "lost"])
def test_a_read_overcomes_faults(moto: str, kind: str) -> None:
    with faulty(moto, Faults(plan={0: kind, 1: kind, 3: kind})) as (store, proxy, _):
        version = store.head("x").version
        assert bytes(store.read("x", 5, 300_000, version)) == DATA[5:300_000]
        assert bytes(store.read("x")) == DATA
        assert proxy.struck[kind] >= 2


@pytest.mark.slow
@pytest.mark.promise("stores")
@pytest.mark.parametrize("kind", ["refuse", "reset", "503", "500", "429", "lost"])
@pytest.mark.parametrize("if_absent", [False, True])
def test_a_put_overcomes_faults(moto: str, kind: str, if_absent: bool) -> None:
    plan = Faults(plan={0: kind, 1: kind, 2: kind, 5: kind}, methods=("PUT",))
    with faulty(moto, plan) as (store, proxy, _):
        entry = store.put("new", DATA, if_absent=if_absent)
        assert entry == store.head("new")
        assert bytes(store.read("new")) == DATA
        assert proxy.struck[kind] >= 2
        with pytest.raises(AlreadyThere):
            store.put("new", DATA + b"!", if_absent=True)


def test_a_broken_answer_is_requested_again(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client itself does not repeat listings, deletions and reads of missing objects."""
    monkeypatch.setattr(object_module, "_PAGE_OBJECTS", 20)  # as on the server
    with faulty(moto, Faults(kinds=("cut",), rate=1.0, most=1)) as (store, proxy, folder):
        direct = open_store(folder, s3_options(moto))
        keys = [f"many/{number:03}" for number in range(50)]
        for key in keys:
            direct.put(key, b"1")
        assert [entry.key for entry in store.list("many")] == keys
        store.delete(keys[:2])
        assert [entry.key for entry in direct.list("many")] == keys[2:]
        for access in (store.read, store.head):
            with pytest.raises(StoreNotFound):
                access(keys[0])
        with pytest.raises(AlreadyThere):
            store.put(keys[2], b"other", if_absent=True)
        assert proxy.struck["cut"] >= 6


@pytest.mark.parametrize("count", [1, 50])
def test_an_unrelated_page_does_not_end_a_listing(
    moto: str, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """The client takes it for a page without objects."""
    monkeypatch.setattr(object_module, "_PAGE_OBJECTS", 20)  # as on the server
    keys = [f"many/{number:03}" for number in range(count)]
    with faulty(moto, Faults()) as (store, proxy, folder):
        for key in keys:
            open_store(folder, s3_options(moto)).put(key, b"1")
        for first in range(3):
            proxy.faults = Faults(strikes=[Strike("list-type=2", first, "portal")])
            # Callers must notice an empty listing themselves.
            assert [entry.key for entry in store.list("many")] == (keys if first else [])
        assert proxy.struck["portal"] == (3 if count > 20 else 1)


@pytest.mark.parametrize("count", [1, 3])
def test_the_deletion_of_a_missing_object_ended_the_deletion_of_others(moto: str, count: int) -> None:
    with faulty(moto, Faults(plan={0: "missing"})) as (store, _, folder):
        direct = open_store(folder, s3_options(moto))
        keys = [f"many/{number}" for number in range(count)]
        for key in keys[1:]:
            direct.put(key, b"1")
        store.delete(keys)
        assert [entry.key for entry in direct.list()] == ["x"]


def test_an_object_that_is_replaced_while_it_is_read(moto: str) -> None:
    with faulty(moto, Faults(plan={1: "etag"})) as (store, _, _):
        version = store.head("x").version
        with pytest.raises(StoreChanged, match="/x"):
            store.read("x", 0, 10, version)


@pytest.mark.parametrize("kind", ["expired", "denied", "region"])
def test_a_permanent_error_is_one_line_after_one_request(moto: str, kind: str) -> None:
    codes = {"expired": "ExpiredToken", "denied": "AccessDenied", "region": ""}  # HEAD has no body
    fixes = {"expired": "AWS_ACCESS_KEY_ID", "denied": "AWS_ACCESS_KEY_ID", "region": "AWS_REGION"}
    with faulty(moto, Faults(kinds=(kind,), rate=1.0, most=1000)) as (store, proxy, folder):
        for access in accesses(store):
            before = len(proxy.requests)
            with pytest.raises(StoreDenied) as raised:
                access()
            assert len(proxy.requests) - before <= 3
            message = str(raised.value)
            assert not raised.value.is_transient
            assert all(text in message for text in (folder, codes[kind], fixes[kind]))
            assert "\n" not in message
            assert "testing-" not in message


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["503", "429", "refuse", "reset", "cut", "less", "stall"])
def test_an_error_that_outlasts_the_retries_is_transient(
    moto: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_ATTEMPTS", 2)
    faults = Faults(kinds=(kind,), rate=1.0, most=1000, stall_seconds=30)
    with faulty(moto, faults, max_retries="1", read_timeout="300ms") as (store, proxy, folder):
        for access in accesses(store) if kind not in ("cut", "less") else accesses(store)[:1]:
            with pytest.raises(StoreUnavailable, match=folder) as raised:
                access()
            error = pickle.loads(pickle.dumps(raised.value))
            assert error.is_transient
            assert "\n" not in str(error)
        assert len(proxy.requests) <= 20
