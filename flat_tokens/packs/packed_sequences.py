"""Packs of whole sequences, read on demand.

The constructor plans the packs from seq_starts; tokens are read pack by pack. With the default arguments, pack i equals
pack i of torchtune's PackedDataset (docs/reference/batches-and-packing.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import choice, flag, integer, invalid, split
from flat_tokens.errors import ArgumentError
from flat_tokens.format import LARGEST_TOKEN_ID, Bools, Int32, Int64
from flat_tokens.order.permutation import LARGEST_SEED, derive_key, permute
from flat_tokens.packs.best_fit import BestFitPlan, default_window_seqs
from flat_tokens.packs.in_order import GreedyPlan, SplitPlan
from flat_tokens.packs.plan import PackingReport, Plan
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows import segments
from flat_tokens.rows.batch import IGNORED_LABEL, Batch
from flat_tokens.rows.reader import IndexedRows
from tokenmill.stores.system import cached_property

MAX_PACK = 2**31 - 1
MAX_BEST_FIT_PACK = 2**22
STRATEGIES = ("greedy", "best-fit")
SHUFFLED_TOKENS = 2**20  # per block of `shuffled`
LOADER_BLOCK = 2**16  # tokens
MAX_LOADER_BLOCK = 2**23  # tokens
FIELDS = ("tokens", "labels", "input_pos", "seq_lens")  # of torchtune
BLOCKS, PACKS = 6, 7  # parts of keys


@dataclass(frozen=True)
class Pack:
    """A pack: whole sequences in a row of fixed length. Read it by attribute or by key.

    dict(pack) has torchtune's four fields. Labels are not shifted; the model shifts.

    tokens: int32[max_seq_len], padding_id at padding.
    labels: int32[max_seq_len], the tokens, -100 where no loss is computed.
    input_pos: int32[max_seq_len], the position in the sequence. Padding continues it, up to max_seq_len - 1.
    seq_lens: int32[segments], tokens of each sequence or part of one, then of the padding; their sum is max_seq_len.
    token_count: tokens before the padding.
    """

    tokens: Int32
    labels: Int32
    input_pos: Int32
    seq_lens: Int32
    token_count: int

    def __getitem__(self, field: str) -> Int32:
        if field not in FIELDS:
            raise KeyError(f"fields of a pack are {', '.join(FIELDS)} (got {field!r})")
        value: Int32 = getattr(self, field)
        return value

    def keys(self) -> tuple[str, ...]:
        """("tokens", "labels", "input_pos", "seq_lens")."""
        return FIELDS

    def __iter__(self) -> Iterator[str]:
        return iter(FIELDS)

    def __len__(self) -> int:
        return len(FIELDS)

    @property
    def cu_seqlens(self) -> Int32:
        """Bounds of the segments: int32[segments + 1]. seq_lens [3, 2, 1] -> [0, 3, 5, 6]."""
        found: Int32 = np.cumsum([0, *self.seq_lens], dtype=np.int32)
        return found

    @property
    def max_seqlen(self) -> int:
        """Tokens of the longest segment."""
        return int(self.seq_lens.max())

    @property
    def segment_ids(self) -> Int32:
        """1 for the tokens of the first sequence, 2 for the second and so on, 0 at padding: int32[max_seq_len]."""
        lengths = np.array([self.token_count], dtype=np.int32)
        found: Int32 = segments.segment_ids(self.cu_seqlens, len(self.tokens), lengths)[0]
        return found

    def mask(self) -> Bools:
        """The causal attention mask within each sequence, bool[max_seq_len, max_seq_len]."""
        return segments.block_causal_mask(self.segment_ids)


class PackedSequences(Sequence[Pack]):
    """Whole sequences of one split, packed into rows of equal length: packed[i] is a Pack, i in [-len, len).

    array: a split such as dataset.train.
    max_seq_len: tokens per pack, in [1, 2^31); at most 2^22 for best-fit.
    padding_id: token ID of padding, in [0, 2^31) (default: 0).
    max_packs: upper limit on the number of packs, at least 1 (default: None for all).
    split_across_pack: True fills each pack and cuts the sequence that does not fit. False (default) keeps sequences
        whole; a sequence of more than max_seq_len tokens is an ArgumentError. With best-fit, True cuts only those.
    strategy: "greedy" (default) packs sequences in order, as torchtune does. "best-fit" packs the sequences of a window
        by length, which leaves less than 0.1 % padding.
    window_seqs: sequences per window of best-fit, in [1, 2^32] (default: 2^18, up to 2^20 for packs of more than 2,048
        tokens).
    restart_positions: True restarts input_pos of a Pack at 0 in each part of a cut sequence. False (default) continues
        modulo max_seq_len, as torchtune does. Batches always restart positions.
    ignore_first_labels: True sets the label of the first token of each sequence in a Pack to -100, so that no token
        predicts the start of the next sequence (default: False).

    Cost: the constructor makes one pass over seq_starts, or none for greedy with split_across_pack. A pack is one read
    of the tokens; with best-fit, one read per sequence. Compressed zarr chunks are decoded once per call. Packs are
    picklable and thread-safe.

    Raise ArgumentError for values outside their ranges and DatasetError for damaged data.
    """

    def __init__(
        self,
        array: FlatTokensArray,
        max_seq_len: int,
        padding_id: int = 0,
        max_packs: int | None = None,
        split_across_pack: bool = False,
        *,
        strategy: str = "greedy",
        window_seqs: int | None = None,
        restart_positions: bool = False,
        ignore_first_labels: bool = False,
    ) -> None:
        split("array", array, "encoded_tokens", "seq_starts", "max_token_id")
        self.array = array
        self.max_seq_len = integer("max_seq_len", max_seq_len, 1, MAX_PACK)
        self.padding_id = integer("padding_id", padding_id, 0, LARGEST_TOKEN_ID)
        self.max_packs = None if max_packs is None else integer("max_packs", max_packs, 1, 2**63 - 1)
        self.split_across_pack = flag("split_across_pack", split_across_pack)
        self.strategy = choice("strategy", strategy, STRATEGIES)
        self.restart_positions = flag("restart_positions", restart_positions)
        self.ignore_first_labels = flag("ignore_first_labels", ignore_first_labels)
        if window_seqs is not None and strategy != "best-fit":
            raise ArgumentError('window_seqs: requires strategy="best-fit"')
        self.window_seqs = None if window_seqs is None else integer("window_seqs", window_seqs, 1, 2**32)
        starts = array.seq_starts
        self.rows: Plan
        if strategy == "best-fit":
            window = self.window_seqs or default_window_seqs(self.max_seq_len)
            integer("max_seq_len of best-fit packs", max_seq_len, 1, MAX_BEST_FIT_PACK)
            self.rows = BestFitPlan(starts, self.max_seq_len, self.max_packs, window, split_across_pack)
        elif split_across_pack:
            self.rows = SplitPlan(starts, self.max_seq_len, self.max_packs)
        else:
            self.rows = GreedyPlan(starts, self.max_seq_len, self.max_packs)
        self.rows.padding_id = self.padding_id
        self.rows.kind = f"{self.kind}, padded with {self.padding_id}"
        self._rows = IndexedRows(array, self.rows, noun="pack")

    def __len__(self) -> int:
        return self.rows.row_count

    def __getitem__(self, index: SupportsIndex) -> Pack:  # type: ignore[override] # a slice would read all of it
        return self.__getitems__([index])[0]

    def __getitems__(self, indexes: Iterable[SupportsIndex]) -> list[Pack]:
        """Several packs, in the given order."""
        indexes = list(indexes)
        if not indexes:
            return []
        batch = self.batch(indexes)
        assert batch.lengths is not None
        labels = batch.targets.copy()
        if self.ignore_first_labels:
            labels[batch.is_seq_start] = IGNORED_LABEL
        ends = np.arange(1, len(batch)) * self.max_seq_len
        seq_lens = np.split(np.diff(batch.cu_seqlens), np.searchsorted(batch.cu_seqlens, ends))
        positions = batch.positions
        if isinstance(self.rows, SplitPlan) and not self.restart_positions:
            skipped = self.rows.skipped(np.array(indexes, dtype=np.int64) % max(1, len(self)))
            for row in np.flatnonzero(skipped).tolist():
                _continue_positions(positions[row], skipped[row], seq_lens[row][0], batch.lengths[row])
        fields = zip(batch.ids, labels, positions, seq_lens, batch.lengths.tolist(), strict=True)
        return [Pack(*each) for each in fields]

    def __iter__(self) -> Iterator[Pack]:
        return (self[index] for index in range(len(self)))

    def batch(self, indexes: Iterable[SupportsIndex]) -> Batch:
        """Several packs as the rows of one batch, in the given order; range(0, 64) are the first 64."""
        return self._rows.batch(indexes)

    def check_seq_len(self, seq_len: int) -> None:
        """Raise ArgumentError unless rows of seq_len tokens fit the packs."""
        if seq_len != self.max_seq_len:
            raise invalid("seq_len", f"must be the packs' max_seq_len = {self.max_seq_len}", seq_len)

    @property
    def block_tokens(self) -> int:
        """Tokens per block of a Loader. Packs of one window may read any zarr chunk of it, so they stay together as far
        as memory allows."""
        if self.strategy != "best-fit":
            return LOADER_BLOCK
        largest = int(np.diff(self.rows.window_bounds()).max(initial=0)) * self.max_seq_len
        return min(max(LOADER_BLOCK, largest), MAX_LOADER_BLOCK)

    def shuffled(self, seed: int = 0, epoch: int = 0) -> npt.NDArray[np.int64]:
        """All packs in a shuffled order that is fast to read, int64[len(self)]: a `sampler` for DataLoader.

        seed: in [0, 2^64). epoch: at least 0; each has a different order.

        Blocks are in a random order, and each block has its packs in a random order. A block has 2^20 tokens, for
        best-fit packs at least a window. In a fully random order, each pack would decode every zarr chunk that one of
        its sequences is in.
        """
        seed, epoch = integer("seed", seed, 0, LARGEST_SEED), integer("epoch", epoch, 0)
        return shuffled_packs(self.rows.window_bounds(), -(-SHUFFLED_TOKENS // self.max_seq_len), seed, epoch)

    def __repr__(self) -> str:
        return f"PackedSequences({self.array!r}, {self.kind})"

    @property
    def kind(self) -> str:
        """The arguments that determine the packs."""
        extra = [f"strategy={self.strategy!r}"] if self.strategy != "greedy" else []
        extra += [f"window_seqs={self.window_seqs}"] if self.window_seqs is not None else []
        extra += ["split_across_pack=True"] if self.split_across_pack else []
        extra += [f"max_packs={self.max_packs}"] if self.max_packs is not None else []
        return ", ".join([f"max_seq_len={self.max_seq_len}", *extra])

    @cached_property
    def report(self) -> PackingReport:
        """Counts of the tokens and sequences that are used, split, lost and padded. str(packed.report) is one line."""
        return self.rows.report()


def shuffled_packs(window_bounds: Int64, block_packs: int, seed: int, epoch: int) -> Int64:
    """All packs in the order of PackedSequences.shuffled: int64[packs].

    Windows that begin within the same block_packs packs are a block. derive_key(seed, 6, epoch) permutes the blocks,
    and derive_key(seed, 7, epoch) the packs of each.
    """
    pack_count = int(window_bounds[-1])
    if not pack_count:
        return np.zeros(0, np.int64)
    different, blocks = np.unique(window_bounds[:-1] // block_packs, return_inverse=True)
    turns = permute(blocks, len(different), derive_key(seed, BLOCKS, epoch))
    places = permute(np.arange(pack_count), pack_count, derive_key(seed, PACKS, epoch))
    return np.lexsort((places, np.repeat(turns, np.diff(window_bounds))))


def _continue_positions(positions: Int32, skipped: int, head: int, count: int) -> None:
    """Let the positions of a pack continue its first sequence.

    skipped: tokens of the sequence in earlier packs.
    head: tokens of the sequence in this pack.
    count: tokens of the pack before the padding.
    """
    length = len(positions)
    positions[:head] = (positions[:head] + skipped % length) % length
    if head == count:  # padding continues from there
        positions[head:] = np.minimum(positions[head - 1] + 1 + np.arange(length - head), length - 1)
