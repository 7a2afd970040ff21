"""The shared parts of the adapters for PyTorch, JAX and Grain: rows by number, and steps with a state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import flag, integer, invalid, split
from flat_tokens.fields import DEFAULT, OF_A_ROW, Fields
from flat_tokens.format import LARGEST_TOKEN_ID
from flat_tokens.loading.steps import StepBatches, steps_range
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.reader import IndexedRows, PackedRows, RowSource

Integers = type[np.signedinteger[Any]]


class RowItems:
    """Rows of the packed stream of a split, or packs, as dictionaries of arrays [seq_len].

    array: a split such as dataset.train, or PackedSequences of one.
    seq_len: tokens per row; for packs, their max_seq_len.
    fields: names of the arrays, of those with one row per item (default: input_ids and labels).
    ignore_first_labels: True (default) sets the labels of the first tokens of sequences to -100; False keeps them.
    drop_last: True (default) omits the tokens that fill no row. False adds them as a padded row.
    start_id: input before the first token of each sequence, in [0, 2^31) (default: 0).

    len() is the number of rows. An index outside raises IndexError. Picklable and thread-safe.
    """

    def __init__(
        self,
        array: FlatTokensArray | PackedSequences,
        seq_len: int,
        *,
        fields: Sequence[str] = DEFAULT,
        ignore_first_labels: bool = True,
        drop_last: bool = True,
        start_id: int = 0,
    ) -> None:
        self.array = array
        self.seq_len = integer("seq_len", seq_len, 1)
        with_tail = not flag("drop_last", drop_last)
        self._fields = Fields(fields, ignore_first_labels, OF_A_ROW)
        start_id = integer("start_id", start_id, 0, LARGEST_TOKEN_ID)
        source: RowSource
        if isinstance(array, PackedSequences):
            array.check_seq_len(self.seq_len)
            source, noun = array.rows, "pack"
            array = array.array
        else:
            split("array", array, "encoded_tokens", "row_count")
            source, noun = PackedRows(array, self.seq_len, with_tail), "row"
        self._rows = IndexedRows(array, source, start_id, noun)

    def __len__(self) -> int:
        return len(self._rows)

    def _items(self, indexes: Iterable[Any], dtype: Integers) -> list[dict[str, Any]]:
        """Several rows, read together."""
        batch = self._rows.batch(indexes)
        arrays = self._fields.make(batch, dtype)
        return [{name: values[row] for name, values in arrays.items()} for row in range(len(batch))]


class ResumableSteps:
    """The steps [step, stop) of a Loader or Mixture, cut for some fields, and the state to resume at the next step."""

    def __init__(
        self, loader: StepBatches, step: int, stop: int | None, fields: Fields, dtype: Integers
    ) -> None:
        check_loader(loader)
        self.loader = loader
        self.step, self.stop = steps_range(step, stop)
        self._fields = fields
        self._cut = loader.cut_as(dtype, fields.is_cut_with_labels)
        self._next_step = self.step
        self._default_stop = loader.default_stop(self.step)  # of the current pass

    def _end(self) -> int | None:
        """The end of the current pass, not before its next step; None for no end."""
        stop = self._default_stop if self.stop is None else self.stop
        return None if stop is None else max(self._next_step, stop)

    def state_dict(self) -> dict[str, Any]:
        """The state to resume at the next step: small, picklable and made of plain values."""
        return self.loader.state_at(self._next_step) | {"stop": self._default_stop}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume where the state was taken. Raise ArgumentError with the first difference."""
        self._next_step = self.loader.step_of(state)
        default_stop = self.loader.default_stop(self._next_step)
        self._default_stop = state.get("stop", default_stop)


def check_loader(loader: object) -> None:
    """Raise ArgumentError unless an adapter got a Loader or a Mixture."""
    if not isinstance(loader, StepBatches):
        raise invalid("loader", "must be a flat_tokens.Loader or Mixture", loader)
