"""The entries that a tokenizer can produce, and the entries that it produces on a text.

Merges can produce an entry if and only if its bytes, encoded as one pretoken, become that entry, because merging
between two token boundaries only depends on the bytes between them (proof in bpe/native/train/trainer.hpp). With a rank
file or `ignore_merges`, a pretoken with its bytes also becomes the entry.

Each distinct pretoken is encoded once and weighted by its count, so the cost depends on the number of distinct
pretokens, not on the length of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.errors import UncoveredText
from bpe.pretoken_counts.count_sums import check_weighted
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import Arrays
from bpe.reports.measuring_encoder import (
    MeasuringEncoder,
    merging_encoder,
    texts_of_entries,
)
from bpe.tokenizer import Tokenizer

_AT_ONCE: Final = 1 << 19  # pretokens, with about 20 MB of IDs
# Bytes that never occur in valid UTF-8.
NEVER_IN_UTF8: Final = frozenset([0xC0, 0xC1, *range(0xF5, 0x100)])


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """Statistics of an encoded text.

    by_id: uint64[highest ID + 1], occurrences of each entry.
    tokens: uint32[distinct pretokens], tokens of each.
    bytes_total, tokens_total: sums over all occurrences, without special tokens.
    """

    by_id: NDArray[np.uint64]
    tokens: NDArray[np.uint32]
    bytes_total: int
    tokens_total: int

    @property
    def bytes_per_token(self) -> float:
        """Bytes per token; 0 for an empty text."""
        return self.bytes_total / self.tokens_total if self.tokens_total else 0.0


def measure_use(encoder: MeasuringEncoder, counts: PretokenCounts, each_entry: bool = True) -> Use:
    """Encode each distinct pretoken once and return the statistics. Cost: about 0.5 µs per distinct pretoken.

    counts: result of `counts_for`.
    each_entry: False leaves `by_id` at zero, which halves the cost.
    Raise BadCounts for a text of 2^63 bytes or more.
    """
    check_weighted(counts.ends, counts.counts)
    by_id = np.zeros(encoder.id_stop, np.uint64)
    tokens = np.zeros(len(counts), np.uint32)
    for first in range(0, len(counts), _AT_ONCE):
        text, ends, weights = _rows(counts.arrays, first, min(len(counts), first + _AT_ONCE))
        ids, each = encoder.encode(text, ends)
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


def unreachable_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the IDs of the ordinary entries that no text can produce, ascending."""
    entries, texts = tokenizer.ordinary_entries, texts_of_entries(tokenizer)
    if tokenizer.text_rules is not None:
        # For byte entries, only ASCII shows whether the character has a separate entry.
        hidden = tokenizer.text_rules.made_of_unknown(tokenizer.merges)
        texts = {
            id_: text
            for id_, text in texts.items()
            if entries[id_] not in hidden or (text.isascii() and len(text) == 1)
        }
    encoder = merging_encoder(tokenizer)
    ends = np.cumsum([len(text) for text in texts.values()], dtype=np.uint64)
    ids, each = encoder.encode(np.frombuffer(b"".join(texts.values()), np.uint8), ends)
    first = ids[np.cumsum(each) - each]
    alone = (each == 1) & (first == np.fromiter(texts, np.int64, len(texts)))
    return [
        id_
        for id_, reached in zip(texts, alone.tolist(), strict=True)
        if not (reached or (tokenizer.ignore_merges and is_one_pretoken(tokenizer, entries[id_])))
    ]


def is_one_pretoken(tokenizer: Tokenizer, entry: bytes) -> bool:
    """Return whether the entry alone is one pretoken. False for invalid UTF-8."""
    try:
        text = entry.decode()
    except UnicodeDecodeError:
        return False
    try:
        return list(tokenizer.pretokenizer.iterate(text)) == [text.encode()]
    except UncoveredText:
        return False
