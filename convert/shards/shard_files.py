"""The files that shards lie in: what they are called, and which may be written over.

Every attempt to encode a shard writes to files of its own: their names hold a random token, so two attempts at one
shard, late ones and lost ones included, never have a file in common. A file counts once its attempt's record was taken,
and from then on nobody writes to it.

Fresh memory is slow, and some file systems are slow to make new files where many were deleted a moment ago. So the file
of a part that is merged is a *spare*: it goes to the next attempt, which renames it to a name of its own, as only one
attempt can do, and writes over it, or else deletes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from convert.plan import ShardId
from convert.shards.shard import PARTS

SMALL = "small"  # in place of a part's name: the file that holds all small parts of a shard
_TOKEN_BYTES = 8
_NAME = re.compile(r"\d+\.\d+-[0-9a-f]+\.(?P<part>[a-z-]+)")


def attempt_names(shard: ShardId) -> tuple[str, ...]:
    """Names no other attempt has, for a file of each of PARTS and one for the small parts."""
    token = os.urandom(_TOKEN_BYTES).hex()
    return tuple(f"{shard.chunk_index}.{shard.number}-{token}.{part}" for part in (*PARTS, SMALL))


def delete_files(folder: Path, names: Iterable[str]) -> None:
    """Delete files of shards; one that is gone, or was taken as a spare, is passed over."""
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(folder / name)  # noqa: PTH108


def delete_other_files(folder: Path, kept: Collection[str]) -> None:
    """Delete all files of shards but those of these names."""
    delete_files(
        folder,
        [path.name for path in folder.iterdir() if path.name not in kept and _NAME.fullmatch(path.name)],
    )
