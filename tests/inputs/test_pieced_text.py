"""A document in pieces: special tokens and invalid bytes are found where they are in the whole, however it is cut."""

from __future__ import annotations

import random

import pytest
from readings import KeptIntake

from tokenmill.inputs import _core, utf8
from tokenmill.inputs.documents import LongText
from tokenmill.inputs.errors import InvalidText
from tokenmill.inputs.intake import BadRecord
from tokenmill.inputs.pieced_text import PiecedText, SpecialSearch, cut_between_characters
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source

SOURCE = Source("f", 100, 0)
PARTS = [
    b"ab\xff",
    b"\xc3",
    b"a\xe2\x82",
    b"\xf0\x9f\x99",
    b"\x80\x80",
    b"\xe2\x82\xff",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
]
PARTS += ["é".encode(), "🙂".encode(), b"abc", "€".encode()] * 18


def pieces_of(text: bytes, rng: random.Random, count: int) -> list[bytes]:
    cuts = sorted(rng.choices(range(len(text) + 1), k=count))
    return [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_the_first_special_token_of_all_pieces_is_found(seed: int) -> None:
    rng = random.Random(seed)
    tokens = [b"<|end|>", b"<|", b"ee"][: rng.randint(1, 3)]
    text = bytes(rng.choices(b"e<|nd>", k=rng.randint(0, 60))) + rng.choice([b"", b"<|end|>"])
    pieces, search = pieces_of(text, rng, rng.randint(0, 8)), SpecialSearch(tokens)
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


def read(pieces: list[bytes], **rules: str) -> tuple[bytes, str, KeptIntake]:
    intake = KeptIntake(IntakeRules(**rules))  # type: ignore[arg-type]
    last = len(pieces) - 1
    long_text = LongText(((piece, number == last) for number, piece in enumerate(pieces)), 7)
    document = PiecedText(long_text, SOURCE, intake.rules)
    found = b"".join(map(bytes, document.texts()))
    document.count_in(intake, 0, SOURCE)
    return found, document.fault, intake


@pytest.mark.parametrize("longest", [1, 2, 3, 7])
def test_invalid_bytes_are_those_of_the_whole(longest: int) -> None:
    rng = random.Random(f"wrong {longest}")
    for _ in range(300):
        text = b"".join(rng.choices(PARTS, k=6))
        pieces = pieces_of(text, rng, len(text) // longest)
        repaired, fault, intake = read(pieces, invalid="replace")
        expected, replaced, _ = utf8.repair(text, replaces=True)
        assert (repaired, intake.replaced, fault) == (bytes(expected), replaced, "")
        bad = _core.validate_utf8(text)
        found, fault, intake = read(pieces, on_error="quarantine")
        if bad < 0:
            assert (found, fault, intake.kept) == (text, "", [])
            continue
        assert fault == utf8.invalid_byte(7 + bad, text[bad])
        assert intake.kept == [BadRecord("invalid UTF-8", fault, 7, text, len(text))]
        with pytest.raises(InvalidText, match=f"f: byte {7 + bad}: "):
            read(pieces)
