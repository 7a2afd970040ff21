"""Datasets for PyTorch's DataLoader; importing this module imports torch.

RowDataset is map-style: a row an item, for those who bring a sampler of their own. BatchDataset is iterable
and yields the batches of a Loader, whole:

    dataset = BatchDataset(Loader(train, seq_len=1024, batch_size=64, seed=0))
    for batch in DataLoader(dataset, batch_size=None): ...

Tensors are int64: input_ids, labels, position_ids and segment_ids, each [rows, seq_len]. labels are the
targets, -100 at padding; input_ids are shifted already (input_ids[i] is what stands in front of labels[i]),
so a model must not shift them again. DataLoader's workers, forked or spawned, need nothing further: worker w
of n yields the steps w, w + n, w + 2n ... and DataLoader puts them in order. Each worker then reads every
window, so for local data no workers and the Loader's own thread are faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import integer, shown, split
from flat_tokens.batch import Batch
from flat_tokens.errors import ArgumentError
from flat_tokens.format import inputs_and_targets
from flat_tokens.loader import Loader, steps_range
from flat_tokens.reader import FlatTokensArray

try:
    import torch
    from torch import Tensor
    from torch.utils.data import Dataset, IterableDataset, get_worker_info
except ImportError as error:
    raise ImportError("flat_tokens.torch needs PyTorch: pip install 'tokenmill[torch]'") from error

IGNORED_LABEL = -100  # what torch.nn.functional.cross_entropy leaves out

Tensors = dict[str, Tensor]


def to_tensors(batch: Batch) -> Tensors:
    """A batch as int64 tensors by the names that PyTorch users expect. Cost: no copy where it is int64."""
    labels = batch.targets.astype(np.int64, copy=False)
    if batch.lengths is not None:
        labels = np.where(batch.is_padding, IGNORED_LABEL, labels)
    arrays = {
        "input_ids": batch.inputs,
        "labels": labels,
        "position_ids": batch.positions,
        "segment_ids": batch.segment_ids,
    }
    return {name: torch.from_numpy(array.astype(np.int64, copy=False)) for name, array in arrays.items()}


class Rows(list[Tensors]):
    """Items of one read, and the same once more as a batch."""

    def __init__(self, batch: Tensors) -> None:
        count = len(batch["labels"])
        super().__init__({name: tensor[i] for name, tensor in batch.items()} for i in range(count))
        self.batch = batch


def collate(items: Sequence[Tensors]) -> Tensors:
    """The batch of some items. Cost: nothing if they came from one `__getitems__`, else as default_collate."""
    if isinstance(items, Rows):
        return items.batch
    return {name: torch.stack([item[name] for item in items]) for name in items[0]}


class RowDataset(Dataset[Tensors]):
    """Row i of the packed stream as item i: DataLoader(RowDataset(train, 1024), 64, shuffle=True,
    collate_fn=collate). len() is array.row_count(seq_len). Picklable; IndexError outside."""

    def __init__(self, array: FlatTokensArray, seq_len: int) -> None:
        split("array", array, "encoded_tokens", "row_count")
        self.array = array
        self.seq_len = integer("length of a row", seq_len, 1)
        self.row_count = array.row_count(self.seq_len)

    def __len__(self) -> int:
        return self.row_count

    def __getitem__(self, index: int) -> Tensors:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> Rows:
        count, length = len(indices), self.seq_len
        encoded = np.zeros((count, length + 1), dtype=np.uint32)
        for at, index in enumerate(indices):
            first = self.array.row_start(index, length)
            begin = max(first - 1, 0)
            encoded[at, begin - first + 1 :] = self.array.encoded_tokens.peek(begin, first + length)
        inputs, targets = inputs_and_targets(encoded[:, 1:], encoded[:, 0])
        flags = (encoded[:, 1:] & np.uint32(1)).astype(np.bool_)
        return Rows(to_tensors(Batch(inputs, targets, flags)))


class BatchDataset(IterableDataset[Tensors]):
    """The batches of a Loader from `step` on, for DataLoader(..., batch_size=None). stop: None for no end.

    Each pass over it begins at `step`, but the first after load_state_dict where the state was taken; with any number
    of workers, in a worker or in the process that starts them. Ranks: give the Loader host_index=rank and
    host_count=world_size. state_dict() holds the next step (of this worker), and what the batches follow from:
    load_state_dict refuses a state of other ones."""

    def __init__(self, loader: Loader, step: int = 0, stop: int | None = None) -> None:
        if not isinstance(loader, Loader):
            raise ArgumentError(f"loader must be a flat_tokens.Loader, got {shown(loader)}")
        self.loader = loader
        self.step, self.stop = steps_range(step, stop)
        self._next_step = self.step
        self._resumed_at: int | None = None

    def __iter__(self) -> Iterator[Tensors]:
        resumed_at, self._resumed_at = self._resumed_at, None
        worker = get_worker_info()
        # set before the first batch is asked for: a StatefulDataLoader takes states of workers that have made none
        self._next_step = (self.step if resumed_at is None else resumed_at) + _place_of(worker)
        return self._pass(1 if worker is None else worker.num_workers)

    def _pass(self, stride: int) -> Iterator[Tensors]:
        step, stop = self._next_step, self.stop
        if stop is not None and step >= stop:
            return
        if stride == 1:
            for after, batch in enumerate(self.loader.from_step(step, stop), step + 1):
                self._next_step = after
                yield to_tensors(batch)
            return
        while stop is None or step < stop:
            self._next_step = step + stride
            yield to_tensors(self.loader.strided_batch(step, stride))
            step += stride

    def state_dict(self) -> dict[str, Any]:
        """Where to go on: small, picklable and made of plain values."""
        return {"step": self._next_step, "loader": self.loader.identity()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken. ArgumentError names what differs."""
        other = state.get("loader") if isinstance(state, dict) else None
        if not isinstance(other, dict) or "step" not in state:
            raise ArgumentError(
                f"a state has step and loader, as state_dict() gives them, got {shown(state)}"
            )
        own = self.loader.identity()
        for name in own:
            if own[name] != other.get(name):
                raise ArgumentError(
                    f"the state is of a loader with {name} {other.get(name)}, this one has {own[name]}"
                )
        self._next_step = integer("step of the state", state["step"], 0)
        self._resumed_at = self._next_step - _place_of(get_worker_info())


def _place_of(worker: Any) -> int:
    """How many steps behind the first one a worker's first is; 0 in the process that trains."""
    return 0 if worker is None else int(worker.id)
