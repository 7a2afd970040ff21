"""A folder that gets its name when it is complete: `<output>.partial/result`, renamed at the end.

One run at a time has the lock of `<output>.partial`. The next run deletes the remains of a run that was killed. With
`overwrite` the former output moves into the folder, and back if the run was killed between the two renames. Only an
empty folder or a dataset of tokenmill is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from flat_tokens.arguments import invalid
from flat_tokens.errors import ArgumentError, DatasetError, RefusedError, printable
from flat_tokens.format import MASK_NAME, SPLITS
from flat_tokens.storage.manifest import FILES_NAME, MANIFEST_NAME, SOURCES_NAME, read_files, read_manifest
from flat_tokens.storage.places import walk
from tokenmill.stores import AlreadyThere, Store, StoreError, is_url
from tokenmill.stores.durability import sync, sync_in_background
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.names import names_in, remove_tree, rename

OWN_NAMES = {"lock", "result", "replaced"}
MARK_NAME = "writing"  # on a store, while a Writer is at work
# First parts of the keys that a Writer puts.
_OWN_KEYS = {MARK_NAME, "tokenizer.json", FILES_NAME, SOURCES_NAME, "zarr.json", MASK_NAME, *SPLITS}


def check_apart(output: Path, inputs: Iterable[object]) -> None:
    """Raise ArgumentError if an input is the output, or is inside it or its partial folder.

    Replacing the output would delete such an input. Values that are not paths, such as URLs and None, are ignored.
    """
    places = [output.resolve(), output.with_name(f"{output.name}.partial").resolve()] if output.name else []
    for given in inputs:
        if not isinstance(given, str | Path) or (isinstance(given, str) and is_url(given)):
            continue
        found = Path(given).resolve()
        if any(place == found or place in found.parents for place in places):
            raise ArgumentError(
                f"--output: must not be or contain the input {printable(str(given))} "
                f"(got {printable(str(output))}). Choose another path."
            )


class Unfinished:
    """A context in which `folder` is filled. `publish` renames it to the output; otherwise the context deletes it.

    output: the final path.
    overwrite: replace an existing output.
    not_ours: returns the reason why an existing output must stay, or None.

    Raise ArgumentError for a path that cannot exist, RefusedError for one that is taken. Both leave everything as it
    was.
    """

    def __init__(self, output: Path, overwrite: bool, not_ours: Callable[[Path], str | None]) -> None:
        self._output, self._overwrite, self._not_ours = output, overwrite, not_ours
        if output.name in ("", ".."):
            raise invalid("output", "must name a new folder", str(output))
        self._root = output.with_name(f"{output.name}.partial")
        self._replaced = self._root / "replaced"
        self.folder = self._root / "result"
        self._lock = FolderLock(self._root / "lock", output, RefusedError)

    def __enter__(self) -> Unfinished:
        where = printable(str(self._root))
        if not self._output.parent.is_dir():
            what = "its folder does not exist. Create the folder first."
            raise ArgumentError(f"{printable(str(self._output))}: {what}")
        if not os.path.lexists(self._root):
            self._check_output()
            self._root.mkdir(exist_ok=True)
        if self._root.is_symlink() or not self._root.is_dir():
            raise RefusedError(f"{where}: already exists and is not a work folder. Move it away.")
        if foreign := sorted(names_in(self._root) - OWN_NAMES):
            raise RefusedError(
                f"{where}: contains a foreign file (got {printable(foreign[0])}). Move it away."
            )
        self._lock.acquire()
        try:
            if self._replaced.exists() and not os.path.lexists(self._output):
                rename(self._replaced, self._output)
            self._clear()
            self._check_output()
            self.folder.mkdir()
        except BaseException:
            self._lock.remove_folder()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None or not self._replaced.exists():  # else the next run restores the former output
            with suppress(OSError):
                self._clear()
                self._lock.remove_folder()
        self._lock.release()

    def complete(self) -> None:
        """Do nothing. On a store this removes a mark."""

    def publish(self) -> None:
        """Rename the folder to the output when all of it is on disk."""
        sync_in_background(self.folder).result()
        self._check_output()  # again, since it may exist by now
        if os.path.lexists(self._output):
            rename(self._output, self._replaced)
        rename(self.folder, self._output)
        sync(self._output.parent)

    def _check_output(self) -> None:
        """Raise RefusedError for an output that must stay. An empty folder may be replaced."""
        if not os.path.lexists(self._output) or is_empty_folder(self._output):
            return
        where = printable(str(self._output))
        if not self._overwrite:
            fix = "Pass --overwrite (overwrite=True in Python) to replace it, or choose another path."
            raise RefusedError(f"{where}: already exists. {fix}")
        if reason := self._not_ours(self._output):
            raise RefusedError(f"{where}: cannot be replaced: {reason}. Choose another path.")

    def _clear(self) -> None:
        for path in (self.folder, self._replaced):
            if path.is_symlink() or path.is_file():
                path.unlink(missing_ok=True)
            else:
                remove_tree(path)


class Reserved:
    """The counterpart of Unfinished on a store, where objects cannot be renamed.

    An object marks the place as taken until the manifest is written. After an error the objects of the Writer are
    deleted, and all objects stay if another program has written a manifest.
    """

    def __init__(self, store: Store) -> None:
        self.folder, self._is_complete = store, False

    def __enter__(self) -> Reserved:
        try:
            self.folder.put(MARK_NAME, b"", if_absent=True)
        except AlreadyThere:
            raise self._taken() from None
        if any(entry.key != MARK_NAME for entry in self.folder.list()):
            self.folder.delete([MARK_NAME])
            raise self._taken()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, AlreadyThere):
            return
        with suppress(StoreError):
            if self._is_complete:
                self.folder.delete([MANIFEST_NAME])
            keys = [entry.key for entry in self.folder.list()]
            self.folder.delete([key for key in keys if key.partition("/")[0] in _OWN_KEYS])

    def complete(self) -> None:
        """Remove the mark."""
        self._is_complete = True
        self.folder.delete([MARK_NAME])

    def publish(self) -> None:
        """Do nothing: the manifest made the dataset visible."""

    def _taken(self) -> RefusedError:
        return RefusedError(
            f"{printable(self.folder.url)}: not empty. Delete its objects, or choose another URL."
        )


def is_empty_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir() and not path.is_symlink() and next(path.iterdir(), None) is None
    return False


def not_ours(output: Path) -> str | None:
    """Why the dataset at `output` must not be replaced. None if it is one of tokenmill and contains nothing else."""
    if output.is_symlink() or not output.is_dir():
        return "it is a link" if output.is_symlink() else "it is not a dataset of ours"
    with suppress(DatasetError, OSError):
        if (manifest := read_manifest(output)) is not None:
            listed = {MANIFEST_NAME, *(record.path for record in read_files(output, manifest))}
            paths = (path for path, _, _ in walk(output))
            foreign = next((path for path in paths if path not in listed), None)
            return None if foreign is None else why_it_stays(foreign)
    return "not a dataset of this version of tokenmill (no valid manifest.json in it). Delete it first"


def why_it_stays(path: str) -> str:
    """Why a dataset is not replaced that contains a file, by its path within it, that its manifest does not list."""
    return f"contains {printable(path)}, which manifest.json does not list"
