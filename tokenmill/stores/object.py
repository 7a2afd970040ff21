"""Object stores through obstore: s3://, gs://, az://, https:// (reading), memory:// (one a process, for tests)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tokenmill.errors import LibraryPanic
from tokenmill.stores.causes import code_of, explained, knows_no_range, status_of
from tokenmill.stores.clients import SCHEMES, check_process, client_of, unretried_client_of
from tokenmill.stores.errors import (
    StoreError,
    StoreNotFound,
    already_there,
    changed,
    no_local_folder,
    read_only,
)
from tokenmill.stores.requests import call, read_joined
from tokenmill.stores.store import (
    NO_OPTIONS,
    Blocks,
    Bytes,
    Entry,
    StorageOptions,
    as_blocks,
    begin_by_size,
    checked_key,
    end_by_size,
)
from tokenmill.stores.url import Location

if TYPE_CHECKING:
    import obstore
    from obstore.store import ObjectStore as AnyClient

__all__ = ["SCHEMES", "ObjectStore"]

PART_BYTES = 16 << 20  # of a multipart upload: 10,000 of them, the most S3 allows, are 160 GB
_PARTS_AT_ONCE = 4
_PAGE_OBJECTS = 1000  # the most that S3 lists in one answer
_ATTEMPTS = 6
# Of the client: an answer broke off in its body, was shorter than asked for, or did not come in time to a request that
# the client takes for one that may not be sent twice.
_UNTRIED = re.compile("response body error|Requested|retries: 0,.*kind: Timeout", re.DOTALL)
_Result = TypeVar("_Result")


class _WrongLengthError(StoreError):
    """More or fewer bytes came than the head of the answer says."""


class ObjectStore:
    """A container of an object store, or a folder of keys in it; see `tokenmill.stores.store.Store`.

    A put with if_absent is a conditional put (If-None-Match: *). A store that ignores the condition is found out by
    the first such put, which is sent twice: the second must be refused. From then on `excludes` is False and the
    object is looked for before it is put: of two writers at the same moment both may win there.
    """

    is_local = False

    def __init__(self, location: Location, options: StorageOptions = NO_OPTIONS) -> None:
        self._location, self._options = location, dict(options)
        client_of(location, options)  # settings that do not work are told at once
        self.url = location.shown
        self._excludes: bool | None = True if location.scheme == "memory" else None  # None: not known yet

    def __reduce__(self) -> tuple[type[ObjectStore], tuple[Location, Mapping[str, str]]]:
        return ObjectStore, (self._location, self._options)

    @property
    def _client(self) -> AnyClient:
        return client_of(self._location, self._options)

    @property
    def path(self) -> Path:
        """See Store."""
        raise no_local_folder(self.url)

    @property
    def _is_web(self) -> bool:
        return self._location.scheme in ("http", "https")

    @property
    def excludes(self) -> bool:
        """See Store."""
        return self._excludes is not False

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See Store. One request for each thousand objects, and of so many one more: a page that something on the way
        answers, as a proxy does, the client takes for the last one. Each empty object costs another request,
        because the client lists an object "data" and the marker "data/" of a folder under the same name."""
        if self._is_web:
            raise StoreError(f"{self.url}: web servers do not list files. Pass the URL of each file.")
        folder = self._location.below(prefix.strip("/")).path if prefix.strip("/") else self._location.path
        cut = len(self._location.path.rstrip("/")) + 1 if self._location.path.rstrip("/") else 0
        pages: Any = None
        last = ""
        is_confirmed = True  # that nothing lies behind `last`, should the listing end there

        def next_page() -> Any:
            nonlocal pages
            try:
                pages = pages or self._client.list(
                    folder or None, offset=last or None, chunk_size=_PAGE_OBJECTS
                )
                return next(pages, None)
            except Exception:  # a listing that broke off is at its end: another goes on behind what has come
                pages = None
                raise

        while True:
            page = self._try("", next_page)
            if not page:
                if is_confirmed:
                    return
                pages, is_confirmed = None, True
                continue
            is_confirmed = len(page) < _PAGE_OBJECTS and is_confirmed
            for found in page:
                key = found["path"][cut:]
                if not found["size"] and self._is_folder_marker(key):
                    continue
                if not key:
                    raise StoreError(f"{self.url}/: object name ends with a slash. Rename the object.")
                if found["path"] < last:
                    raise StoreError(
                        f"{self.url}: the store does not list objects in order. Pass the URL of each object."
                    )
                last = found["path"]
                yield Entry(key, found["size"], _version(found))

    def _is_folder_marker(self, key: str) -> bool:
        """Whether the key of an empty object ends with a slash, as those that the consoles of stores create."""
        if not key:
            return True
        try:
            self.head(key)
        except StoreNotFound:
            return True
        return False

    def head(self, key: str) -> Entry:
        """See Store. Of a web server by a part of the file: some tell another size, or none, to a HEAD."""
        if self._is_web:
            try:
                return self._head_of_part(key)
            except Exception as error:
                if status_of(error) != 416:  # as of an empty file
                    raise self._explained(error, key) from None
        try:
            found = call(lambda: self._client.head(self._path(key)))
        except Exception as error:
            if 400 <= status_of(error) < 500 and not code_of(
                error
            ):  # an answer to HEAD does not say what is wrong
                return self._head_by_get(key, error)
            raise self._explained(error, key) from None
        return Entry(key, found["size"], _version(found))

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        """See Store."""
        if stop is not None and stop <= start:
            return b""
        options: obstore.GetOptions = {}
        if stop is not None:
            options["range"] = (start, stop)
        elif start:
            options["range"] = {"offset": start}
        if version.startswith(
            '"'
        ):  # an entity tag; a weak one (W/"...") may not be asked for, but can be compared
            options["if_match"] = version
        try:
            meta, data = _sent(lambda: self._got(key, options))
        except Exception as error:
            if _is_beyond(error):
                return b""
            raise self._explained(error, key) from None
        if version and _version(meta) != version:
            raise changed(self._shown(key))
        return data

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        """See Store."""
        return read_joined(lambda start, stop: self.read(key, start, stop, version), ranges)

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        try:
            meta, data = _sent(lambda: self._got(key, {"range": (0, count)}))
        except Exception as error:
            if _is_beyond(error):  # of an empty object
                return begin_by_size(self, key, count)
            raise self._explained(error, key) from None
        return data, Entry(key, meta["size"], _version(meta))

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        try:
            meta, data = _sent(lambda: self._got(key, {"range": {"suffix": count}}))
        except Exception as error:
            if status_of(error) == 416 or knows_no_range(error):
                return end_by_size(self, key, count)  # an empty object; Azure, which knows no such ranges
            raise self._explained(error, key) from None
        return data, Entry(key, meta["size"], _version(meta))

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """See Store. if_absent: the data are held in memory and sent in one request. A put whose answer got lost is
        sent again; if it finds an object with exactly these bytes then, this is taken for its own."""
        self._check_writable()
        if if_absent:
            return self._put_if_absent(key, b"".join(as_blocks(data)))
        path, blocks = self._path(key), as_blocks(data)
        first: list[memoryview] = []
        held = 0
        for block in blocks:
            first.append(block)
            held += len(block)
            if held > PART_BYTES:
                break
        if held <= PART_BYTES:
            whole: Any = first[0] if len(first) == 1 else b"".join(first)
            put = self._try(key, lambda: self._client.put(path, whole, use_multipart=False))
            return Entry(key, held, _tag(put["e_tag"]) or self.head(key).version)
        parts: Any = chain(first, blocks)
        del first
        try:  # once: the parts are gone
            call(
                lambda: self._client.put(
                    path, parts, use_multipart=True, chunk_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE
                )
            )
        except Exception as error:
            raise self._explained(error, key) from None
        return self.head(key)  # servers do not agree on the tag that they give when the parts are joined

    def delete(self, keys: Iterable[str]) -> None:
        """See Store. Azure's and Google's stores refuse to delete what is not there, and the client ends with it, which
        objects it came to it does not say: the rest is then deleted one by one."""
        self._check_writable()
        paths = {key: self._path(key) for key in keys}
        if not paths:
            return
        try:
            self._try("", lambda: self._client.delete(list(paths.values())))
        except StoreNotFound:
            left = [entry.key for entry in self.list() if entry.key in paths] if len(paths) > 1 else []
            for key in left:
                with suppress(StoreNotFound):
                    self._try(key, lambda path=paths[key]: self._client.delete([path]))  # type: ignore[misc]

    def _put_if_absent(self, key: str, data: bytes) -> Entry:
        path = self._path(key)
        once = unretried_client_of(self._location, self._options)

        def create() -> str:
            return _tag(call(lambda: once.put(path, data, mode="create", use_multipart=False))["e_tag"])

        if (
            self._excludes is not True
        ):  # a store that ignores the condition would lose the object that is there
            try:
                self.head(key)
            except StoreNotFound:
                pass
            else:
                raise already_there(self._shown(key))
        if self._excludes is False:
            put = self._try(key, lambda: self._client.put(path, data, use_multipart=False))
            return Entry(key, len(data), _tag(put["e_tag"]) or self.head(key).version)
        unsure = False  # whether an earlier attempt may have written it
        for attempt in range(_ATTEMPTS):
            try:
                version = create()
                break
            except Exception as error:
                if type(error).__name__ == "AlreadyExistsError":
                    if unsure and bytes(self.read(key)) == data:
                        version = self.head(key).version
                        break
                    raise self._explained(error, key) from None
                status = status_of(error)
                if status == 501 or type(error).__name__ == "NotSupportedError":
                    self._excludes = False
                    return self._put_if_absent(key, data)
                if (400 <= status < 500 and status not in (408, 409, 429)) or attempt == _ATTEMPTS - 1:
                    raise self._explained(error, key) from None
                unsure = True
                time.sleep(0.2 * 2**attempt)
        if self._excludes is None:
            self._excludes = self._refuses_again(create)
        return Entry(key, len(data), version or self.head(key).version)

    def _refuses_again(self, create: Callable[[], str]) -> bool | None:
        """Whether the store refuses a second conditional put of what was just put; None where it did not answer."""
        try:
            create()
            return False
        except Exception as error:
            return True if type(error).__name__ == "AlreadyExistsError" else None

    def _got(self, key: str, options: obstore.GetOptions) -> tuple[obstore.ObjectMeta, Bytes]:
        """The head and the bytes of an answer, as many as its head says, which the client does not compare."""
        result = self._client.get(self._path(key), options=options)
        data = memoryview(result.bytes())
        start, stop = result.range
        if len(data) != stop - start:
            raise _WrongLengthError(
                f"{self._shown(key)}: expected {stop - start} bytes after several retries (got {len(data)}). Check the "
                "network and the proxies between this machine and the store."
            )
        return result.meta, data

    def _head_by_get(self, key: str, why: Exception) -> Entry:
        """The entry by a request for the first byte, where a HEAD is refused; its answer says why, if that is too."""
        try:
            return self._head_of_part(key)
        except Exception as error:
            raise self._explained(why if status_of(error) == 416 else error, key) from None

    def _head_of_part(self, key: str) -> Entry:
        """The entry by a request for the first byte, which is refused of an empty object."""
        meta = _sent(lambda: self._client.get(self._path(key), options={"range": (0, 1)}).meta)
        return Entry(key, meta["size"], _version(meta))

    def _check_writable(self) -> None:
        if self._is_web:
            raise read_only(self.url)

    def _try(self, key: str, request: Callable[[], _Result]) -> _Result:
        try:
            return _sent(request)
        except Exception as error:
            raise self._explained(error, key) from None

    def _explained(self, error: Exception, key: str) -> Exception:
        """A client's error as this package's; others, as of an iterable that is put, are what they are."""
        if isinstance(error, LibraryPanic):
            return StoreError(f"{self._shown(key)}: {error}")
        ours = type(error).__module__.startswith(("obstore", "_obstore")) or isinstance(
            error, FileNotFoundError | ValueError
        )
        return explained(error, self._shown(key), self._location.scheme) if ours else error

    def _path(self, key: str) -> str:
        check_process(self.url)  # here, where every request passes: one in a forked child would wait for ever
        return self._location.below(checked_key(self.url, key)).path

    def _shown(self, key: str) -> str:
        return self._location.below(key).shown if key else self.url


def _sent(request: Callable[[], _Result]) -> _Result:
    """The result of a request, any of which may be sent twice; it is sent again where the client does not do so."""
    for attempt in range(_ATTEMPTS):
        try:
            return call(request)
        except Exception as error:
            untried = not status_of(error) and (
                isinstance(error, _WrongLengthError) or _UNTRIED.search(str(error))
            )
            if not untried or attempt == _ATTEMPTS - 1:
                raise
        time.sleep(0.2 * 2**attempt)
    raise AssertionError


def _is_beyond(error: Exception) -> bool:
    """Whether a range begins at the end of the object or behind it."""
    return status_of(error) == 416 or "Wanted range starting at" in str(error)


def _version(found: obstore.ObjectMeta) -> str:
    """The entity tag, else size and second of the last write."""
    return _tag(found["e_tag"]) or f"{found['size']}-{int(found['last_modified'].timestamp())}"


def _tag(tag: str | None) -> str:
    """An entity tag in its quotes, which some servers leave out in a listing; "" if there is none."""
    return f'"{tag}"' if tag and not tag.startswith(('"', "W/")) else tag or ""
