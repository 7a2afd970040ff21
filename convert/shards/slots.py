"""Files that shards are written to, over and over.

Pages that lie in memory already take 220 MB of ids in 36 ms, those of new files in 70 to 180 ms (one core, ext4): a
machine's memory is slow when it is new. And ext4 without a journal passes over each number that a file had which was
deleted a moment ago: where there are hundreds of them, a new file costs 0.1 ms or more, and so did the next. So a part
that is not needed any more is not deleted: its file is given to another shard, which writes over it and cuts it to its
own length.

The parent deals them out by name. Invariant: no two tasks at work, and no part that is needed, have a file in common.
Of a text chunk with several shards only the first is written so: how many there will be nobody knows, and what a whole
file of 10 GB was written to would stay. The others have files of their own, which are deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple

from convert.plan import ShardId
from convert.shards.shard import PARTS

_SMALL = "small"
_NOBODY = -1


class Slots(NamedTuple):
    """The names of the files that one shard may be written to: one for each of PARTS, and one that holds small parts
    of many shards, to the end of which it puts its own."""

    parts: tuple[str, ...]
    small: str

    def of(self, shard: ShardId) -> Slots:
        """Those of one shard of the chunk they were dealt to: the first has these, (17, 2) "train-17.2" and so on."""
        if not shard.number:
            return self
        return self._replace(parts=tuple(f"{part}-{shard.chunk_index}.{shard.number}" for part in PARTS))


class SlotFiles:
    """The slots in `folder`, each held for one text chunk; as many as were held at once.

    held: by name, the shards whose parts lie in files of an earlier run and are needed; other files of such names are
    deleted.
    """

    def __init__(self, folder: Path, held: Mapping[str, ShardId] | None = None) -> None:
        self._folder = folder
        self._reuses = True
        self._holders = {name: shard.chunk_index for name, shard in (held or {}).items()}
        self._waiting: dict[str, list[str]] = {kind: [] for kind in (*PARTS, _SMALL)}
        for path in folder.iterdir():
            if path.name not in self._holders and _kind(path.name) in self._waiting:
                path.unlink()

    def take(self, chunk_index: int) -> Slots:
        """Slots for the shards of a text chunk; what its first does not lie in when they are finished is to be given
        back."""
        parts = tuple(self._take(part, chunk_index) for part in PARTS)
        return Slots(parts, self._take(_SMALL, chunk_index))

    def _take(self, kind: str, chunk_index: int) -> str:
        names = (f"{kind}-{number}" for number in count())
        waiting = self._waiting[kind]
        name = waiting.pop() if waiting else next(name for name in names if name not in self._holders)
        self._holders[name] = chunk_index
        return name

    def give_back(self, name: str, chunk_index: int) -> None:
        """The chunk does not need what the file holds, or puts nothing more to its end; nothing happens if it is not
        the holder."""
        if _is_own(name):
            (self._folder / name).unlink(missing_ok=True)
        elif self._holders.get(name) == chunk_index:
            self._holders[name] = _NOBODY
            self._waiting[_kind(name)].append(name)
            if not self._reuses:
                self._delete_waiting()

    def end_reuse(self) -> None:
        """No shard comes any more: what is given back from now on is deleted, while workers write the last runs."""
        self._reuses = False
        self._delete_waiting()

    def _delete_waiting(self) -> None:
        for part in PARTS:  # small ones are kept: other shards may have parts in them
            while self._waiting[part]:
                (self._folder / self._waiting[part].pop()).unlink(missing_ok=True)


def _kind(name: str) -> str:
    return name.rpartition("-")[0]


def _is_own(name: str) -> bool:
    """Whether it is the file of one shard alone (`Slots.of`)."""
    return "." in name
