"""Stores by fsspec for schemes that obstore lacks, reading only: hf:// by huggingface_hub, others where the package
that fsspec names for them is installed (hdfs://, sftp://).

What hf:// reads is pinned: the first request asks for the revision's commit, all later ones read that commit. So an
object's version is the digest of its content, and a branch that moves on between two processes is noticed only where
the file itself differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tokenmill.errors import not_installed
from tokenmill.stores.causes import explained
from tokenmill.stores.clients import own_options
from tokenmill.stores.errors import (
    StoreError,
    StoreNotFound,
    UnknownScheme,
    changed,
    no_local_folder,
    read_only,
    unknown_option,
)
from tokenmill.stores.requests import call, read_joined
from tokenmill.stores.store import (
    NO_OPTIONS,
    Blocks,
    Bytes,
    Entry,
    StorageOptions,
    begin_by_size,
    checked_key,
    end_by_size,
)
from tokenmill.stores.system import cached_property
from tokenmill.stores.url import Location

_ATTEMPTS = 6
_HF_OPTIONS = {"token": "token", "hf_token": "token", "endpoint": "endpoint", "hf_endpoint": "endpoint"}
_TRANSIENT = (ConnectionError, TimeoutError)
_Result = TypeVar("_Result")


class FilesystemStore:
    """A folder of an fsspec file system; see `tokenmill.stores.store.Store`. It can't be written."""

    is_local = False
    excludes = False

    def __init__(self, location: Location, options: StorageOptions = NO_OPTIONS) -> None:
        self._location, self._options = location, dict(options)
        self.url = location.shown
        self._system = _file_system(location, self._options)

    def __reduce__(self) -> tuple[type[FilesystemStore], tuple[Location, Mapping[str, str]]]:
        return FilesystemStore, (self._location, self._options)

    @property
    def path(self) -> Path:
        """See Store."""
        raise no_local_folder(self.url)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See Store. All are held, since fsspec does not say in which order they come."""
        folder = self._place(prefix.strip("/")) if prefix.strip("/") else self._root
        try:
            found = self._try("", lambda: self._system.find(folder, detail=True))
        except StoreNotFound:
            return
        cut = len(self._root.rstrip("/")) + 1
        for name in sorted(found, key=lambda name: name.encode("utf-8", "surrogateescape")):
            if name != folder:
                yield Entry(name[cut:], int(found[name]["size"] or 0), _version(found[name]))

    def head(self, key: str) -> Entry:
        """See Store."""
        found = self._try(key, lambda: self._system.info(self._place(key)))
        if found["type"] != "file":
            raise StoreNotFound(f"{self._shown(key)}: a folder, not a file")
        return Entry(key, int(found["size"] or 0), _version(found))

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        """See Store. The version is that of the listing or, of a pinned revision, of the content."""
        entry = self.head(key)
        if version and entry.version != version:
            raise changed(self._shown(key))
        stop = entry.size if stop is None else min(stop, entry.size)
        if start >= stop:
            return b""
        data = self._try(key, lambda: self._read(self._place(key), start, stop))
        if len(data) != stop - start:
            raise StoreError(
                f"{self._shown(key)}: expected {stop - start} bytes (got {len(data)}). Run the command again."
            )
        return data

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        """See Store."""
        return read_joined(lambda start, stop: self.read(key, start, stop, version), ranges)

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        return begin_by_size(self, key, count)

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store."""
        return end_by_size(self, key, count)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """See Store; StoreError always."""
        raise self._read_only()

    def delete(self, keys: Iterable[str]) -> None:
        """See Store; StoreError always."""
        raise self._read_only()

    def _read(self, place: str, start: int, stop: int) -> bytes:
        with self._system.open(place, "rb", cache_type="none") as file:
            file.seek(start)
            data: bytes = file.read(stop - start)
            return data

    @cached_property
    def _root(self) -> str:
        """The folder in the file system; of hf:// at the commit that its revision is now."""
        if self._location.scheme != "hf":
            root: str = self._system._strip_protocol(f"{self._location.scheme}://{self._whole_path}")
            return root
        return self._try("", self._pinned_root)

    @property
    def _whole_path(self) -> str:
        container, path = self._location.container, self._location.path
        return f"{container}/{path}" if container else path

    def _pinned_root(self) -> str:
        place = self._system.resolve_path(self._location.path)
        if not hasattr(place, "repo_id"):  # a bucket, which has no commits
            return self._location.path.rstrip("/")
        commit = self._system._api.repo_info(
            place.repo_id, repo_type=place.repo_type, revision=place.revision
        ).sha
        kind = {"model": "", "dataset": "datasets/", "space": "spaces/"}[place.repo_type]
        return f"{kind}{place.repo_id}@{commit}/{place.path_in_repo}".rstrip("/")

    def _place(self, key: str) -> str:
        return f"{self._root.rstrip('/')}/{checked_key(self.url, key)}"

    def _shown(self, key: str) -> str:
        return self._location.below(key).shown if key else self.url

    def _read_only(self) -> StoreError:
        return read_only(self.url)

    def _try(self, key: str, request: Callable[[], _Result]) -> _Result:
        """The result; broken connections and failing servers are tried again with growing pauses."""
        for attempt in range(_ATTEMPTS):
            try:
                return call(request)
            except StoreError:
                raise
            except Exception as error:
                status = getattr(getattr(error, "response", None), "status_code", 0)
                transient = isinstance(error, _TRANSIENT) or "Connect" in type(error).__name__
                if attempt < _ATTEMPTS - 1 and (status == 429 or status >= 500 or (transient and not status)):
                    time.sleep(0.2 * 2**attempt)
                    continue
                raise self._explained(error, key, status) from None
        raise AssertionError

    def _explained(self, error: Exception, key: str, status: int) -> StoreError:
        if (
            self._location.scheme == "hf"
            and not key
            and (isinstance(error, FileNotFoundError) or status == 404)
        ):
            return StoreNotFound(
                f"{self.url}: no such repository or revision, or no access to it. Check HF_TOKEN."
            )
        said = PermissionError(f"status code: {status}") if status else error
        return explained(said, self._shown(key), self._location.scheme)


def _file_system(location: Location, options: Mapping[str, str]) -> Any:
    scheme = location.scheme
    mine = own_options(scheme, options)
    try:
        import fsspec

        if scheme != "hf":
            fsspec.get_filesystem_class(scheme)
            return fsspec.url_to_fs(f"{scheme}://{location.container}/{location.path}", **mine)[0]
        import huggingface_hub
    except (ImportError, ValueError) as error:
        if scheme != "hf" and isinstance(error, ValueError):
            raise UnknownScheme(
                f"{location.shown}: unsupported URL scheme {scheme}://. Use s3, gs, az, https, hf or a path."
            ) from None
        needed = "huggingface_hub" if scheme == "hf" else getattr(error, "name", None) or str(error)
        raise UnknownScheme(not_installed(f"{scheme}://", needed, "remote")) from None
    unknown = [name for name in mine if name.lower() not in _HF_OPTIONS]
    if unknown:
        raise unknown_option(location.shown, unknown[0])
    settings: dict[str, Any] = {_HF_OPTIONS[name.lower()]: value for name, value in mine.items()}
    return huggingface_hub.HfFileSystem(**settings)


def _version(found: Mapping[str, Any]) -> str:
    """Of what a file system says of a file: the digest of its content, a tag, or else size and time."""
    large = found.get("lfs")
    for tag in (
        large.get("sha256") if isinstance(large, Mapping) else None,
        found.get("blob_id"),
        found.get("ETag"),
    ):
        if tag:
            return str(tag)
    time_of = found.get("mtime") or found.get("LastModified") or found.get("created") or ""
    return f"{found.get('size')}-{time_of}"
