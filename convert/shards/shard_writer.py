"""Writes a shard while its text is encoded."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe.end_tokens import put_around
from bpe.ragged import Ragged
from convert.errors import BrokenInvariant, naming
from convert.planning.plan import ShardId
from convert.shards import shard as shard_format
from convert.shards.shard import (
    ARRAYS,
    NOT_TRAINED,
    QUARANTINE,
    IntakeCounts,
    ShardFile,
    ShardRecord,
    SplitCounts,
    file_name,
)
from flat_tokens.format import SPLITS
from tokenmill.inputs._core import Xxh64

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from convert.encode.job import Job

FIRST_IDS = 24
_START = np.uint32(1)
_NO_STARTS = np.empty(0, np.uint64)


class ShardWriter:
    """Writes the files of a shard to `folder`. Always call `close` at the end.

    Documents with tokens get the end tokens of the job. With a loss mask, bit 31 of an ID marks tokens that are not
    trained; end tokens before a document are not. An ID above the highest of the tokenizer raises BrokenInvariant.

    quarantine: the file of bad records.

    Splits: 0 is train, 1 is validation. OSErrors name the file.
    """

    def __init__(self, folder: Path, shard: ShardId, job: Job) -> None:
        self._shard, self._max_token_id = shard, job.tokenizer.max_token_id
        self._mask = NOT_TRAINED if job.has_mask else np.uint32(0)
        self._front = np.array(job.ends.added.front_ids, np.uint32) | self._mask
        self._back = np.array(job.ends.added.back_ids, np.uint32)
        kinds = [f"{split}.{array}" for split in SPLITS for array in ARRAYS]
        self._arrays = [BlockFile(folder, file_name(shard, kind)) for kind in kinds]
        self.quarantine = BlockFile(folder, file_name(shard, QUARANTINE))
        self._counts = [SplitCounts(), SplitCounts()]
        self._sources: dict[int, list[int]] = {}  # sequences and tokens by split
        self._first_ids: tuple[int, ...] = ()

    def close(self) -> None:
        """Close the files."""
        for file in (*self._arrays, self.quarantine):
            with suppress(OSError):  # a full disk rejects the buffered bytes
                file.close()

    def add(
        self, source_index: int, documents: Ragged, validation: NDArray[np.bool_], has_ends: bool = False
    ) -> None:
        """Add whole documents of a source in order. Their IDs are overwritten.

        validation: bool[documents].
        has_ends: the documents contain their end tokens.

        IDs [5, 6, 7], offsets [0, 1, 3], validation [F, T] -> train [11], starts [0]; validation [13, 14], starts [0]
        """
        tokens, offsets = documents.tokens, documents.offsets
        if not has_ends and len(self._front) + len(self._back):
            tokens, offsets, _ = put_around(tokens, offsets, self._front, self._back)
        lengths = np.diff(offsets)
        is_held_out, lengths = validation[lengths > 0], lengths[lengths > 0]
        firsts = np.cumsum(lengths) - lengths
        words = self._words(tokens)
        words[firsts] |= _START
        # Train and validation alternate. Their words are contiguous from one change of the split to the next.
        changes = np.flatnonzero(is_held_out[1:] != is_held_out[:-1]) + 1
        parts = [words[start:stop] for start, stop in pairwise([0, *firsts[changes].tolist(), len(words)])]
        for split, documents_in in enumerate((~validation, validation)):
            is_later = len(is_held_out) > 0 and bool(is_held_out[0]) != split
            own = parts[is_later::2]
            own_lengths = lengths[is_held_out == split]
            starts = np.cumsum(own_lengths) - own_lengths + np.uint64(self._counts[split].tokens)
            joined = own[0] if len(own) == 1 else np.concatenate([words[:0], *own])
            self._append(source_index, split, joined, starts, int(np.count_nonzero(documents_in)))

    def add_pieces(self, source_index: int, split: int, pieces: Iterable[NDArray[np.uint32]]) -> None:
        """Add one document of a source. Its IDs come in pieces and are overwritten."""
        nonempty = filter(len, pieces)
        first = next(nonempty, None)
        if first is None:
            self._append(source_index, split, self._front[:0], _NO_STARTS, documents=1)
            return
        words = self._words(np.concatenate([self._front, first]))
        words[0] |= _START
        self._append(
            source_index, split, words, np.array([self._counts[split].tokens], np.uint64), documents=1
        )
        for tokens in chain(nonempty, [self._back.copy()]):
            self._append(source_index, split, self._words(tokens), _NO_STARTS, documents=0)

    def _words(self, tokens: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Encode IDs in place as the dataset stores them, without starts."""
        marks = tokens & self._mask if self._mask else None
        tokens <<= _START
        if marks is not None:
            tokens |= marks
        return tokens

    def _append(
        self,
        source_index: int,
        split: int,
        words: NDArray[np.uint32],
        starts: NDArray[np.uint64],
        documents: int,
    ) -> None:
        """Append words of a source to a split, and count them. starts: of the sequences that begin in them."""
        files = self._arrays[len(ARRAYS) * split :]
        files[0].write(words.data)
        files[1].write(starts.data)
        ids = words & ~self._mask if self._mask else words
        highest = int(ids.max(initial=0)) >> 1
        if highest > self._max_token_id:
            raise BrokenInvariant(
                f"the encoder returned ID {highest}, above the tokenizer's highest ID {self._max_token_id}"
            )
        if split == 0 and len(words) and not self._first_ids:
            beginning = ids[:FIRST_IDS]
            others = np.flatnonzero(beginning[1:] & _START)
            self._first_ids = tuple((beginning[: others[0] + 1 if len(others) else None] >> _START).tolist())
        not_trained = int(np.count_nonzero(words & self._mask)) if self._mask else 0
        more = SplitCounts(documents, documents - len(starts), len(starts), len(words), highest, not_trained)
        self._counts[split] = self._counts[split].plus(more)
        if len(words):
            counts = self._sources.setdefault(source_index, [0] * 4)
            counts[2 * split] += len(starts)
            counts[2 * split + 1] += len(words)

    def finish(self, intake: dict[str, object], is_last: bool, text_bytes: int) -> ShardRecord:
        """Complete the files and return the record. intake: see `IntakeCounts`. Others: see `ShardRecord`."""
        return ShardRecord(
            self._shard,
            self._counts[0],
            self._counts[1],
            tuple(file.close() for file in self._arrays),
            tuple((index, *counts) for index, counts in self._sources.items()),
            IntakeCounts.of({**intake, "first_ids": self._first_ids}),
            is_last,
            text_bytes,
            self.quarantine.close(),
        )


class BlockFile:
    """Writes a file of a shard and computes the digests of its blocks. Creates no empty file."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path, self._size = folder / name, 0
        self._file: IO[bytes] | None = None
        self._block, self._digests = Xxh64(), list[int]()

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        view = memoryview(data)
        if not view.nbytes:
            return
        with naming(self._path):
            self._file = self._file or self._path.open("xb")
            self._file.write(view)
        remaining = view.cast("B")
        while len(remaining):
            part = remaining[: shard_format.BLOCK_BYTES - self._size % shard_format.BLOCK_BYTES]
            remaining = remaining[len(part) :]
            self._block.update(part)
            self._size += len(part)
            if self._size % shard_format.BLOCK_BYTES == 0:
                self._end_block()

    def close(self) -> ShardFile:
        """Complete the file and return its record."""
        if self._size % shard_format.BLOCK_BYTES:
            self._end_block()
        with naming(self._path):
            if self._file is not None:
                self._file.close()
        return ShardFile(self._path.name, self._size, tuple(self._digests))

    def _end_block(self) -> None:
        self._digests.append(self._block.digest())
        self._block = Xxh64()
