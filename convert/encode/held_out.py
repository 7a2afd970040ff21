"""The split of a document: by the hash of its text, or by its source.

A document belongs to validation if XXH64 of its bytes, seeded, is below a threshold. The rule depends on the document
alone: it is stable when other documents change, exact copies stay together, and a larger fraction only adds documents
to validation. Documents of --validation files always belong to validation.

With --validation-fraction the threshold is fraction * 2^64. With --validation-docs N, a task per text chunk returns its
N smallest hashes before the encoding, and the N-th smallest of all gives the threshold. Unlike a fraction it depends on
the whole corpus. Empty documents do not count. Exact copies share a hash, so there may be more than N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from convert.encode.job import Job
from tokenmill.inputs._core import hash_documents, hash_ragged, xxh64
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.documents import Reading

if TYPE_CHECKING:
    from typing_extensions import Buffer

ALL = 1 << 64  # a threshold above every hash
NO_ROWS = np.empty(0, np.int64)


def hash_threshold(fraction: float) -> int:
    """Return the integer that hashes of validation documents are below: 0.5 -> 2^63. Exact."""
    return int(fraction * 2.0**64)


def is_validation(hashes: NDArray[np.uint64], threshold: int) -> NDArray[np.bool_]:
    """Return bool[documents], True for validation. threshold: 1 to 2^64, see above."""
    return hashes <= np.uint64(threshold - 1)  # 2^64 itself would overflow


class SmallestHashes:
    """The `count` smallest of many hashes, copies included. kept: ascending."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.kept = np.empty(0, dtype=np.uint64)

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Add hashes."""
        if len(self.kept) == self._count > 0:
            hashes = hashes[hashes < self.kept[-1]]
        self.kept = np.sort(np.concatenate([self.kept, hashes]))[: self._count]

    def threshold(self) -> int:
        """Return the threshold that exactly the smallest hashes are below; ALL if there are fewer than `count`."""
        if self._count == 0:
            return 0
        return int(self.kept[-1]) + 1 if len(self.kept) == self._count else ALL


class DocumentHasher:
    """Collects the smallest hashes of good documents, except from sources that determine the split.

    It takes the place of DocumentEncoder.
    """

    def __init__(self, job: Job, count: int) -> None:
        self._separator, self._seed = job.separator, job.options.seed
        self._empty = np.uint64(xxh64(b"", job.options.seed))
        self.smallest = SmallestHashes(count)

    def text(self, reading: Reading, text: Buffer) -> int:
        hashes = hash_documents(text, self._separator, self._seed)
        self._add(reading, hashes)
        return len(hashes)

    def batch(self, reading: Reading, batch: Batch, with_special: bool) -> NDArray[np.int64]:
        self._add(reading, hash_ragged(batch.text, batch.offsets, self._seed))
        return NO_ROWS

    def _add(self, reading: Reading, hashes: NDArray[np.uint64]) -> None:
        if reading.source.split is None:
            self.smallest.add(hashes[hashes != self._empty])
