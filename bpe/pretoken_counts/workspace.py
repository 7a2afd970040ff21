"""A folder for temporary files, created at the first use and removed at the end."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from bpe.errors import EnvironmentFailure

PREFIX: Final = ".bpe-counts-"


class Workspace(ExitStack):
    """A temporary folder; a context manager, which also exits the contexts that are entered with it.

    parent: folder to create it in (default: the system's folder for temporary files, $TMPDIR).

    Raise EnvironmentFailure if the parent does not exist. A process that is killed does not remove its folder.
    """

    def __init__(self, parent: str | Path | None = None) -> None:
        super().__init__()
        self._parent = Path(parent or tempfile.gettempdir())
        if not self._parent.is_dir():  # reported now, not when the memory is full
            raise EnvironmentFailure(
                f"{self._parent}: folder for temporary files does not exist. Create it first."
            )
        self._folder: Path | None = None
        self._files = 0

    @property
    def folder(self) -> Path:
        """Return the folder, created if needed. Raise EnvironmentFailure if it cannot be created."""
        if self._folder is None:
            try:
                self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._parent))
            except OSError as error:
                raise EnvironmentFailure(
                    f"{self._parent}: cannot write temporary files ({error.strerror}). Choose another folder with "
                    "--temp-dir."
                ) from None
            self.callback(_remove, self._folder)
        return self._folder

    def new_file(self) -> Path:
        """Return the path of a file that does not exist yet."""
        self._files += 1
        return self.folder / f"{self._files}.counts"


def _remove(folder: Path) -> None:
    with suppress(OSError):  # an abandoned worker may still write into it
        folder = folder.rename(folder.with_name(f"{folder.name}.removed"))
    shutil.rmtree(folder, ignore_errors=True)
