"""Texts that come in pieces: special tokens are found where they are in the whole, however it is cut."""

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


WRONG = [
    b"ab\xff",
    b"\xc3",
    b"a\xe2\x82",
    b"\xf0\x9f\x99",
    b"\x80\x80",
    b"\xe2\x82\xff",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
]


@pytest.mark.parametrize("longest", [1, 2, 3, 7])
def test_invalid_bytes_are_those_of_the_whole(longest: int) -> None:
    rng = random.Random(f"wrong {longest}")
    good = ["é".encode(), "🙂".encode(), b"abc", "€".encode()]
    for _ in range(300):
        text = b"".join(rng.choices([*good, *WRONG], weights=[9] * 4 + [1] * len(WRONG), k=6))
        cuts = sorted(rng.choices(range(len(text) + 1), k=len(text) // longest))
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        finals = [*[False] * (len(parts) - 1), True]

        def read(
            rules: IntakeRules, pieces: list[tuple[bytes, bool]]
        ) -> tuple[bytes, PiecedText, KeptIntake]:
            intake = KeptIntake(rules)
            document = PiecedText(LongText(iter(pieces), 7), Source("f", 100, 0), rules)
            found = b"".join(map(bytes, document.texts()))
            document.count_in(intake, 0, Source("f", 100, 0))
            return found, document, intake

        pieces = list(zip(parts, finals, strict=True))
        repaired, document, intake = read(IntakeRules(invalid="replace"), pieces)
        replaced = utf8.replace_invalid(text)
        assert (repaired, intake.replaced) == (bytes(replaced[0]), replaced[1])
        assert not document.fault
        bad = _core.validate_utf8(text)
        found, document, intake = read(IntakeRules(on_error="quarantine"), pieces)
        if bad < 0:
            assert (found, document.fault, intake.kept) == (text, "", [])
            continue
        fault = utf8.invalid_byte(7 + bad, text[bad])
        assert (document.fault, intake.skipped) == (fault, {"invalid UTF-8": 1})
        assert intake.kept == [BadRecord("invalid UTF-8", fault, 7, text, len(text))]
        with pytest.raises(InvalidText, match=f"f: byte {7 + bad}: "):
            read(IntakeRules(), pieces)
