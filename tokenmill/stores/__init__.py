"""Where inputs are read from and outputs written to: local folders, object stores, web servers.

    store = stores.open_store("s3://bucket/data", {"region": "eu-west-1"})
    with stores.open_file("s3://bucket/data/a.txt") as file: ...

Libraries of remote stores (the extra `remote`) are imported when a URL is opened, not before.
"""

from tokenmill.stores.errors import (
    AlreadyThere,
    StoreChanged,
    StoreDenied,
    StoreError,
    StoreNotFound,
    UnknownScheme,
)
from tokenmill.stores.files import RandomFile, open_file, read_at
from tokenmill.stores.opening import open_store
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
    "UnknownScheme",
    "is_url",
    "open_file",
    "open_store",
    "read_at",
    "shown_url",
    "split_key",
]
