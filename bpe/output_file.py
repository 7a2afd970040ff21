"""A file that gets its name when all of it is written, and leaves nothing behind if something fails.

The data lies beside the final name, reaches the disk, and is then renamed, so a reader never sees half a file, after a
power loss neither; the name is on the disk too when the block has ended. A link is followed. What is there and is no
regular file (a device, a pipe such as /dev/stdout) is written to as it is: to rename over it would replace the device
for the whole machine.
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
    """Raise BadArgument if no file can be written there: no name, a folder, or a missing folder.

    For commands that work long before they write. storage_options: those that can write to a store have them; then a
    URL is no error, but a StoreError if nothing can be put there.
    """
    if storage_options is not None and is_url(str(path)):
        folder, key = split_key(str(path))
        store = open_store(folder, storage_options)
        store.put(f"{key}.partial", b"")
        store.delete([f"{key}.partial"])
        return
    if not str(path):
        raise BadArgument(f"{flag}: must be a file name (got '')")
    if str(path) == "-":  # commands that write to stdout do not come here
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
    """The file to write to; under its name once the block ends without an error.

    path: of a URL the file is a temporary one, which then is put into the store. EnvironmentFailure names path and
    reason of what the system refuses.
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
            rename(partial, target)
            sync(target.parent)
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
        raise EnvironmentFailure(f"{path}: cannot write ({error.strerror or error})") from None


def write_file(path: str | Path, data: bytes) -> None:
    """Write the file under its final name at once, with its data on disk; EnvironmentFailure names path and reason."""
    with open_output_file(path) as file:
        file.write(data)
