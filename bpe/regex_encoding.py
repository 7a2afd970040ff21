"""Encode text that the core cannot cut or normalize: patterns and replacements that only the `regex` package matches.

The steps match the core: find added tokens, normalize the sections between them, find normalized added tokens, and cut
into pretokens. The core then merges the pretokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.added_tokens import cut_at
from bpe.errors import UncoveredText
from bpe.normalizers import INPUT, SECTION

if TYPE_CHECKING:
    from bpe.parts import Parts


def encode(
    parts: Parts, text: bytes, tokens: _core.AddedTokens, where: str = "text", base_bytes: int = 0
) -> NDArray[np.uint32]:
    """Return the token IDs of a text, uint32[n].

    text: valid UTF-8.
    tokens: added tokens to find.
    where, base_bytes: name of the source in errors, and the offset of the text in it.
    """
    ids = [np.empty(0, np.uint32)]
    for start, stop, id_ in cut_at(tokens, text, normalized=False):
        if id_ is None:
            begin = SECTION if start else INPUT
            ids += _encode_section(parts, text[start:stop], tokens, begin, where, base_bytes + start)
        else:
            ids.append(np.array([id_], np.uint32))
    return np.concatenate(ids)


def _encode_section(
    parts: Parts, text: bytes, tokens: _core.AddedTokens, begin: int, where: str, base_bytes: int
) -> Iterator[NDArray[np.uint32]]:
    """Yield the IDs of the text between two added tokens that are found before it is normalized."""
    normalizer, changes = parts.normalizer, parts.pretokenizer.changes
    normalized = text if normalizer is None else normalizer.apply(text)
    for start, stop, id_ in cut_at(tokens, normalized, normalized=True):
        if id_ is not None:
            yield np.array([id_], np.uint32)
            continue
        section = normalized[start:stop]
        section_begin = SECTION if start else begin
        if changes is not None:
            section = changes.apply(section, section_begin)
        try:
            yield _encode_prepared(parts, section, section_begin)
        except UncoveredText as error:
            offset = start + error.place
            if normalizer is not None:
                offset = normalizer.place_before(text, offset)
            raise error.moved(base_bytes + offset - error.place, where) from None


def _encode_prepared(parts: Parts, text: bytes, begin: int) -> NDArray[np.uint32]:
    """Return the IDs of a normalized section without added tokens."""
    if parts.pretokenizer.automaton is not None:
        return parts.core.encode_part(text, False, begin, normalize=False)
    return parts.core.encode_pretokens(*parts.pretokenizer.pretoken_spans(str(text, "utf-8")))
