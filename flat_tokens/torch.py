"""Datasets for PyTorch's DataLoader; importing this module imports torch.

RowDataset is map-style: a row an item, for those who bring a sampler of their own. BatchDataset is iterable
and yields the batches of a Loader or a Mixture, whole:

    dataset = BatchDataset(Loader(train, seq_len=1024, batch_size=64, seed=0, rank=rank, world_size=world_size))
    for batch in DataLoader(dataset, batch_size=None):
        loss = model(**batch).loss          # a model of transformers: labels are unshifted, the model shifts

Batches are dictionaries of tensors [rows, seq_len], int64 but for is_seq_start, which is bool. `fields` names those
that are made (flat_tokens/fields.py): input_ids and labels by default; inputs and targets are the shifted pair, for a
loop that compares logits[i] with targets[i]. Labels and targets are -100 where nothing is predicted. What keeps
sequences apart is segment_ids, positions, or for kernels of variable length cu_seqlens, int32[segments + 1] of the
flattened batch, and max_seqlen, an int; block_mask is a BlockMask for flex_attention; mask is dense.

DataLoader's workers, forked or spawned, need nothing further: worker w of n yields the steps w, w + n, w + 2n ... and
DataLoader puts them in order. Each worker then reads every window, so for local data no workers and the Loader's own
thread are faster.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import invalid
from flat_tokens.errors import ArgumentError
from flat_tokens.fields import NAMES, OF_A_ROW, UNSHIFTED, Fields
from flat_tokens.loading.batch import Batch
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.random_rows import RandomRows
from flat_tokens.rows.steps import StepBatches, check_loader, steps_range

try:
    import torch
    import torch.distributed as dist
    from torch import Tensor
    from torch.utils.data import Dataset, IterableDataset, get_worker_info
except ImportError as error:
    text = "flat_tokens.torch: PyTorch is not installed. Run pip install 'tokenmill[torch]'."
    raise ImportError(text, name="torch") from error

Tensors = dict[str, Any]  # Tensor, but max_seqlen int and block_mask BlockMask
FIELDS = (*NAMES, "block_mask")
MOST_WORKERS = 256  # of a DataLoader that are told apart by more than the seed of their pass


def to_tensors(
    batch: Batch, fields: Sequence[str] = UNSHIFTED, *, ignore_first_labels: bool = True
) -> Tensors:
    """The named tensors of a batch of a Loader; see the module. Cost: no copy of what is int64, but for labels."""
    if not isinstance(batch, Batch):
        raise invalid("batch", "must be a Batch of a Loader or Mixture", batch)
    return _tensors(batch, Fields(fields, ignore_first_labels, FIELDS))


def _tensors(batch: Batch, fields: Fields) -> Tensors:
    made: Tensors = {}
    for name in fields.names:
        if name == "block_mask":
            if get_worker_info() is not None:
                raise ArgumentError(
                    "fields: workers of a DataLoader cannot send a block_mask. Use segment_ids, and call "
                    "flat_tokens.torch.block_mask(segment_ids) in the training process."
                )
            made[name] = block_mask(torch.from_numpy(batch.segment_ids))
        else:
            value = fields.field(name, batch, np.int64)
            made[name] = torch.from_numpy(value) if isinstance(value, np.ndarray) else value
    return made


def block_mask(segment_ids: Tensor, block_size: int = 128) -> Any:
    """The BlockMask for torch.nn.attention.flex_attention of segment ids [rows, n], on their device: a query attends to
    the keys of its segment up to itself, at padding, of id 0, to itself alone. Nothing of n * n is made, but a table of
    blocks."""
    from torch.nn.attention.flex_attention import BlockMask

    rows, count = segment_ids.shape
    blocks = -(-count // block_size)
    places = torch.arange(count, device=segment_ids.device)
    begins = torch.ones_like(segment_ids, dtype=torch.bool)
    begins[:, 1:] = (segment_ids[:, 1:] != segment_ids[:, :-1]) | (segment_ids[:, 1:] == 0)
    starts = torch.where(begins, places, 0).cummax(dim=1).values  # of the segment of each token
    own = torch.arange(blocks, device=segment_ids.device)
    first = starts[:, ::block_size] // block_size  # the first block that a query of a block attends to
    last_start = starts[:, (own * block_size + block_size - 1).clamp(max=count - 1)]
    # Full are the blocks in front of the diagonal that begin within the segment of all queries.
    first_full = torch.minimum(torch.maximum(-(-last_start // block_size), first), own)
    first_full = torch.where(
        (own + 1) * block_size > count, own, first_full
    )  # a last block that is not whole
    part_counts, full_counts = first_full - first + 1, own - first_full
    order = own.expand(rows, blocks, blocks)
    part = torch.where(order < (part_counts - 1)[..., None], first[..., None] + order, own[:, None])
    full = torch.where(order < full_counts[..., None], first_full[..., None] + order, 0)

    def attends(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        same = (segment_ids[row, query] == segment_ids[row, key]) & (segment_ids[row, key] != 0)
        return (same & (query >= key)) | (query == key)

    part = torch.where(order < part_counts[..., None], part, 0)
    return BlockMask.from_kv_blocks(
        part_counts[:, None].int(),
        part[:, None].int(),
        full_counts[:, None].int(),
        full[:, None].int(),
        BLOCK_SIZE=block_size,
        mask_mod=attends,
        seq_lengths=(count, count),
    )


class Rows(list[Tensors]):
    """Items of one read, and the same once more as a batch."""

    def __init__(self, batch: Tensors) -> None:
        count = len(next(iter(batch.values())))
        super().__init__({name: values[i] for name, values in batch.items()} for i in range(count))
        self.batch = batch


def collate(items: Sequence[Tensors]) -> Tensors:
    """The batch of some items. Cost: nothing if they came from one `__getitems__`, else as default_collate."""
    if isinstance(items, Rows):
        return items.batch
    return {name: torch.stack([item[name] for item in items]) for name in items[0]}


class RowDataset(Dataset[Tensors]):
    """Row i of the packed stream, or pack i, as item i: DataLoader(RowDataset(train, 1024), 64, shuffle=True,
    collate_fn=collate). array: a split, or PackedSequences of one. len() is array.row_count(seq_len), or with
    drop_last=False one more where tokens are left, padded. fields: the tensors [seq_len] of an item, of those that are
    one row long. ignore_first_labels: False keeps the labels of the first tokens of sequences. start_id: the input in
    front of a sequence. Picklable; IndexError outside."""

    def __init__(
        self,
        array: FlatTokensArray | PackedSequences,
        seq_len: int,
        *,
        fields: Sequence[str] = UNSHIFTED,
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

    def __getitem__(self, index: int) -> Tensors:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> Rows:
        return Rows(_tensors(self._rows.batch(indices), self._fields))


class BatchDataset(IterableDataset[Tensors]):
    """Batches of a Loader or Mixture as dicts of tensors, for DataLoader(dataset, batch_size=None).

    loader: a Loader or Mixture. Give it rank and world_size; its batch_size counts the rows of all ranks.
    step: first step, at least 0 (default: 0).
    stop: end of the steps, at least `step` (default: None for no end; with drop_last=False, the end of the epoch).
    fields: names of the tensors in a batch (default: input_ids and labels); integers are int64. See flat_tokens.fields.
    ignore_first_labels: True (default) sets the labels of the first tokens of sequences to -100; False keeps them.

    Each pass begins at `step`. The first pass after load_state_dict resumes at the step of the state, with any number
    of workers.

    state_dict() holds the next step and what determines the batches. load_state_dict raises ArgumentError for a state
    of other batches. In the main process, state_dict raises ArgumentError while workers read: use torchdata's
    StatefulDataLoader, which collects the states of the workers. Workers that started before load_state_dict
    (persistent_workers=True) raise ArgumentError in their next pass.

    A DataLoader with a batch_size raises ArgumentError, since it would stack whole batches.
    """

    def __init__(
        self,
        loader: StepBatches,
        step: int = 0,
        stop: int | None = None,
        *,
        fields: Sequence[str] = UNSHIFTED,
        ignore_first_labels: bool = True,
    ) -> None:
        check_loader(loader)
        self.loader = loader
        self.step, self.stop = steps_range(step, stop)
        self._last_step = loader.last_step(self.step)  # where the current pass ends if stop is None
        self._fields = Fields(fields, ignore_first_labels, FIELDS)
        self._cut = loader.cut_as(np.int64, self._fields.is_cut_with_labels)
        self._next_step = self.step
        self._resumed_at: int | None = None
        self._has_own_state = False  # whether it was loaded in this process, a worker
        self._shared = SharedWithWorkers()

    def __iter__(self) -> Iterator[Tensors]:
        worker = get_worker_info()
        self._shared.begin_pass(is_worker=worker is not None)
        resumed_at, self._resumed_at = self._resumed_at, None
        if worker is not None and not self._has_own_state and not self._shared.takes_up(worker):
            resumed_at = None  # an earlier pass began there
        self._has_own_state = False
        if resumed_at is None:
            self._last_step = self.loader.last_step(self.step)
        # set before the first batch is asked for: a StatefulDataLoader takes states of workers that have made none
        self._next_step = (self.step if resumed_at is None else resumed_at) + _place_of(worker)
        # DataLoader's fetcher calls this with auto_collation=True if it has a batch_size: it would stack batches, and
        # no collate function of ours would be asked
        would_stack = bool(sys._getframe(1).f_locals.get("auto_collation"))
        return self._pass(self._next_step, 1 if worker is None else worker.num_workers, would_stack)

    def _pass(self, step: int, stride: int, would_stack: bool) -> Iterator[Tensors]:
        self._shared.check_is_up_to_date()  # here, not in __iter__: an error there ends a worker without a word
        if would_stack:
            raise ArgumentError(
                "DataLoader: batch_size must be None for a BatchDataset, which yields whole batches. Pass "
                "batch_size=None, or use RowDataset with transformers' Trainer or accelerate."
            )
        stop = self._last_step if self.stop is None else self.stop
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
            yield _tensors(self._cut.batch(step), self._fields)
            step += stride

    def set_epoch(self, epoch: int) -> None:
        """Do nothing in one process: each epoch has a different order anyway.

        accelerate and transformers' Trainer call this before they deal out the items of a dataset to their processes.
        A Loader has dealt out its rows already, so raise ArgumentError if there are several processes."""
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            raise ArgumentError(
                "BatchDataset: the Loader already divides the rows among the ranks. Do not call set_epoch or prepare "
                "the DataLoader with accelerate, or use RowDataset."
            )

    def state_dict(self) -> dict[str, Any]:
        """Where to go on: small, picklable and made of plain values. ArgumentError where workers read instead."""
        if get_worker_info() is None:
            self._shared.check_no_worker_reads()
        return self.loader.state_at(self._next_step) | {"stop": self._last_step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume where the state was taken. Raise ArgumentError with the first difference."""
        step, worker = self.loader.step_of(state), get_worker_info()
        self._next_step = step
        self._last_step = state["stop"] if "stop" in state else self.loader.last_step(step)
        self._resumed_at = step - _place_of(worker)
        self._has_own_state = worker is not None
        if worker is None:
            self._shared.load_state()


class SharedWithWorkers:
    """What the process that starts workers and the copies of a dataset in them know of each other.

    Numbers in memory that forked and spawned workers share: whether a worker has begun a pass since this process did;
    how many states were loaded in this process; the last of them that workers have begun with, and the seed of their
    pass; and the same for each worker, so that passes of equal seeds are told apart. Other copies share nothing, but
    know what was known when they were made: those by pickle or deepcopy, and those in processes that are no workers of
    a DataLoader, such as the ranks of a training, which have memory of their own before they start workers."""

    def __init__(self) -> None:
        self._loaded = 0  # the number of states that this copy knows of
        self._new_memory(torch.zeros(4 + MOST_WORKERS, dtype=torch.int64))

    def _new_memory(self, known: Any) -> None:
        memory: Any = known.clone()  # Any: its calls are untyped in torch
        memory[0] = 0
        self._memory: Any = memory.share_memory_()
        self._process = os.getpid()
        _ALL.add(self)

    def __getstate__(self) -> dict[str, Any]:
        self.own_memory()
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _ALL.add(self)
        if not self._memory.is_shared():
            self._new_memory(self._memory)

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedWithWorkers:
        other = SharedWithWorkers()
        other._loaded = self._loaded
        other._new_memory(self._memory)
        return other

    def begin_pass(self, is_worker: bool) -> None:
        """To be called where a pass begins."""
        if not is_worker:
            self.own_memory()
        self._memory[0] = int(is_worker)

    def load_state(self) -> None:
        """To be called where a state is loaded in a process that is no worker."""
        self.own_memory()
        self._loaded += 1
        self._memory[0], self._memory[1] = 0, self._loaded

    def takes_up(self, worker: Any) -> bool:
        """Whether a worker begins where the state was taken that was loaded before it was started: in the first pass
        since, not in later ones, whose workers know of it as well."""
        pass_seed = worker.seed - worker.id  # the same for all workers of a pass
        memory, own = self._memory, 4 + worker.id
        is_first = int(memory[2]) != self._loaded or int(memory[3]) == pass_seed
        if worker.id < MOST_WORKERS:
            is_first = is_first and int(memory[own]) != self._loaded
            memory[own] = self._loaded
        if is_first:
            memory[3], memory[2] = pass_seed, self._loaded
        return is_first

    def check_no_worker_reads(self) -> None:
        """Raise ArgumentError if a worker has begun a pass since this process, which is no worker, did."""
        self.own_memory()
        if int(self._memory[0]):
            raise ArgumentError(
                "BatchDataset.state_dict: the workers of the DataLoader have the state, not this process. Use "
                "torchdata's StatefulDataLoader, or count the steps and resume with step=."
            )

    def check_is_up_to_date(self) -> None:
        """Raise ArgumentError in a worker that was started before a state was loaded."""
        if int(self._memory[1]) != self._loaded:
            raise ArgumentError(
                "BatchDataset.load_state_dict: called after the workers started (persistent_workers=True). Make a "
                "new DataLoader."
            )

    def own_memory(self) -> None:
        """To be called before a process that is no worker tells its workers anything, or starts them."""
        if self._process != os.getpid() and get_worker_info() is None:
            self._new_memory(self._memory)


_ALL: weakref.WeakSet[SharedWithWorkers] = weakref.WeakSet()


def _own_memories() -> None:
    for shared in list(_ALL):
        shared.own_memory()


os.register_at_fork(before=_own_memories)


def _place_of(worker: Any) -> int:
    """How many steps behind the first one a worker's first is; 0 in the process that trains."""
    return 0 if worker is None else int(worker.id)
