"""Datasets for PyTorch's DataLoader; importing this module imports torch.

RowDataset is map-style: a row an item, for those who bring a sampler of their own. BatchDataset is iterable
and yields the batches of a Loader, whole:

    dataset = BatchDataset(Loader(train, seq_len=1024, batch_size=64, seed=0))
    for batch in DataLoader(dataset, batch_size=None):
        loss = model(**batch).loss          # a model of transformers: labels are unshifted, the model shifts

Batches are dictionaries of tensors [rows, seq_len], int64 but for is_seq_start, which is bool. `fields` names those
that are made (flat_tokens/fields.py): input_ids and labels by default; inputs and targets are the shifted pair, for a
loop that compares logits[i] with targets[i]. Labels and targets are -100 where nothing is predicted.

DataLoader's workers, forked or spawned, need nothing further: worker w of n yields the steps w, w + n, w + 2n ... and
DataLoader puts them in order. Each worker then reads every window, so for local data no workers and the Loader's own
thread are faster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import integer, shown, split
from flat_tokens.batch import Batch
from flat_tokens.errors import ArgumentError
from flat_tokens.fields import UNSHIFTED, Fields
from flat_tokens.format import inputs_and_targets
from flat_tokens.loader import Loader, steps_range
from flat_tokens.reader import FlatTokensArray

try:
    import torch
    from torch import Tensor
    from torch.utils.data import Dataset, IterableDataset, get_worker_info
except ImportError as error:
    raise ImportError("flat_tokens.torch needs PyTorch: pip install 'tokenmill[torch]'") from error

Tensors = dict[str, Tensor]


def to_tensors(
    batch: Batch, fields: Sequence[str] = UNSHIFTED, *, ignore_first_labels: bool = True
) -> Tensors:
    """The named tensors of a batch of a Loader; see the module. Cost: no copy of what is int64, but for labels."""
    return _tensors(batch, Fields(fields, ignore_first_labels))


def _tensors(batch: Batch, fields: Fields) -> Tensors:
    return {name: torch.from_numpy(array) for name, array in fields.make(batch, np.int64).items()}


class Rows(list[Tensors]):
    """Items of one read, and the same once more as a batch."""

    def __init__(self, batch: Tensors) -> None:
        count = len(next(iter(batch.values())))
        super().__init__({name: tensor[i] for name, tensor in batch.items()} for i in range(count))
        self.batch = batch


def collate(items: Sequence[Tensors]) -> Tensors:
    """The batch of some items. Cost: nothing if they came from one `__getitems__`, else as default_collate."""
    if isinstance(items, Rows):
        return items.batch
    return {name: torch.stack([item[name] for item in items]) for name in items[0]}


class RowDataset(Dataset[Tensors]):
    """Row i of the packed stream as item i: DataLoader(RowDataset(train, 1024), 64, shuffle=True,
    collate_fn=collate). len() is array.row_count(seq_len). fields: the tensors [seq_len] of an item.
    ignore_first_labels: False keeps the labels of the first tokens of sequences. Picklable; IndexError outside."""

    def __init__(
        self,
        array: FlatTokensArray,
        seq_len: int,
        *,
        fields: Sequence[str] = UNSHIFTED,
        ignore_first_labels: bool = True,
    ) -> None:
        split("array", array, "encoded_tokens", "row_count")
        self._fields = Fields(fields, ignore_first_labels)
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
        return Rows(_tensors(Batch(inputs, targets, flags), self._fields))


class BatchDataset(IterableDataset[Tensors]):
    """The batches of a Loader from `step` on, for DataLoader(..., batch_size=None). stop: None for no end. fields: the
    tensors of a batch. ignore_first_labels: False keeps the labels of the first tokens of sequences.

    Each pass over it begins at `step`, but the first after load_state_dict where the state was taken; with any number
    of workers, in a worker or in the process that starts them. Ranks: give the Loader host_index=rank and
    host_count=world_size.

    state_dict() holds the next step (of this worker), and what the batches follow from: load_state_dict refuses a
    state of other ones. While workers make the batches, the process that starts them does not know their steps, and
    state_dict raises ArgumentError there: torchdata's StatefulDataLoader takes the states of the workers. Workers that
    were started before load_state_dict (persistent_workers=True) raise it as well in their next pass."""

    def __init__(
        self,
        loader: Loader,
        step: int = 0,
        stop: int | None = None,
        *,
        fields: Sequence[str] = UNSHIFTED,
        ignore_first_labels: bool = True,
    ) -> None:
        if not isinstance(loader, Loader):
            raise ArgumentError(f"loader must be a flat_tokens.Loader, got {shown(loader)}")
        self.loader = loader
        self.step, self.stop = steps_range(step, stop)
        self._fields = Fields(fields, ignore_first_labels)
        self._cut = loader.cut_as(np.int64, self._fields.is_cut_with_labels)
        self._next_step = self.step
        self._resumed_at: int | None = None
        self._shared = SharedWithWorkers()

    def __iter__(self) -> Iterator[Tensors]:
        worker = get_worker_info()
        self._shared.begin_pass(is_worker=worker is not None)
        resumed_at, self._resumed_at = self._resumed_at, None
        # set before the first batch is asked for: a StatefulDataLoader takes states of workers that have made none
        self._next_step = (self.step if resumed_at is None else resumed_at) + _place_of(worker)
        return self._pass(1 if worker is None else worker.num_workers)

    def _pass(self, stride: int) -> Iterator[Tensors]:
        self._shared.check_is_up_to_date()  # here, not in __iter__: an error there ends a worker without a word
        step, stop = self._next_step, self.stop
        if stop is not None and step >= stop:
            return
        if stride == 1:
            for batch in self._cut.from_step(step, stop):
                step += 1
                self._next_step = step
                tensors = _tensors(batch, self._fields)
                del batch  # its memory is used again as soon as nobody holds the tensors
                yield tensors
                del tensors
            return
        while stop is None or step < stop:
            self._next_step = step + stride
            yield _tensors(self._cut.strided_batch(step, stride), self._fields)
            step += stride

    def state_dict(self) -> dict[str, Any]:
        """Where to go on: small, picklable and made of plain values. ArgumentError where workers read instead."""
        if get_worker_info() is None:
            self._shared.check_no_worker_reads()
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
        worker = get_worker_info()
        self._resumed_at = self._next_step - _place_of(worker)
        if worker is None:
            self._shared.load_state()


class SharedWithWorkers:
    """What the process that starts workers and the copies of a dataset in them know of each other.

    Two numbers in memory that forked and spawned workers share: whether a worker has begun a pass since this process
    did, and how many states were loaded in this process. Other copies share nothing: those by pickle or deepcopy, and
    those in processes that are no workers of a DataLoader, such as the ranks of a training."""

    def __init__(self) -> None:
        self._new_memory()

    def _new_memory(self) -> None:
        memory: Any = torch.zeros(2, dtype=torch.int64)  # Any: what is called of it is untyped in torch
        self._memory: Any = memory.share_memory_()
        self._loaded = 0  # the number of states that this copy knows of
        self._process = os.getpid()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if not self._memory.is_shared():
            self._new_memory()

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedWithWorkers:
        return SharedWithWorkers()

    def begin_pass(self, is_worker: bool) -> None:
        """To be called where a pass begins."""
        if not is_worker:
            self._own_memory()
        self._memory[0] = int(is_worker)

    def load_state(self) -> None:
        """To be called where a state is loaded in a process that is no worker."""
        self._own_memory()
        self._loaded += 1
        self._memory[0], self._memory[1] = 0, self._loaded

    def check_no_worker_reads(self) -> None:
        """ArgumentError if a worker has begun a pass since this process, which is no worker, did."""
        self._own_memory()
        if int(self._memory[0]):
            raise ArgumentError(
                "state_dict of a BatchDataset whose batches DataLoader's workers make: this process does not know "
                "their steps; take the state of torchdata's StatefulDataLoader, or count steps and resume with step="
            )

    def check_is_up_to_date(self) -> None:
        """ArgumentError in a worker that was started before a state was loaded."""
        if int(self._memory[1]) != self._loaded:
            raise ArgumentError(
                "the state was loaded after this worker was started (persistent_workers=True) and cannot reach it; "
                "make a new DataLoader"
            )

    def _own_memory(self) -> None:
        if self._process != os.getpid():
            self._new_memory()


def _place_of(worker: Any) -> int:
    """How many steps behind the first one a worker's first is; 0 in the process that trains."""
    return 0 if worker is None else int(worker.id)
