"""URLs: their parts, settings of stores, and that credentials are never shown."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from hypothesis import strategies as st

from tokenmill.stores import StoreError, UnknownScheme, is_url, open_store, shown_url, split_key
from tokenmill.stores.url import Location, parse

NAME = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0?#%", exclude_categories=("Cs",)), min_size=1
)
KEY = st.lists(NAME.filter(lambda name: name not in (".", "..")), min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("url", "parts", "key", "shown"),
    [
        ("s3://b/a%20b?x#y", Location("s3", "b", "a%20b?x#y"), ("s3://b", "a%20b?x#y"), ""),
        ("S3A://b/k", Location("s3", "b", "k"), ("S3A://b", "k"), "s3://b/k"),
        (
            "abfss://c@acct.dfs.core.windows.net/k",
            Location("az", "c", "k", "acct"),
            ("abfss://c@acct.dfs.core.windows.net", "k"),
            "az://c/k",
        ),
        (
            "https://h:8/a/b%20c?sig=/1#f",
            Location("https", "h:8", "a/b c", "", "?sig=/1"),
            ("https://h:8/a?sig=/1#f", "b c"),
            "https://h:8/a/b%20c?…",
        ),
        (
            "https://us:pw@[fe80::1]:8/k",
            Location("https", "[fe80::1]:8", "k", "us:pw"),
            ("https://us:pw@[fe80::1]:8", "k"),
            "https://[fe80::1]:8/k",
        ),
        (
            "hf://datasets/o/n@main/p",
            Location("hf", "", "datasets/o/n@main/p"),
            ("hf://datasets/o/n@main", "p"),
            "",
        ),
        ("file:///a%20b", Location("file", "", "/a b"), ("file://", "a b"), "file:///a b"),
    ],
)
def test_parts(url: str, parts: Location, key: tuple[str, str], shown: str) -> None:
    assert is_url(url)
    assert parse(url) == parts
    assert split_key(url) == key
    assert shown_url(url) == (shown or url)


@pytest.mark.parametrize("path", ["a b://c", "", *r"a/b /a C:\x C:/x c://x s3:/b - s3 ./s3://b ://x".split()])
def test_a_path_is_no_url(path: str) -> None:
    assert not is_url(path)
    assert shown_url(path) == path


@pytest.mark.parametrize(
    "url",
    "s3:// s3:///k https:///x file://host/a memory:// nosuch://a/b https://[::1/x s3://us:pw@b/k".split(),
)
def test_urls_without_a_store(url: str) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with pytest.raises(UnknownScheme) as raised:
        open_store(url)
    assert "pw" not in str(raised.value)


@pytest.mark.parametrize("key", ["a//x", "/x", "a//", "a/./x", "../x"])
def test_an_empty_part_of_a_key_was_dropped_and_another_object_read(key: str) -> None:
    url = f"memory://{uuid4().hex}"
    open_store(url).put("a/x", b"another object")
    with pytest.raises(UnknownScheme, match=re.escape(f"{url}/{key}")):
        open_store(f"{url}/{key}")


def test_unknown_and_invalid_options() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    for url in ("s3://b", "gs://b", "https://h"):
        with pytest.raises(UnknownScheme):
            open_store(url, {"bogus": "1"})
    for options in ({"max_retries": "many"}, {"timeout": "soon"}):
        with pytest.raises(UnknownScheme):
            open_store("s3://b", options)
    open_store("s3://b", {"azure_storage_account_name": "for another store"})


@pytest.mark.parametrize(
    "endpoint", ["localhost:9000", "//h", "http://", "http://a b", "ftp://h", "http://h:99999"]
)
def test_an_invalid_endpoint_was_a_panic(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"s3://{uuid4().hex}/k"
    with pytest.raises(UnknownScheme, match=f"{url[:-2]}.*: endpoint: .*{re.escape(endpoint)}"):
        open_store(url, {"endpoint": endpoint})
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(UnknownScheme, match=f"AWS_ENDPOINT_URL: .*{re.escape(endpoint)}"):
        open_store(url)
    open_store(url, {"aws_endpoint": "http://[::1]:9"})  # which the option overrides


def test_an_empty_endpoint_was_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    options = {"max_retries": "0", "retry_timeout": "1", "timeout": "2s", "skip_signature": "true"}
    for settings in ({}, {"endpoint": ""}):
        with pytest.raises(StoreError, match="s3://b/k/x: ") as raised:
            open_store("s3://b/k", {**options, **settings, "proxy_url": "http://127.0.0.1:9"}).head("x")
        assert "panic" not in str(raised.value)
