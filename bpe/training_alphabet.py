"""A training that starts from an alphabet of bytes or of the text's characters, as Hugging Face's BpeTrainer does.

The alphabet is the initial letters and those of the text, a letter being a byte or a character; over a limit the rarest
are left out. Letters outside it are left out of the pretokens, and what stood around them are neighbours. With a
continuing_subword_prefix letters that do not begin a pretoken are entries of their own, with an end_of_word_suffix
those that end one, with both those that do both, too.

Ids are the special tokens, with byte fallback the entries of the 256 bytes (`<0x00>` to `<0xFF>`), the letters
(characters by code point, bytes in GPT-2's printable order), those with the suffix, with the prefix and with both in
the same order (BpeTrainer: in any), the merges. Merges and ids are those of BpeTrainer with the same normalizer and
pre-tokenizer and those tokens first. Two rules are others:
- BpeTrainer gives text that spells a special token, an entry of a byte ("<0x41>"), the prefix or the suffix that one's
  id; here no merge makes these.
- Its tokenizers lose bytes that have no entry. As none may be lost here, they have entries behind all others, which
  vocab_size does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.errors import BadArgument, shown
from bpe.formats.byte_alphabet import BYTES_BY_CHARACTER, to_bytes
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.memory import check_room
from bpe.tokenizer import Tokenizer
from bpe.training_start import BYTES, Pretokens, merges_of, with_products
from bpe.vocabulary import BYTE_ENTRIES
from tokenmill.inputs.sizes import counted
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    from bpe.like import TextRule
    from bpe.pretoken_counts.memory import MemoryBudget

_PLACES: Final = range(4)  # where a letter stands: 1 at the end of a pretoken, 2 not at its beginning, 3 both


def initial_letters(
    initial_alphabet: Iterable[str] | None, limit_alphabet: int | None, of_text: bool
) -> list[int]:
    """The code points of an initial alphabet, of a text the first, or the bytes: characters of the byte alphabet.

    BadArgument for another character ("Ġ" is the space), and if there are more letters than limit_alphabet: BpeTrainer
    would leave out any of them.
    """
    found: list[int] = []
    for text in initial_alphabet or ():
        first = text[:1] if isinstance(text, str) else None
        letter = first if of_text or first is None else to_bytes(first)
        if letter is None:
            raise BadArgument(
                f'initial_alphabet: must be characters of the byte alphabet, such as "a", or "Ġ" for the space (got '
                f"{shown(text)})"
                if not of_text
                else f"initial_alphabet: must be strings (got {shown(text)})"
            )
        found += letter if isinstance(letter, bytes) else map(ord, letter)
    if limit_alphabet is not None and limit_alphabet < len(set(found)):
        raise BadArgument(
            f"limit_alphabet: must be at least {len(set(found))}, the number of "
            f"{'characters' if of_text else 'bytes'} in initial_alphabet (got {limit_alphabet}). Raise the limit, or "
            "shorten initial_alphabet."
        )
    return found


@dataclass(frozen=True)
class FromAlphabet:
    """placed: by place the letters that have an entry for it, bytes, or code points where the rule's entries are text,
    in the order of their ids: number 0 all of them, the others those with prefix or suffix, if there is one."""

    special_tokens: tuple[str, ...]
    rule: TextRule
    placed: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(
        counts: PretokenCounts,
        special_tokens: tuple[str, ...],
        rule: TextRule,
        initial_alphabet: Iterable[str] | None,
        limit_alphabet: int | None,
    ) -> FromAlphabet:
        """What counted text starts from.

        initial_alphabet None: no letter; of bytes without a limit, all of them, at every place. Of equally rare
        letters those are left out that come first (BpeTrainer: any). BadArgument as by `initial_letters`, or if a
        special token spells an entry of a letter.
        """
        rules = rule.text_rules
        if rules is not None and rules.unk_token not in special_tokens:
            rule = replace(rule, text_rules=replace(rules, unk_token=None))
        told_apart = _told_apart(rule)
        if not rule.of_text and initial_alphabet is None and limit_alphabet is None:
            every = BYTES_BY_CHARACTER
            return FromAlphabet(
                special_tokens, rule, tuple(every if place & told_apart == place else () for place in _PLACES)
            )
        occurrences, places = _core.count_letters(*counts.arrays, rule.of_text)
        initial = initial_letters(initial_alphabet, limit_alphabet, rule.of_text)
        order = np.arange(len(occurrences)) if rule.of_text else np.array(BYTES_BY_CHARACTER)
        kept = occurrences > 0
        kept[initial] = True
        over = 0 if limit_alphabet is None else int(kept.sum()) - limit_alphabet
        if over > 0:
            candidates = order[kept[order] & ~np.isin(order, initial)]
            kept[candidates[np.argsort(occurrences[candidates], kind="stable")[:over]]] = False
        letters = order[kept[order]]
        placed = [letters]
        for place in _PLACES[1:]:
            bits = sum(1 << each for each in _PLACES if each & told_apart == place)
            placed.append(letters[places[letters] & bits > 0])
        start = FromAlphabet(special_tokens, rule, tuple(tuple(each.tolist()) for each in placed))
        for token in special_tokens if rules is not None else ():
            if token.encode() in start._index:
                raise BadArgument(
                    f"special_tokens: same spelling as an entry of the alphabet (got {shown(token)}). Choose another."
                )
        return start

    @property
    def entries(self) -> Sequence[bytes]:
        """The letters at all places, or all bytes."""
        return BYTES if self._is_of_bytes else self._letters

    @property
    def reserved(self) -> Sequence[bytes]:
        """Special tokens and the entries of bytes are not made by merges; where entries are just bytes all may be."""
        return [] if self.rule.text_rules is None else [*self._special, *self._bytes]

    @property
    def size(self) -> int:
        """Special tokens, entries of bytes, letters at all places, as BpeTrainer counts."""
        return len(self._special) + len(self._bytes) + len(self._index)

    @property
    def note(self) -> str:
        """How many bytes have entries that vocab_size does not count."""
        if not self._behind:
            return ""
        return (
            f"alphabet: {counted(len(self._behind), 'byte')} outside of it took no part in merging. Their entries are "
            "added to vocab_size."
        )

    def pretokens(self, counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """As letters, bytes or ids, without those outside the alphabet."""
        if budget is not None:
            check_room(4 * counts.pretoken_bytes.nbytes + 8 * len(counts), "the ids of the letters", budget)
        told_apart = _told_apart(self.rule)
        ids: list[NDArray[np.int32]] = []
        for place, letters in enumerate(self.placed):
            if place & told_apart != place:
                ids.append(ids[place & told_apart])
                continue
            ids.append(np.full(0x110000 if self.rule.of_text else 256, -1, np.int32))
            ids[place][list(letters)] = (
                letters
                if self._is_of_bytes
                else [self._index[self._spelled(each, place)] for each in letters]
            )
        found, ends = _core.letter_ids(*counts.arrays, ids)
        return found.astype(np.uint8).data if self._is_of_bytes else found, ends, counts.counts

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """BpeTrainer's ids, then the bytes outside the alphabet."""
        if budget is not None:
            check_room(500 * (self.size + len(self._behind) + len(pairs)), "the vocabulary", budget)
        entries = with_products(list(self.entries), pairs, self.rule.text_rules)
        made = entries[len(self.entries) :]
        return Tokenizer(
            dict(enumerate([*self._special, *self._bytes, *self._letters, *made, *self._behind])),
            merges_of(entries, pairs),
            {token: id_ for id_, token in enumerate(self.special_tokens)},
            self.rule.pretokenizer,
            normalizer=self.rule.normalizer,
            text_rules=self.rule.text_rules,
            decoder=self.rule.decoder,
        )

    @property
    def _is_of_bytes(self) -> bool:
        """Whether letters are handed to the core as bytes, which take a fourth of ids."""
        return not self.rule.of_text and not _told_apart(self.rule)

    @cached_property
    def _index(self) -> dict[bytes, int]:
        """The entries of letters, each with its number."""
        spelled = [
            self._spelled(letter, place) for place, letters in enumerate(self.placed) for letter in letters
        ]
        return {entry: number for number, entry in enumerate(dict.fromkeys(spelled))}

    @property
    def _letters(self) -> list[bytes]:
        return list(self._index)

    def _spelled(self, letter: int, place: int) -> bytes:
        prefix, suffix = _affixes(self.rule)
        return prefix * (place >> 1) + self._plain(letter) + suffix * (place & 1)

    def _plain(self, letter: int) -> bytes:
        return chr(letter).encode() if self.rule.of_text else bytes([letter])

    @cached_property
    def _special(self) -> tuple[bytes, ...]:
        return tuple(token.encode() for token in self.special_tokens)

    @cached_property
    def _bytes(self) -> tuple[bytes, ...]:
        rules = self.rule.text_rules
        return tuple(BYTE_ENTRIES) if rules is not None and rules.byte_fallback else ()

    @cached_property
    def _behind(self) -> tuple[bytes, ...]:
        """The entries of bytes that the alphabet leaves out."""
        if self.rule.of_text:
            return ()
        told_apart = _told_apart(self.rule)
        every = [
            self._spelled(byte, place)
            for place in _PLACES
            if place & told_apart == place
            for byte in BYTES_BY_CHARACTER
        ]
        return tuple(entry for entry in every if entry not in self._index)


def _affixes(rule: TextRule) -> tuple[bytes, bytes]:
    """The prefix and the suffix."""
    return rule.text_rules.affixes if rule.text_rules is not None else (b"", b"")


def _told_apart(rule: TextRule) -> int:
    """The bits of places that letters have entries for."""
    prefix, suffix = _affixes(rule)
    return 2 * (prefix != b"") + (suffix != b"")
