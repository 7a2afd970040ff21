"""Special tokens that are taken for text (`encode_special_tokens`), as tokenizers takes them.

They are looked for all the same, and what they match is text: another added token that begins within is not found.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from bpe import _core
from bpe.added_tokens import AddedToken, core_tokens
from bpe.normalizers import Normalizer

NONE: Final = frozenset[int]()


def with_ignored(
    tokens: Collection[AddedToken], ignored: frozenset[str], normalizer: Normalizer | None
) -> tuple[_core.AddedTokens, frozenset[int], frozenset[int]]:
    """(the tokens as they are looked for, the ids of those that are ignored, which take nothing around them, and of
    those that take whitespace before them, if some are ignored)."""
    found = [
        replace(token, lstrip=False, rstrip=False, single_word=False) if token.text in ignored else token
        for token in tokens
    ]
    ids = frozenset(token.id for token in tokens if token.text in ignored)
    strips_before = frozenset(token.id for token in found if token.lstrip) if ids else NONE
    return core_tokens(found, normalizer), ids, strips_before


def hide_others(
    tokens: Collection[AddedToken], ignored: frozenset[str], normalizer: Normalizer | None
) -> bool:
    """Whether one that is ignored can hide another that is not: which begins within it, at its start as well."""
    if not ignored:
        return False
    looked_for: list[tuple[bool, bytes, bool]] = []
    for token in tokens:
        text = token.text.encode()
        if token.normalized and normalizer is not None:
            text = normalizer.of_tokens.apply(text)
        looked_for.append((token.normalized, text, token.text in ignored))
    return any(
        there == here and not kept_ignored and is_ignored and _begins_within(kept, text)
        for here, text, is_ignored in looked_for
        for there, kept, kept_ignored in looked_for
    )


def _begins_within(token: bytes, text: bytes) -> bool:
    return any(text.startswith(token, at) or token.startswith(text[at:]) for at in range(len(text)))
