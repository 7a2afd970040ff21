"""A folder for temporary files that exists only if it is used, and is gone afterwards."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bpe.errors import EnvironmentFailure


class Workspace:
    """Used as a context. folder: where it is made; None: where the system keeps temporary files ($TMPDIR)."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._parent = folder
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files = 0

    def new_file(self) -> Path:
        """The path of a file that does not exist yet; EnvironmentFailure if there can be none."""
        if self._folder is None:
            try:
                self._folder = tempfile.TemporaryDirectory(prefix=".bpe-counts-", dir=self._parent)
            except OSError as error:
                raise EnvironmentFailure(
                    f"{self._parent or tempfile.gettempdir()}: no temporary files can be written there: "
                    f"{error.strerror}; --temp-dir names another place"
                ) from None
        self._files += 1
        return Path(self._folder.name) / f"{self._files}.counts"

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
