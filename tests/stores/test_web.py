"""Files of a web server: read by ranges, never written or listed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from web_server import WebServer, web_server

from tokenmill.stores import StoreChanged, StoreDenied, StoreError, StoreNotFound, open_file, open_store

pytest.importorskip("obstore", reason="obstore is not installed")
TEXT = b"0123456789" * 1000


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def read(url: str, start: int, stop: int) -> bytes:
    with open_file(url) as file:
        view = bytearray(stop - start)
        got = file.readinto_at(start, memoryview(view))
        return bytes(view[:got])


@pytest.mark.parametrize(
    "path", ["/a.txt", "/a b%2Fü.txt", "/notag/a", "/nohead/a", "/d/e/f?x=1&sig=secret", "/moved/a"]
)
def test_a_file_is_read(web: WebServer, path: str) -> None:
    for name in ("/a.txt", "/a b/ü.txt", "/notag/a", "/nohead/a", "/d/e/f", "/a"):
        web.files[name] = TEXT
    url = web.url + path.replace(" ", "%20").replace("ü", "%C3%BC")
    if "%2F" in path:  # a slash within a name can't be told from one between names
        with pytest.raises(StoreNotFound):
            read(url.replace("%2F", "%252F"), 0, 1)
        url = url.replace("%2F", "/")
    assert read(url, 3, 25) == TEXT[3:25]
    with open_file(url) as file:
        assert file.size == len(TEXT)
        assert file.version()


def test_an_empty_file_whose_head_is_refused(web: WebServer) -> None:
    web.files["/empty"] = b""
    assert read(f"{web.url}/empty", 0, 10) == b""
    web.files["/nohead/empty"] = b""
    with pytest.raises(StoreDenied):
        read(f"{web.url}/nohead/empty", 0, 10)


def test_a_size_that_head_tells_wrong(web: WebServer) -> None:
    """The file was taken for an empty one."""
    web.files["/emptyhead/a"] = TEXT
    assert read(f"{web.url}/emptyhead/a", 0, 10) == TEXT[:10]
    assert open_store(f"{web.url}/emptyhead").head("a").size == len(TEXT)


def test_a_server_without_ranges(web: WebServer) -> None:
    web.files["/norange/a"] = TEXT
    with pytest.raises(StoreError):
        read(f"{web.url}/norange/a", 0, 10)
    with pytest.raises(StoreError):
        open_store(f"{web.url}/norange").read_end("a", 10)


def test_a_password_is_used_and_not_shown(web: WebServer) -> None:
    web.files["/login/a"] = TEXT
    with_login = web.url.replace("//", "//us:pw@")
    assert read(f"{with_login}/login/a", 0, 10) == TEXT[:10]
    with pytest.raises(StoreDenied):
        read(f"{web.url}/login/a", 0, 10)
    with pytest.raises(StoreNotFound) as raised:
        read(f"{with_login}/login/none?token=secret", 0, 10)
    assert "pw" not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("path", ["/a", "/notag/longer"])
def test_a_file_that_was_changed(web: WebServer, path: str) -> None:
    web.files[path] = TEXT
    with open_file(web.url + path) as file:
        web.files[path] = TEXT + b"more"
        with pytest.raises(StoreChanged):
            file.readinto_at(0, memoryview(bytearray(10)))


def test_it_is_neither_listed_nor_written(web: WebServer) -> None:
    store = open_store(f"{web.url}/d")
    with pytest.raises(StoreError):
        list(store.list())
    with pytest.raises(StoreError):
        store.put("a", b"")
    with pytest.raises(StoreError):
        store.delete(["a"])
