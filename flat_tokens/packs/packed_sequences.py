"""Packs of whole sequences, made as they are asked for.

The packs are planned from seq_starts when the object is made; tokens are read pack by pack, so nothing is held
but the plan: 8 bytes a pack, or for best-fit 6 bytes a sequence of the windows that were read, at most 256 MiB.
With the default arguments pack i is what torchtune's PackedDataset makes of the same sequences; what is different
is said in docs/reference/batches-and-packing.md.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, SupportsIndex

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import choice, flag, integer, invalid, split
from flat_tokens.errors import ArgumentError, RangeError
from flat_tokens.format import LARGEST_TOKEN_ID, Uint32
from flat_tokens.masks import mask_of, put_trained
from flat_tokens.packs.pack import Pack, PackBatch
from flat_tokens.packs.pack_rows import PackRows, layout_of
from flat_tokens.packs.packing_best_fit import BestFitPlan, default_window_seqs
from flat_tokens.packs.packing_greedy import GreedyPlan
from flat_tokens.packs.packing_order import BLOCK_TOKENS, shuffled_packs
from flat_tokens.packs.packing_plan import PackingReport, Pieces, Plan, Starts
from flat_tokens.packs.packing_split import SplitPlan
from flat_tokens.rows.permutation import LARGEST_SEED
from flat_tokens.rows.row_source import TokenRanges, put_pieces
from flat_tokens.storage.elements import Elements
from tokenmill.stores.system import cached_property

LONGEST_PACK = 2**31 - 1
LONGEST_BEST_FIT_PACK = 2**22  # a set of rooms is searched for every length; 512 KiB for the longest
STRATEGIES = ("greedy", "best-fit")
LOADER_BLOCK = 2**16  # tokens
LARGEST_LOADER_BLOCK = 2**23  # 32 MiB in memory


class Tokens(Protocol):
    """What is needed of encoded_tokens."""

    def read(self, start: int, stop: int, /) -> npt.NDArray[Any]: ...


class Source(Protocol):
    """What is packed: a FlatTokensArray, or anything that has these."""

    @property
    def name(self) -> str: ...
    @property
    def encoded_tokens(self) -> Tokens: ...
    @property
    def seq_starts(self) -> Starts: ...


class PackedSequences(Sequence[Pack]):
    """Whole sequences of one split, packed into rows of equal length: packed[i] is a Pack, i in [-len, len).

    array: a split such as dataset.train, or an object with name, encoded_tokens and seq_starts.
    max_seq_len: tokens per pack, in [1, 2^31); at most 2^22 for best-fit.
    padding_id: token ID of padding, in [0, 2^31) (default: 0).
    max_packs: upper limit on the number of packs, at least 1 (default: None for all).
    split_across_pack: True fills each pack and cuts the sequence that does not fit. False (default) keeps sequences
        whole; a sequence of more than max_seq_len tokens is an ArgumentError. With best-fit, True cuts only those.
    strategy: "greedy" (default) packs sequences in order, as torchtune does. "best-fit" packs the sequences of a window
        by length, which leaves less than 0.1 % padding.
    window_seqs: sequences per window of best-fit, in [1, 2^32] (default: 2^18, up to 2^20 for packs of more than 2,048
        tokens).
    restart_positions: True restarts input_pos at 0 in each part of a cut sequence. False (default) continues modulo
        max_seq_len, as torchtune does.
    ignore_first_labels: True sets the label of the first token of each sequence to -100, so that no token predicts the
        start of the next sequence (default: False).

    Cost: the constructor makes one pass over seq_starts (0.3 s for 10 million sequences), or none for greedy with
    split_across_pack. A pack is one read of the tokens; with best-fit, one read per sequence. Compressed zarr chunks
        are
    decoded once per pack. Packs are picklable and thread-safe.

    Raise ArgumentError for values outside their ranges and DatasetError for damaged data.
    """

    def __init__(
        self,
        array: Source,
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
        split("array", array, "encoded_tokens", "seq_starts")
        self.array = array
        self.max_seq_len = integer("max_seq_len", max_seq_len, 1, LONGEST_PACK)
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
        self._plan: Plan
        if strategy == "best-fit":
            window = self.window_seqs or default_window_seqs(self.max_seq_len)
            integer("max_seq_len of best-fit packs", max_seq_len, 1, LONGEST_BEST_FIT_PACK)
            self._plan = BestFitPlan(starts, self.max_seq_len, self.max_packs, window, split_across_pack)
        elif split_across_pack:
            self._plan = SplitPlan(starts, self.max_seq_len, self.max_packs)
        else:
            self._plan = GreedyPlan(starts, self.max_seq_len, self.max_packs)

    def __len__(self) -> int:
        return self._plan.pack_count

    def __getitem__(self, index: SupportsIndex) -> Pack:  # type: ignore[override] # a slice would read all of it
        return self.batch([index]).packs()[0]

    def __getitems__(self, indexes: Iterable[SupportsIndex]) -> list[Pack]:
        """Several packs, in the order asked for."""
        return self.batch(indexes).packs()

    def __iter__(self) -> Iterator[Pack]:
        return (self[index] for index in range(len(self)))

    def batch(self, indexes: Iterable[SupportsIndex]) -> PackBatch:
        """Several packs as the rows of one batch, in the order asked for; range(0, 64) are the first 64."""
        if not isinstance(indexes, Iterable):
            raise invalid("indexes", "must be a list of integers", indexes)
        packs = np.array([self._position(index) for index in indexes], dtype=np.int64)
        pieces = self._plan.pieces(packs)
        columns, lengths = layout_of(pieces)
        places = np.repeat(np.arange(len(packs)), pieces.counts)
        table = np.full((max(len(packs), 1), self.max_seq_len + 1), self.padding_id << 1, dtype=np.uint32)
        put_pieces(self._read(pieces), table, places, columns)
        self.rows.mark_starts(table, places, columns, pieces, f"{self.array.name}/encoded_tokens")
        skipped = None if self.restart_positions else self._plan.skipped(packs)
        mask, trained = mask_of(self.array), None
        if mask is not None:
            trained = np.empty((len(packs), self.max_seq_len), dtype=np.bool_)
            put_trained(mask, TokenRanges(places, columns - 1, pieces.starts, pieces.stops), trained)
        return PackBatch.of_table(table, lengths, skipped, self.ignore_first_labels, trained)

    def check_seq_len(self, seq_len: int) -> None:
        """Raise ArgumentError unless rows of seq_len tokens fit the packs."""
        if seq_len != self.max_seq_len:
            raise invalid("seq_len", f"must be the packs' max_seq_len = {self.max_seq_len}", seq_len)

    @property
    def rows(self) -> PackRows:
        """The packs as rows of a Loader."""
        return PackRows(self._plan, self.max_seq_len, self.padding_id, self.kind, not self.split_across_pack)

    @property
    def block_tokens(self) -> int:
        """Tokens that a Loader should keep neighbours: of packs that are planned together as much of a window as memory
        allows, since any of them may read from any zarr chunk of it."""
        if self.strategy != "best-fit":
            return LOADER_BLOCK
        most = int(np.diff(self._plan.window_bounds()).max(initial=0)) * self.max_seq_len
        return min(max(LOADER_BLOCK, most), LARGEST_LOADER_BLOCK)

    def shuffled(self, seed: int = 0, epoch: int = 0) -> npt.NDArray[np.int64]:
        """All packs in a shuffled order that is fast to read, int64[len(self)]: DataLoader's `sampler`, or indexes for
        `batch`. seed: in [0, 2^64); epoch: each has an order of its own.

        Blocks of 2^20 tokens, of best-fit packs at least a window, come in a random order, and their packs in a random
        order among themselves. In a fully random order a pack of compressed tokens costs the decoding of every zarr
        chunk that it has a sequence in."""
        seed, epoch = integer("seed", seed, 0, LARGEST_SEED), integer("epoch", epoch, 0)
        block_packs = -(-BLOCK_TOKENS // self.max_seq_len)
        return shuffled_packs(self._plan.window_bounds(), block_packs, seed, epoch)

    def __repr__(self) -> str:
        return f"PackedSequences({self.array!r}, {self.kind})"

    @property
    def kind(self) -> str:
        """What tells these packs from others of the same split."""
        extra = [f"strategy={self.strategy!r}"] if self.strategy != "greedy" else []
        extra += [f"window_seqs={self.window_seqs}"] if self.window_seqs is not None else []
        extra += ["split_across_pack=True"] if self.split_across_pack else []
        extra += [f"max_packs={self.max_packs}"] if self.max_packs is not None else []
        return ", ".join([f"max_seq_len={self.max_seq_len}", *extra])

    @cached_property
    def report(self) -> PackingReport:
        """How many tokens and sequences are used, split, lost and padded. print(packed.report) is one line."""
        return self._plan.report()

    def _position(self, index: SupportsIndex) -> int:
        try:
            position = operator.index(index)
        except TypeError:
            fix = "Use batch(range(...)) for several packs."
            raise invalid("index of a pack", "must be an integer", index, fix) from None
        count = len(self)
        if not -count <= position < count:
            raise RangeError(
                f"{self.array.name}: index of a pack must be in [{-count}, {count}) (got {position})"
            )
        return position % count

    def _read(self, pieces: Pieces) -> Iterator[tuple[int, int, Uint32]]:
        """The ranges one after the other, as put_pieces takes them."""
        tokens = self.array.encoded_tokens
        ranges = list(zip(pieces.starts.tolist(), pieces.stops.tolist(), strict=True))
        if isinstance(tokens, Elements):
            found: Iterable[Uint32] = tokens.read_ranges(ranges)
        else:
            found = (tokens.read(start, stop) for start, stop in ranges)
        return ((i, 0, encoded) for i, encoded in enumerate(found))
