"""What a training starts from: the entries there are, the pretokens as these encode them, the tokenizer it ends in.

The usual start is here, the 256 bytes: ids are special tokens, the bytes in GPT-2's printable order, the merges. The
others are `bpe.training_alphabet` and `bpe.continued_tokenizer`.
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

# Bytes, or ids of entries, end to end; where each pretoken ends, how often it occurs: uint64[pretokens].
Pretokens = tuple["Buffer | NDArray[np.uint32]", NDArray[np.uint64], NDArray[np.uint64]]

BYTES: Final = tuple(bytes([byte]) for byte in BYTES_BY_CHARACTER)


class Start(Protocol):
    """rule: how its text is prepared, and what its entries are. entries: by id, from 0, for the core. reserved: bytes
    that no new entry may have. size: what vocab_size counts beside the merges. note: a line for the user, or ""."""

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
        """The pretokens as the entries encode them; NotEnoughMemory if that does not fit."""

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """The tokenizer with an entry more for each pair: uint32[merges, 2], ids of entries, merge k len(entries) + k.

        NotEnoughMemory if its entries do not fit.
        """


@dataclass(frozen=True)
class FromBytes:
    """The 256 bytes."""

    special_tokens: tuple[str, ...]
    rule: TextRule
    entries: Sequence[bytes] = BYTES
    reserved: Sequence[bytes] = ()
    note: str = ""

    @property
    def size(self) -> int:
        """Special tokens and bytes."""
        return len(self.special_tokens) + len(BYTES)

    def pretokens(self, counts: PretokenCounts, budget: MemoryBudget | None) -> Pretokens:
        """As they are."""
        return counts.pretoken_bytes.data, counts.ends, counts.counts

    def tokenizer(self, pairs: NDArray[np.uint32], budget: MemoryBudget | None) -> Tokenizer:
        """Made in the core, without a Python object for an entry."""
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
    """The entries, and what each pair makes."""
    for left, right in pairs.tolist():
        entries.append(product(entries[left], entries[right], rules))
    return entries


def merges_of(entries: Sequence[bytes], pairs: NDArray[np.uint32]) -> Iterator[tuple[bytes, bytes]]:
    """The pairs as bytes."""
    return ((entries[left], entries[right]) for left, right in pairs.tolist())
