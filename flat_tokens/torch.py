"""Datasets for PyTorch's DataLoader. Importing this module imports torch.

BatchDataset is iterable and yields whole batches of a Loader or Mixture. RowDataset is map-style: item i is row i, for
samplers of other libraries.

    dataset = BatchDataset(Loader(train, seq_len=1024, batch_size=64, seed=0, rank=rank, world_size=world_size))
    for batch in DataLoader(dataset, batch_size=None):
        loss = model(**batch).loss          # a model of transformers: labels are unshifted, the model shifts

Batches are dictionaries of tensors [rows, seq_len], int64 or bool. `fields` names them (flat_tokens/fields.py):
input_ids and labels by default; inputs and targets are the shifted pair, for a loop that compares logits[i] with
targets[i]. segment_ids, positions, cu_seqlens with max_seqlen, block_mask and mask keep sequences apart.

DataLoader's workers need no configuration: worker w of n yields the steps w, w + n, w + 2n ..., and DataLoader puts
them in order. Each worker reads every window, so for local data the Loader's own thread without workers is faster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flat_tokens.adapters import ResumableSteps, RowItems
from flat_tokens.errors import ArgumentError
from flat_tokens.fields import DEFAULT, NAMES, Fields
from flat_tokens.loading.steps import StepBatches
from flat_tokens.rows.batch import Batch

try:
    import torch
    import torch.distributed as dist
    from torch.utils.data import Dataset, IterableDataset, get_worker_info
except ImportError as error:
    text = "flat_tokens.torch: PyTorch is not installed. Run pip install 'tokenmill[torch]'."
    raise ImportError(text, name="torch") from error

Tensors = dict[str, Any]  # Tensor, except max_seqlen int and block_mask BlockMask
FIELDS = (*NAMES, "block_mask")


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


def block_mask(segment_ids: torch.Tensor, block_size: int = 128) -> Any:
    """The BlockMask for torch.nn.attention.flex_attention of segment IDs [rows, n], on their device.

    A query attends to the keys of its segment up to itself. At padding, ID 0, it attends to itself alone. Cost: a table
    of blocks.
    """
    from torch.nn.attention.flex_attention import BlockMask

    rows, count = segment_ids.shape
    blocks = -(-count // block_size)
    positions = torch.arange(count, device=segment_ids.device)
    begins = torch.ones_like(segment_ids, dtype=torch.bool)
    begins[:, 1:] = (segment_ids[:, 1:] != segment_ids[:, :-1]) | (segment_ids[:, 1:] == 0)
    starts = torch.where(begins, positions, 0).cummax(dim=1).values  # of the segment of each token
    own = torch.arange(blocks, device=segment_ids.device)
    first = starts[:, ::block_size] // block_size  # the first block that a query of a block attends to
    last_start = starts[:, (own * block_size + block_size - 1).clamp(max=count - 1)]
    # A block before the diagonal is full if it begins within the segment of all queries.
    first_full = torch.minimum(torch.maximum(-(-last_start // block_size), first), own)
    is_short = (own + 1) * block_size > count
    first_full = torch.where(is_short, own, first_full)
    part_counts, full_counts = first_full - first + 1, own - first_full
    order = own.expand(rows, blocks, blocks)
    part = torch.where(order < (part_counts - 1)[..., None], first[..., None] + order, own[:, None])
    part = torch.where(order < part_counts[..., None], part, 0)
    full = torch.where(order < full_counts[..., None], first_full[..., None] + order, 0)

    def attends(
        row: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor
    ) -> torch.Tensor:
        same = (segment_ids[row, query] == segment_ids[row, key]) & (segment_ids[row, key] != 0)
        return (same & (query >= key)) | (query == key)

    return BlockMask.from_kv_blocks(
        part_counts[:, None].int(),
        part[:, None].int(),
        full_counts[:, None].int(),
        full[:, None].int(),
        BLOCK_SIZE=block_size,
        mask_mod=attends,
        seq_lengths=(count, count),
    )


def collate(items: Sequence[Tensors]) -> Tensors:
    """The batch of some items of a RowDataset, for DataLoader's collate_fn."""
    return {name: torch.stack([item[name] for item in items]) for name in items[0]}


class RowDataset(RowItems, Dataset[Tensors]):
    """Row i of the packed stream, or pack i, as item i: a dictionary of tensors [seq_len]. See RowItems.

    DataLoader(RowDataset(train, 1024), 64, shuffle=True, collate_fn=collate) shuffles all rows.
    """

    def __getitem__(self, index: int) -> Tensors:
        return self.__getitems__([index])[0]

    def __getitems__(self, indexes: Sequence[int]) -> list[Tensors]:
        """Several items, read together. DataLoader calls this for each batch."""
        items = self._items(indexes, np.int64)
        return [{name: torch.as_tensor(value) for name, value in item.items()} for item in items]


class BatchDataset(ResumableSteps, IterableDataset[Tensors]):
    """Batches of a Loader or Mixture as dictionaries of tensors, for DataLoader(dataset, batch_size=None).

    loader: a Loader or Mixture. Give it rank and world_size; its batch_size counts the rows of all ranks.
    step: first step, at least 0 (default: 0).
    stop: end of the steps, at least `step` (default: None for no end; with drop_last=False, the end of the epoch).
    fields: names of the tensors in a batch (default: input_ids and labels); integers are int64. See flat_tokens.fields.
    ignore_first_labels: True (default) sets the labels of the first tokens of sequences to -100; False keeps them.

    A pass continues from epoch to epoch, up to `stop`. Each pass begins at `step`, so a second pass with a `stop`
    repeats the first. For epoch e alone pass step=e * len(loader) and stop=(e + 1) * len(loader). len() is the number
    of batches in the next pass; without an end it raises TypeError.

    state_dict() holds the next step and everything that determines the batches. After load_state_dict(state) the next
    pass begins there, for any number of ranks and workers; call it before the workers start. With workers of a plain
    DataLoader later passes begin there, too. It raises ArgumentError for a state of other batches. While workers read,
    state_dict raises ArgumentError in the main process: use torchdata's StatefulDataLoader, which collects the states
    of the workers.

    A DataLoader with a batch_size raises ArgumentError, since it would stack whole batches.
    """

    def __init__(
        self,
        loader: StepBatches,
        step: int = 0,
        stop: int | None = None,
        *,
        fields: Sequence[str] = DEFAULT,
        ignore_first_labels: bool = True,
    ) -> None:
        super().__init__(loader, step, stop, Fields(fields, ignore_first_labels, FIELDS), np.int64)
        self._resumed: tuple[int, int | None] | None = None  # step and default stop of the next pass
        # Shared with workers: whether they read, so that this process does not know their steps, and how many states
        # were loaded, so that workers that keep running notice a state that they did not get.
        shared: Any = torch.zeros(2, dtype=torch.int64)
        self._shared = shared.share_memory_()
        self._loaded = 0

    def __len__(self) -> int:
        step, default_stop = self._next_pass()
        stop = default_stop if self.stop is None else self.stop
        if stop is None:
            raise TypeError("BatchDataset has no end. Pass stop=, for example stop=len(loader).")
        return max(0, stop - step)

    def _next_pass(self) -> tuple[int, int | None]:
        """The first step of the next pass, and its default stop."""
        return self._resumed or (self.step, self.loader.default_stop(self.step))

    def __iter__(self) -> Iterator[Tensors]:
        worker = get_worker_info()
        offset, stride = (0, 1) if worker is None else (worker.id, worker.num_workers)
        self._shared[0] = worker is not None
        step, self._default_stop = self._next_pass()
        self._resumed = None
        # Set before the first batch is requested: a StatefulDataLoader takes states of workers that have made none.
        self._next_step = step + offset
        # DataLoader's fetcher calls this with auto_collation=True if it has a batch_size. It would stack batches, and
        # would not call a collate function of this module.
        would_stack = bool(sys._getframe(1).f_locals.get("auto_collation"))
        return self._pass(self._next_step, stride, would_stack)

    def _pass(self, step: int, stride: int, would_stack: bool) -> Iterator[Tensors]:
        # Raised here, since DataLoader loses the message of an error in __iter__ of a worker.
        if int(self._shared[1]) != self._loaded:
            raise ArgumentError(
                "BatchDataset.load_state_dict: persistent workers keep their own step. Create the DataLoader after "
                "the state is loaded, or pass persistent_workers=False."
            )
        if would_stack:
            raise ArgumentError(
                "DataLoader: batch_size must be None for a BatchDataset, which yields whole batches. Pass "
                "batch_size=None, or use RowDataset with transformers' Trainer or accelerate."
            )
        stop = self._end()
        if stride == 1:
            for batch in self._cut.from_step(step, stop):
                step += 1
                self._next_step = step
                tensors = _tensors(batch, self._fields)
                del batch  # its memory is used again when there is no reference to the tensors
                yield tensors
                del tensors
            return
        while stop is None or step < stop:
            self._next_step = step + stride
            yield _tensors(self._cut.batch(step), self._fields)
            step += stride

    def set_epoch(self, epoch: int) -> None:
        """Do nothing in one process: each epoch has a different order anyway.

        accelerate and transformers' Trainer call this before they divide the items of a dataset among their processes.
        A Loader has divided its rows already, so raise ArgumentError if there are several processes.
        """
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            raise ArgumentError(
                "BatchDataset: the Loader already divides the rows among the ranks. Do not call set_epoch or prepare "
                "the DataLoader with accelerate, or use RowDataset."
            )

    def state_dict(self) -> dict[str, Any]:
        """The state to resume at the next step: small, picklable and made of plain values. See the class."""
        if get_worker_info() is None and self._shared[0]:
            raise ArgumentError(
                "BatchDataset.state_dict: the workers of the DataLoader have the state, not this process. Use "
                "torchdata's StatefulDataLoader, or count the steps and call loader.state_at(step)."
            )
        return super().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume where the state was taken. Raise ArgumentError with the first difference."""
        super().load_state_dict(state)
        worker = get_worker_info()
        self._resumed = self._next_step - (0 if worker is None else worker.id), self._default_stop
        self._shared[0] = worker is not None
        if worker is None:
            self._shared[1] += 1
            self._loaded = int(self._shared[1])
