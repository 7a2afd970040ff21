"""Shuffled batches as a pure function of their step.

    loader = Loader(dataset.train, seq_len=1024, batch_size=64, seed=0)
    for batch in loader.from_step(17_000): ...        # resumes anywhere, with nothing to restore

batch(step) depends on the array, the constructor's arguments and the step alone. It depends neither on what was read
before nor on the number of ranks: the rows of ranks 0, 1, ... concatenated are the global batch, the same for any
world_size that divides batch_size. flat_tokens/rows/row_order.py states which rows a batch has. Each
epoch has a different order; a step is in epoch step // steps_per_epoch.

Cost: raw tokens are gathered from the mapped files (flat_tokens/rows/gathered_steps.py). Others, sequences, packs and
padded rows are read a window at a time (flat_tokens/rows/window_steps.py; 4 Mi tokens of each epoch by default, 4 bytes
a token in memory, twice while a thread reads ahead), each zarr chunk once a window. A step that does not follow
the one before is read alone: resuming takes as long as one batch.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import choice, flag, integer, split
from flat_tokens.errors import ArgumentError
from flat_tokens.format import LARGEST_TOKEN_ID
from flat_tokens.loading.batch import Batch
from flat_tokens.masks import mask_of
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.ahead import Ahead
from flat_tokens.rows.gathered_steps import GatheredSteps
from flat_tokens.rows.row_gather import RowGather
from flat_tokens.rows.row_order import HostOrder, RowOrder
from flat_tokens.rows.row_source import PackedRows, RowSource
from flat_tokens.rows.sequence_rows import LONG_SEQUENCES, Losses, SequenceRows
from flat_tokens.rows.steps import MAX_BATCH_SIZE, ORDER_VERSION, StepBatches, checked_ranks
from flat_tokens.rows.window_steps import WindowSteps
from flat_tokens.sources import RowPart, parts_of_rows
from flat_tokens.storage.elements import Elements

LARGEST_BLOCK = 2**62  # tokens, more than any split has: its rows are counted in 64 bits
MOST_STREAMS = 8  # by default, so that each of 1, 2, 4 or 8 hosts reads data of its own
MOST_BLOCK_TOKENS = 2**24  # of all streams' blocks by default, where blocks are large
BLOCK_TOKENS, WINDOW_TOKENS = 2**18, 2**22  # by default
FINGERPRINT_TOKENS = 1024


class Loader(StepBatches):
    """Batches of rows of `seq_len` tokens, shuffled by `seed`.

    array: a split, or PackedSequences of one. The packs are then the rows.
    seq_len: tokens per row; for packs, their max_seq_len.
    batch_size: rows of all ranks together.
    seed: in [0, 2^64).
    rank, world_size: this rank gets the rows [rank, rank + 1) * batch_size / world_size of each batch. Give both or
        neither. world_size must divide batch_size; the global batches do not depend on it.
    streams: a divisor of batch_size (default: the largest one up to 8). The order depends on it. Ranks whose rows come
        from the same stream read the same data, so for more than 8 ranks, or a number that does not divide the streams,
        a multiple of world_size reads less.
    drop_last: True leaves out of each epoch what fills no row and no batch. False pads it, so that an epoch has each
        token exactly once, for any world_size, in batches of one shape. Batch.lengths excludes the padding, and targets
        and labels are -100 there.
    packed: True cuts rows from the stream wherever they end. False puts one sequence into each row and pads it.
    long_sequences: "split" into several rows or "truncate", for packed=False.
    padding_id: the token at padding.
    shuffle: False keeps the order of the dataset.
    block_tokens: tokens that stay neighbours when blocks are permuted (default: 2^18; up to 2^23 for best-fit packs).
        Choose at least one zarr chunk.
    shuffle_blocks: blocks in a window. Rows are shuffled within a window. Memory and mixing grow with block_tokens *
        shuffle_blocks (default: 4 Mi tokens).
    dtype: of inputs and targets: int32, int64, uint32, or uint16 if the ids fit. With a loss mask, packs, packed=False
        or drop_last=False targets may be -100, so it must be int32 or int64. flat_tokens.views.all_trained leaves the
        mask out.
    start_id: the input at the first token of each sequence.

    len(loader) is steps_per_epoch, and `for batch in loader` is the first epoch. The state of a Loader is the step:
    from_step(step) resumes. Raise ArgumentError for values outside their ranges, and DatasetError on reading what is
    damaged. Picklable; safe to use from several threads."""

    _own = (*StepBatches._own, "_steps")

    def __init__(
        self,
        array: FlatTokensArray | PackedSequences,
        seq_len: int,
        batch_size: int,
        seed: int = 0,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        streams: int | None = None,
        drop_last: bool = True,
        packed: bool = True,
        long_sequences: str = "split",
        padding_id: int = 0,
        shuffle: bool = True,
        block_tokens: int | None = None,
        shuffle_blocks: int | None = None,
        dtype: npt.DTypeLike = np.int32,
        start_id: int = 0,
    ) -> None:
        packs = array if isinstance(array, PackedSequences) else None
        source = array.array if isinstance(array, PackedSequences) else array
        split("array", source, "encoded_tokens", "seq_starts", "max_token_id")
        self.array: FlatTokensArray = source  # type: ignore[assignment]
        self.seq_len = integer("seq_len", seq_len, 1)
        self.batch_size = integer("batch_size", batch_size, 1, MAX_BATCH_SIZE)
        self.rank, self.world_size = checked_ranks(rank, world_size)
        self.drop_last = flag("drop_last", drop_last)
        packed, shuffle = flag("packed", packed), flag("shuffle", shuffle)
        self._may_pad = packs is not None or not packed or not drop_last
        self.start_id = integer("start_id", start_id, 0, LARGEST_TOKEN_ID)
        self.dtype = self._checked_dtype(dtype)
        padding_id = integer("padding_id", padding_id)
        if not 0 <= padding_id <= self.array.max_token_id:
            raise ArgumentError(f"padding_id must be in [0, {self.array.max_token_id}], got {padding_id}")
        long_sequences = choice("long_sequences", long_sequences, LONG_SEQUENCES)
        self._source: RowSource
        if packs is not None:
            self._source = _pack_rows(packs, self.seq_len)
        elif packed:
            self._source = PackedRows(self.array, self.seq_len, not drop_last, padding_id)
        else:
            self._source = SequenceRows(self.array, self.seq_len, long_sequences, padding_id)
        block_tokens = block_tokens_of(array, block_tokens)
        if shuffle_blocks is None:
            shuffle_blocks = 16 if packs is None else max(1, WINDOW_TOKENS // block_tokens)
        self._left_out = self._source.row_count % self.batch_size if drop_last else 0
        self.order = RowOrder.create(
            self._source.row_count
            if drop_last
            else -(-self._source.row_count // self.batch_size) * self.batch_size,
            self.batch_size,
            streams_of(array, self.batch_size, streams, block_tokens),
            max(1, block_tokens // self.seq_len),
            integer("shuffle_blocks", shuffle_blocks),
            integer("seed", seed),
            shuffle,
            may_be_empty=not drop_last,
        )
        if drop_last:
            check_ranks_divide(self.batch_size, self.world_size)
        self.host = HostOrder.of(self.order, self.rank, self.world_size)
        self.rows_per_batch = self.host.rows_per_batch
        if isinstance(self._source, PackedRows) and not drop_last:
            rows = self.array.token_count / self.seq_len
            self._source.is_padded = rows != self.order.row_count or self.batch_size % self.world_size != 0
        self._fingerprint: int | None = None
        self._begin()

    def _forget(self) -> None:
        super()._forget()
        self._steps: GatheredSteps | WindowSteps | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch."""
        return self.order.steps_per_epoch

    def __len__(self) -> int:
        return self.steps_per_epoch

    def __iter__(self) -> Iterator[Batch]:
        return self.from_step(0, self.steps_per_epoch)

    def last_step(self, step: int) -> int | None:
        """The end of the epoch of a step where drop_last is False: padding belongs to an evaluation, which ends."""
        steps = self.order.steps_per_epoch
        return None if self.drop_last else (step // max(1, steps) + 1) * steps

    def __repr__(self) -> str:
        return (
            f"<Loader of {self.array.name}: {self.order.steps_per_epoch} steps an epoch, batches of "
            f"{self.batch_size} x {self.seq_len}, rank {self.rank} of {self.world_size}>"
        )

    def rows_of(self, step: int) -> npt.NDArray[np.int64]:
        """Which rows this rank has in a batch, int64[rows]: numbers for `array.row`, or of sequences or their parts
        where not packed, or of packs. Numbers from the count of rows on are rows of padding."""
        step = integer("step", step, 0)
        self._check_steps(step + 1)
        return self.host.rows_at(step)

    def sources_of(self, step: int) -> list[list[RowPart]]:
        """Which sequences are in each row of this rank's batch of a step, and where they come from
        (flat_tokens/sources.py); a row of padding has none. DatasetError as `array.source_of`."""
        rows = self.rows_of(step)
        return parts_of_rows(self.array, len(rows), self._source.token_ranges(rows))

    def identity(self, step: int = 0) -> dict[str, Any]:
        """See StepBatches.identity."""
        order, source = self.order, self._source
        return {
            "split": self.array.name,
            "token_count": self.array.token_count,
            "seq_count": self.array.seq_count,
            "seq_len": self.seq_len,
            "row_kind": source.kind,
            "rows": order.row_count,
            "batch_size": order.batch_size,
            "streams": order.streams,
            "block_rows": order.block_rows,
            "window_blocks": order.window_blocks,
            "seed": order.seed,
            "shuffle": order.shuffle,
            "order_version": ORDER_VERSION,
            "fingerprint": self.fingerprint,
        }

    @property
    def fingerprint(self) -> int:
        """A number that tells datasets of the same counts apart: of the first and last tokens. Two reads, once."""
        if self._fingerprint is None:
            tokens, count = self.array.encoded_tokens, self.array.token_count
            ranges = ((0, min(FINGERPRINT_TOKENS, count)), (max(0, count - FINGERPRINT_TOKENS), count))
            found = 0
            for _, values in itertools.chain.from_iterable(tokens.blocks(*ends) for ends in ranges):
                found = zlib.crc32(values.astype("<u4").tobytes(), found)
            self._fingerprint = found
        return self._fingerprint

    def losses(self) -> Losses:
        """What is truncated, padded and left out. Cost: one pass over seq_starts where not packed."""
        if isinstance(self._source, SequenceRows):
            return self._source.losses(self._left_out)
        rows, tokens = self._source.row_count, self.array.token_count
        if isinstance(self._source, PackedRows):
            used = min(tokens, rows * self.seq_len)
            return Losses(tokens, used, 0, tokens - used, rows * self.seq_len - used, rows, 0, self._left_out)
        raise ArgumentError("the losses of packs are in PackedSequences.report")

    # -- reading

    def new_windows(self, host: HostOrder | None = None) -> WindowSteps:
        """A reader of windows and rows, for callers that put batches together themselves. host: by default this
        rank's."""
        tokens = self.array.encoded_tokens
        host = self.host if host is None else host
        return WindowSteps(tokens, self._source, host, self._new_cut(), mask_of(self.array))

    def _new_steps(self) -> GatheredSteps | WindowSteps:
        if isinstance(self._source, PackedRows) and not self._source.is_padded and not self.is_masked:
            gather = RowGather.of(self.array.encoded_tokens, self._new_cut())
            if gather is not None:
                return GatheredSteps(self.host, gather)
        return self.new_windows()

    def _check_steps(self, stop: int) -> None:
        if not self.order.steps_per_epoch:
            raise ArgumentError(f"{self.array.name} has no rows, so there is no batch")

    def _batch(self, step: int, follows: bool) -> Batch:
        if self._steps is None:
            self._steps = self._new_steps()
        return self._steps.batch(step, follows)

    def _run(self, step: int, stop: int | None, ahead: Ahead) -> Iterator[Batch]:
        return self._new_steps().run(step, stop, ahead)

    @property
    def is_masked(self) -> bool:
        """See StepBatches."""
        return mask_of(self.array) is not None

    @property
    def may_pad(self) -> bool:
        """See StepBatches."""
        return self._may_pad

    def _largest_id(self) -> int:
        return self.array.max_token_id


def _pack_rows(packs: PackedSequences, seq_len: int) -> RowSource:
    if not isinstance(packs.array.encoded_tokens, Elements):
        raise ArgumentError("a Loader of packs needs PackedSequences of a split such as dataset.train")
    if seq_len != packs.max_seq_len:
        raise ArgumentError(f"seq_len must be the packs' max_seq_len = {packs.max_seq_len}, got {seq_len}")
    return packs.rows


def block_tokens_of(array: FlatTokensArray | PackedSequences, given: int | None) -> int:
    """Tokens that stay neighbours when blocks are permuted."""
    if given is None:
        given = array.block_tokens if isinstance(array, PackedSequences) else BLOCK_TOKENS
    return min(integer("block_tokens", given, 1), LARGEST_BLOCK)


def streams_of(
    array: FlatTokensArray | PackedSequences, batch_size: int, given: int | None, block_tokens: int
) -> int:
    """The streams of batches: by default the largest divisor of batch_size up to 8, fewer of large packs, so the order
    depends on batch_size and the kind of rows alone."""
    if given is not None:
        return integer("streams", given)
    most = MOST_STREAMS
    if isinstance(array, PackedSequences):
        most = max(1, min(most, MOST_BLOCK_TOKENS // block_tokens))
    return max(count for count in range(1, most + 1) if batch_size % count == 0)


def check_ranks_divide(batch_size: int, world_size: int) -> None:
    """Raise ArgumentError with the nearest numbers that fit, unless world_size divides batch_size."""
    if batch_size % world_size == 0:
        return
    fewer = next(count for count in range(min(world_size, batch_size), 0, -1) if batch_size % count == 0)
    more = next((count for count in range(world_size, batch_size + 1) if batch_size % count == 0), fewer)
    ranks = " or ".join(str(count) for count in sorted({fewer, more}))
    below = batch_size // world_size * world_size
    sizes_near = " or ".join(str(size) for size in (below, below + world_size) if size)
    raise ArgumentError(
        f"world_size = {world_size} does not divide batch_size = {batch_size}: take {ranks} ranks, or (another order "
        f"of batches) batch_size {sizes_near}"
    )
