"""What is being made lies in `<output>.partial` until it is whole, then gets its name by a rename.

One run at a time: the folder is locked, and the system lets go of the lock however its holder ends. What a killed run
left is thrown away by the next one. With `overwrite` the former output is moved into the folder, and back if the run
that did so was killed before the new one had its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from flat_tokens.arguments import invalid, no_folder
from flat_tokens.errors import ArgumentError, RefusedError, printable
from flat_tokens.storage.existing_output import is_empty_folder
from tokenmill.stores import is_url
from tokenmill.stores.durability import Syncer, sync, sync_folders
from tokenmill.stores.folder_lock import FolderLock
from tokenmill.stores.names import names_in, remove_tree, rename

OWN_NAMES = {"lock", "result", "replaced"}
SYNCED_FILES = 64  # at a time


def check_apart(output: Path, inputs: Iterable[object]) -> None:
    """Raise ArgumentError if an input is the output, or is in it or in its partial folder.

    Replacing the output would remove such an input. Inputs that are no paths, such as URLs and None, are ignored."""
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
    """A context; `folder` is what becomes the output. not_ours(output): why a former one must not be replaced, or None.

    ArgumentError for a place that cannot be, RefusedError (exit 6) for one that is taken; nothing is touched then."""

    def __init__(self, output: Path, overwrite: bool, not_ours: Callable[[Path], str | None]) -> None:
        self._output, self._overwrite, self._not_ours = output, overwrite, not_ours
        if output.name in ("", ".."):
            raise invalid("--output", "must name a new folder", str(output))
        self._root = output.with_name(f"{output.name}.partial")
        self.folder = self._root / "result"
        self._lock = FolderLock(self._root / "lock", output, RefusedError)

    def __enter__(self) -> Unfinished:
        where = printable(str(self._root))
        if not self._output.parent.is_dir():
            raise no_folder(self._output)
        try:
            self.check_output()
        except RefusedError:
            self._remove_remains()
            raise
        if os.path.lexists(self._root) and (self._root.is_symlink() or not self._root.is_dir()):
            raise RefusedError(f"{where}: already exists and is not a work folder. Move it away.")
        self._root.mkdir(exist_ok=True)
        foreign = sorted(names_in(self._root) - OWN_NAMES)
        if foreign:
            raise RefusedError(
                f"{where}: contains a foreign file (got {printable(foreign[0])}). Move it away."
            )
        self._lock.acquire()
        try:
            replaced = self._root / "replaced"
            if replaced.exists() and not os.path.lexists(self._output):
                rename(replaced, self._output)
                self.check_output()
            self._clear()
            self.folder.mkdir(exist_ok=True)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if not self._lock.is_held:
            return
        if kind is None or not (self._root / "replaced").exists():
            with suppress(OSError):  # what ended the work may stand in the way of this too
                self._clear()
                self._lock.remove_folder()
        self._lock.release()

    def check_output(self) -> None:
        """Raise RefusedError for an output that exists and is not to be replaced. An empty folder is no obstacle."""
        if not os.path.lexists(self._output) or is_empty_folder(self._output):
            return
        where = printable(str(self._output))
        if not self._overwrite:
            fix = "Pass --overwrite to replace it, or choose another --output."
            raise RefusedError(f"{where}: already exists. {fix}")
        reason = self._not_ours(self._output)
        if reason is not None:
            raise RefusedError(f"{where}: cannot be replaced: {reason}. Choose another --output.")

    def publish(self) -> None:
        """Give the folder, when the disk has all of it, the name of the output."""
        syncer = Syncer()
        for folder, _, names in os.walk(self.folder):
            for at in range(0, len(names), SYNCED_FILES):
                syncer.add([f"{folder}/{name}" for name in names[at : at + SYNCED_FILES]], stays=True)
        syncer.wait()
        sync_folders(self.folder)
        self.check_output()  # it may have come into being since
        if os.path.lexists(self._output):
            rename(self._output, self._root / "replaced")
        rename(self.folder, self._output)
        sync(self._output.parent)

    def _remove_remains(self) -> None:
        """Remove the folder of a run that was killed after what it made had its name."""
        if self._root.is_symlink() or not self._root.is_dir() or self.folder.exists():
            return
        if names_in(self._root) - OWN_NAMES:
            return
        with suppress(OSError, RefusedError):  # another run is at work there
            self._lock.acquire()
            self._clear()
            self._lock.remove_folder()
        self._lock.release()

    def _clear(self) -> None:
        for name in ("result", "replaced"):
            path = self._root / name
            if path.is_symlink() or path.is_file():
                path.unlink(missing_ok=True)
            else:
                remove_tree(path)
