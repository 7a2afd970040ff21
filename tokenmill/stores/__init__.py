"""Read and write local folders, object stores and web servers through one interface.

    store = stores.open_store("s3://bucket/data", {"region": "eu-west-1"})
    with stores.open_file("s3://bucket/data/a.txt") as file: ...

The libraries of remote stores (the extra `remote`) are imported when a URL is opened.
"""

from tokenmill.stores.errors import AlreadyThere as AlreadyThere
from tokenmill.stores.errors import StoreChanged as StoreChanged
from tokenmill.stores.errors import StoreDenied as StoreDenied
from tokenmill.stores.errors import StoreError as StoreError
from tokenmill.stores.errors import StoreNotFound as StoreNotFound
from tokenmill.stores.errors import StoreUnavailable as StoreUnavailable
from tokenmill.stores.errors import UnknownScheme as UnknownScheme
from tokenmill.stores.files import RandomFile as RandomFile
from tokenmill.stores.files import read_at as read_at
from tokenmill.stores.opening import open_file as open_file
from tokenmill.stores.opening import open_store as open_store
from tokenmill.stores.store import NO_OPTIONS as NO_OPTIONS
from tokenmill.stores.store import Bytes as Bytes
from tokenmill.stores.store import Entry as Entry
from tokenmill.stores.store import StorageOptions as StorageOptions
from tokenmill.stores.store import Store as Store
from tokenmill.stores.url import is_url as is_url
from tokenmill.stores.url import shown_url as shown_url
from tokenmill.stores.url import split_key as split_key
