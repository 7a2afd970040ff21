"""A training whose entries are text: it starts from the characters of the text, as Hugging Face's BpeTrainer does.

Ids are the special tokens, with byte fallback the entries of the 256 bytes (`<0x00>` to `<0xFF>`), the characters by
code point, the merges. Merges and ids are those of BpeTrainer with the same normalizer and pre-tokenizer and those
tokens first; over a limit the rarest characters are left out of the pretokens, and what stood around them are
neighbours. One rule is another: BpeTrainer gives text that spells a special token or a byte, such as "<0x41>", its id;
here no merge makes that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import BadArgument
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.memory import check_room
from bpe.tokenizer import Tokenizer
from bpe.training_start import Pretokens, merges_of, with_products
from bpe.vocabulary import BYTE_ENTRIES, TextRules
from stores.system import cached_property

if TYPE_CHECKING:
    from bpe.like import TextRule
    from bpe.pretoken_counts.memory import MemoryBudget

_CODE_POINTS = 0x110000


def characters_of(
    counts: PretokenCounts, initial_alphabet: Iterable[str] | None, limit_alphabet: int | None
) -> tuple[str, ...]:
    """The characters of the alphabet by code point: the initial ones and those of the text, at most `limit`.

    Of equally rare characters those of the lower code points are left out (BpeTrainer: any). BadArgument if initial
    ones would have to be left out.
    """
    occurrences = _core.count_characters(*counts.arrays)
    initial = [ord(each[0]) for each in initial_alphabet or () if each]
    kept = occurrences > 0
    kept[initial] = True
    over = 0 if limit_alphabet is None else int(kept.sum()) - limit_alphabet
    if over > 0:
        candidates = np.setdiff1d(np.flatnonzero(kept), initial)
        if over > len(candidates):
            raise BadArgument(
                f"limit_alphabet {limit_alphabet} is less than the {len(set(initial))} characters of initial_alphabet; "
                "give fewer of these, or a higher limit"
            )
        kept[candidates[np.argsort(occurrences[candidates], kind="stable")[:over]]] = False
    return tuple(map(chr, np.flatnonzero(kept).tolist()))


@dataclass(frozen=True)
class FromCharacters:
    """The characters of an alphabet, in the order of their ids."""

    special_tokens: tuple[str, ...]
    rule: TextRule
    text_rules: TextRules
    characters: tuple[str, ...]
    note: str = ""

    @property
    def entries(self) -> Sequence[bytes]:
        """The characters."""
        return [character.encode() for character in self.characters]

    @property
    def reserved(self) -> Sequence[bytes]:
        """Special tokens and the entries of bytes are not made by merges."""
        return [*(token.encode() for token in self.special_tokens), *self._bytes]

    @property
    def size(self) -> int:
        """Special tokens, entries of bytes, and characters."""
        return len(self.special_tokens) + len(self._bytes) + len(self.characters)

    @cached_property
    def _bytes(self) -> tuple[bytes, ...]:
        return tuple(BYTE_ENTRIES) if self.text_rules.byte_fallback else ()

    def pretokens(self, counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """As ids of the characters, without those outside the alphabet."""
        if budget is not None:
            check_room(4 * counts.pretoken_bytes.nbytes + 8 * len(counts), "the ids of the characters", budget)
        id_of = np.full(_CODE_POINTS, -1, np.int32)
        id_of[[ord(character) for character in self.characters]] = np.arange(len(self.characters))
        ids, ends = _core.character_ids(*counts.arrays, id_of)
        return ids, ends, counts.counts

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """BpeTrainer's ids."""
        if budget is not None:
            check_room(500 * (self.size + len(pairs)), "the vocabulary", budget)
        entries = with_products(list(self.entries), pairs)
        special = [token.encode() for token in self.special_tokens]
        return Tokenizer(
            dict(enumerate([*special, *self._bytes, *entries])),
            merges_of(entries, pairs),
            {token: id_ for id_, token in enumerate(self.special_tokens)},
            self.rule.pretokenizer,
            ignore_merges=False,
            normalizer=self.rule.normalizer,
            text_rules=self.text_rules,
            decoder=self.rule.decoder,
        )
