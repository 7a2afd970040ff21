"""What the core is given of a tokenizer whose entries are text: spaces in place of "▁".

Files for such vocabularies replace each space by "▁" last of all, so entries have "▁" and the text has no space. Where
that is so the core gets the text with its spaces, and the few "▁" there may be replaced by spaces instead: to exchange
the two in text and entries changes no id, and ordinary text stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bpe import _core
from bpe.added_tokens import AddedToken
from bpe.normalizers import Normalizer, Prepend, Replace
from bpe.pretokenization.compiled import core_automaton
from bpe.pretokenization.components import Metaspace, Split
from bpe.pretokenization.joins import tables_of_joins
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import TextRules

LOWER_BLOCK: Final = "\u2581"
_TO_BLOCKS: Final = Replace(" ", LOWER_BLOCK)


def has_spaces(
    rules: TextRules | None,
    pretokenizer: Pretokenizer,
    normalizer: Normalizer | None,
    tokens: Iterable[AddedToken],
) -> bool:
    """Whether the core works on texts with spaces in place of U+2581."""
    return (
        rules is not None
        and not rules.byte_level
        and normalizer is not None
        and normalizer.components[-1] == _TO_BLOCKS
        and normalizer.core is not None
        and pretokenizer.automaton is not None
        # These look for white space in the normalized text, which U+2581 is not.
        and not any(token.normalized and (token.lstrip or token.rstrip) for token in tokens)
    )


def with_spaces(normalizer: Normalizer) -> Normalizer:
    """The same normalizer, for such texts."""
    components = normalizer.components[:-1]
    if components and components[-1] == Prepend(LOWER_BLOCK):
        components = (*components[:-1], Prepend(" "))
    return Normalizer((*components, Replace(LOWER_BLOCK, " ")))


def exchange(text: bytes) -> bytes:
    """A text or entry with spaces for U+2581 and the other way round."""
    return b" ".join(part.replace(b" ", LOWER_BLOCK.encode()) for part in text.split(LOWER_BLOCK.encode()))


def cuts_nothing(pretokenizer: Pretokenizer, spaces: bool) -> bool:
    """Whether the pre-tokenizer leaves all texts whole. spaces: texts have no space as it sees them."""
    return all(
        (isinstance(each, Split) and spaces and each.dialect == "text" and " " in each.expression)
        or (isinstance(each, Metaspace) and not each.split)
        for each in pretokenizer.components
    )


def joins_automaton(encoder: _core.Encoder, rules: TextRules) -> _core.Automaton:
    """How the core cuts texts that no pre-tokenizer cuts: where no merge reaches."""
    joins_unknown = rules.fuse_unk and rules.unk_token is not None
    return core_automaton(tables_of_joins(encoder.joined_characters(), joins_unknown))
