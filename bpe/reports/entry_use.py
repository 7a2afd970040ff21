"""Which entries a tokenizer can produce, and which it does produce on a text.

An entry is reached by merges if and only if its own bytes, encoded as one pretoken, become that entry: what happens
between two token borders depends on the bytes between them alone (proof in bpe/native/train/trainer.hpp). With a rank
file or `ignore_merges` it is also produced where it is a whole pretoken. All is measured on distinct pretokens,
weighted by their counts, so that it costs what the vocabulary of the text costs, not the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import UncoveredText
from bpe.pretoken_counts.count_sums import check_weighted
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import Arrays
from bpe.tokenizer import Tokenizer

_AT_ONCE: Final = 1 << 19  # pretokens: some 20 MB of ids
# No valid UTF-8 has these, so nothing but a foreign vocabulary could make their entries occur.
NEVER_IN_UTF8: Final = frozenset([0xC0, 0xC1, *range(0xF5, 0x100)])


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """How a text is encoded. by_id: uint64[highest id + 1], how often each entry is produced.

    tokens: uint32[distinct pretokens], of each. bytes_total, tokens_total: of all occurrences; special tokens are not
    among them.
    """

    by_id: NDArray[np.uint64]
    tokens: NDArray[np.uint32]
    bytes_total: int
    tokens_total: int

    @property
    def bytes_per_token(self) -> float:
        """0 for no text."""
        return self.bytes_total / self.tokens_total if self.tokens_total else 0.0


def measure_use(encoder: _core.TokenizerCore, counts: PretokenCounts, each_entry: bool = True) -> Use:
    """How the encoder encodes the counted text; every pretoken once. Cost: some 0.5 µs a distinct pretoken.

    each_entry False: `by_id` is left at zero, which saves half of that. BadCounts for a text of 2^63 bytes or more.
    """
    check_weighted(counts.ends, counts.counts)
    byte_lengths = _lengths_by_id(encoder)
    by_id = np.zeros(len(byte_lengths), np.uint64)
    tokens = np.zeros(len(counts), np.uint32)
    for first in range(0, len(counts), _AT_ONCE):
        text, ends, weights = _rows(counts.arrays, first, min(len(counts), first + _AT_ONCE))
        ids = encoder.encode_pretokens(text.data, ends).astype(np.int64)
        token_stops = np.searchsorted(np.cumsum(byte_lengths[ids]), ends, "right")
        each = np.diff(token_stops, prepend=0)
        tokens[first : first + len(ends)] = each
        if each_entry:
            np.add.at(by_id, ids, np.repeat(weights, each))
    lengths = np.diff(counts.ends, prepend=np.uint64(0))
    return Use(by_id, tokens, int((lengths * counts.counts).sum()), int((tokens * counts.counts).sum()))


def _rows(arrays: Arrays, first: int, stop: int) -> Arrays:
    text, ends, weights = arrays
    start_byte = int(ends[first - 1]) if first else 0
    return (
        text[start_byte : int(ends[stop - 1])],
        ends[first:stop] - np.uint64(start_byte),
        weights[first:stop],
    )


def _lengths_by_id(encoder: _core.TokenizerCore) -> NDArray[np.uint64]:
    lengths = np.zeros(encoder.max_id + 1, np.uint64)
    for id_, entry in encoder.entries().items():
        lengths[id_] = len(entry)
    return lengths


def unreachable_ids(tokenizer: Tokenizer) -> list[int]:
    """The ids of ordinary entries that no text makes the tokenizer produce, ascending."""
    entries = tokenizer.ordinary_entries
    merges = None if tokenizer.is_rank_file else tokenizer.merges
    encoder = (
        _core.TokenizerCore(entries, merges, {}, None, False)
        if tokenizer.ignore_merges
        else tokenizer.core_encoder
    )
    ends = np.cumsum([len(entry) for entry in entries.values()], dtype=np.uint64)
    counts = PretokenCounts(
        np.frombuffer(b"".join(entries.values()), np.uint8), ends, np.ones(len(ends), np.uint64)
    )
    alone = measure_use(encoder, counts).tokens == 1
    return [
        id_
        for (id_, entry), reached in zip(entries.items(), alone.tolist(), strict=True)
        if not (reached or (tokenizer.ignore_merges and is_one_pretoken(tokenizer, entry)))
    ]


def is_one_pretoken(tokenizer: Tokenizer, entry: bytes) -> bool:
    """Whether the pattern leaves the entry in one piece where it stands alone; what is no valid UTF-8 never stands."""
    try:
        text = entry.decode()
    except UnicodeDecodeError:
        return False
    try:
        return tokenizer.pretokenizer.pretokens(text) == [text]
    except UncoveredText:
        return False


def prefix_encoder(tokenizer: Tokenizer, vocab_size: int) -> _core.TokenizerCore:
    """The encoder of the bytes and the first merges, or the lowest ranks, up to so many entries without special tokens.

    vocab_size is at least 256; entries that no merge makes are left out.
    """
    entries = tokenizer.ordinary_entries
    if tokenizer.is_rank_file:
        singles = {id_: entry for id_, entry in entries.items() if len(entry) == 1}
        longer = [id_ for id_, entry in entries.items() if len(entry) > 1][: vocab_size - len(singles)]
        return _core.TokenizerCore(
            singles | {id_: entries[id_] for id_ in longer}, None, {}, None, tokenizer.ignore_merges
        )
    id_of = {entry: id_ for id_, entry in entries.items()}
    merges = tokenizer.merges
    kept = {id_: entry for id_, entry in entries.items() if len(entry) == 1}
    used = 0
    for left, right in merges:
        id_ = id_of[left + right]
        if id_ not in kept:
            if len(kept) >= vocab_size:
                break
            kept[id_] = left + right
        used += 1
    return _core.TokenizerCore(kept, merges[:used], {}, None, tokenizer.ignore_merges)
