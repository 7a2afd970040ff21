"""Read-only stores of the Hugging Face Hub (hf://), through the fsspec file system of huggingface_hub.

A store and its pickled copies read the commit to which its revision points at the first request. The version of an
object is the digest of its content, so another store notices a newer commit only if the object differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from tokenmill.errors import not_installed
from tokenmill.stores import errors
from tokenmill.stores.causes import explained
from tokenmill.stores.clients import own_options
from tokenmill.stores.errors import StoreError, StoreNotFound, StoreUnavailable, UnknownScheme
from tokenmill.stores.requests import call_again
from tokenmill.stores.store import NO_OPTIONS, Bytes, Entry, StorageOptions, Store, checked_key
from tokenmill.stores.system import cached_property
from tokenmill.stores.url import Location

_OPTIONS = {"token": "token", "hf_token": "token", "endpoint": "endpoint", "hf_endpoint": "endpoint"}
_Result = TypeVar("_Result")


class HubStore(Store):
    """A folder of a repository (see Store)."""

    def __init__(self, location: Location, options: StorageOptions = NO_OPTIONS) -> None:
        self._location, self.url = location, location.shown
        self._system = _file_system(location.shown, own_options("hf", options))

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """List objects (see Store). All are held in memory, since fsspec does not list in order."""
        folder = self._path(prefix.strip("/")) if prefix.strip("/") else self._root
        try:
            found = self._try("", lambda: self._system.find(folder, detail=True))
        except StoreNotFound:
            return
        for path in sorted(found, key=lambda path: path.encode("utf-8", "surrogateescape")):
            if path != folder:
                key = path[len(self._root) + 1 :]
                yield Entry(key, int(found[path]["size"] or 0), _version(found[path]))

    def head(self, key: str) -> Entry:
        found = self._try(key, lambda: self._system.info(self._path(key)))
        if found["type"] != "file":
            raise StoreNotFound(f"{self._shown(key)}: a folder, not a file")
        return Entry(key, int(found["size"] or 0), _version(found))

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        entry = self.head(key)
        if version and entry.version != version:
            raise errors.changed(self._shown(key))
        stop = entry.size if stop is None else min(stop, entry.size)
        if start >= stop:
            return b""

        def request() -> Any:
            with self._system.open(self._path(key), "rb", cache_type="none") as file:
                file.seek(start)
                return file.read(stop - start)

        data: bytes = self._try(key, request)
        if len(data) != stop - start:
            raise StoreUnavailable(
                f"{self._shown(key)}: expected {stop - start} bytes (got {len(data)}). Run the command again."
            )
        return data

    @cached_property
    def _root(self) -> str:
        """The folder in the file system, at the commit to which the revision points now."""
        return self._try("", self._pinned).rstrip("/")

    def _pinned(self) -> str:
        found = self._system.resolve_path(self._location.path)
        if not hasattr(found, "repo_id"):  # a bucket, which has no commits
            return self._location.path
        repo_id, kind = found.repo_id, found.repo_type
        commit = self._system._api.repo_info(repo_id, repo_type=kind, revision=found.revision).sha
        prefix = "" if kind == "model" else f"{kind}s/"
        return f"{prefix}{repo_id}@{commit}/{found.path_in_repo}"

    def _path(self, key: str) -> str:
        return f"{self._root}/{checked_key(self.url, key)}"

    def _shown(self, key: str) -> str:
        return self._location.below(key).shown

    def _try(self, key: str, request: Callable[[], _Result]) -> _Result:
        try:
            return call_again(request, _is_retried)
        except StoreError:
            raise
        except Exception as error:
            status = _status_of(error)
            if not key and (isinstance(error, FileNotFoundError) or status == 404):
                reason = "no such repository or revision, or no access to it"
                raise StoreNotFound(f"{self.url}: {reason}. Check HF_TOKEN.") from None
            cause = PermissionError(f"status code: {status}") if status else error
            raise explained(cause, self._shown(key), "hf") from None


def _status_of(error: Exception) -> int:
    status: int = getattr(getattr(error, "response", None), "status_code", 0)
    return status


def _is_retried(error: Exception) -> bool:
    if status := _status_of(error):
        return status == 429 or status >= 500
    return isinstance(error, ConnectionError | TimeoutError) or "Connect" in type(error).__name__


def _file_system(shown: str, options: Mapping[str, str]) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise UnknownScheme(not_installed("hf://", "huggingface_hub", "remote")) from None
    settings: dict[str, Any] = {}
    for name, value in options.items():
        if name.lower() not in _OPTIONS:
            raise errors.unknown_option(shown, name)
        settings[_OPTIONS[name.lower()]] = value
    return huggingface_hub.HfFileSystem(**settings)


def _version(found: Mapping[str, Any]) -> str:
    """Return the digest of a file's content, or the ID of its Git blob, or else its size and time."""
    large = found.get("lfs")
    digest = large.get("sha256") if isinstance(large, Mapping) else None
    tag = digest or found.get("blob_id") or f"{found.get('size')}-{found.get('mtime') or ''}"
    return str(tag)
