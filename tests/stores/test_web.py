"""What web servers do differently; the reads of test_store.py run on them too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from web_server import WebServer, web_server

from tokenmill.stores import (
    StoreChanged,
    StoreDenied,
    StoreError,
    StoreNotFound,
    open_file,
    open_store,
    read_at,
)

pytest.importorskip("obstore", reason="obstore is not installed")
TEXT = b"0123456789" * 1000


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def read(url: str, start: int, stop: int) -> bytes:
    with open_file(url) as file:
        return bytes(read_at(file, start, stop - start))


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/a.txt", "/a.txt"),
        ("/a%20b/%C3%BC.txt", "/a b/ü.txt"),
        ("/notag/a", "/notag/a"),
        ("/nohead/a", "/nohead/a"),
        ("/emptyhead/a", "/emptyhead/a"),
        ("/d/e/f?x=1&sig=secret", "/d/e/f"),
        ("/moved/a", "/a"),
    ],
)
def test_a_file_is_read(web: WebServer, url: str, path: str) -> None:
    web.files[path] = TEXT
    with open_file(web.url + url) as file:
        assert file.size == len(TEXT)
        assert read_at(file, 3, 22) == TEXT[3:25]
    with open_file(web.url + url) as file:
        web.files[path] = TEXT + b"more"
        with pytest.raises(StoreChanged):
            file.readinto_at(0, memoryview(bytearray(10)))


def test_a_server_without_ranges(web: WebServer) -> None:
    web.files["/norange/a"] = TEXT
    store = open_store(f"{web.url}/norange")
    for access in (lambda: read(f"{web.url}/norange/a", 0, 10), lambda: store.read_end("a", 10)):
        with pytest.raises(StoreError, match="range requests") as raised:
            access()
        assert not raised.value.is_transient
    assert bytes(store.read("a")) == TEXT


def test_a_password_is_used_and_not_shown(web: WebServer) -> None:
    web.files["/login/a"] = TEXT
    with_login = web.url.replace("//", "//us:pw@")
    assert read(f"{with_login}/login/a", 0, 10) == TEXT[:10]
    with pytest.raises(StoreDenied):
        read(f"{web.url}/login/a", 0, 10)
    with pytest.raises(StoreNotFound) as raised:
        read(f"{with_login}/login/none?token=secret", 0, 10)
    assert not {"pw", "secret"} & set(str(raised.value).replace("=", " ").split())


def test_web_servers_are_neither_listed_nor_written(web: WebServer) -> None:
    store = open_store(f"{web.url}/d")
    for access in (lambda: list(store.list()), lambda: store.put("a", b""), lambda: store.delete(["a"])):
        with pytest.raises(StoreError):
            access()
