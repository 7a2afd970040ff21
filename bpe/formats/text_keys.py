"""Choose the added tokens to write into model.vocab if characters may be unknown.

Readers expect added tokens in model.vocab, where each key is also an entry. There, an added token of one character (or
with ignore_merges, of one pretoken) would change the IDs of equal text that is not an added token. Readers number added
tokens outside model.vocab after the last entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.errors import BadTokenizer, shown
from bpe.formats.byte_alphabet import to_bytes

if TYPE_CHECKING:
    from bpe.tokenizer import Tokenizer


def text_keys(tokenizer: Tokenizer) -> list[tuple[int, str]]:
    """Return (ID, text) by ascending ID.

    Raise BadTokenizer if a token that must not be in model.vocab has another ID than readers give it.
    """
    rules = tokenizer.text_rules
    assert rules is not None
    encoder = tokenizer.core_encoder
    keys = sorted((id_, text) for text, id_ in tokenizer.special_tokens.items())
    new = [each for each in keys if encoder.entry(each[0]) is None]
    entries = len(encoder) + len(tokenizer.parts.vocabulary.decoded_only)
    must = None
    for each in new:
        entry = to_bytes(each[1]) if rules.byte_level else each[1].encode()
        if entry is not None and rules.begins(entry):
            must = each
            break
    may = new if tokenizer.ignore_merges else [must] if must else []
    for first, text in may:
        if text != rules.unk_token and _is_counted_to(first, new, entries):
            return [each for each in keys if each not in new or each[0] < first]
        if (first, text) == must:
            raise BadTokenizer(
                f"added token {shown(text)}: cannot keep ID {first} in tokenizer.json, as it would become an entry of "
                "model.vocab. Save the tokenizer in another format."
            )
    return keys


def _is_counted_to(first: int, new: list[tuple[int, str]], entries: int) -> bool:
    """Return whether the tokens from this ID on have the IDs after all others. new: by ascending ID."""
    ids = [id_ for id_, _ in new if id_ >= first]
    return ids == list(range(entries + len(new) - len(ids), entries + len(new)))
