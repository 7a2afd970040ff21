"""What the core is given of a tokenizer whose entries are text: spaces in place of "▁".

Files for such vocabularies replace each space by "▁" last of all, so entries have "▁" and the text has no space. Where
that is so the core gets the text with its spaces, and the few "▁" there may be replaced by spaces instead: to exchange
the two in text and entries changes no id, and ordinary text stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from bpe import _core
from bpe.added_tokens import AddedToken
from bpe.normalizers import Component, Normalizer, Prefix, Prepend, Replace
from bpe.pretokenization.compiled import core_automaton
from bpe.pretokenization.components import Metaspace, Split
from bpe.pretokenization.joins import joins_only_itself, tables_of_joins
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import TextRules

LOWER_BLOCK: Final = "\u2581"
_TO_BLOCKS: Final = Replace(" ", LOWER_BLOCK)
_MOST_RUN: Final = 256  # characters of a token


def has_spaces(
    rules: TextRules | None,
    pretokenizer: Pretokenizer,
    normalizer: Normalizer | None,
    tokens: Iterable[AddedToken],
    has_mark: bool,
) -> bool:
    """Whether the core works on texts with spaces in place of U+2581. has_mark: whether that is an entry."""
    if not TextRules.of_text(rules) or pretokenizer.automaton is None:
        return False
    if rules.byte_fallback and not has_mark:
        return False  # it becomes three ids, and a space has room for one, as each byte of a text
    preparation = pretokenizer.preparation(normalizer)
    if preparation is None or preparation.core is None or _TO_BLOCKS not in preparation.components:
        return False
    behind = preparation.components[preparation.components.index(_TO_BLOCKS) :]
    return (
        all(each == _TO_BLOCKS or (isinstance(each, Prefix) and each.text == LOWER_BLOCK) for each in behind)
        and not pretokenizer.automaton.has_later_phases
        # These look for white space in the normalized text, which U+2581 is not.
        and not any(token.normalized and (token.lstrip or token.rstrip) for token in tokens)
    )


def with_spaces(normalizer: Normalizer | None) -> Normalizer | None:
    """The part of what is done to such a text, for the core's texts."""
    if normalizer is None:
        return None
    made: list[Component] = []
    for component in normalizer.components:
        if component == _TO_BLOCKS:
            if made and isinstance(last := made[-1], Prepend) and last.text == LOWER_BLOCK:
                made[-1] = replace(last, text=" ")
            made.append(Replace(LOWER_BLOCK, " "))
        elif isinstance(component, Prefix) and made and component.text == LOWER_BLOCK:
            made.append(replace(component, text=" "))
        else:
            made.append(component)
    return Normalizer(tuple(made))


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


class Cuts(NamedTuple):
    """How the core cuts texts that no pre-tokenizer cuts: where no merge reaches.

    needless: added tokens that need not be looked for, since their texts are always pieces and become just their ids.
    """

    automaton: _core.Automaton
    needless: frozenset[str]


def cuts_of(
    encoder: _core.TokenizerCore,
    rules: TextRules,
    normalizer: Normalizer | None,
    tokens: Collection[AddedToken],
) -> Cuts:
    """The cuts of a tokenizer without a pre-tokenizer; normalizer: the core's."""
    joined = encoder.joined_characters()
    characters: list[int] = []
    needless: set[str] = set()
    # What begins behind a token is normalized like any other text.
    if normalizer is None or all(
        isinstance(each, Replace) and each.in_core for each in normalizer.components
    ):
        for character in {token.text[0] for token in tokens if token.is_plain and token.text[0] in "\n\r\t"}:
            if joins_only_itself(joined, ord(character)):
                found = _needless_runs(encoder, character, tokens)
                needless |= found
                characters += [ord(character)] * bool(found)
    has_bytes = rules.byte_fallback and encoder.find(b"<0x00>") is not None
    joins_unknown = rules.fuse_unk and rules.unk_token is not None and not has_bytes
    return Cuts(core_automaton(tables_of_joins(joined, joins_unknown, characters)), frozenset(needless))


def _needless_runs(encoder: _core.TokenizerCore, character: str, tokens: Collection[AddedToken]) -> set[str]:
    """Of the tokens that are a character again and again all but the longest, if its runs become them by merges, too.

    The longest cuts runs that are longer, as it does beside the others.
    """
    with_it = [token for token in tokens if character in token.text]
    ids = {len(token.text): token.id for token in with_it}
    if any(set(token.text) != {character} or not token.is_plain for token in with_it) or max(ids) > _MOST_RUN:
        return set()
    for size in range(1, max(ids)):
        wanted: list[int] = []
        left = size
        while left:  # leftmost, longest first
            taken = max((known for known in ids if known <= left), default=0)
            if not taken:
                return set()
            wanted.append(ids[taken])
            left -= taken
        if (
            encoder.encode_pretokens(character.encode() * size, np.array([size], np.uint64)).tolist()
            != wanted
        ):
            return set()
    return {token.text for token in with_it if len(token.text) < max(ids)}
