"""Encoders for the measurements of a report, with all merges or the first ones, and their entries and pretokens.

If entries are text (`TextRules`), pretokens of the core may have spaces for U+2581, and an entry such as <0x0A>
represents one byte. An unknown token can represent any text, so token lengths do not give the boundaries of pretokens.
Such pretokens are encoded as separate texts, by an encoder without pre-tokenization.

Merges can produce an entry if and only if its bytes, encoded as one pretoken, become that entry, because merging
between two token boundaries only depends on the bytes between them (proof in bpe/native/train/trainer.hpp). With a rank
file or `ignore_merges`, a pretoken with its bytes also becomes the entry. Each distinct pretoken is encoded once and
weighted by its count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import UncoveredText, UnsupportedTokenizer
from bpe.pretoken_counts.count_sums import check_weighted
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.counts_facts import Arrays
from bpe.pretokenization.compiled import compiled_of
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import BYTE_ENTRIES, TextRules, exchange_spaces


@dataclass(frozen=True, eq=False)
class MeasuringEncoder:
    """core: entries and merges.
    is_text: whether entries are text.
    id_stop: exclusive upper bound of the IDs.
    byte_lengths: uint64[id_stop], lengths of byte entries.
    """

    core: _core.TokenizerCore
    is_text: bool
    id_stop: int
    byte_lengths: NDArray[np.uint64]

    def encode(
        self, text: NDArray[np.uint8], ends: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the IDs of concatenated pretokens, and the number of IDs of each."""
        if self.is_text:
            offsets = np.concatenate([np.zeros(1, np.uint64), ends])
            tokens, rows = self.core.encode_ragged(text.data, offsets, 1, special=False)
            starts = rows.astype(np.int64)
            return tokens.astype(np.int64), starts[1:] - starts[:-1]
        ids = self.core.encode_pretokens(text.data, ends).astype(np.int64)
        token_stops = np.searchsorted(np.cumsum(self.byte_lengths[ids]), ends, "right")
        return ids, token_stops - np.concatenate([np.zeros(1, np.int64), token_stops[:-1]])


def is_measurable(rules: TextRules | None) -> bool:
    """Return whether the text of an entry does not depend on its position in a pretoken."""
    return rules is None or not (
        rules.byte_level or rules.end_of_word_suffix or rules.continuing_subword_prefix
    )


def check_measurable(rules: TextRules | None) -> None:
    """Raise UnsupportedTokenizer if a report cannot measure such a vocabulary."""
    if not is_measurable(rules):
        raise UnsupportedTokenizer(
            "end_of_word_suffix or continuing_subword_prefix: not supported by reports. Run info to see the entries."
        )


def whole_encoder(tokenizer: Tokenizer) -> MeasuringEncoder:
    """Return the encoder with all merges."""
    if tokenizer.text_rules is None:
        return _of_bytes(tokenizer.core_encoder)
    return _encoder(tokenizer, tokenizer.ordinary_entries, tokenizer.merges, tokenizer.ignore_merges)


def merging_encoder(tokenizer: Tokenizer) -> MeasuringEncoder:
    """Return the encoder with all merges that emits a pretoken as an entry only if merges produce it."""
    if not tokenizer.ignore_merges:
        return whole_encoder(tokenizer)
    merges = None if tokenizer.is_rank_file else tokenizer.merges
    return _encoder(tokenizer, tokenizer.ordinary_entries, merges, False)


def prefix_encoder(tokenizer: Tokenizer, vocab_size: int) -> MeasuringEncoder:
    """Return the encoder with the initial entries and the first merges, or lowest ranks, up to `vocab_size` entries.

    vocab_size: at least `first_size`, without special tokens.
    In a byte-level vocabulary, entries that no merge produces are left out.
    """
    entries = tokenizer.ordinary_entries
    kept = _first_entries(tokenizer)
    if tokenizer.is_rank_file:
        longer = [id_ for id_, entry in entries.items() if len(entry) > 1][: vocab_size - len(kept)]
        kept |= {id_: entries[id_] for id_ in longer}
        return _encoder(tokenizer, kept, None, tokenizer.ignore_merges)
    id_of = {entry: id_ for id_, entry in entries.items()}
    merges = tokenizer.merges
    used = 0
    for left, right in merges:
        id_ = id_of[left + right]
        if id_ not in kept:
            if len(kept) >= vocab_size:
                break
            kept[id_] = left + right
        used += 1
    # Merges of a SentencePiece model or a former rank file are ordered by their products. They may use later products.
    there = set(kept.values())
    possible = [pair for pair in merges[:used] if pair[0] in there and pair[1] in there]
    return _encoder(tokenizer, kept, possible, tokenizer.ignore_merges)


def first_size(tokenizer: Tokenizer) -> int:
    """Return the number of entries before the first merge, without special tokens."""
    return len(_first_entries(tokenizer))


def _first_entries(tokenizer: Tokenizer) -> dict[int, bytes]:
    entries = tokenizer.ordinary_entries
    if tokenizer.text_rules is None:
        return {id_: entry for id_, entry in entries.items() if len(entry) == 1}
    made = {left + right for left, right in tokenizer.merges}
    return {id_: entry for id_, entry in entries.items() if entry not in made}


def _of_bytes(core: _core.TokenizerCore) -> MeasuringEncoder:
    return MeasuringEncoder(core, False, core.max_id + 1, core.entry_lengths().astype(np.uint64))


def _encoder(
    tokenizer: Tokenizer,
    entries: dict[int, bytes],
    merges: list[tuple[bytes, bytes]] | None,
    ignore_merges: bool,
) -> MeasuringEncoder:
    file, rules = _core.EntryFile.from_entries(entries, merges), tokenizer.text_rules
    if rules is None:
        return _of_bytes(file.encoder({}, None, ignore_merges))
    text_rules = rules.for_core(tokenizer.parts.vocabulary.unk_id, tokenizer.core_encoder.has_spaces)
    core = file.encoder({}, compiled_of(()).automaton, ignore_merges, text_rules)
    return MeasuringEncoder(core, True, tokenizer.max_token_id + 1, np.empty(0, np.uint64))


# -- entries and pretokens of an encoder -------------------------------------------------------------------------


def texts_of_entries(tokenizer: Tokenizer) -> dict[int, bytes]:
    """Return ID -> bytes of text that an ordinary entry represents: a space for U+2581, the byte for <0x0A>."""
    entries, rules = tokenizer.ordinary_entries, tokenizer.text_rules
    if not TextRules.of_text(rules):
        return entries
    exchanged = tokenizer.core_encoder.has_spaces
    return {
        id_: bytes([BYTE_ENTRIES[entry]])
        if rules.byte_fallback and entry in BYTE_ENTRIES
        else (exchange_spaces(entry) if exchanged else entry)
        for id_, entry in entries.items()
    }


def counts_for(tokenizer: Tokenizer, counts: PretokenCounts) -> PretokenCounts:
    """Return the counts for the encoder. Whole texts, of a tokenizer without cuts, are split where no merge joins."""
    core = tokenizer.core_encoder
    automaton = core.automaton if core.leaves_whole else None
    if tokenizer.text_rules is None or (automaton is None and not core.has_spaces):
        return counts
    counter = _core.PretokenCounter(None)
    for pretoken, weight in counts.as_dict().items():
        text = exchange_spaces(pretoken) if core.has_spaces else pretoken
        starts = np.zeros(1, np.uint64) if automaton is None else _core.pieces(automaton, text)[0]
        ends = np.append(starts[1:], np.uint64(len(text)))
        counter.add(text, ends, np.full(len(ends), weight, np.uint64))
    return PretokenCounts(*counter.drain(), counts.facts)


# -- the entries that a text uses --------------------------------------------------------------------------------------


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
