"""A new file that is written at several places at once: regions whose sizes are known before their content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class PositionedFile:
    """A context; `write` puts bytes at an offset."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)

    def __enter__(self) -> PositionedFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def write(self, offset: int, data: Any) -> None:
        """Put an array or bytes at `offset`; an OSError names the file."""
        rest = memoryview(data).cast("B") if len(data) else memoryview(b"")
        try:
            while rest:
                done = os.pwrite(self._file, rest, offset)
                rest, offset = rest[done:], offset + done
        except OSError as error:
            error.filename = str(self._path)
            raise
