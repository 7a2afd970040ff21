"""The store that a URL or path names. Libraries of remote stores are imported when one is opened."""

from __future__ import annotations

from pathlib import Path

from tokenmill.stores.local import LocalStore
from tokenmill.stores.store import NO_OPTIONS, StorageOptions, Store
from tokenmill.stores.url import is_url, parse


def open_store(url_or_path: str | Path, options: StorageOptions = NO_OPTIONS) -> Store:
    """The store at a URL or local path, which need not exist; nothing is asked of a server yet.

    UnknownScheme (exit 2) for a scheme without a store, a missing library, or an option that the store does not know.
    """
    text = str(url_or_path)
    if not is_url(text):
        return LocalStore(text)
    location = parse(text)
    if location.scheme == "file":
        return LocalStore(location.path)
    from tokenmill.stores.object import SCHEMES, ObjectStore

    if location.scheme in SCHEMES:
        return ObjectStore(location, options)
    from tokenmill.stores.filesystem import FilesystemStore

    return FilesystemStore(location, options)
