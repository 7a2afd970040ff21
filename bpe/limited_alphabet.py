"""A training that starts from some of the bytes, as BpeTrainer's `initial_alphabet` and `limit_alphabet` have it.

The alphabet is the initial bytes and those of the text; over the limit the rarest are left out. Bytes outside it are
left out of the pretokens, and what stood around them are neighbours. Merges and ids are those of Hugging Face's
BpeTrainer. Its tokenizers lose the other bytes of a text; as none may be lost here, these have entries behind all
others, which vocab_size does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadArgument, shown
from bpe.formats.byte_alphabet import to_bytes
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.pretoken_counts.memory import check_room
from bpe.reference import printable_bytes
from bpe.tokenizer import Tokenizer
from bpe.training_start import BYTES, Pretokens, merges_of, with_products
from corpus.sizes import counted

if TYPE_CHECKING:
    from bpe.like import TextRule
    from bpe.pretoken_counts.memory import MemoryBudget


def initial_bytes(initial_alphabet: Iterable[str]) -> bytes:
    """The bytes of an initial alphabet: characters of the byte alphabet ("Ġ" is the space), of a text its first.

    BadArgument for another character.
    """
    found = bytearray()
    for text in initial_alphabet:
        byte = to_bytes(text[:1]) if isinstance(text, str) else None
        if byte is None:
            raise BadArgument(
                f'initial_alphabet holds {shown(text)}, which is no character of the byte alphabet (such as "a", or '
                '"Ġ" for the space)'
            )
        found += byte
    return bytes(found)


def alphabet_of(
    counts: PretokenCounts, initial_alphabet: Iterable[str] | None, limit_alphabet: int | None
) -> NDArray[np.bool_]:
    """bool[256]: the bytes that BpeTrainer has entries for: the initial ones and those of the text, at most `limit`.

    initial_alphabet: checked; None: every byte, or, as in BpeTrainer, none where there is a limit. Of equally rare
    bytes those are left out that come first in the byte alphabet (BpeTrainer: any). BadArgument if initial ones would
    have to be left out: BpeTrainer then drops any of them.
    """
    if initial_alphabet is None and limit_alphabet is None:
        return np.ones(256, np.bool_)
    initial = np.zeros(256, np.bool_)
    initial[list(initial_bytes(initial_alphabet or ()))] = True
    occurrences = np.zeros(256, np.uint64)
    for text, ends, weights in counts.blocks():
        lengths = np.diff(ends, prepend=np.uint64(0)).astype(np.intp)
        np.add.at(occurrences, text, np.repeat(weights, lengths))
    kept = initial | (occurrences > 0)
    over = 0 if limit_alphabet is None else int(kept.sum()) - limit_alphabet
    if over > 0:
        candidates = [byte for byte in printable_bytes() if kept[byte] and not initial[byte]]
        if over > len(candidates):
            raise BadArgument(
                f"limit_alphabet {limit_alphabet} is less than the {int(initial.sum())} bytes of initial_alphabet; "
                "give fewer of these, or a higher limit"
            )
        candidates.sort(key=lambda byte: int(occurrences[byte]))  # stable
        kept[candidates[:over]] = False
    return kept


@dataclass(frozen=True)
class FromAlphabet:
    """Some of the bytes; in_alphabet: bool[256]."""

    special_tokens: tuple[str, ...]
    rule: TextRule
    in_alphabet: NDArray[np.bool_]
    entries: Sequence[bytes] = BYTES
    reserved: Sequence[bytes] = ()

    @property
    def size(self) -> int:
        """Special tokens and the bytes of the alphabet, as BpeTrainer counts."""
        return len(self.special_tokens) + int(self.in_alphabet.sum())

    @property
    def note(self) -> str:
        """How many bytes have entries that vocab_size does not count."""
        outside = 256 - int(self.in_alphabet.sum())
        if not outside:
            return ""
        return (
            f"{counted(outside, 'byte')} outside the alphabet took no part in merging; their entries come behind those "
            "that the vocabulary's size counts"
        )

    def pretokens(self, counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """Without the bytes outside the alphabet."""
        if budget is not None:
            check_room(counts.pretoken_bytes.nbytes + 8 * len(counts), "leaving out bytes", budget)
        left = np.empty(len(counts.pretoken_bytes), np.uint8)  # what is not written takes no memory
        ends = np.empty(len(counts), np.uint64)
        byte_count = end_count = 0
        for text, block_ends, _ in counts.blocks():
            kept = self.in_alphabet[text]
            sizes = np.add.reduceat(kept, np.append(0, block_ends[:-1]).astype(np.intp), dtype=np.uint64)
            block_stops = np.cumsum(sizes, dtype=np.uint64) + np.uint64(byte_count)
            ends[end_count : end_count + len(block_stops)] = block_stops
            text = text[kept]
            left[byte_count : byte_count + len(text)] = text
            byte_count += len(text)
            end_count += len(block_stops)
        return left[:byte_count].data, ends, counts.counts

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """BpeTrainer's ids, then the bytes outside the alphabet."""
        if budget is not None:
            check_room(500 * (256 + len(pairs)), "the vocabulary", budget)
        entries = with_products(list(BYTES), pairs)
        inside = [entry for entry in BYTES if self.in_alphabet[entry[0]]]
        outside = [entry for entry in BYTES if not self.in_alphabet[entry[0]]]
        special = [token.encode() for token in self.special_tokens]
        vocab = dict(enumerate([*special, *inside, *entries[len(BYTES) :], *outside]))
        return Tokenizer(
            vocab,
            merges_of(entries, pairs),
            {token: id_ for id_, token in enumerate(self.special_tokens)},
            self.rule.pretokenizer,
            normalizer=self.rule.normalizer,
        )
