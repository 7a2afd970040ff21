"""A training that goes on from a tokenizer: all it has stays as it is, and new entries come behind.

Pretokens begin as the tokenizer encodes them. Each new merge joins what its merges leave and comes behind them in rank,
so a text is encoded by the old merges first, and by the new ones where they apply after these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.added_tokens import AddedToken
from bpe.errors import BadArgument, shown
from bpe.formats.byte_alphabet import to_bytes
from bpe.like import TextRule
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.memory import check_room
from bpe.tokenizer import Tokenizer
from bpe.training_start import Pretokens, merges_of, with_products
from bpe.vocabulary import make_vocabulary
from stores.system import cached_property

if TYPE_CHECKING:
    from bpe.pretoken_counts.memory import MemoryBudget


@dataclass(frozen=True)
class FromTokenizer:
    """A tokenizer with merges. more_special_tokens: those that it does not have yet."""

    old: Tokenizer
    more_special_tokens: tuple[str, ...] = ()
    reserved_end: bytes = b""
    note: str = ""

    def __post_init__(self) -> None:
        if self.old.is_rank_file:
            raise BadArgument(
                "continue_from: a rank file has no list of merges: any pair whose bytes are an entry merges, so that "
                "new entries would change which old ones are made; save it as a tokenizer.json, which lists its "
                "merges (Tokenizer.save), and continue that"
            )
        for text in self.more_special_tokens:
            if self.old.token_to_id(text.encode()) is not None:
                raise BadArgument(
                    f"special token {shown(text)} is an entry of the tokenizer already; use another"
                )

    @property
    def rule(self) -> TextRule:
        """How its text is prepared."""
        return TextRule.of(self.old)

    @property
    def size(self) -> int:
        """All that it has, and the special tokens that are added."""
        return self.old.vocab_size + len(self.more_special_tokens)

    @cached_property
    def _old_ids(self) -> list[int]:
        return sorted(self.old.ordinary_entries)

    @cached_property
    def entries(self) -> Sequence[bytes]:
        """The ordinary ones, by id."""
        ordinary = self.old.ordinary_entries
        return [ordinary[id_] for id_ in self._old_ids]

    @property
    def reserved(self) -> Sequence[bytes]:
        """Special tokens, and the texts that the byte alphabet spells as these: files hold both by their spelling."""
        texts = [*self.old.special_tokens, *self.more_special_tokens]
        spelled = [entry for text in texts if (entry := to_bytes(text)) is not None]
        return [*(text.encode() for text in texts), *spelled]

    def pretokens(self, counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """As the tokenizer encodes them."""
        if budget is not None:  # an id a byte at most; encoding a block takes more beside
            needed = 4 * counts.pretoken_bytes.nbytes + 8 * len(counts) + 16 * counts.largest_block_bytes()
            check_room(needed, "encoding the pretokens", budget)
        # An encoder of its own: each pretoken comes once, so a large cache would only take memory.
        image = self.old.core_encoder.image()
        encoder = _core.TokenizerCore.from_image(image, {}, None, self.old.ignore_merges, cache_bytes=1 << 20)
        lengths = self.old.entry_lengths.astype(np.uint64)
        place_of = np.zeros(len(lengths), np.uint32)
        place_of[self._old_ids] = np.arange(len(self._old_ids), dtype=np.uint32)
        ids = np.empty(len(counts.pretoken_bytes), np.uint32)  # what is not written takes no memory
        ends = np.empty(len(counts), np.uint64)
        id_count = end_count = 0
        for text, byte_ends, _ in counts.blocks():
            tokens = encoder.encode_pretokens(text.data, byte_ends)
            token_ends: Any = len(tokens)
            if len(byte_ends) > 1:  # else it may be long
                token_ends = np.searchsorted(np.cumsum(lengths[tokens]), byte_ends) + 1
            ends[end_count : end_count + len(byte_ends)] = token_ends + id_count
            ids[id_count : id_count + len(tokens)] = place_of[tokens]
            id_count += len(tokens)
            end_count += len(byte_ends)
        return ids[:id_count], ends, counts.counts

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """The old one with more entries; what else it has, such as its post-processor, is kept."""
        old = self.old
        if budget is not None:
            check_room(500 * (old.vocab_size + len(pairs)), "the vocabulary", budget)
        entries = with_products(list(self.entries), pairs)
        next_id = old.max_token_id + 1
        added = [AddedToken(text, id_) for id_, text in enumerate(self.more_special_tokens, next_id)]
        next_id += len(added)
        vocab = dict(old.vocab) | {token.id: token.text.encode() for token in added}
        vocab |= dict(enumerate(entries[len(self.entries) :], next_id))
        vocabulary = make_vocabulary(
            vocab,
            [*old.merges, *merges_of(entries, pairs)],
            old.special_tokens | {token.text: token.id for token in added},
            old.ignore_merges,
        )
        added_tokens = (*old.added_tokens, *added)
        return Tokenizer.from_parts(replace(old.parts, vocabulary=vocabulary, added_tokens=added_tokens))
