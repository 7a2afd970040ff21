"""Parse URLs and show them without credentials.

    s3://bucket/key   gs://bucket/key   az://container/key   abfss://container@account.dfs.core.windows.net/key
    https://host/path   hf://datasets/owner/name/path   memory://name/key   file:///path

The key of an object store is everything after the bucket, verbatim: "%20", "?" and "#" are characters of it. The path
of an https:// URL is percent-encoded. Its query belongs to the URL and is never shown, as it may hold a signature.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from tokenmill.errors import printable
from tokenmill.stores.errors import UnknownScheme

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # at least two letters: C:\\ is a path
_WEB = ("http", "https")
_WHOLE_PATH = ("hf", "file")  # schemes without a host or bucket
_ALIASES = {"s3a": "s3", "gcs": "gs", "azure": "az", "adl": "az", "abfs": "az", "abfss": "az"}


class Location(NamedTuple):
    """The parts of a URL.

    scheme: in lower case, with one name per kind of store ("s3a" is "s3").
    container: the bucket, or host and port.
    path: the decoded key, without a leading slash.
    account: "user:password" of a web server, or the account in an abfss:// URL.
    query: of a web server, "" or "?...".
    """

    scheme: str
    container: str
    path: str
    account: str = ""
    query: str = ""

    @property
    def shown(self) -> str:
        """The URL for messages and records, without credentials and query."""
        path = quote(self.path) if self.scheme in _WEB else self.path
        container = f"{self.container}/" if self.container else ""
        return f"{self.scheme}://{container}{path}" + ("?…" if self.query else "")

    def below(self, key: str) -> Location:
        """Return the location of a key in this folder: "s3://b/data" and "a/b" -> "s3://b/data/a/b"."""
        return self._replace(path="/".join(filter(None, (self.path.rstrip("/"), key))))


def is_url(text: str) -> bool:
    """Return whether the text starts with a scheme: "s3://b/k" does; "a/b" and "C:\\\\x" are paths."""
    return _SCHEME.match(text) is not None


def _split_scheme(url: str) -> tuple[str, str]:
    """Split a URL: "S3://b/k" -> ("s3", "b/k"). Raise UnknownScheme if it has no scheme."""
    found = _SCHEME.match(url)
    if found is None:
        raise UnknownScheme(f"{printable(url)}: not a URL. Begin with a scheme, as in s3://bucket/key.")
    return found[1].lower(), url[found.end() :]


def parse(url: str) -> Location:
    """Return the parts of a URL. Raise UnknownScheme if it names no container."""
    named, rest = _split_scheme(url)
    scheme = _ALIASES.get(named, named)
    if scheme == "file" and not rest.startswith("/"):
        raise UnknownScheme(f"{printable(url)}: not a local file. Write file:///path.")
    if scheme == "hf" and rest.strip("/") in ("", "datasets", "spaces"):
        raise UnknownScheme(f"{printable(url)}: missing repository. Write hf://datasets/OWNER/NAME/PATH.")
    if scheme in _WHOLE_PATH:
        return Location(scheme, "", unquote(rest) if scheme == "file" else rest)
    query = ""
    if scheme in _WEB:
        rest, mark, query = rest.partition("#")[0].partition("?")
        query = mark + query
    container, _, path = rest.partition("/")
    account, _, container = container.rpartition("@")
    if named in ("abfs", "abfss") and account:  # abfss://CONTAINER@ACCOUNT.dfs.core.windows.net
        account, container = container.partition(".")[0], account
    elif account and scheme not in _WEB:
        raise UnknownScheme(
            f"{scheme}://{container}: credentials are not allowed in a URL. Set environment variables, or pass "
            f"--storage-option."
        )
    if not container:
        raise UnknownScheme(f"{scheme}://: missing bucket or host. Write {scheme}://name/key.")
    if scheme in _WEB:
        return Location(scheme, container, unquote(path), account, query)
    if path and not {"", ".", ".."}.isdisjoint(path.removesuffix("/").split("/")):
        raise UnknownScheme(
            f"{url}: key with an empty part ('//'), '.' or '..'. Correct the URL or rename the object."
        )
    return Location(scheme, container, path, account)


def shown_url(url_or_path: str) -> str:
    """Return a URL without its credentials and query, or a path unchanged."""
    return parse(url_or_path).shown if is_url(url_or_path) else url_or_path


def split_key(url: str) -> tuple[str, str]:
    """Split the URL of an object into the URL of its folder and its decoded key there.

    "s3://b/a/c.txt" -> ("s3://b/a", "c.txt"); "https://h/a/c.txt?q" -> ("https://h/a?q", "c.txt").
    """
    scheme, rest = _split_scheme(url)
    start = url.removesuffix(rest)
    rest, mark, query = rest.partition("?") if scheme in _WEB else (rest, "", "")
    folder, _, key = rest.rpartition("/")
    if not key or not (folder or scheme == "file"):
        raise UnknownScheme(f"{shown_url(url)}: a container, not an object. Add the key of the object.")
    return f"{start}{folder}{mark}{query}", unquote(key) if scheme in (*_WEB, "file") else key
