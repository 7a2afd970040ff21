"""Writing a shard while its text is encoded: items go to the files as they come, so a shard needs no memory.

Much at once is written at once, from a buffer that is used again; little waits until there are FLUSH_BYTES of it. A
part that has not so many at the end gets no file: it is put behind other small ones, in one file for many shards.
Which split a document in pieces falls in is known when it ends. Its ids go where they most likely belong; if they were
wrong there, they move, which costs one more copy.
"""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from convert.errors import BrokenInvariant, naming
from convert.shards.shard import NOWHERE, SPLITS, Place, SplitCounts, read_at
from convert.shards.slots import Slots
from flat_tokens.storage.files import write_all

FLUSH_BYTES = 128 << 10
LONGEST_COUNT = 3
FIRST_IDS = 24
_MOVED_BYTES = 4 << 20
# Ids and starts on their way to a file, one buffer a type and process: fresh memory for them cost 4 % of the encoding
# of English.
_rooms: dict[np.dtype[Any], NDArray[Any]] = {}


class ShardWriter:
    """The shard of one text chunk, open as a context; without `finish` nothing stays of it.

    slots: the files in `folder` to write to, whatever they hold. dtype: of the ids, uint16 or uint32. largest_id: of
    the tokenizer; a higher one is a bug and raises BrokenInvariant. Splits: 0 train, 1 validation. OSError names the
    file. Up to 20 MiB of memory.
    """

    def __init__(self, folder: Path, slots: Slots, dtype: np.dtype[Any], largest_id: int) -> None:
        self._dtype = dtype
        self._largest_id = largest_id
        self.folder = folder
        self._small = slots.small
        self._parts = [_Part(folder, name) for name in slots.parts]
        self._ids, self._starts = self._parts[: len(SPLITS)], self._parts[len(SPLITS) :]
        self._documents, self._sequences, self._tokens, self._highest = [0, 0], [0, 0], [0, 0], [0, 0]
        self.longest: list[
            int
        ] = []  # of the sequences so far, up to LONGEST_COUNT lengths in tokens, falling
        self.first_ids: list[int] = []  # with which the first sequence of train begins
        self._open_first: list[int] = []
        self._guess: int | None = None  # the split in which the document lies that has not ended
        self._open_tokens = self._open_highest = 0  # of that document

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in self._parts:
            part.discard()

    def add(
        self, tokens: NDArray[np.uint32], offsets: NDArray[np.uint64], validation: NDArray[np.bool_]
    ) -> None:
        """Add whole documents, each to the split it belongs to, in order. Copies.

        tokens, offsets: as `bpe.Ragged`, empty documents too; validation: bool[documents].
        """
        if self._guess is not None:
            raise BrokenInvariant("a document begins before the one in pieces has ended")
        documents = len(validation)
        ids, starts = _room_for(len(tokens), self._dtype), _room_for(documents, np.dtype(np.uint64))
        before = (self._tokens[0], self._tokens[1])
        dealt = _core.deal_out(tokens, offsets, validation, before, ids, starts)
        self._see_lengths(max(dealt[0][2], dealt[1][2]), offsets)
        held_out = int(np.count_nonzero(validation))
        self._documents[0] += documents - held_out
        self._documents[1] += held_out
        for split, (count, sequences, _, highest) in enumerate(dealt):
            self._require_known(highest)
            own_ids, own_starts = ids[:count], starts[:sequences]
            if split == 0 and sequences and not self.first_ids:
                first = int(own_starts[1] - own_starts[0]) if sequences > 1 else count
                self.first_ids = own_ids[: min(FIRST_IDS, first)].tolist()
            self._ids[split].add(own_ids)
            self._starts[split].add(own_starts)
            self._tokens[split] += count
            self._sequences[split] += sequences
            self._highest[split] = max(self._highest[split], highest)
            ids, starts = ids[count:], starts[sequences:]

    def extend(self, tokens: NDArray[np.uint32], guess: int = 0) -> None:
        """Add the next ids of a document that comes in pieces and most likely falls in the split `guess`. Copies."""
        if self._guess is None:
            self._guess = guess
            self._open_first = tokens[:FIRST_IDS].tolist()
            self._ids[guess].mark()
        narrow, highest = self._narrowed(tokens)
        self._open_highest = max(self._open_highest, highest)
        self._open_tokens += len(tokens)
        self._ids[self._guess].add(narrow)

    def end_document(self, split: int) -> None:
        """The document of the pieces since the last one ends and belongs to this split; without ids it is empty."""
        if self._guess not in (None, split):
            self._ids[1 - split].move_marked(self._ids[split])
        if split == 0 and self._open_tokens and not self.first_ids:
            self.first_ids = self._open_first
        self._documents[split] += 1
        self._highest[split] = max(self._highest[split], self._open_highest)
        if self._open_tokens:
            self._see_lengths(self._open_tokens, np.array([0, self._open_tokens], dtype=np.uint64))
            self._starts[split].add(np.array([self._tokens[split]], dtype=np.uint64))
            self._sequences[split] += 1
        self._tokens[split] += self._open_tokens
        self._open_tokens = self._open_highest = 0
        self._guess = None

    def drop_document(self) -> None:
        """The document of the pieces since the last one is a bad record after all: nothing of it counts."""
        if self._guess is not None:
            self._ids[self._guess].drop_marked()
        self._open_tokens = self._open_highest = 0
        self._guess = None

    def finish(self) -> tuple[tuple[int, ...], tuple[Place, ...], tuple[SplitCounts, SplitCounts]]:
        """Complete the files; (checksums and places of the parts in the order of PARTS, the counts of both splits)."""
        if self._guess is not None:
            raise BrokenInvariant("a document in pieces has no end")
        small = [part.take_small() for part in self._parts]
        offset = _append(f"{self.folder}/{self._small}", b"".join(small)) if any(small) else 0
        places = []
        for part, data in zip(self._parts, small, strict=True):
            places.append((self._small, offset) if data else part.finish())
            offset += len(data)
        checksums = tuple(part.checksum() for part in self._parts)
        train, validation = (
            SplitCounts(documents, documents - sequences, sequences, tokens, highest)
            for documents, sequences, tokens, highest in zip(
                self._documents, self._sequences, self._tokens, self._highest, strict=True
            )
        )
        return checksums, tuple(places), (train, validation)

    def _narrowed(self, tokens: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
        """The ids in the type of the file, valid until the next call, and the highest; every one is found to fit."""
        narrow: NDArray[Any]
        if self._dtype == np.uint32:
            narrow, highest = tokens, int(tokens.max()) if tokens.size else 0
        else:
            narrow = _room_for(len(tokens), self._dtype)
            highest = _core.narrow_ids(tokens, narrow)
        self._require_known(highest)
        return narrow, highest

    def _require_known(self, highest: int) -> None:
        if highest > self._largest_id:
            raise BrokenInvariant(
                f"the encoder gave id {highest}, above the tokenizer's highest id {self._largest_id}"
            )

    def _see_lengths(self, longest: int, offsets: NDArray[np.uint64]) -> None:
        """Of most documents it is enough to know the longest: it is not among the LONGEST_COUNT of the shard."""
        if longest and (len(self.longest) < LONGEST_COUNT or longest > self.longest[-1]):
            lengths = np.diff(offsets)
            top = lengths if len(lengths) <= LONGEST_COUNT else np.partition(lengths, -LONGEST_COUNT)
            found = [length for length in top[-LONGEST_COUNT:].tolist() if length]
            self.longest = sorted(self.longest + found, reverse=True)[:LONGEST_COUNT]


def _room_for(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Memory for so many items of a type, the same each time."""
    room = _rooms.get(dtype)
    if room is None or len(room) < count:
        room = _rooms[dtype] = np.empty(count + count // 4, dtype=dtype)
    return room[:count]


def _append(path: str, data: bytes) -> int:
    """Put the bytes behind what the file holds, which nobody else writes to; where they begin."""
    with naming(path):
        try:
            offset = os.stat(path).st_size  # noqa: PTH116
        except FileNotFoundError:
            offset = 0
        write_all(path, data, os.O_APPEND)
    return offset


class _Part:
    """One part of a shard: in memory until there is much of it, then in its file, which is written over."""

    def __init__(self, folder: Path, name: str) -> None:
        self._name = name
        self._path = f"{folder}/{name}"
        self._file: io.FileIO | None = None
        self._waiting = bytearray()
        self._checksum = _core.Xxh64()
        self._written_bytes = 0
        self._mark = (0, self._checksum)

    def add(self, values: NDArray[Any]) -> None:
        """Put the items behind the others. Copies."""
        if values.nbytes >= FLUSH_BYTES:
            self._flush()
            self._write(values.data.cast("B"))
        elif values.size:
            self._waiting += values.data.cast("B")
            if len(self._waiting) >= FLUSH_BYTES:
                self._flush()

    def mark(self) -> None:
        """Remember this place for `move_marked`."""
        self._flush()
        self._mark = self._written_bytes, self._checksum.copy()

    def move_marked(self, to: _Part) -> None:
        """Take what came since `mark` out of this part and put it behind the items of another."""
        self._flush()
        stop = self._written_bytes
        place, self._checksum = self._mark
        self._written_bytes = place
        if stop == place or self._file is None:
            return
        with naming(self._path):
            for start in range(place, stop, _MOVED_BYTES):
                block = np.empty(min(_MOVED_BYTES, stop - start), dtype=np.uint8)
                read_at(self._file, start, block.data, self._path)
                to.add(block)
            self._file.seek(place)
            self._file.truncate()

    def drop_marked(self) -> None:
        """Take what came since `mark` out of this part."""
        self._flush()
        self._written_bytes, self._checksum = self._mark
        if self._file is not None:
            with naming(self._path):
                self._file.seek(self._written_bytes)
                self._file.truncate()

    def take_small(self) -> bytes:
        """All there is, if nothing of it is in the file; then it is left to the caller. Else nothing."""
        if self._written_bytes:
            return b""
        data = bytes(self._waiting)
        self._waiting.clear()
        self._checksum.update(data)
        return data

    def checksum(self) -> int:
        """Of what is in the file, or was taken."""
        return self._checksum.digest()

    def finish(self) -> Place:
        """Complete the file, if there is one; where the part lies."""
        self._flush()
        if self._file is None or not self._written_bytes:
            return NOWHERE
        with naming(self._path):
            self._file.truncate(self._written_bytes)  # it may have been longer
            self._file.close()
        self._file = None
        return self._name, 0

    def discard(self) -> None:
        """Remove what was not finished: on a full disk its space is needed to go on."""
        if self._file is not None:
            self._file.close()
            self._file = None
            with suppress(FileNotFoundError):
                os.unlink(self._path)  # noqa: PTH108

    def _flush(self) -> None:
        if self._waiting:
            with memoryview(self._waiting) as view:
                self._write(view)
            self._waiting.clear()

    def _write(self, view: memoryview) -> None:
        with naming(self._path):
            if self._file is None:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                self._file = io.FileIO(descriptor, "r+")
            self._checksum.update(view)
            self._written_bytes += view.nbytes
            while view.nbytes:
                view = view[self._file.write(view) :]
