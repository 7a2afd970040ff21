"""The start of training: the initial entries, the pretokens encoded with them, and the construction of the tokenizer.

The default start is here: the 256 bytes. Its IDs are the special tokens, the bytes in GPT-2's printable order, then the
merges. The other starts are `bpe.training_alphabet` and `bpe.continued_tokenizer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.added_tokens import AddedToken
from bpe.entry_limit import MAX_TOKEN_BYTES
from bpe.errors import BadTokenizer, NotEnoughMemory
from bpe.formats.byte_alphabet import BYTES_BY_CHARACTER
from bpe.parts import Parts, core_components
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import Vocabulary, product

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.like import TextRule
    from bpe.pretoken_counts.memory import MemoryBudget
    from bpe.vocabulary import TextRules

# Concatenated bytes or IDs of entries; end offset of each pretoken and its count, both uint64[pretokens].
Pretokens = tuple["Buffer | NDArray[np.uint32]", NDArray[np.uint64], NDArray[np.uint64]]

BYTES: Final = tuple(bytes([byte]) for byte in BYTES_BY_CHARACTER)


class Start(Protocol):
    """Initial entries of a training run.

    rule: normalizer, pre-tokenizer and kind of entries.
    entries: bytes of the entries, by index in the core.
    reserved: bytes that no new entry may have.
    size: part of vocab_size that is not merges.
    note: one line for the user, or "".
    """

    @property
    def rule(self) -> TextRule: ...
    @property
    def entries(self) -> Sequence[bytes]: ...
    @property
    def reserved(self) -> Sequence[bytes]: ...
    @property
    def size(self) -> int: ...
    @property
    def note(self) -> str: ...

    def pretokens(self, counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """Encode the pretokens with the entries. Raise NotEnoughMemory if they do not fit."""

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """Return the tokenizer with one more entry per pair. Raise NotEnoughMemory if its entries do not fit.

        pairs: uint32[merges, 2], indices of entries. Merge k makes entry len(entries) + k.
        """


@dataclass(frozen=True)
class FromBytes:
    """A start from the 256 bytes."""

    special_tokens: tuple[str, ...]
    rule: TextRule
    entries: Sequence[bytes] = BYTES
    reserved: Sequence[bytes] = ()
    note: str = ""

    @property
    def size(self) -> int:
        """The number of special tokens and bytes."""
        return len(self.special_tokens) + len(BYTES)

    def pretokens(self, counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """Return the pretokens as bytes."""
        return counts.pretoken_bytes.data, counts.ends, counts.counts

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """Build the tokenizer in the core, without Python objects for entries."""
        specials = {token: id_ for id_, token in enumerate(self.special_tokens)}
        added = [AddedToken(token, id_) for token, id_ in specials.items()]
        components = core_components(self.rule.pretokenizer, self.rule.normalizer, added, {}, None, None)
        try:
            core = _core.TokenizerCore.from_merges(
                pairs,
                b"".join(BYTES),
                len(specials),
                components["special_tokens"],
                components["automaton"],
                components["normalizer"],
                components["changes"],
                memory_limit=0 if budget is None else budget.limit_bytes,
            )
        except MemoryError:
            if budget is None:
                raise
            raise NotEnoughMemory(
                f"vocabulary: {len(pairs) + 256:,} entries need more than {budget.words}. Limit their length "
                f"(--max-token-bytes {MAX_TOKEN_BYTES} or less), choose a smaller vocabulary, or allow more memory."
            ) from None
        except ValueError as error:
            raise BadTokenizer(str(error)) from None
        vocabulary = Vocabulary(core, specials, False)
        return Tokenizer.from_parts(Parts(vocabulary, self.rule.pretokenizer, self.rule.normalizer))


def with_products(
    entries: list[bytes], pairs: NDArray[np.uint32], rules: TextRules | None = None
) -> list[bytes]:
    """Return the entries, followed by the product of each pair."""
    for left, right in pairs.tolist():
        entries.append(product(entries[left], entries[right], rules))
    return entries


def merges_of(entries: Sequence[bytes], pairs: NDArray[np.uint32]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs as bytes."""
    return ((entries[left], entries[right]) for left, right in pairs.tolist())
