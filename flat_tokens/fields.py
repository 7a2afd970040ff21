"""The arrays that an adapter makes of a batch: one meaning of each name for PyTorch, JAX and Grain.

input_ids and labels are unshifted, as in transformers, TRL and torchtune: labels[i] is the token at input_ids[i], and
the model shifts. inputs and targets are the shifted pair: inputs[i] is the token before targets[i], or start_id (0)
where a sequence starts, and the model must not shift again. Labels and targets are -100 where no loss is computed.

Invariant: labels equal input_ids except where they are -100: at padding, at tokens that the loss mask excludes, and at
the first token of each sequence, which a model that shifts would predict from the sequence before. The first token of
a row that begins within a sequence keeps its label; a model that shifts never compares it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import flag, invalid
from flat_tokens.errors import ArgumentError
from flat_tokens.rows.batch import IGNORED_LABEL, Batch

UNSHIFTED = ("input_ids", "labels")
SHIFTED = ("inputs", "targets")
DEFAULT = UNSHIFTED  # of every adapter
OF_SEGMENTS = ("segment_ids", "positions", "position_ids", "cu_seqlens", "max_seqlen", "mask")
NAMES = (*UNSHIFTED, *SHIFTED, "is_seq_start", "loss_mask", "lengths", *OF_SEGMENTS)
OF_A_ROW = tuple(name for name in NAMES if name not in ("cu_seqlens", "max_seqlen"))
OWN_TYPE = ("is_seq_start", "loss_mask", "cu_seqlens", "max_seqlen")  # not of the adapter's integer type


class Fields:
    """Makes the named arrays of a Batch.

    names: some of `known`. position_ids is the name of positions in transformers.
    ignore_first_labels: whether labels are -100 at the first token of each sequence.

    Raise ArgumentError for unknown and repeated names, for none, and for names of both pairs.
    """

    def __init__(
        self, names: Sequence[str], ignore_first_labels: bool = True, known: Sequence[str] = NAMES
    ) -> None:
        self.names = checked_names(names, known)
        self.ignore_first_labels = flag("ignore_first_labels", ignore_first_labels)

    @property
    def is_cut_with_labels(self) -> bool:
        """Whether a Loader should cut labels instead of inputs (StepBatches.cut_as)."""
        return "labels" in self.names and self.ignore_first_labels

    def make(self, batch: Batch, dtype: type[np.signedinteger[Any]]) -> dict[str, Any]:
        """The arrays by name; see `field`. Arrays that the batch has are not copied."""
        return {name: self.field(name, batch, dtype) for name in self.names}

    def field(self, name: str, batch: Batch, dtype: type[np.signedinteger[Any]]) -> Any:
        """One array, [rows, seq_len] of `dtype`, with these exceptions:

        is_seq_start, loss_mask: bool.
        lengths: dtype[rows], tokens before the padding.
        cu_seqlens: int32[segments + 1]. max_seqlen: an int.
        mask: bool[rows, seq_len, seq_len].
        """
        if name == "labels":
            return self._labels(batch, dtype)
        if name == "lengths" and batch.lengths is None:
            return np.full(len(batch), batch.ids.shape[1], dtype=dtype)
        if name == "mask":
            return batch.mask()
        found = getattr(batch, {"input_ids": "ids", "position_ids": "positions"}.get(name, name))
        return found if name in OWN_TYPE else found.astype(dtype, copy=False)

    def _labels(self, batch: Batch, dtype: type[np.signedinteger[Any]]) -> npt.NDArray[Any]:
        if batch.cut_labels is not None and self.ignore_first_labels:
            labels = batch.cut_labels.astype(dtype, copy=False)
        else:
            labels = batch.ids.astype(dtype)  # a copy: input_ids may be the other
            if self.ignore_first_labels:
                np.copyto(labels, IGNORED_LABEL, where=batch.is_seq_start)
        if batch.lengths is not None or batch.trained is not None:
            np.copyto(labels, IGNORED_LABEL, where=~batch.loss_mask)
        return labels


def checked_names(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The names as a tuple. Raise ArgumentError unless they are some of `known`, each once, of one pair."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise invalid("fields", f"must be a list of names such as {UNSHIFTED}", names)
    for name in names:
        if name not in known:
            raise invalid("fields", f"must be among {', '.join(known)}", name)
    if not names or len(set(names)) < len(names):
        raise invalid("fields", "must have at least one name, each once", tuple(names))
    unshifted = [name for name in names if name in UNSHIFTED]
    shifted = [name for name in names if name in SHIFTED]
    if unshifted and shifted:
        raise ArgumentError(
            f"fields: {unshifted[0]} and {shifted[0]} exclude each other. Use input_ids with labels if the model "
            "shifts them, otherwise inputs with targets."
        )
    return tuple(names)
