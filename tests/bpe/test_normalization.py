"""The quick check is exact: over all characters, alone and in company, it never calls normal what is not."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator

import pytest

from bpe import _core
from bpe.normalization import is_nfc, stretches_to_change, to_nfc, with_long_runs_in_order

SCALARS = [code_point for code_point in range(0x110000) if not 0xD800 <= code_point < 0xE000]


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def test_every_character_by_itself_and_before_marks() -> None:
    # Each behind a letter it may compose with and before a mark, in one text: cut by clean letters.
    for before, after in (("", ""), ("a", "\u0323"), ("\u1100", "\u11a8")):
        for start in range(0, len(SCALARS), 1 << 16):
            text = "".join(f"x{before}{chr(c)}{after}" for c in SCALARS[start : start + (1 << 16)])
            assert to_nfc(text.encode()).decode() == nfc(text)


def interesting() -> list[str]:
    """Characters that compose, decompose, are marks, or are none of it."""
    found = [
        chr(c)
        for c in SCALARS
        if unicodedata.combining(chr(c)) or not unicodedata.is_normalized("NFC", chr(c))
    ]
    parts = {part for c in SCALARS for part in unicodedata.decomposition(chr(c)).split() if part[0] != "<"}
    found += [chr(int(part, 16)) for part in parts]
    return [
        *found,
        *"abcEAOxyz \n.<>|",
        *"가각ᄀ가각ᅡᆨ你の漢ハ゛ばé\u0300\u0323",
        "\U0001f600",
        "\u0378",
        "\U000e0fff",
    ]


@pytest.fixture(scope="module")
def random_marked_texts() -> Iterator[str]:
    generator = random.Random(7)
    characters = interesting()
    return iter(
        [
            "".join(generator.choices(characters, k=generator.choice([0, 1, 2, 3, 8, 40])))
            for _ in range(30_000)
        ]
    )


def test_random_texts_of_marks(random_marked_texts: Iterator[str]) -> None:
    changed = 0
    for text in random_marked_texts:
        data = text.encode()
        expected = nfc(text)
        assert to_nfc(data).decode() == expected, ascii(text)
        assert is_nfc(text) == (expected == text), ascii(text)
        if _core.surely_nfc(text):
            assert expected == text, ascii(text)
        changed += expected != text
        # Stretches are apart and each is wrong by itself.
        stop = 0
        for start, end in stretches_to_change(data).tolist():
            assert stop <= start < end
            assert not unicodedata.is_normalized("NFC", data[start:end].decode())
            stop = end
    assert changed > 1000


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65])
def test_a_mark_at_every_place_of_ascii(size: int) -> None:
    for place in range(size + 1):
        text = "a" * place + "\u0301" + "b" * (size - place)
        assert to_nfc(text.encode()).decode() == nfc(text)
        assert _core.surely_nfc("a" * size)


def test_text_in_the_form_is_not_copied() -> None:
    text = "naïve 日本語 한국어 Việt नमस्ते עִברית".encode()
    text = nfc(text.decode()).encode()
    assert to_nfc(text) is text


def test_common_scripts_are_certain() -> None:
    for text in (
        "plain",
        "Größe, naïve",
        "Привет, мир",
        "日本語の文章",
        "한국어 문장",
        "你好，世界",
        "ภาษาไทย",
    ):
        assert _core.surely_nfc(text), text


def test_a_lone_surrogate_is_not_in_the_form() -> None:
    assert not is_nfc("a\ud800")
    with pytest.raises(UnicodeEncodeError):
        _core.surely_nfc("a\ud800")


MARKS = [chr(c) for c in SCALARS if unicodedata.combining(unicodedata.normalize("NFD", chr(c))[0])]


def test_long_runs_of_marks() -> None:
    """Around the length from which on they are ordered here, at every place of a sample, between other text."""
    generator = random.Random(3)
    bases = ["", "a", "\u1eb7", "\u0f40", "\uac00", "\U0001d15e", "e\u0301"]
    for length in (15, 16, 17, 240, 241, 255, 256, 257, 271, 272, 300, 1000):
        for place in range(18):
            marks = generator.sample(MARKS, generator.choice([1, 2, 3, 40]))
            run = "".join(generator.choices(marks, k=length))
            text = "xe\u0301" * place + generator.choice(bases) + run + generator.choice(bases) + run[:7]
            assert to_nfc(text.encode()).decode() == nfc(text), ascii(text)
            assert nfc(with_long_runs_in_order(text)) == nfc(text), ascii(text)


def test_what_is_made_of_marks_is_known() -> None:
    """Nothing else begins with a mark when taken apart, and no mark's parts are of several classes."""
    assert {c for c in MARKS if not unicodedata.combining(c)} == set("\u0f73\u0f75\u0f81")
    for mark in MARKS:
        if unicodedata.combining(mark):
            classes = {unicodedata.combining(part) for part in unicodedata.normalize("NFD", mark)}
            assert classes == {unicodedata.combining(mark)}


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0f73", "\u0f81\u0f71", "\u3099\u0345\u05b0"])
def test_a_million_marks_take_a_moment(marks: str) -> None:
    """0.2 s each; swapped one by one, minutes."""
    text = "a" + marks * (500_000 // len(marks))
    ordered = with_long_runs_in_order(text)
    classes = [unicodedata.combining(character) for character in ordered]
    assert classes == sorted(classes)
    changed = to_nfc(text.encode())
    assert changed != text.encode()
    assert to_nfc(changed) is changed
