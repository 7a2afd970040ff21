"""Whether a dataset is still the one that was opened.

A dataset may be replaced while it is read, by `--overwrite` or by a copy. Files that were opened before are then of
another dataset than those that are opened later, each of them sound. A manifest is taken away first and put last, so
what was opened before it was seen unchanged is of the dataset that was opened. What is read later of an opened file is
of the same file, and of an object of the same version of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from flat_tokens.errors import DatasetError, damaged
from flat_tokens.storage.files import AbsentFileError
from flat_tokens.storage.places import Payload, Place, StorePath, open_file

TAIL_BYTES = 256  # of a manifest, in which its own hash lies
_NOTHING = nullcontext()


@dataclass
class OpenedManifest:
    """The manifest by which a dataset was opened. version: what another one differs in, see `version_by_end`; on a
    store that of the object. Picklable, also for another machine that has a copy of the dataset at its place."""

    place: Place
    version: str

    @classmethod
    def of(cls, place: Place) -> OpenedManifest:
        """The manifest that is there now, or that there is none."""
        return cls(place, _version_of(place))

    @contextmanager
    def opening(self) -> Iterator[None]:
        """A context in which files or objects of the dataset are opened. DatasetError if it was replaced, in place of
        what follows from that; on a store a request."""
        with self.reading():
            yield
        self.check()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context in which more is read of those that were opened: whether it was replaced is asked where that
        fails."""
        try:
            yield
        except (DatasetError, FileNotFoundError):  # the latter of a folder that was listed
            self.check()
            raise

    def check(self) -> None:
        """Raise DatasetError if there is another manifest, or none, where it was."""
        found = _version_of(self.place)
        if found != self.version:
            what = f"the dataset was {'replaced' if found else 'removed'} while it was open"
            raise damaged(self.place, what, "Open it again.")


def opening(opened: OpenedManifest | None) -> AbstractContextManager[None]:
    """See OpenedManifest.opening; nothing is checked of a dataset without a manifest."""
    return _NOTHING if opened is None else opened.opening()


def reading(opened: OpenedManifest | None) -> AbstractContextManager[None]:
    """The same of OpenedManifest.reading."""
    return _NOTHING if opened is None else opened.reading()


def _version_of(manifest: Place) -> str:
    try:
        if isinstance(manifest, StorePath):
            with manifest.reading():
                return manifest.store.head(manifest.key).version
        with open_file(manifest) as file:
            start = max(file.size - TAIL_BYTES, 0)
            return version_by_end(file.part(start, file.size - start))
    except AbsentFileError:
        return ""


def version_by_end(tail: Payload) -> str:
    """The version of a manifest in a folder: its last TAIL_BYTES, with the hash of all."""
    return bytes(tail).hex()
