"""hf:// against a Hub on loopback: listing, parts of files, the commit that is read, tokens, failures."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest
from hub_files import HubServer, hub_server

from tokenmill.stores import (
    Store,
    StoreChanged,
    StoreError,
    StoreNotFound,
    UnknownScheme,
    open_file,
    open_store,
)

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
TEXT = b"0123456789" * 1000
FILES = {"README.md": b"# texts", "data/b.txt": TEXT, "data/a.txt": b"a", "data/more/c d.txt": b"c"}
ROOT = "hf://datasets/someone/texts"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with hub_server() as server:
        server.commit(FILES)
        yield server


def opened(hub: HubServer, url: str = ROOT, **options: str) -> Store:
    return open_store(url, {"endpoint": hub.url, **options})


def test_files_are_listed_and_read(hub: HubServer) -> None:
    store = opened(hub)
    listed = list(store.list())
    assert [(entry.key, entry.size) for entry in listed] == sorted(
        (key, len(text)) for key, text in FILES.items()
    )
    assert [entry.key for entry in store.list("data")] == ["data/a.txt", "data/b.txt", "data/more/c d.txt"]
    assert list(store.list("none")) == []
    entry = store.head("data/b.txt")
    assert entry in listed
    assert bytes(store.read("data/b.txt", 5, 25, entry.version)) == TEXT[5:25]
    assert bytes(store.read("data/b.txt", len(TEXT) - 3, len(TEXT) + 9)) == TEXT[-3:]
    assert [bytes(block) for block in store.read_ranges("data/b.txt", [(90, 100), (3, 4)])] == [
        TEXT[90:100],
        TEXT[3:4],
    ]
    assert bytes(pickle.loads(pickle.dumps(store)).read("data/a.txt")) == b"a"


def test_a_file_by_its_url(hub: HubServer) -> None:
    with open_file(f"{ROOT}/data/b.txt", {"hf_endpoint": hub.url}) as file:
        view = bytearray(20)
        assert file.readinto_at(7, memoryview(view)) == 20
        assert bytes(view) == TEXT[7:27]
    assert sum("resolve" in request for request in hub.requests) == 1
    with open_file(f"{ROOT}@main/data/more/c d.txt", {"endpoint": hub.url}) as file:
        assert file.size == 1


def test_the_commit_of_the_first_request_is_read(hub: HubServer) -> None:
    store = opened(hub)
    entry = store.head("data/b.txt")
    hub.commit({**FILES, "data/b.txt": b"new"})
    assert bytes(store.read("data/b.txt", 0, 5, entry.version)) == TEXT[:5]
    later = pickle.loads(pickle.dumps(store))
    with pytest.raises(StoreChanged, match="b.txt"):
        later.read("data/b.txt", 0, 2, entry.version)
    assert bytes(later.read("data/a.txt", 0, 1, store.head("data/a.txt").version)) == b"a"


def test_what_is_not_there(hub: HubServer) -> None:
    with pytest.raises(StoreNotFound, match="none.txt"):
        opened(hub).head("none.txt")
    with pytest.raises(StoreNotFound):
        opened(hub).head("data")
    with pytest.raises(StoreError, match="hf://datasets/someone/other"):
        opened(hub, "hf://datasets/someone/other").head("x")
    with pytest.raises(StoreError, match="hf://datasets/someone/texts@nope"):
        opened(hub, f"{ROOT}@nope").head("x")


def test_a_token(hub: HubServer) -> None:
    hub.token = "hf_secret"
    assert opened(hub, token="hf_secret").head("data/a.txt").size == 1
    with pytest.raises(StoreNotFound, match="HF_TOKEN") as raised:
        opened(hub, token="hf_wrong").head("data/a.txt")
    assert "hf_wrong" not in str(raised.value)
    with pytest.raises(UnknownScheme):
        opened(hub, region2="x")


def test_failures_are_got_over(hub: HubServer) -> None:
    store = opened(hub)
    store.head("data/b.txt")
    hub.failures = 2
    assert bytes(store.read("data/b.txt", 0, 5)) == TEXT[:5]


def test_it_is_not_written(hub: HubServer) -> None:
    with pytest.raises(StoreError):
        opened(hub).put("x", b"")
    with pytest.raises(StoreError):
        opened(hub).delete(["x"])
