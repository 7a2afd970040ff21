"""--validation-docs N: the N documents of the whole corpus with the smallest hashes are the validation split.

The hash is that of the split by fraction (XXH64 of the text, seeded), so all that is needed is the threshold below
which N documents lie. It takes a reading of the corpus before the encoding, in all workers: each text chunk gives its
N smallest hashes, the N-th smallest of all is the threshold. So the choice does not depend on workers or text chunks,
and unlike a fraction it depends on the corpus as a whole: with other documents, other ones are the N smallest.

Empty documents do not count. Exact copies have one hash and stay together: if the N-th has copies, there are more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from convert.encode.clock import Clock
from convert.encode.document_encoder import DocumentEncoder, texts_of_special_tokens
from convert.encode.job import Job
from convert.shards.intake import ShardIntake
from tokenmill.inputs import _core
from tokenmill.inputs._core import hash_documents, hash_ragged
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.documents import Documents
from tokenmill.inputs.source_list import Source

if TYPE_CHECKING:
    from typing_extensions import Buffer

ALL = 1 << 64  # the threshold below which every hash lies


class SmallestHashes:
    """The smallest of many hashes, copies included: at most `count` of them are kept."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept = np.empty(0, dtype=np.uint64)
        self._waiting: list[NDArray[np.uint64]] = []
        self._waiting_count = 0

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Take more hashes."""
        self._waiting.append(hashes)
        self._waiting_count += len(hashes)
        if self._waiting_count > max(self._count, 1 << 16):
            self._sift()

    def get(self) -> NDArray[np.uint64]:
        """The smallest, ascending."""
        self._sift()
        return self._kept

    def threshold(self) -> int:
        """A hash below it is one of the smallest: one more than the last; ALL if there are no more than `count`."""
        kept = self.get()
        if self._count == 0:
            return 0
        return int(kept[self._count - 1]) + 1 if len(kept) == self._count else ALL

    def _sift(self) -> None:
        together = np.concatenate([self._kept, *self._waiting])
        together.sort()
        self._kept = together[: self._count].copy()
        self._waiting, self._waiting_count = [], 0


class DocumentHasher(DocumentEncoder):
    """Goes through documents as the encoder does, with the same rules for bad ones, and only hashes them."""

    def __init__(self, job: Job, count: int, intake: ShardIntake) -> None:
        self._special_tokens = texts_of_special_tokens(job.tokenizer)
        self._end_text: list[bytes] = []
        self._separator, self._seed = job.separator, job.seed
        self._intake, self._rules, self._clock = intake, intake.rules, Clock()
        self._has_places = False
        self._empty = np.uint64(_core.xxh64(b"", job.seed))
        self.smallest = SmallestHashes(count)

    def _whole(self, source: Source, text: Buffer, places: NDArray[np.uint64] | None) -> None:
        self._add(source, hash_documents(text, self._separator, self._seed))

    def _batch(self, source: Source, batch: Batch, places: NDArray[np.uint64], special: str) -> None:
        self._add(source, hash_ragged(batch.text, batch.offsets, self._seed))

    def _marked(self, source_index: int, source: Source, documents: Documents, special: str) -> None:
        self._batch(source, documents.batch, documents.places, special)

    def _encode_pieces(self, source: Source, pieces: Iterator[Buffer], special: str) -> None:
        for _ in pieces:
            pass

    def _end_document(self, source: Source, content_hash: int, place: int) -> None:
        self._add(source, np.array([content_hash], dtype=np.uint64))

    def _drop_document(self) -> None:
        pass

    def _add(self, source: Source, hashes: NDArray[np.uint64]) -> None:
        if source.split is None:
            self.smallest.add(hashes[hashes != self._empty])
