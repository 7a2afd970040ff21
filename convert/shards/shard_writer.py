"""Writing a shard while its text is encoded: items go to the files as they come, so a shard needs no memory.

Much at once is written at once, from a buffer that is used again; little waits until there are FLUSH_BYTES of it. The
parts that have not so many at the end lie in one file together. All files are this attempt's own
(convert/shards/shard_files.py).
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
from convert.buffers import thread_buffer
from convert.errors import BrokenInvariant, naming
from convert.plan import ShardId
from convert.shards import shard as shard_module
from convert.shards.shard import DIGEST_BYTES, NOWHERE, SPLITS, Place, SplitCounts
from convert.shards.shard_files import attempt_names
from convert.shards.shard_reader import read_at

FLUSH_BYTES = 128 << 10
LONGEST_COUNT = 3
FIRST_IDS = 24
_MOVED_BYTES = 4 << 20


class ShardWriter:
    """One attempt at a shard, open as a context; without `finish` nothing stays of it.

    dtype: of the ids, uint16 or uint32. largest_id: of the tokenizer; a higher one is a bug and raises BrokenInvariant.
    spare: the name of a file in `folder` to write over; another attempt may take it first. Splits: 0 train,
    1 validation. OSError names the file. Up to 20 MiB of memory.
    """

    def __init__(
        self,
        folder: Path,
        shard: ShardId,
        dtype: np.dtype[Any],
        largest_id: int,
        spare: str | None = None,
    ) -> None:
        self._dtype = dtype
        self._largest_id = largest_id
        self.folder = folder
        *names, self._small = attempt_names(shard)
        spares = [] if spare is None else [spare]
        self._parts = [_Part(folder, name, spares) for name in names]
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
        ids = thread_buffer("narrow ids", len(tokens), self._dtype)
        starts = thread_buffer("starts", documents, np.uint64)
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

    def finish(self) -> tuple[tuple[bytes, ...], tuple[Place, ...], tuple[SplitCounts, SplitCounts]]:
        """Complete the files; (digests and places of the parts in the order of PARTS, the counts of both splits)."""
        if self._guess is not None:
            raise BrokenInvariant("a document in pieces has no end")
        small = [part.take_small() for part in self._parts]
        if any(small):
            self._write_small(b"".join(small))
        places, offset = [], 0
        for part, data in zip(self._parts, small, strict=True):
            places.append((self._small, offset) if data else part.finish())
            offset += len(data)
        digests = tuple(part.digests() for part in self._parts)
        train, validation = (
            SplitCounts(documents, documents - sequences, sequences, tokens, highest)
            for documents, sequences, tokens, highest in zip(
                self._documents, self._sequences, self._tokens, self._highest, strict=True
            )
        )
        return digests, tuple(places), (train, validation)

    def _write_small(self, data: bytes) -> None:
        path = self.folder / self._small
        with naming(path), _new_file(path) as file:
            _write_all(file, memoryview(data))

    def _narrowed(self, tokens: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
        """The ids in the type of the file, valid until the next call, and the highest; every one is found to fit."""
        narrow: NDArray[Any]
        if self._dtype == np.uint32:
            narrow, highest = tokens, int(tokens.max()) if tokens.size else 0
        else:
            narrow = thread_buffer("narrow ids", len(tokens), self._dtype)
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


def _new_file(path: str | Path) -> io.FileIO:
    """A file of this name, which must not exist."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return io.FileIO(os.open(path, flags, 0o666), "r+")


def _write_all(file: io.FileIO, view: memoryview) -> None:
    while view.nbytes:
        view = view[file.write(view) :]


class _BlockDigests:
    """The XXH64 of each block of the bytes that come."""

    def __init__(self) -> None:
        self._done = bytearray()
        self._open, self._open_bytes = _core.Xxh64(), 0

    def update(self, view: memoryview) -> None:
        block_bytes = shard_module.DIGEST_BLOCK_BYTES
        while view.nbytes:
            own = view[: block_bytes - self._open_bytes]
            self._open.update(own)
            self._open_bytes += own.nbytes
            view = view[own.nbytes :]
            if self._open_bytes == block_bytes:
                self._done += self._digest()
                self._open, self._open_bytes = _core.Xxh64(), 0

    def copy(self) -> _BlockDigests:
        twin = _BlockDigests()
        twin._done, twin._open, twin._open_bytes = self._done[:], self._open.copy(), self._open_bytes
        return twin

    def all(self) -> bytes:
        return bytes(self._done) + (self._digest() if self._open_bytes else b"")

    def _digest(self) -> bytes:
        return self._open.digest().to_bytes(DIGEST_BYTES, "big")


class _Part:
    """One part of a shard: in memory until there is much of it, then in its file.

    spares: names of files to write over, which the attempt's parts take from.
    """

    def __init__(self, folder: Path, name: str, spares: list[str]) -> None:
        self._name = name
        self._folder, self._spares = folder, spares
        self._path = f"{folder}/{name}"
        self._file: io.FileIO | None = None
        self._waiting = bytearray()
        self._digests = _BlockDigests()
        self._written_bytes = 0
        self._mark = (0, self._digests)

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
        self._mark = self._written_bytes, self._digests.copy()

    def move_marked(self, to: _Part) -> None:
        """Take what came since `mark` out of this part and put it behind the items of another."""
        self._flush()
        stop = self._written_bytes
        place, self._digests = self._mark
        self._written_bytes = place
        if stop == place or self._file is None:
            return
        with naming(self._path):
            for start in range(place, stop, _MOVED_BYTES):
                block = np.empty(min(_MOVED_BYTES, stop - start), dtype=np.uint8)
                if not read_at(self._file, start, block.data):
                    raise BrokenInvariant(f"{self._path} is shorter than what was written to it")
                to.add(block)
            self._file.seek(place)
            self._file.truncate()

    def drop_marked(self) -> None:
        """Take what came since `mark` out of this part."""
        self._flush()
        self._written_bytes, self._digests = self._mark
        if self._file is not None:
            with naming(self._path):
                self._file.seek(self._written_bytes)
                self._file.truncate()

    def take_small(self) -> bytes:
        """All there is, if nothing of it is in the file; then it is left to the caller. Else nothing."""
        if self._written_bytes:
            return b""
        data, self._waiting = bytes(self._waiting), bytearray()
        self._digests.update(memoryview(data))
        return data

    def digests(self) -> bytes:
        """Of what is in the file, or was taken: the XXH64 of each block, end to end."""
        return self._digests.all()

    def finish(self) -> Place:
        """Complete the file, if there is one; where the part lies."""
        self._flush()
        if self._file is None:
            return NOWHERE
        if not self._written_bytes:  # what was in it for a moment was dropped or moved
            self.discard()
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
            waiting, self._waiting = self._waiting, bytearray()
            self._write(memoryview(waiting))

    def _write(self, view: memoryview) -> None:
        with naming(self._path):
            if self._file is None:
                self._file = self._spare_file() or _new_file(self._path)
            self._digests.update(view)
            self._written_bytes += view.nbytes
            _write_all(self._file, view)

    def _spare_file(self) -> io.FileIO | None:
        """A spare under this part's name, whatever it holds; None if there is none or another attempt has it."""
        while self._spares:
            with suppress(FileNotFoundError):
                os.rename(f"{self._folder}/{self._spares.pop()}", self._path)  # noqa: PTH104
                return io.FileIO(os.open(self._path, os.O_RDWR | os.O_CLOEXEC), "r+")
        return None
