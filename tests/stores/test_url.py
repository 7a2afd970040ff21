"""What a URL is, its parts, and that credentials are never shown."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest

from tokenmill.stores import StoreError, UnknownScheme, is_url, open_store, shown_url, split_key
from tokenmill.stores.url import Location, parse


@pytest.mark.parametrize(
    "text", ["s3://b/k", "gs://b", "az://c/k", "https://h/p", "hf://a/b/c", "memory://n/k", "file:///a"]
)
def test_urls(text: str) -> None:
    assert is_url(text)


@pytest.mark.parametrize(
    "text", ["a/b", "/a", "C:\\x", "C:/x", "c://x", "s3:/b", "", "-", "s3", "a b://c", "./s3://b", "://x"]
)
def test_paths(text: str) -> None:
    assert not is_url(text)
    assert shown_url(text) == text


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("s3://b/a%20b?x#y", Location("s3", "b", "a%20b?x#y")),
        ("S3A://b", Location("s3", "b", "")),
        ("gcs://b/k/", Location("gs", "b", "k/")),
        ("abfss://c@acct.dfs.core.windows.net/k", Location("az", "c", "k", "acct")),
        ("https://h:8/a%20b?sig=1#f", Location("https", "h:8", "a b", "", "?sig=1")),
        ("https://us:pw@h/k", Location("https", "h", "k", "us:pw")),
        ("hf://datasets/o/n@main/p", Location("hf", "", "datasets/o/n@main/p")),
        ("file:///a%20b", Location("file", "", "/a b")),
    ],
)
def test_parts(url: str, parts: Location) -> None:
    assert parse(url) == parts


def test_credentials_are_not_shown() -> None:
    assert shown_url("https://us:secret@h/a%20b?X-Amz-Signature=secret") == "https://h/a%20b?…"
    assert shown_url("abfss://c@acct.dfs.core.windows.net/k") == "az://c/k"
    with pytest.raises(UnknownScheme) as raised:
        open_store("s3://id:secret@b/k")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["s3://", "s3:///k", "https:///x", "file://host/a", "memory://", "s3://a b/k"]
)
def test_urls_that_name_nothing(url: str) -> None:
    with pytest.raises(UnknownScheme):
        open_store(url)


@pytest.mark.parametrize("key", ["a//x", "/x", "a//", "a/./x", "../x"])
def test_an_empty_part_of_a_key_was_dropped_and_another_object_read(key: str) -> None:
    url = f"memory://{uuid4().hex}"
    open_store(url).put("a/x", b"another object")
    with pytest.raises(UnknownScheme, match=re.escape(f"{url}/{key}")):
        open_store(f"{url}/{key}")


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("s3://b/a/c?.txt", ("s3://b/a", "c?.txt")),
        ("s3://b/c", ("s3://b", "c")),
        ("https://h/a/c%20d.txt?q=/x", ("https://h/a?q=/x", "c d.txt")),
        ("hf://datasets/o/n/c", ("hf://datasets/o/n", "c")),
    ],
)
def test_the_key_of_an_object(url: str, parts: tuple[str, str]) -> None:
    assert split_key(url) == parts


@pytest.mark.parametrize("url", ["s3://b", "s3://b/", "s3://b/a/", "https://h"])
def test_a_container_is_no_object(url: str) -> None:
    with pytest.raises(UnknownScheme):
        split_key(url)


def test_options_that_no_store_knows() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    for url in ("s3://b", "gs://b", "https://h"):
        with pytest.raises(UnknownScheme):
            open_store(url, {"bogus": "1"})
    with pytest.raises(UnknownScheme):
        open_store("s3://b", {"max_retries": "many"})
    with pytest.raises(UnknownScheme):
        open_store("s3://b", {"timeout": "soon"})
    open_store("s3://b", {"azure_storage_account_name": "for another store"})


@pytest.mark.parametrize(
    "endpoint", ["localhost:9000", "//h", "http://", "http://a b", "ftp://h", "http://h:99999"]
)
def test_an_endpoint_without_a_scheme_was_a_panic(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"s3://{uuid4().hex}/k"
    with pytest.raises(UnknownScheme, match=f"{url[:-2]}.*: endpoint: .*{endpoint}"):
        open_store(url, {"endpoint": endpoint})
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(UnknownScheme, match=f"AWS_ENDPOINT_URL: .*{endpoint}"):
        open_store(url)
    open_store(url, {"aws_endpoint": "http://127.0.0.1:9"})  # which the option overrides


def test_an_empty_endpoint_was_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    options = {"max_retries": "0", "retry_timeout": "1", "timeout": "2s", "skip_signature": "true"}
    for settings in ({}, {"endpoint": ""}):
        with pytest.raises(StoreError, match="s3://b/k/x: ") as raised:
            open_store("s3://b/k", {**options, **settings, "proxy_url": "http://127.0.0.1:9"}).head("x")
        assert "panic" not in str(raised.value)


def test_schemes_without_a_store() -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    with pytest.raises(UnknownScheme):
        open_store("nosuch://a/b")
