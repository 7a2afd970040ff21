"""hf:// with a Hub on loopback: folders, commits, tokens, failures. The reads of test_store.py run on it too."""

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
    StoreUnavailable,
    UnknownScheme,
    open_file,
    open_store,
    read_at,
    requests,
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


def test_folders_are_listed(hub: HubServer) -> None:
    store = opened(hub)
    assert [entry.key for entry in store.list("data")] == ["data/a.txt", "data/b.txt", "data/more/c d.txt"]
    assert [entry.key for entry in opened(hub, f"{ROOT}/data").list("more/")] == ["more/c d.txt"]
    assert list(store.list("none")) == []
    assert all(entry == store.head(entry.key) for entry in store.list())


def test_a_file_by_its_url(hub: HubServer) -> None:
    with open_file(f"{ROOT}@main/data/b.txt", {"hf_endpoint": hub.url}) as file:
        assert read_at(file, 7, 20) == TEXT[7:27]
    assert sum("resolve" in request for request in hub.requests) == 1


def test_the_commit_of_the_first_request_is_read(hub: HubServer) -> None:
    store = opened(hub)
    entry = store.head("data/b.txt")
    hub.commit({**FILES, "data/b.txt": b"new"})
    assert bytes(store.read("data/b.txt", 0, 5, entry.version)) == TEXT[:5]
    assert bytes(pickle.loads(pickle.dumps(store)).read("data/b.txt", 0, 5, entry.version)) == TEXT[:5]
    later = opened(hub)
    with pytest.raises(StoreChanged, match="b.txt"):
        later.read("data/b.txt", 0, 2, entry.version)
    assert bytes(later.read("data/a.txt", 0, 1, store.head("data/a.txt").version)) == b"a"


def test_missing_files_repositories_and_revisions(hub: HubServer) -> None:
    for url, key in ((ROOT, "data"), (f"{ROOT}-other", "x"), (f"{ROOT}@nope", "x")):
        with pytest.raises(StoreNotFound, match=url) as raised:
            opened(hub, url).head(key)
        assert not raised.value.is_transient


def test_a_token(hub: HubServer) -> None:
    hub.token = "hf_secret"
    assert opened(hub, token="hf_secret").head("data/a.txt").size == 1
    with pytest.raises(StoreNotFound, match="HF_TOKEN") as raised:
        opened(hub, token="hf_wrong").head("data/a.txt")
    assert "hf_wrong" not in str(raised.value)
    with pytest.raises(UnknownScheme):
        opened(hub, region2="x")


@pytest.mark.slow
def test_failures_are_overcome_or_transient(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(hub)
    store.head("data/b.txt")
    hub.failures = 2
    assert bytes(store.read("data/b.txt", 0, 5)) == TEXT[:5]
    monkeypatch.setattr(requests, "_ATTEMPTS", 1)
    hub.failures = 1000
    with pytest.raises(StoreUnavailable):
        opened(hub).head("data/a.txt")


def test_the_hub_is_not_written(hub: HubServer) -> None:
    for access in (lambda: opened(hub).put("x", b""), lambda: opened(hub).delete(["x"])):
        with pytest.raises(StoreError):
            access()
