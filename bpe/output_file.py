"""A file that gets its name when all of it is written, and leaves nothing behind if something fails.

The data lies beside the final name, reaches the disk, and is then renamed, so a reader never sees half a file. A link
is followed. What is there and is no regular file (a device, a pipe such as /dev/stdout) is written to as it is: to
rename over it would replace the device for the whole machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bpe.errors import BadArgument, EnvironmentFailure


def check_output(path: str | Path, flag: str = "--output") -> None:
    """Nothing, or BadArgument if no file can be written there: no name, a folder, or no folder to lie in.

    For commands that work long before they write.
    """
    if not str(path):
        raise BadArgument(f"{flag} must be the name of a file, got ''")
    if Path(path).is_dir():
        raise BadArgument(f"{flag} {path}: is a folder; name a file in it")
    if not Path(path).parent.is_dir():
        raise BadArgument(f"{flag} {path}: its folder does not exist; create it first")


@contextmanager
def open_output_file(path: str | Path) -> Iterator[BinaryIO]:
    """The file to write to; under its name once the block ends without an error.

    EnvironmentFailure names path and reason of what the system refuses.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            with partial.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except BrokenPipeError:
        raise  # whoever read a pipe has gone; the command line knows what to make of it
    except EnvironmentFailure:
        raise
    except OSError as error:
        if getattr(error, "exit_code", None) is not None:
            raise  # an error of ours from within the block, such as a missing input
        raise EnvironmentFailure(f"{path}: can't write: {error.strerror or error}") from None


def write_file(path: str | Path, data: bytes) -> None:
    """Write the file under its final name at once, with its data on disk; EnvironmentFailure names path and reason."""
    with open_output_file(path) as file:
        file.write(data)
