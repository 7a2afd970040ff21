"""Shuffled batches as a pure function of their step.

    loader = Loader(dataset.train, seq_len=1024, batch_size=64, seed=0)
    for batch in loader.from_step(17_000): ...        # resumes anywhere, with nothing to restore

batch(step) depends on the array, the constructor's arguments and the step alone. It depends neither on earlier reads
nor on the number of ranks: the rows of ranks 0, 1, ... concatenated are the global batch, the same for any world_size
that divides batch_size. flat_tokens/order/row_order.py states the rules of the order. Each epoch has a different
order. A step is in epoch step // steps_per_epoch.

Cost: raw tokens are gathered from the mapped files. Everything else is read through a shuffle buffer, which reads each
zarr chunk once and holds 48 Mi tokens by default, 192 MiB (flat_tokens/loading/row_buffer.py). A step that does not
follow the previous one is read alone, so the first batch after resuming is available at once. The second one waits
until the buffer is filled.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import choice, flag, integer, invalid, split
from flat_tokens.errors import ArgumentError
from flat_tokens.format import LARGEST_TOKEN_ID
from flat_tokens.loading.steps import MAX_BATCH_SIZE, ORDER_VERSION, StepBatches, check_streams
from flat_tokens.order.permutation import LARGEST_SEED
from flat_tokens.order.row_order import MIN_LANE_BLOCKS, Draws, RowOrder, TooFewRowsError, stream_count
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.batch import Batch
from flat_tokens.rows.reader import PackedRows, RowReader, RowSource
from flat_tokens.rows.sequence_rows import LONG_SEQUENCES, Losses, SequenceRows
from flat_tokens.sources import RowPart, parts_of_rows

MAX_BLOCK = 2**62  # tokens, more than any split has: its rows are counted in 64 bits
BLOCK_TOKENS = 2**16  # per block by default
WINDOW_TOKENS = 96 * 2**20  # in the windows of all lanes by default; on average half of them are in memory
ORDERED_TOKENS = 2**20  # read at a time if not shuffled
FINGERPRINT_TOKENS = 1024


class Loader(StepBatches):
    """Batches of rows of `seq_len` tokens, shuffled by `seed`.

    array: a split such as dataset.train, or PackedSequences of one. With packs, each pack is a row.
    seq_len: tokens per row, at least 1; for packs, their max_seq_len.
    batch_size: rows per global batch, over all ranks, at least 1.
    seed: integer in [0, 2^64) (default: 0).
    rank: rank of this process, in [0, world_size) (default: 0 of 1). A rank reads the rows [rank, rank + 1) *
        batch_size / world_size of each global batch. Pass rank and world_size together.
    world_size: number of ranks; a divisor of batch_size unless drop_last=False. Global batches do not depend on it.
    streams: number of independent shuffled streams; a divisor of batch_size (default: the largest one up to 64, fewer
        for small datasets). The order depends on it. Ranks that share a stream decode the same data.
    drop_last: True (default) omits tokens that fill no row and rows that fill no batch. False pads them, so that an
        epoch contains each token exactly once for any world_size. All batches then have the same shape.
    packed: True (default) cuts rows from the token stream at any offset. False puts one sequence into each row and
        pads. Ignored for packs.
    long_sequences: "split" (default) cuts long sequences into several rows, "truncate" drops their ends; for
        packed=False.
    padding_id: token ID of padding, in [0, max_token_id] (default: 0). Batch.lengths excludes padding. Targets and
        labels are -100 there.
    shuffle: False keeps the order of the dataset and uses one stream (default: True).
    block_tokens: tokens per block; blocks are read as a unit (default: 2^16; up to 2^23 for best-fit packs). Larger
        blocks give longer reads and less mixing. Use at least one zarr chunk.
    shuffle_blocks: blocks from which the rows of a batch are drawn (default: as many as hold 96 Mi tokens, 1,536 blocks
        of 2^16; about 1 Mi tokens without shuffle). Unless the dataset is raw, half of their tokens are in memory on
        average, 4 bytes per token, and 40 bytes per row.
    dtype: type of inputs and targets: int32 (default), int64, uint32, or uint16 if the IDs fit. Loss masks, packs,
        packed=False and drop_last=False need int32 or int64, since targets may be -100. flat_tokens.views.all_trained
        removes a loss mask.
    start_id: input before the first token of each sequence, in [0, 2^31) (default: 0).

    len(loader) is steps_per_epoch. Each pass over a Loader yields the batches of the next epoch, beginning with epoch
    0; epoch(e) yields any epoch. The state of a Loader is the step: from_step(step) resumes there. Loaders are
    picklable and thread-safe.

    Raise ArgumentError for values outside their ranges and for datasets that do not fill one batch. Reading raises
    DatasetError for damaged data.
    """

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
        self.array: FlatTokensArray = source
        self.seq_len = integer("seq_len", seq_len, 1)
        self.batch_size = integer("batch_size", batch_size, 1, MAX_BATCH_SIZE)
        self.drop_last = flag("drop_last", drop_last)
        packed, shuffle = flag("packed", packed), flag("shuffle", shuffle)
        self._set_ranks(rank, world_size, self.drop_last)
        self.may_pad = packs is not None or not packed or not drop_last
        self.start_id = integer("start_id", start_id, 0, LARGEST_TOKEN_ID)
        self.dtype = self._checked_dtype(dtype)
        padding_id = integer("padding_id", padding_id)
        if not 0 <= padding_id <= source.max_token_id:
            raise invalid("padding_id", f"must be in [0, max_token_id = {source.max_token_id}]", padding_id)
        long_sequences = choice("long_sequences", long_sequences, LONG_SEQUENCES)
        self._source: RowSource
        if packs is not None:
            packs.check_seq_len(self.seq_len)
            self._source = packs.rows
        elif packed:
            self._source = PackedRows(source, self.seq_len, not drop_last, padding_id)
        else:
            self._source = SequenceRows(source, self.seq_len, long_sequences, padding_id)
        row_count = self._source.row_count
        if not drop_last:
            row_count = -(-row_count // self.batch_size) * self.batch_size
        elif row_count < self.batch_size:
            raise TooFewRowsError(row_count, self.batch_size, source.token_count == 0)
        self.steps_per_epoch, self._left_out = divmod(row_count, self.batch_size)
        if isinstance(self._source, PackedRows) and not drop_last:
            is_full = row_count * self.seq_len == source.token_count
            self._source.is_padded = not is_full or self.batch_size % self.world_size != 0
        self.reader = RowReader(source.encoded_tokens, self._source, getattr(source, "loss_mask", None))

        block_rows = block_rows_of(array, self.seq_len, block_tokens)
        if shuffle_blocks is None:
            shuffle_blocks = default_shuffle_blocks(block_rows, self.seq_len, self.batch_size, shuffle)
        shuffle_blocks = integer("shuffle_blocks", shuffle_blocks, 1)
        if streams is None:
            limit = min(shuffle_blocks, row_count // (block_rows * MIN_LANE_BLOCKS))
            streams = stream_count(self.batch_size, limit)
        check_streams(streams, self.batch_size)
        streams = streams if shuffle else 1
        self._per_stream = self.batch_size // streams
        draws = self.steps_per_epoch * self._per_stream
        seed = integer("seed", seed, 0, LARGEST_SEED)
        self.order = RowOrder.create(row_count, draws, streams, block_rows, shuffle_blocks, seed, shuffle)
        self._fingerprint: int | None = None
        self._next_epoch = 0
        self._reset()

    @property
    def members(self) -> list[Loader]:  # type: ignore[override] # an attribute of Mixture
        """This Loader alone."""
        return [self]

    def __len__(self) -> int:
        return self.steps_per_epoch

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches of the next epoch: of epoch 0 in the first pass, of epoch 1 in the second and so on. A pass
        without a batch is no pass."""
        with self._lock:
            epoch, self._next_epoch = self._next_epoch, self._next_epoch + 1
        yield from self.epoch(epoch)

    def epoch(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch, at least 0; see `from_step`."""
        first = integer("epoch", epoch, 0) * self.steps_per_epoch
        return self.from_step(first, first + self.steps_per_epoch)

    def default_stop(self, step: int) -> int | None:
        """The end of the epoch if drop_last is False: padding belongs to an evaluation, which ends."""
        steps = self.steps_per_epoch
        return None if self.drop_last else (step // max(1, steps) + 1) * steps

    def __repr__(self) -> str:
        return (
            f"<Loader of {self.array.name}: {self.steps_per_epoch} steps per epoch, batches of "
            f"{self.batch_size} x {self.seq_len}, rank {self.rank} of {self.world_size}>"
        )

    def rows_of(self, step: int) -> npt.NDArray[np.int64]:
        """The rows of this rank in a batch, int64[rows]: numbers for `array.row`, of packs, or if not packed of
        sequences or their parts. Numbers from the count of rows on are rows of padding."""
        step = integer("step", step, 0)
        self._check_steps(step + 1)
        rows = self._draws(step, 1).rows()
        return np.append(rows, np.full(self.rows_per_batch - len(rows), self.order.row_count))

    def sources_of(self, step: int) -> list[list[RowPart]]:
        """The sequences in each row of this rank's batch of a step, and their sources (flat_tokens/sources.py).

        A row of padding has none. Raise DatasetError like `array.source_of`.
        """
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
            "start_id": self.start_id,
            "rows": order.row_count,
            "batch_size": self.batch_size,
            "seed": order.seed,
            "shuffle": order.shuffle,
            "streams": order.streams,
            "lanes": order.lanes,
            "block_rows": order.block_rows,
            "window_blocks": order.window_blocks,
            "order_version": ORDER_VERSION,
            "fingerprint": self.fingerprint,
        }

    @property
    def fingerprint(self) -> int:
        """A checksum of the first and last tokens, which distinguishes datasets of equal counts. Two reads, once."""
        if self._fingerprint is None:
            tokens, count = self.array.encoded_tokens, self.array.token_count
            ranges = ((0, min(FINGERPRINT_TOKENS, count)), (max(0, count - FINGERPRINT_TOKENS), count))
            found = 0
            for _, values in itertools.chain.from_iterable(tokens.blocks(*ends) for ends in ranges):
                found = zlib.crc32(values.astype("<u4").tobytes(), found)
            self._fingerprint = found
        return self._fingerprint

    def losses(self) -> Losses:
        """Count the tokens that are truncated, padded and left out. If not packed, one pass over seq_starts."""
        if isinstance(self._source, SequenceRows):
            return self._source.losses(self._left_out)
        rows, tokens = self._source.row_count, self.array.token_count
        if isinstance(self._source, PackedRows):
            used = min(tokens, rows * self.seq_len)
            return Losses(tokens, used, 0, tokens - used, rows * self.seq_len - used, rows, 0, self._left_out)
        raise ArgumentError("losses: not available for packs. Use PackedSequences.report.")

    def _draws(self, step: int, count: int) -> Draws:
        """See StepBatches."""
        streams, inside = np.divmod(np.arange(self._first_row, self._stop_row), self._per_stream)
        draws = (np.arange(step, step + count)[:, None] * self._per_stream + inside).reshape(-1)
        return Draws.of([self.order], np.zeros_like(draws), np.tile(streams, count), draws)

    def _check_steps(self, stop: int) -> None:
        """See StepBatches."""
        if not self.steps_per_epoch:
            raise ArgumentError(f"{self.array.name}: no batches, since the split has no rows")
        super()._check_steps(stop)


def block_rows_of(array: FlatTokensArray | PackedSequences, seq_len: int, block_tokens: int | None) -> int:
    """Rows per block. block_tokens: None for the default of the array."""
    if block_tokens is None:
        block_tokens = array.block_tokens if isinstance(array, PackedSequences) else BLOCK_TOKENS
    return max(1, min(integer("block_tokens", block_tokens, 1), MAX_BLOCK) // seq_len)


def default_shuffle_blocks(block_rows: int, seq_len: int, batch_size: int, shuffle: bool) -> int:
    """Blocks in the windows of all lanes by default."""
    window_tokens = WINDOW_TOKENS if shuffle else max(ORDERED_TOKENS, batch_size * seq_len)
    return max(1, window_tokens // (block_rows * seq_len))
