"""Training that continues from a tokenizer: its entries keep their IDs, and new entries are appended.

The tokenizer encodes each pretoken before training. New merges rank after all old merges, so encoding applies the old
merges first.

If entries are text, characters without an entry become unknown tokens or bytes. No merge joins these, so pretokens are
cut there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.added_tokens import AddedToken
from bpe.errors import BadArgument, shown
from bpe.formats.byte_alphabet import to_bytes
from bpe.like import TextRule
from bpe.parts import make_parts
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.memory import check_room
from bpe.tokenizer import Tokenizer
from bpe.training_start import Pretokens, merges_of, with_products
from bpe.vocabulary import BYTE_ENTRIES, TextRules
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    from bpe.pretoken_counts.memory import MemoryBudget


@dataclass(frozen=True)
class FromTokenizer:
    """A start from a tokenizer with merges. more_special_tokens: special tokens that it lacks."""

    old: Tokenizer
    more_special_tokens: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.old.is_rank_file:
            raise BadArgument(
                "continue_from: a rank file has no list of merges, which continued training needs. Save "
                "the tokenizer as tokenizer.json (Tokenizer.save), and continue from that file."
            )
        for text in self.more_special_tokens:
            if self.old.token_to_id(text.encode()) is not None:
                raise BadArgument(
                    f"special_tokens: already an entry of the tokenizer (got {shown(text)}). Choose another."
                )

    @property
    def rule(self) -> TextRule:
        """The normalizer and pre-tokenizer of the tokenizer."""
        return TextRule.of(self.old)

    @property
    def size(self) -> int:
        """The number of its entries and of the added special tokens."""
        return self.old.vocab_size + len(self.more_special_tokens)

    @cached_property
    def _old_ids(self) -> list[int]:
        return sorted(self.old.ordinary_entries)

    @cached_property
    def entries(self) -> Sequence[bytes]:
        """The ordinary entries, by ID."""
        ordinary = self.old.ordinary_entries
        return [ordinary[id_] for id_ in self._old_ids]

    @property
    def reserved(self) -> Sequence[bytes]:
        """Special tokens, and entries that the byte alphabet spells like them, since files store the spelling.

        With byte fallback, also the byte entries that the tokenizer lacks.
        """
        texts = [*self.old.special_tokens, *self.more_special_tokens]
        rules = self.old.text_rules
        if TextRules.of_text(rules):
            return [*(text.encode() for text in texts), *(BYTE_ENTRIES if rules.byte_fallback else ())]
        spelled = [entry for text in texts if (entry := to_bytes(text)) is not None]
        return [*(text.encode() for text in texts), *spelled]

    def pretokens(self, counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """Encode the pretokens with the tokenizer."""
        if budget is not None:  # at most one ID per byte, and buffers to encode a block
            needed = 4 * counts.pretoken_bytes.nbytes + 32 * len(counts) + 16 * counts.largest_block_bytes()
            check_room(needed, "encoding the pretokens", budget)
        old = self.old
        # Each pretoken occurs once, so this encoder has a small cache.
        rules = old.text_rules
        encoder = _core.TokenizerCore(
            dict(old.ordinary_entries),
            old.merges,
            {},
            None,
            old.ignore_merges,
            None if rules is None else rules.for_core(rules.unk_id(old.vocab)),
            cache_bytes=1 << 20,
        )
        place_of = np.full(old.max_token_id + 1, -1, np.int64)
        place_of[self._old_ids] = np.arange(len(self._old_ids))
        place_of[list(self._unknown)] = -1
        ids = np.empty(len(counts.pretoken_bytes), np.uint32)  # untouched pages take no memory
        ends: list[NDArray[np.uint64]] = [counts.ends[:0]]
        weights = [counts.counts[:0]]
        id_count = 0
        for text, byte_ends, counted in counts.blocks():
            tokens, rows = encoder.encode_pretoken_rows(text.data, byte_ends)
            places, stops = place_of[tokens], rows[1:]
            cuts = np.flatnonzero(places < 0).astype(np.uint64)
            if len(cuts):  # a pretoken also ends before each cut, and cuts are dropped
                counted = np.concatenate([counted, counted[np.searchsorted(stops, cuts, "right")]])
                stops = np.concatenate([stops, cuts])
                order = np.argsort(stops, kind="stable")
                counted, stops = counted[order], stops[order]
                stops -= np.searchsorted(cuts, stops, "left").astype(np.uint64)
                places = places[places >= 0]
            ends.append(stops + np.uint64(id_count))
            weights.append(counted)
            ids[id_count : id_count + len(places)] = places
            id_count += len(places)
        return ids[:id_count], np.concatenate(ends), np.concatenate(weights)

    @cached_property
    def _unknown(self) -> set[int]:
        """The IDs that new merges never join."""
        rules = self.old.text_rules
        if rules is None:
            return set()
        unknown = rules.made_of_unknown(self.old.merges)
        return {id_ for id_, entry in self.old.vocab.items() if entry in unknown}

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """Return the old tokenizer with more entries. Other components, such as its post-processor, are kept."""
        old = self.old
        if budget is not None:
            check_room(500 * (old.vocab_size + len(pairs)), "the vocabulary", budget)
        entries = with_products(list(self.entries), pairs, old.text_rules)
        next_id = old.max_token_id + 1
        added = [AddedToken(text, id_) for id_, text in enumerate(self.more_special_tokens, next_id)]
        next_id += len(added)
        vocab = dict(old.vocab) | {token.id: token.text.encode() for token in added}
        vocab |= dict(enumerate(entries[len(self.entries) :], next_id))
        parts = make_parts(
            vocab,
            [*old.merges, *merges_of(entries, pairs)],
            [*old.added_tokens, *added],
            old.pretokenizer,
            ignore_merges=old.ignore_merges,
            normalizer=old.normalizer,
            post_processor=old.post_processor,
            text_rules=old.text_rules,
            decoder=old.decoder,
        )
        return Tokenizer.from_parts(replace(parts, truncation=old.truncation, padding=old.padding))
