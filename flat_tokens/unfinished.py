"""A folder that gets its name when it is complete: `<output>.partial/result`, renamed at the end.

One run at a time has the lock of `<output>.partial`. The next run deletes the remains of a run that was killed. With
`overwrite` the former output moves into the folder, and back if the run was killed between the two renames. Only an
empty folder or a dataset of tokenmill is replaced.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from flat_tokens.arguments import invalid
from flat_tokens.errors import ArgumentError, DatasetError, RefusedError, printable
from flat_tokens.format import MASK_NAME, SPLITS
from flat_tokens.storage.manifest import FILES_NAME, MANIFEST_NAME, SOURCES_NAME, read_files, read_manifest
from flat_tokens.storage.places import Place, walk
from tokenmill.stores import AlreadyThere, Store, StoreError
from tokenmill.stores.durability import sync, sync_in_background
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.names import names_in, remove_tree, rename

OWN_NAME = re.compile("lock|(result|replaced)/?")
MARK_NAME = "writing"  # on a store, while a Writer is at work
# First parts of the keys that a Writer puts.
_OWN_KEYS = {MARK_NAME, "tokenizer.json", FILES_NAME, SOURCES_NAME, "zarr.json", MASK_NAME, *SPLITS}


class Unfinished:
    """A context in which `folder` is filled. `publish` renames it to the output; otherwise the context deletes it.

    output: the final path.
    overwrite: replace an existing output.
    not_ours: returns the reason why an existing output must stay, or None.

    Raise ArgumentError for a path that cannot exist, RefusedError for one that is taken. Both leave everything as it
    was.
    """

    def __init__(self, output: Path, overwrite: bool, not_ours: Callable[[Path], str | None]) -> None:
        self._output, self._check_output = output, partial(check_output, output, overwrite, not_ours)
        if output.name in ("", ".."):
            raise invalid("output", "must name a new folder", str(output))
        self._root = output.with_name(f"{output.name}.partial")
        self._replaced = self._root / "replaced"
        self.folder = self._root / "result"
        self._lock = FolderLock(self._root / "lock", output, RefusedError)

    def __enter__(self) -> Unfinished:
        if not self._output.parent.is_dir():
            what = "its folder does not exist. Create the folder first."
            raise ArgumentError(f"{printable(str(self._output))}: {what}")
        if not os.path.lexists(self._root):
            self._check_output()
        make_work_folder(self._root, OWN_NAME)
        self._lock.acquire()
        try:
            restore_former(self._replaced, self._output)
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
        swap_in(self.folder, self._output, self._replaced)

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


def check_output(output: Path, overwrite: bool, not_ours: Callable[[Path], str | None]) -> None:
    """Raise RefusedError for an output that must stay, or that is inside a dataset. An empty folder may be replaced.

    overwrite, not_ours: see Unfinished.
    """
    where = printable(str(output))
    folder = output.parent.resolve()
    for parent in (folder, *folder.parents):
        if is_dataset(parent):
            raise inside_dataset(where, parent)
    if not os.path.lexists(output) or _is_empty_folder(output):
        return
    if not overwrite:
        raise existing(where)
    if reason := not_ours(output):
        raise not_replaceable(where, reason)


def make_work_folder(root: Path, own: re.Pattern[str]) -> None:
    """Make a folder, if it does not exist. Raise RefusedError for another file, or a folder with names of others.

    own: names that a run makes; those of folders end in a slash.
    """
    is_ours = not os.path.lexists(root) or (root.is_dir() and not root.is_symlink())
    if is_ours:
        root.mkdir(exist_ok=True)
    for path in sorted(root / name for name in names_in(root)) if is_ours else [root]:
        name = f"{path.name}/" if path.is_dir() else path.name
        if not own.fullmatch(name) and os.path.lexists(path):  # another run may have removed it by now
            raise RefusedError(f"{printable(str(path))}: not created by tokenmill. Move it away.")


def swap_in(folder: Path, output: Path, replaced: Path) -> None:
    """Rename a complete folder to the output. A former output becomes `replaced`, which must not exist."""
    if os.path.lexists(output):
        rename(output, replaced)
    rename(folder, output)
    sync(output.parent)


def restore_former(replaced: Path, output: Path) -> None:
    """Rename the former output back if a run was killed between the two renames of `swap_in`."""
    if replaced.exists() and not os.path.lexists(output):
        rename(replaced, output)


def is_dataset(place: Place) -> bool:
    """Return whether there is a finished dataset. The manifest.json of another program does not count."""
    with suppress(DatasetError, StoreError, OSError):
        return read_manifest(place) is not None
    return False


def existing(output: object) -> RefusedError:
    """Return the error for an output that exists."""
    fix = "Pass --overwrite (overwrite=True in Python) to replace it, or choose another --output."
    return RefusedError(f"{output}: already exists. {fix}")


def not_replaceable(output: object, reason: object) -> RefusedError:
    """Return the error for an output that --overwrite does not replace."""
    return RefusedError(f"{output}: cannot be replaced ({reason}). Choose another --output.")


def inside_dataset(output: object, dataset: object) -> RefusedError:
    """Return the error for an output inside a dataset, which would make it contain files that it does not list."""
    return RefusedError(
        f"{output}: is inside the dataset {printable(str(dataset))}. Choose another --output."
    )


def _is_empty_folder(path: Path) -> bool:
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
