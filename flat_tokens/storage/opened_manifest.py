"""Whether a dataset is still the one that was opened.

A dataset may be replaced while it is read, by `--overwrite` or by a copy. Files opened later then belong to another
dataset, and each of them is sound. The manifest is removed first and written last. So files belong to the opened
dataset if the manifest is unchanged after they were opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flat_tokens.errors import DatasetError, damaged
from flat_tokens.storage.files import AbsentFileError, RegularFile
from flat_tokens.storage.places import Place, StorePath

_TAIL_BYTES = 256  # of a manifest: its end contains the hash of all of it


@dataclass(frozen=True)
class OpenedManifest:
    """The manifest of an opened dataset. Picklable, also for a machine with a copy of the dataset at the same path.

    place: manifest.json.
    version: its last bytes, or the version of an object on a store; "" if the dataset has none.
    """

    place: Place
    version: str

    @classmethod
    def of(cls, place: Place) -> OpenedManifest:
        """The current manifest."""
        return cls(place, _version_of(place))

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
        """A context in which files of the dataset are opened and read. At its end, and if reading fails, raise
        DatasetError if the dataset was replaced."""
        with self.explaining():
            yield
        self.check()

    def check(self) -> None:
        """Raise DatasetError if the manifest has changed or is gone. 7 us in a folder, a request on a store."""
        found = _version_of(self.place) if self.version else ""
        if found != self.version:
            what = f"the dataset was {'replaced' if found else 'removed'} while it was open"
            raise damaged(self.place, what, "Open it again.")


def _version_of(manifest: Place) -> str:
    try:
        if isinstance(manifest, StorePath):
            with manifest.reading():
                return manifest.store.head(manifest.key).version
        with RegularFile(manifest) as file:
            start = max(file.size - _TAIL_BYTES, 0)
            return file.part(start, file.size - start).hex()
    except AbsentFileError:
        return ""


def version_by_end(data: bytes) -> str:
    """The version of a manifest in a folder, from its last bytes."""
    return data[-_TAIL_BYTES:].hex()
