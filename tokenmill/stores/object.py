"""Object stores through obstore: s3://, gs://, az://, https:// (read-only), memory:// (one per process, for tests)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from tokenmill.errors import LibraryPanic
from tokenmill.stores import errors
from tokenmill.stores.causes import code_of, explained, knows_no_range, status_of
from tokenmill.stores.clients import check_process, client_of
from tokenmill.stores.errors import StoreError, StoreNotFound, StoreUnavailable
from tokenmill.stores.requests import call, call_again
from tokenmill.stores.store import (
    NO_OPTIONS,
    Bytes,
    Entry,
    StorageOptions,
    Store,
    as_blocks,
    checked_key,
)
from tokenmill.stores.url import Location

if TYPE_CHECKING:
    import obstore

PART_BYTES = 16 << 20  # of a multipart upload; S3 allows 10,000 parts
_PARALLEL_PARTS = 4
_PAGE_OBJECTS = 1000  # per request of a listing
# Errors after which the client does not repeat a request: the body of an answer broke off or was too short, or a
# request that the client takes for one that must not be repeated timed out.
_NOT_REPEATED = re.compile("response body error|Requested|retries: 0,.*kind: Timeout", re.DOTALL)
_Result = TypeVar("_Result")


class ObjectStore(Store):
    """A container of an object store, or a folder in it (see Store).

    `put` with `if_absent` is a conditional put (If-None-Match: *). Some servers ignore the condition. The first such
    put therefore is sent twice, and a server that accepts the second one is not trusted: from then on the object is
    looked up before it is put, and of two simultaneous writers both may succeed.
    """

    def __init__(self, location: Location, options: StorageOptions = NO_OPTIONS) -> None:
        self._location, self._options = location, dict(options)
        self.url = location.shown
        self._is_web = location.scheme in ("http", "https")
        # Whether the server honors conditions; None if not yet known.
        self._has_conditions = True if location.scheme == "memory" else None
        client_of(location, options)  # raises errors of the settings

    @property
    def _client(self) -> Any:
        return client_of(self._location, self._options)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """List objects (see Store), a thousand per request.

        An empty object costs another request, because the client lists both an object "data" and the marker "data/" of
        a folder as "data".
        """
        if self._is_web:
            raise StoreError(f"{self.url}: web servers do not list files. Pass the URL of each file.")
        prefix, root = prefix.strip("/"), self._location.path.rstrip("/")
        last = ""
        for found in self._listed(self._location.below(prefix).path):
            path = found["path"]
            key = path[len(root) + 1 :] if root else path
            if not found["size"] and not (key and self._exists(key)):
                continue  # the marker of a folder, as consoles of stores create them
            if not key:
                raise StoreError(f"{self.url}/: object name ends with a slash. Rename the object.")
            if path < last:
                order = "the store does not list objects in order"
                raise StoreError(f"{self.url}: {order}. Pass the URL of each object.")
            last = path
            yield Entry(key, found["size"], _version(found))

    def _listed(self, folder: str) -> Iterator[obstore.ObjectMeta]:
        """Yield the objects that the client lists.

        The client takes an unrelated answer, such as the login page of a network, for an empty last page. A listing of
        more than one page therefore has only ended when the server says so twice.
        """
        count = _PAGE_OBJECTS * (5 if self._location.scheme == "az" else 1)

        def listed_after(last: str) -> Any:
            return next(self._client.list(folder or None, offset=last or None, chunk_size=count), [])

        last, was_short = "", False
        while True:
            page = self._try("", partial(listed_after, last))
            yield from page
            is_short = len(page) < _PAGE_OBJECTS
            if (was_short and not page) or (is_short and not last):
                return
            was_short, last = is_short, page[-1]["path"] if page else last

    def _exists(self, key: str) -> bool:
        try:
            self.head(key)
        except StoreNotFound:
            return False
        return True

    def head(self, key: str) -> Entry:
        if self._is_web:  # HEAD may report a wrong size or none
            return self.read_begin(key, 1)[1]
        return self._head(key)

    def _head(self, key: str) -> Entry:
        """Ask by HEAD. The answer to a rejected HEAD does not give the reason, so then ask by GET."""
        try:
            meta = call(lambda: self._client.head(self._path(key)))
            return Entry(key, meta["size"], _version(meta))
        except Exception as error:
            reason = error
            if 400 <= status_of(error) < 500 and not code_of(error):
                try:
                    return _send(lambda: self._get(key, {"range": (0, 1)}))[1]
                except Exception as error_of_get:
                    if status_of(error_of_get) != 416:
                        reason = error_of_get
            raise self._explained(reason, key) from None

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        if stop is not None and stop <= start:
            return b""
        options: obstore.GetOptions = {}
        if start or stop is not None:
            options["range"] = {"offset": start} if stop is None else (start, stop)
        if version.startswith('"'):  # a strong entity tag; a weak one (W/"...") is only compared below
            options["if_match"] = version
        found = self._fetch(key, options)
        if version and (found[1] if found else self.head(key)).version != version:
            raise errors.changed(self._shown(key))
        return found[0] if found else b""

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        return self._fetch(key, {"range": (0, count)}) or (b"", self._head(key))

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        return self._fetch(key, {"range": {"suffix": count}}) or super().read_end(key, count)

    def _fetch(self, key: str, options: obstore.GetOptions) -> tuple[Bytes, Entry] | None:
        """Return a range of an object. None if it begins at the end, or if the server does not know suffix ranges."""
        try:
            return _send(lambda: self._get(key, options))
        except Exception as error:
            is_beyond = status_of(error) == 416 or "Wanted range starting at" in str(error)
            if is_beyond or (knows_no_range(error) and "suffix" in str(options)):  # Azure
                return None
            raise self._explained(error, key) from None

    def _get(self, key: str, options: obstore.GetOptions) -> tuple[Bytes, Entry]:
        """Send a GET and compare the length of the body with the header, which the client does not."""
        result = self._client.get(self._path(key), options=options)
        data = memoryview(result.bytes())
        start, stop = result.range
        if len(data) != stop - start:
            raise StoreUnavailable(
                f"{self._shown(key)}: expected {stop - start} bytes after several retries (got {len(data)}). Check the "
                "network and the proxies between this machine and the store."
            )
        return data, Entry(key, result.meta["size"], _version(result.meta))

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """Write an object (see Store). With `if_absent`, the data are held in memory and sent in one request."""
        if self._is_web:
            return super().put(key, data)
        if if_absent:
            return self._put_if_absent(key, b"".join(as_blocks(data)))
        blocks = as_blocks(data)
        first: list[memoryview] = []
        size = 0
        for block in blocks:
            first.append(block)
            size += len(block)
            if size > PART_BYTES:
                break
        if size <= PART_BYTES:
            return self._put_small(key, first[0] if len(first) == 1 else b"".join(first))
        path, parts = self._path(key), chain(first, blocks)
        del first
        options = {"use_multipart": True, "chunk_size": PART_BYTES, "max_concurrency": _PARALLEL_PARTS}
        try:  # once, because the parts cannot be produced again
            call(lambda: self._client.put(path, parts, **options))
        except Exception as error:
            raise self._explained(error, key) from None
        return self.head(key)  # the answer has another tag on some servers

    def _put_small(self, key: str, data: Bytes) -> Entry:
        put = self._try(key, lambda: self._client.put(self._path(key), data, use_multipart=False))
        return Entry(key, len(data), _tag(put["e_tag"]) or self.head(key).version)

    def _put_if_absent(self, key: str, data: bytes) -> Entry:
        """Put conditionally. A put without an answer is repeated; an object with the same bytes then is its own."""
        if not self._has_conditions and self._exists(key):  # a server without conditions would overwrite it
            raise errors.already_there(self._shown(key))
        if self._has_conditions is False:
            return self._put_small(key, data)
        client = client_of(self._location, self._options, retries=False)
        attempts = 0

        def create() -> str:
            nonlocal attempts
            attempts += 1
            path = self._path(key)
            return _tag(call(lambda: client.put(path, data, mode="create", use_multipart=False))["e_tag"])

        try:
            version = call_again(create, _is_creation_retried)
        except Exception as error:
            if _knows_no_condition(error):
                self._has_conditions = False
                return self._put_if_absent(key, data)
            if not (_is_there(error) and attempts > 1 and bytes(self.read(key)) == data):
                raise self._explained(error, key) from None
            version = self.head(key).version
        if self._has_conditions is None:
            try:
                create()
                self._has_conditions = False
            except Exception as error:
                self._has_conditions = True if _is_there(error) else None
        return Entry(key, len(data), version or self.head(key).version)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects. Azure and Google reject the deletion of a missing object, at which the client stops without
        saying which objects it deleted. The remaining ones are then deleted one by one."""
        if self._is_web:
            super().delete(keys)
        paths = {key: self._path(key) for key in keys}
        if not paths:
            return
        try:
            self._try("", lambda: self._client.delete([*paths.values()]))
        except StoreNotFound:
            left = [entry.key for entry in self.list() if entry.key in paths] if len(paths) > 1 else []
            for key in left:
                with suppress(StoreNotFound):
                    self._try(key, lambda path=paths[key]: self._client.delete([path]))  # type: ignore[misc]

    def _try(self, key: str, request: Callable[[], _Result]) -> _Result:
        try:
            return _send(request)
        except Exception as error:
            raise self._explained(error, key) from None

    def _explained(self, error: Exception, key: str) -> Exception:
        """Return a client's error as a StoreError. Other errors, such as from an iterable of blocks, pass through."""
        if isinstance(error, LibraryPanic):
            return StoreError(f"{self._shown(key)}: {error}")
        is_clients = type(error).__module__.startswith(("obstore", "_obstore"))
        if is_clients or isinstance(error, FileNotFoundError | ValueError):
            return explained(error, self._shown(key), self._location.scheme)
        return error

    def _path(self, key: str) -> str:
        check_process(self.url)  # here, because every request needs a path
        return self._location.below(checked_key(self.url, key)).path

    def _shown(self, key: str) -> str:
        return self._location.below(key).shown


def _send(request: Callable[[], _Result]) -> _Result:
    """Return the result of a request that may be sent twice, where the client does not repeat it."""

    def is_retried(error: Exception) -> bool:
        is_broken = isinstance(error, StoreUnavailable) or _NOT_REPEATED.search(str(error)) is not None
        return is_broken and not status_of(error)

    return call_again(request, is_retried)


def _is_creation_retried(error: Exception) -> bool:
    is_rejected = 400 <= status_of(error) < 500 and status_of(error) not in (408, 409, 429)
    return not (is_rejected or _is_there(error) or _knows_no_condition(error))


def _is_there(error: Exception) -> bool:
    return type(error).__name__ == "AlreadyExistsError"


def _knows_no_condition(error: Exception) -> bool:
    return status_of(error) == 501 or type(error).__name__ == "NotSupportedError"


def _version(found: obstore.ObjectMeta) -> str:
    """Return the entity tag, or else the size and the second of the last write."""
    return _tag(found["e_tag"]) or f"{found['size']}-{int(found['last_modified'].timestamp())}"


def _tag(tag: str | None) -> str:
    """Return an entity tag in quotes, which some servers leave out in listings, or "" without a tag."""
    return f'"{tag}"' if tag and not tag.startswith(('"', "W/")) else tag or ""
