"""Text in pieces falls into the stretches of the whole, each piece searched once."""

from __future__ import annotations

import random

from bpe.long_text.normalized_pieces import Stretches
from bpe.reference import cut_at_special_tokens
from corpus import _core


def parts_of(pieces: list[bytes], tokens: list[str]) -> list[tuple[str, bool]]:
    """What the reference gives for the pieces joined: (text, whether it is a special token), none empty."""
    stretches = Stretches(pieces, [token.encode() for token in tokens])
    parts = []
    while True:
        texts = [piece.decode() for piece in stretches.next()]  # of whole characters, each
        if any(texts):
            parts.append(("".join(texts), False))
        if stretches.special < 0:
            return parts
        parts.append((tokens[stretches.special], True))


def test_stretches_are_those_of_the_whole() -> None:
    drawn = random.Random(5)
    for _ in range(3000):
        tokens = list(
            dict.fromkeys(
                "".join(drawn.choices("xyé", k=drawn.randint(1, 4))) for _ in range(drawn.randint(0, 4))
            )
        )
        text = "".join(drawn.choices("xyéa", k=drawn.randint(0, 30)))
        pieces = []
        start = 0
        while start < len(text):
            stop = start + drawn.randint(0, drawn.choice([1, 3, 20]))
            pieces.append(text[start:stop].encode())
            start = stop
        assert parts_of(pieces, tokens) == list(cut_at_special_tokens(text, tokens)), (tokens, pieces)


def test_many_special_tokens_in_a_piece(monkeypatch) -> None:
    """Each search goes over the piece: one a token was 58 s for a quarter of a megabyte."""
    searched = []
    find = _core.find_special_tokens
    monkeypatch.setattr(
        _core, "find_special_tokens", lambda text, tokens: searched.append(1) or find(text, tokens)
    )
    assert len(parts_of([b"<s>a" * 1000] * 3, ["<s>", "<s>>"])) == 6000
    assert len(searched) <= 4
