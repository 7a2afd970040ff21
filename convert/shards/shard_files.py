"""The files that shards lie in: which are needed, and which may be written over.

Every attempt to encode a shard writes to files of its own: their names hold a random token, so two attempts at one
shard, late ones and lost ones included, never have a file in common. A file counts once its attempt's record was taken,
and from then on nobody writes to it.

Fresh memory is slow, and some file systems are slow to make new files where many were deleted a moment ago. So the file
of a large part that is merged is not deleted: it becomes a *spare*, and the next attempt renames it to a name of its
own, which only one attempt can do, and writes over it.

    record taken -> parts needed -> last needed part merged -> spare -> renamed by an attempt, or deleted
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from convert.plan import ShardId
from convert.shards.shard import NOWHERE, PARTS, ShardRecord

SMALL = "small"  # in place of a part's name: the file that holds all small parts of a shard
_TOKEN_BYTES = 8
_NAME = re.compile(r"\d+\.\d+-[0-9a-f]+\.(?P<part>[a-z-]+)")


def attempt_names(shard: ShardId) -> tuple[str, ...]:
    """Names no other attempt has, for a file of each of PARTS and one for the small parts."""
    token = os.urandom(_TOKEN_BYTES).hex()
    return tuple(f"{shard.chunk_index}.{shard.number}-{token}.{part}" for part in (*PARTS, SMALL))


class ShardFiles:
    """The parent's account of the files of shards in `folder`.

    kept: names of files that shards of an earlier run lie in; other files of shards are deleted. most_spares: more than
    that are deleted.
    """

    def __init__(self, folder: Path, kept: Collection[str] = (), most_spares: int = 0) -> None:
        self._folder = folder
        self._most_spares = most_spares
        self._needed_parts: dict[str, int] = {}  # by file
        self._spares: list[str] = []
        for path in folder.iterdir():
            if path.name not in kept and _NAME.fullmatch(path.name):
                path.unlink()

    def add(self, record: ShardRecord, needed: Iterable[str] = PARTS) -> None:
        """A shard's record was taken; `needed`: those of PARTS that are still to be merged."""
        wanted = set(needed)
        for part, place in zip(PARTS, record.places, strict=True):
            if place != NOWHERE:
                name = place[0]
                self._needed_parts[name] = self._needed_parts.get(name, 0) + (part in wanted)
        for name in {name for name, _ in record.places} & self._needed_parts.keys():
            if not self._needed_parts[name]:
                self._let_go(name)

    def release(self, name: str) -> None:
        """One part in this file is merged; "" is the file of a part without items."""
        if name:
            self._needed_parts[name] -= 1
            if not self._needed_parts[name]:
                self._let_go(name)

    def discard(self, record: ShardRecord) -> None:
        """Delete the files of a shard that was made again."""
        for name in {name for name, _ in record.places if name}:
            self._needed_parts.pop(name, None)
            self._delete(name)

    def take_spare(self) -> str | None:
        """The name of a file that the next attempt may rename and write over, None if there is none."""
        return self._spares.pop() if self._spares else None

    def return_spare(self, name: str | None) -> None:
        """The attempt that was given this spare has ended; it may not have used it."""
        if name is not None and (self._folder / name).exists():
            self._keep_or_delete(name)

    def end_spares(self) -> None:
        """No shard is encoded from now on, but for damaged ones: files are deleted as soon as they are merged."""
        self._most_spares = 0
        while self._spares:
            self._delete(self._spares.pop())

    def _let_go(self, name: str) -> None:
        del self._needed_parts[name]
        self._keep_or_delete(name)

    def _keep_or_delete(self, name: str) -> None:
        if len(self._spares) < self._most_spares and not name.endswith(SMALL):
            self._spares.append(name)
        else:
            self._delete(name)

    def _delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._folder / name)  # noqa: PTH108
