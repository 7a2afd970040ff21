"""Random-access sources for grain. Grain itself is not imported: it asks for __len__, __getitem__ and a
repr that stays the same, and compares the repr when it restores a checkpoint.

    source = RowSource(dataset.train, seq_len=1024)  # or RowSource(packed, packed.max_seq_len)
    grain.MapDataset.source(source).shuffle(seed=0).repeat().batch(64)
    grain.MapDataset.source(BatchSource(loader, steps=10_000))  # whole batches of a Loader or a Mixture

inputs and targets are the shifted pair; fields=("input_ids", "labels") are unshifted, for a model that shifts
(flat_tokens/fields.py).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import integer
from flat_tokens.errors import ArgumentError, RangeError
from flat_tokens.fields import OF_A_ROW, WITH_STARTS, Fields
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.random_rows import RandomRows
from flat_tokens.rows.steps import StepBatches, check_loader


class RowSource:
    """Row i of the packed stream, or pack i, as a dict of arrays [seq_len], int32 but for is_seq_start, which is bool.
    array: a split, or PackedSequences of one. fields: which arrays. ignore_first_labels: False keeps the labels of the
    first tokens of sequences. drop_last: False for a last row, padded, of the tokens that fill none. start_id: the
    input in front of a sequence.

    Picklable, safe to use from several threads; IndexError outside. The repr tells split, counts and length,
    but no path: a dataset may be moved between a checkpoint and its return."""

    def __init__(
        self,
        array: FlatTokensArray | PackedSequences,
        seq_len: int,
        *,
        fields: Sequence[str] = WITH_STARTS,
        ignore_first_labels: bool = True,
        drop_last: bool = True,
        start_id: int = 0,
    ) -> None:
        self._rows = RandomRows(array, seq_len, drop_last=drop_last, start_id=start_id)
        self._fields = Fields(fields, ignore_first_labels, OF_A_ROW)
        self.array = array
        self.seq_len = self._rows.seq_len

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> dict[str, Any]:
        return {
            name: made[0] for name, made in self._fields.make(self._rows.batch([index]), np.int32).items()
        }

    def __repr__(self) -> str:
        packs = f", {self.array.kind}" if isinstance(self.array, PackedSequences) else ""
        array: Any = self.array.array if isinstance(self.array, PackedSequences) else self.array
        return (
            f"flat_tokens.RowSource({array.name}, tokens={array.token_count}, sequences={array.seq_count}, "
            f"max_token_id={array.max_token_id}, seq_len={self.seq_len}{packs})"
        )


class BatchSource:
    """Batch i of a Loader or a Mixture as a dict of arrays, this rank's rows: for grain's iteration and checkpoints
    around an order that is the Loader's. steps: how many there are; by default the Loader's first epoch. The repr tells
    what the batches follow from. The rest is as of RowSource."""

    def __init__(
        self,
        loader: StepBatches,
        steps: int | None = None,
        *,
        fields: Sequence[str] = WITH_STARTS,
        ignore_first_labels: bool = True,
    ) -> None:
        check_loader(loader)
        if steps is None and not hasattr(loader, "__len__"):
            raise ArgumentError("steps: required for a Mixture, which has no end")
        self._fields = Fields(fields, ignore_first_labels)
        self._cut = loader.cut_as(np.int32, self._fields.is_cut_with_labels)
        self._steps = len(loader) if steps is None else integer("steps", steps, 0)  # type: ignore[arg-type]
        identity = repr(sorted(loader.identity(self._steps).items()))
        self._repr = (
            f"flat_tokens.BatchSource(steps={self._steps}, order={zlib.crc32(identity.encode()):08x}, "
            f"rank {loader.rank} of {loader.world_size})"
        )

    def __len__(self) -> int:
        return self._steps

    def __getitem__(self, index: Any) -> dict[str, Any]:
        step = integer("index of a batch", index)
        if not -self._steps <= step < self._steps:
            raise RangeError(f"index of a batch: must be in [{-self._steps}, {self._steps}) (got {step})")
        return self._fields.make(self._cut.batch(step % self._steps), np.int32)

    def __repr__(self) -> str:
        return self._repr
