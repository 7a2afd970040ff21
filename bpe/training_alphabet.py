"""Training that starts from an alphabet of bytes or of characters of the text, like Hugging Face's BpeTrainer.

The alphabet consists of the initial letters and the letters of the text, up to a limit, most frequent first. A letter
is a byte or a character. Letters outside the alphabet are removed from the pretokens, which makes their neighbours
adjacent. With a continuing_subword_prefix, letters after the start of a pretoken have separate entries. With an
end_of_word_suffix, letters at the end do. With both, letters in both positions do too.

IDs have this order: special tokens; with byte fallback the 256 byte entries (`<0x00>` to `<0xFF>`); letters (characters
by code point, bytes in GPT-2's printable order); letters with the suffix, with the prefix and with both in the same
order (unspecified in BpeTrainer); merges. Merges and IDs equal BpeTrainer's with the same normalizer, pre-tokenizer and
initial tokens, with two exceptions:

- In BpeTrainer, text that spells a special token, a byte entry ("<0x41>"), the prefix or the suffix gets the ID of that
  entry. Here no merge produces such text.
- Its tokenizers lose bytes without an entry. Here these bytes get the last IDs, which vocab_size does not count.
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

_PLACES: Final = range(4)  # position in a pretoken, as bits: 1 at the end, 2 after the start


def initial_letters(
    initial_alphabet: Iterable[str] | None, limit_alphabet: int | None, of_text: bool
) -> list[int]:
    """Return the code points of an initial alphabet, or its bytes, given as characters of the byte alphabet.

    The first character of a longer string counts. Raise BadArgument for a character outside the byte alphabet ("Ġ" is
    the space), and for more letters than limit_alphabet, since BpeTrainer would drop arbitrary ones.
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
    """placed: for each position in `_PLACES`, the letters with an entry for it, in the order of their IDs. Letters are
    bytes, or code points for text entries. placed[0] has all letters. The others depend on the prefix and suffix."""

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
        """Return the start for counted text.

        initial_alphabet: None for no letters, or for all bytes at all positions if entries are bytes without a limit.

        Among equally rare letters, the first are dropped (arbitrary in BpeTrainer). Raise BadArgument like
        `initial_letters`, or if a special token spells the entry of a letter.
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
        """The entries of the letters at all positions, or of all bytes."""
        return BYTES if self._is_of_bytes else self._letters

    @property
    def reserved(self) -> Sequence[bytes]:
        """Special tokens and byte entries, which merges must not produce. Empty if entries are bytes."""
        return [] if self.rule.text_rules is None else [*self._special, *self._bytes]

    @property
    def size(self) -> int:
        """The number of special tokens, byte entries and letters at all positions, as BpeTrainer counts."""
        return len(self._special) + len(self._bytes) + len(self._index)

    @property
    def note(self) -> str:
        """A note on byte entries that vocab_size does not count."""
        if not self._behind:
            return ""
        return (
            f"alphabet: {counted(len(self._behind), 'byte')} outside of it took no part in merging. Their entries are "
            "added to vocab_size."
        )

    def pretokens(self, counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """Return the pretokens as bytes or IDs of letters, without letters outside the alphabet."""
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
        """Return the tokenizer: BpeTrainer's IDs, then the bytes outside the alphabet."""
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
        """Whether the core receives letters as bytes, which take a quarter of the memory of IDs."""
        return not self.rule.of_text and not _told_apart(self.rule)

    @cached_property
    def _index(self) -> dict[bytes, int]:
        """The index of each letter's entry."""
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
        """The byte entries outside the alphabet."""
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
    """Return the prefix and the suffix."""
    return rule.text_rules.affixes if rule.text_rules is not None else (b"", b"")


def _told_apart(rule: TextRule) -> int:
    """Return the bits of the positions with separate entries for letters."""
    prefix, suffix = _affixes(rule)
    return 2 * (prefix != b"") + (suffix != b"")
