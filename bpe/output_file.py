"""Atomic output files: a file appears under its final name complete, or not at all.

The data is written to a temporary file in the same folder, synced, and renamed, so a reader never sees a partial file,
even after a power loss. Symbolic links are followed. Devices and pipes such as /dev/stdout are written to directly,
because a rename would replace the device itself.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from bpe.errors import BadArgument, EnvironmentFailure, shown
from tokenmill.inputs.hints import is_zarr_group
from tokenmill.stores import NO_OPTIONS, StorageOptions, is_url, open_store, split_key
from tokenmill.stores.durability import sync
from tokenmill.stores.names import rename

_PUT_BYTES: Final = 8 << 20


def check_output(
    path: str | Path, flag: str = "--output", storage_options: StorageOptions | None = None
) -> None:
    """Raise BadArgument if no file can be written to the path: an empty name, a folder, or a missing folder.

    path: of the output file.
    flag: name of the option in the message.
    storage_options: of a command that can write to a store, None for other commands. With options a URL is valid;
        raise StoreError if the store refuses a write.

    Lets a command fail before hours of work rather than after.
    """
    if storage_options is not None and is_url(str(path)):
        folder, key = split_key(str(path))
        store = open_store(folder, storage_options)
        store.put(f"{key}.partial", b"")
        store.delete([f"{key}.partial"])
        return
    if not str(path):
        raise BadArgument(f"{flag}: must be a file name (got '')")
    if str(path) == "-":  # commands that write to stdout do not call this
        raise BadArgument(f"{flag} -: stdout is not supported. Pass a file name (./- for a file named -).")
    if is_url(str(path)):
        raise BadArgument(f"{flag}: must be a local path, not a URL (got {shown(str(path))})")
    if Path(path).is_dir():
        raise BadArgument(f"{flag} {path}: is a folder. Name a file in it.")
    if not Path(path).parent.is_dir():
        raise BadArgument(f"{flag} {path}: folder does not exist. Create it first.")
    if any(is_zarr_group(folder) for folder in Path(path).absolute().parents):
        raise BadArgument(
            f"{flag} {path}: inside a dataset, which verify would report as changed. Choose another folder."
        )


@contextmanager
def open_output_file(
    path: str | os.PathLike[str], storage_options: StorageOptions = NO_OPTIONS
) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name when the block ends without an error.

    path: of the file. For a URL, data goes to a temporary file, which is then uploaded.
    storage_options: of the store of a URL.

    Raise EnvironmentFailure with the path and the reason if the system refuses.
    """
    if not path or not isinstance(path, (str, os.PathLike)):
        raise BadArgument(f"path: must be a path (got {shown(path)})")
    if is_url(os.fspath(path)):
        folder, key = split_key(os.fspath(path))
        with tempfile.TemporaryFile() as temporary:
            yield temporary
            temporary.seek(0)
            open_store(folder, storage_options).put(key, iter(lambda: temporary.read(_PUT_BYTES), b""))
        return
    try:
        target = Path(path)
        if target.exists() and not target.is_file():  # the real path of a pipe is "pipe:[123]"
            with target.open("wb") as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            with partial.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            rename(partial, target)
            sync(target.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except BrokenPipeError:
        raise  # the reader closed the pipe; the command line handles it
    except EnvironmentFailure:
        raise
    except OSError as error:
        if getattr(error, "exit_code", None) is not None:
            raise  # our own error from inside the block, such as a missing input
        raise EnvironmentFailure(f"{path}: cannot write ({error.strerror or error})") from None


def write_file(path: str | Path, data: bytes) -> None:
    """Write a file atomically and sync it. Raise EnvironmentFailure with the path and the reason."""
    with open_output_file(path) as file:
        file.write(data)
