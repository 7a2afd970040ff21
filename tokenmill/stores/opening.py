"""Open the store or file of a URL or path. The libraries of remote stores are imported when one is opened."""

from __future__ import annotations

from pathlib import Path

from tokenmill.stores.errors import UnknownScheme, changed
from tokenmill.stores.files import LocalFile, RandomFile
from tokenmill.stores.local import LocalStore
from tokenmill.stores.store import NO_OPTIONS, Entry, StorageOptions, Store
from tokenmill.stores.url import is_url, parse, shown_url, split_key


def open_store(url_or_path: str | Path, options: StorageOptions = NO_OPTIONS) -> Store:
    """Return the store at a URL or path, which need not exist. Sends no request yet.

    UnknownScheme: a scheme without a store, a missing library, or an unknown option.
    """
    text = str(url_or_path)
    if not is_url(text):
        return LocalStore(text)
    location = parse(text)
    if location.scheme == "file":
        return LocalStore(location.path)
    if location.scheme == "hf":
        from tokenmill.stores.hub import HubStore

        return HubStore(location, options)
    from tokenmill.stores.clients import SCHEMES
    from tokenmill.stores.object import ObjectStore

    if location.scheme in SCHEMES:
        return ObjectStore(location, options)
    supported = "Use s3, gs, az, https, hf or a path."
    raise UnknownScheme(f"{location.shown}: unsupported URL scheme {location.scheme}://. {supported}")


def open_file(
    url_or_path: str, options: StorageOptions = NO_OPTIONS, version: str = "", size: int | None = None
) -> RandomFile:
    """Open the file at a URL or path. If version and size are given, opening an object needs no request.

    StoreNotFound: the object does not exist.
    StoreChanged: the version differs from the given one. Raised here or by a later read.
    OSError: a local file cannot be opened.
    """
    location = parse(url_or_path) if is_url(url_or_path) else None
    if location is None or location.scheme == "file":
        return LocalFile(location.path if location else url_or_path, version)
    from tokenmill.stores.remote_file import RemoteFile

    folder, key = split_key(url_or_path)
    store = open_store(folder, options)
    entry = store.head(key) if size is None else Entry(key, size, version)
    if version and version != entry.version:
        raise changed(shown_url(url_or_path))
    return RemoteFile(store, entry, shown_url(url_or_path))
