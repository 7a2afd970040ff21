"""Random-access sources for Grain. Grain is not imported.

    source = RowSource(dataset.train, seq_len=1024)  # or RowSource(packed, packed.max_seq_len)
    grain.MapDataset.source(source).shuffle(seed=0).repeat().batch(64)
    grain.MapDataset.source(BatchSource(loader, steps=10_000))  # whole batches of a Loader or a Mixture

Arrays are int32, except bools. fields=("inputs", "targets") is the shifted pair (flat_tokens/fields.py).

Grain compares the repr of a source with the one in a checkpoint. It contains everything that determines the items,
but no path: a dataset may move.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from flat_tokens.adapters import RowItems, check_loader
from flat_tokens.arguments import integer
from flat_tokens.errors import ArgumentError, RangeError
from flat_tokens.fields import DEFAULT, Fields
from flat_tokens.loading.loader import Loader
from flat_tokens.loading.steps import StepBatches
from flat_tokens.packs.packed_sequences import PackedSequences


class RowSource(RowItems):
    """Row i of the packed stream, or pack i, as item i: a dictionary of arrays [seq_len]. See RowItems."""

    def __getitem__(self, index: Any) -> dict[str, Any]:
        return self._items([index], np.int32)[0]

    def __getitems__(self, indexes: Sequence[Any]) -> list[dict[str, Any]]:
        """Several items, read together."""
        return self._items(indexes, np.int32)

    def __repr__(self) -> str:
        settings = f"seq_len={self.seq_len}, rows={self._rows.kind}, start_id={self._rows.start_id}"
        fields = f"fields={self._fields.names}, ignore_first_labels={self._fields.ignore_first_labels}"
        array: Any = self.array.array if isinstance(self.array, PackedSequences) else self.array
        return (
            f"flat_tokens.RowSource({array.name}, tokens={array.token_count}, sequences={array.seq_count}, "
            f"max_token_id={array.max_token_id}, {settings}, {fields})"
        )


class BatchSource:
    """Batch i of a Loader or a Mixture as item i: a dictionary of arrays with this rank's rows.

    loader: a Loader or Mixture.
    steps: number of items (default: the first epoch of a Loader; required for a Mixture).
    fields: names of the arrays (default: input_ids and labels).
    ignore_first_labels: True (default) sets the labels of the first tokens of sequences to -100; False keeps them.
    """

    def __init__(
        self,
        loader: StepBatches,
        steps: int | None = None,
        *,
        fields: Sequence[str] = DEFAULT,
        ignore_first_labels: bool = True,
    ) -> None:
        check_loader(loader)
        if steps is None:
            if not isinstance(loader, Loader):
                raise ArgumentError("steps: required for a Mixture, which has no end")
            steps = len(loader)
        self._steps = integer("steps", steps, 0)
        self._fields = Fields(fields, ignore_first_labels)
        self._cut = loader.cut_as(np.int32, self._fields.is_cut_with_labels)
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
