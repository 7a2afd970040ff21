"""Texts that come in pieces: special tokens are found where they are in the whole, however it is cut."""

from __future__ import annotations

import random

import pytest

from tokenmill.inputs.long_line import LongLine
from tokenmill.inputs.pieced_text import SpecialSearch, cut_between_characters
from tokenmill.inputs.rules import IntakeRules


@pytest.mark.parametrize("seed", range(20))
def test_the_first_special_token_of_all_pieces_is_found(seed: int) -> None:
    rng = random.Random(seed)
    tokens = [b"<|end|>", b"<|", b"ee"][: rng.randint(1, 3)]
    text = bytes(rng.choices(b"e<|nd>", k=rng.randint(0, 60))) + rng.choice([b"", b"<|end|>"])
    cuts = sorted(rng.choices(range(len(text) + 1), k=rng.randint(0, 8)))
    pieces = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    search = SpecialSearch(tokens)
    assert list(search.through(iter(pieces))) == pieces
    places = [place for token in tokens if (place := text.find(token)) >= 0]
    assert search.place == min(places, default=-1)
    assert text.startswith(search.found.encode(), max(search.place, 0))
    assert bool(search.found) == bool(places)


@pytest.mark.parametrize("piece_bytes", [1, 4, 5, 7, 100])
def test_pieces_are_of_whole_characters(piece_bytes: int) -> None:
    text = "aé你🙂".encode() * 5
    pieces = [bytes(piece) for piece in cut_between_characters(memoryview(text), piece_bytes)]
    assert b"".join(pieces) == text
    assert max(map(len, pieces)) <= max(piece_bytes, 4)
    assert all(piece.decode() for piece in pieces)


def test_a_long_line_knows_its_length() -> None:
    pieces = [(b'{"text": ', False), (b'"abc"}', True)]
    line = LongLine(iter(pieces), 5, 0, IntakeRules(max_record_bytes=15))
    assert b"".join(map(bytes, line.texts())) == b"abc"
    assert (line.length, line.fault) == (15, "")
    line = LongLine(iter(pieces), 5, 0, IntakeRules(max_record_bytes=14))
    assert list(line.texts()) == []
    assert line.fault == "too_long"
