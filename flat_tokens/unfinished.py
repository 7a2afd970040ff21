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
from flat_tokens.storage.manifest import MANIFEST_NAME, read_files, read_manifest
from tokenmill.stores import is_url
from tokenmill.stores.durability import sync, sync_in_background
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.names import names_in, remove_tree, rename

OWN_NAMES = {"lock", "result", "replaced"}


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
        if not self._output.parent.is_dir():
            raise ArgumentError(
                f"{printable(str(self._output))}: its folder does not exist. Create the folder first."
            )
        if not os.path.lexists(self._root):
            self._check_output()
            self._root.mkdir(exist_ok=True)
        where = printable(str(self._root))
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


def is_empty_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir() and not path.is_symlink() and next(path.iterdir(), None) is None
    return False


def not_ours(output: Path) -> str | None:
    """Why the dataset at `output` must not be replaced. None if it is one of tokenmill and contains nothing else."""
    if output.is_symlink():
        return "it is a link"
    if not output.is_dir():
        return "it is not a dataset of ours"
    try:
        manifest = read_manifest(output)
        files = () if manifest is None else read_files(output, manifest)
    except (DatasetError, OSError):
        manifest = None
    if manifest is None:
        return "not a dataset of this version of tokenmill (no valid manifest.json in it). Delete it first"
    listed = {MANIFEST_NAME, *(record.path for record in files)}
    for folder, _, names in os.walk(output):
        for name in names:
            path = (Path(folder) / name).relative_to(output).as_posix()
            if path not in listed:
                return why_it_stays(path)
    return None


def why_it_stays(path: str) -> str:
    """Why a dataset is not replaced that contains a file, by its path within it, that its manifest does not list."""
    return f"contains {printable(path)}, which manifest.json does not list"
