"""Read and write local folders, object stores and web servers through one interface.

    store = stores.open_store("s3://bucket/data", {"region": "eu-west-1"})
    with stores.open_file("s3://bucket/data/a.txt") as file: ...

The libraries of remote stores (the extra `remote`) are imported when a URL is opened.
"""

from tokenmill.stores.errors import (
    AlreadyThere,
    StoreChanged,
    StoreDenied,
    StoreError,
    StoreNotFound,
    StoreUnavailable,
    UnknownScheme,
)
from tokenmill.stores.files import RandomFile, read_at
from tokenmill.stores.opening import open_file, open_store
from tokenmill.stores.store import NO_OPTIONS, Bytes, Entry, StorageOptions, Store
from tokenmill.stores.url import is_url, shown_url, split_key

__all__ = [
    "NO_OPTIONS",
    "AlreadyThere",
    "Bytes",
    "Entry",
    "RandomFile",
    "StorageOptions",
    "Store",
    "StoreChanged",
    "StoreDenied",
    "StoreError",
    "StoreNotFound",
    "StoreUnavailable",
    "UnknownScheme",
    "is_url",
    "open_file",
    "open_store",
    "read_at",
    "shown_url",
    "split_key",
]
