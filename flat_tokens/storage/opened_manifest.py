"""Whether a dataset is still the one that was opened.

A dataset may be replaced while it is read, by `--overwrite` or by a copy. Files opened later then belong to another
dataset, and each of them is sound. The manifest is removed first and written last. So files belong to the opened
dataset if the manifest is unchanged after they were opened.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from flat_tokens.errors import DatasetError, damaged
from flat_tokens.storage.files import AbsentFileError, open_descriptor
from flat_tokens.storage.places import Payload, Place, StorePath

_TAIL_BYTES = 256  # of a manifest: its end contains the hash of all of it
_NOTHING = nullcontext()


class OpenedManifest:
    """The manifest of an opened dataset. Picklable, also for a machine with a copy of the dataset at the same path.

    place: manifest.json, or another file that is replaced with the dataset.
    version: its last bytes, or the version of an object on a store; "" if it is absent.
    """

    def __init__(self, place: Place, version: str) -> None:
        self.place = place
        self.version = version
        self._thread = threading.local()

    def __reduce__(self) -> tuple[type[OpenedManifest], tuple[Place, str]]:
        return OpenedManifest, (self.place, self.version)

    @classmethod
    def of(cls, place: Place) -> OpenedManifest:
        """The current manifest."""
        return cls(place, _version_of(place))

    @property
    def is_reading(self) -> bool:
        """Whether the thread is in the context `reading`."""
        return getattr(self._thread, "is_reading", False)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """A context that raises DatasetError for a replaced dataset instead of an error that follows from it."""
        try:
            yield
        except (DatasetError, FileNotFoundError):  # the latter comes from listing a folder
            self.check()
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context in which a thread opens and reads files of the dataset. At its end, and if reading fails, raise
        DatasetError if the dataset was replaced. An inner context leaves this to the outer one."""
        if self.is_reading:
            yield
            return
        self._thread.is_reading = True
        try:
            with self.explaining():
                yield
        finally:
            self._thread.is_reading = False
        self.check()

    def check(self) -> None:
        """Raise DatasetError if the manifest has changed or is gone."""
        found = _version_of(self.place)
        if found != self.version:
            what = f"the dataset was {'replaced' if found else 'removed'} while it was open"
            raise damaged(self.place, what, "Open it again.")


def reading(opened: OpenedManifest | None) -> AbstractContextManager[None]:
    """The context `OpenedManifest.reading`, which checks nothing for a dataset without a manifest."""
    return _NOTHING if opened is None else opened.reading()


def _version_of(manifest: Place) -> str:
    try:
        if isinstance(manifest, StorePath):
            with manifest.reading():
                return manifest.store.head(manifest.key).version
        descriptor, size = open_descriptor(manifest)
    except AbsentFileError:
        return ""
    try:
        return version_by_end(os.pread(descriptor, _TAIL_BYTES, max(size - _TAIL_BYTES, 0)))
    finally:
        os.close(descriptor)


def version_by_end(data: Payload) -> str:
    """The version of a manifest in a folder, from its last bytes."""
    return bytes(data[-_TAIL_BYTES:]).hex()
