"""What a URL is, what its parts are, and how it is shown: never with credentials.

    s3://bucket/key   gs://bucket/key   az://container/key   abfss://container@account.dfs.core.windows.net/key
    https://host/path   hf://datasets/owner/name/path   memory://name/key   file:///path

The key of an object store is everything behind the bucket, as it is: "%20", "?" and "#" are characters of it. In
https:// a path is percent-encoded and the query belongs to the URL: it may hold a signature, so it is never shown.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from tokenmill.errors import printable
from tokenmill.stores.errors import UnknownScheme

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # two letters or more: C:\\ is a path
_WEB = ("http", "https")
_WHOLE_PATH = ("hf", "file")  # schemes without a host or bucket: all that follows is the path
_ALIASES = {"s3a": "s3", "gcs": "gs", "azure": "az", "adl": "az", "abfs": "az", "abfss": "az"}


class Location(NamedTuple):
    """The parts of a URL.

    scheme: in lower case, one name a store ("s3a" is "s3"). container: the bucket, or host and port. path: the key
    within it, decoded, without a slash in front. account: "user:password" of a web server, or the account that an
    abfss:// URL names. query: of a web server, "" or "?...".
    """

    scheme: str
    container: str
    path: str
    account: str = ""
    query: str = ""

    @property
    def shown(self) -> str:
        """The URL as messages and records name it: without credentials and without a query."""
        path = quote(self.path) if self.scheme in _WEB else self.path
        container = f"{self.container}/" if self.container else ""
        return f"{self.scheme}://{container}{path}" + ("?…" if self.query else "")

    def below(self, key: str) -> Location:
        """The place of a key in the container that this is: "s3://b/data" and "a/b" -> "s3://b/data/a/b"."""
        folder = self.path.rstrip("/")
        return self._replace(path=f"{folder}/{key}" if folder else key)


def is_url(text: str) -> bool:
    """Whether the text names a store by a scheme: "s3://b/k" does; "a/b", "C:\\\\x" and "c://x" are paths."""
    return _SCHEME.match(text) is not None


def _matched(url: str) -> re.Match[str]:
    """Return the match of the scheme; raise UnknownScheme if there is none."""
    found = _SCHEME.match(url)
    if found is None:
        raise UnknownScheme(f"{printable(url)}: not a URL. Begin with a scheme, as in s3://bucket/key.")
    return found


def parse(url: str) -> Location:
    """The parts of a URL; UnknownScheme (exit 2) if it names no container."""
    found = _matched(url)
    named, rest = found[1].lower(), url[found.end() :]
    scheme = _ALIASES.get(named, named)
    if scheme == "file" and not rest.startswith("/"):
        raise UnknownScheme(f"{printable(url)}: not a local file. Write file:///path.")
    if scheme == "hf" and rest.strip("/") in ("", "datasets", "spaces"):
        raise UnknownScheme(f"{printable(url)}: missing repository. Write hf://datasets/OWNER/NAME/PATH.")
    if scheme in _WHOLE_PATH:
        return Location(scheme, "", unquote(rest) if scheme == "file" else rest)
    query = ""
    if scheme in _WEB:
        rest, _, _ = rest.partition("#")
        rest, mark, query = rest.partition("?")
        query = mark + query
    container, _, path = rest.partition("/")
    account, _, container = container.rpartition("@")
    if named in ("abfs", "abfss") and account:  # the container stands in front of the account's host
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
    return Location(scheme, container, path, account, query)


def shown_url(url_or_path: str) -> str:
    """A URL without its credentials and query, a path as it is."""
    return parse(url_or_path).shown if is_url(url_or_path) else url_or_path


def split_key(url: str) -> tuple[str, str]:
    """(URL of the folder an object lies in, its key there), joined again by a slash.

    "s3://b/a/c.txt" -> ("s3://b/a", "c.txt"); "https://h/a/c.txt?q" -> ("https://h/a?q", "c.txt"), the key decoded.
    """
    found = _matched(url)
    head, mark, query = url.partition("?") if found[1].lower() in _WEB else (url, "", "")
    folder, slash, key = head.rpartition("/")
    if not slash or len(folder) < found.end() or not key:
        raise UnknownScheme(f"{shown_url(url)}: a container, not an object. Add the key of the object.")
    return folder + mark + query, unquote(key) if found[1].lower() in (*_WEB, "file") else key
