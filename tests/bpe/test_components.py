"""Pre-tokenizers cut text as tokenizers does: every component, any sequence of them, and text of any length."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
import regex
import tokenizers
from random_patterns import TEXT, random_pattern
from small_encoder import ENTRIES, MERGES

from bpe import _core, count_pretokens
from bpe.errors import BadTokenizer, UnsupportedTokenizer
from bpe.formats.byte_alphabet import to_bytes
from bpe.formats.huggingface_components import components_from_json, pretokenizer_from_json
from bpe.normalizers import INPUT
from bpe.patterns import PATTERNS
from bpe.pretokenization.by_regex import RegexCutter
from bpe.pretokenization.components import Split
from bpe.pretokenization.stages import phases_of
from bpe.pretokenizer import Pretokenizer

BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
FALCON = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        {"type": "Digits", "individual_digits": False},
        {
            "type": "Split",
            "pattern": {"Regex": "[0-9][0-9][0-9]"},
            "behavior": "Isolated",
            "invert": False,
        },
    ],
}
THREES = r"\d{1,3}(?=(?:\d{3})*\b)"
# Boundaries that depend on text at any distance.
FAR = [THREES, "a*b|a", r"(?:ab|ba|.)+?(?=\s|$)|\s", r"(?:a|aa)+$|(?m:.)"]
NEAR = ["a|b+", r"\s+(?!\S)|\p{N}{2}", "(?<=a)b|1*?2", r"(?>a?)b|\b1", r"(?<=\Aa)b+|(?<=c)d+|."]


def byte_level(rng: Random) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": rng.random() < 0.5,
        "trim_offsets": True,
        "use_regex": rng.random() < 0.5,
    }


def component(rng: Random) -> dict[str, Any]:
    pattern = rng.choice(
        [{"Regex": random_pattern(rng, "oniguruma", 2)}, {"String": rng.choice(["a", " ", "é", "Ġ", "12"])}]
    )
    behavior, flag, scheme = (
        rng.choice(BEHAVIORS),
        rng.random() < 0.5,
        rng.choice(["always", "first", "never"]),
    )
    fields: dict[str, dict[str, Any]] = {
        "ByteLevel": byte_level(rng),
        "Metaspace": {"replacement": rng.choice("▁▁_Ġ é"), "prepend_scheme": scheme, "split": flag},
        "Digits": {"individual_digits": flag},
        "Punctuation": {"behavior": behavior},
        "FixedLength": {"length": rng.randint(1, 6)},
        "CharDelimiterSplit": {"delimiter": rng.choice("a é漢Ġ▁")},
        **{name: {} for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts")},
        "Split": {"pattern": pattern, "behavior": behavior, "invert": flag},
    }
    kind = rng.choice([*fields, "Split"])
    return {"type": kind, **fields[kind]}


def sequence(rng: Random) -> dict[str, Any]:
    items = [component(rng) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.7:
        items.insert(rng.randint(0, len(items)), byte_level(rng))
    return {"type": "Sequence", "pretokenizers": items}


def text_of(rng: Random) -> str:
    return "".join(rng.choices([*TEXT, " ", " ", "a", "1", "▁", "Ġ", "д", "²"], k=rng.randint(0, 90)))


def peer(item: dict[str, Any]) -> Callable[[str], list[bytes | None]]:
    """Return the pretokens of tokenizers, which parses the pre-tokenizer as part of a file."""
    empty = {"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": item}
    cutter = tokenizers.Tokenizer.from_str(json.dumps(empty)).pre_tokenizer
    decode = to_bytes if '"ByteLevel"' in json.dumps(item) else str.encode
    return lambda text: [decode(piece) for piece, _ in cutter.pre_tokenize_str(text) if piece]


def ours(cutter: Pretokenizer, text: str) -> list[bytes]:
    changes = cutter.changes
    changed = text if changes is None else changes.apply(text.encode(), INPUT).decode()
    return list(cutter.iterate(changed))


def split(expression: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": invert}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_sequences_cut_as_theirs(seed: int) -> None:
    """The core cuts, as does the fallback for patterns that cannot be compiled."""
    rng = Random(seed)
    for _ in range(16):
        item = sequence(rng)
        try:
            theirs = peer(item)
            phases = phases_of(each for each, _ in components_from_json(item))
            cutter = RegexCutter(phases, "")
        except Exception as error:  # tokenizers raises nothing narrower
            if isinstance(error, UnsupportedTokenizer | BadTokenizer) or "Onig" in str(error):
                continue
            raise
        found, change = pretokenizer_from_json(item, as_text=True), phases.phases[0].change
        for text in [text_of(rng) for _ in range(15)] + [text_of(rng) * 60]:
            assert ours(found, text) == theirs(text), (item, text)
            if len(text) < 100:
                changed = text if change is None else change.apply(text.encode(), INPUT).decode()
                assert list(cutter.cut(changed)) == theirs(text), (item, text)


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_every_behavior(behavior: str, invert: bool) -> None:
    rng = Random(7)
    for expression in [*NEAR, *FAR]:
        item = split(expression, behavior, invert)
        found, theirs = pretokenizer_from_json(item, as_text=True), peer(item)
        assert found.slow_because is None
        for _ in range(60):
            text = "".join(rng.choices("abcd12 \n", k=rng.randint(0, 30)))
            assert ours(found, text) == theirs(text), (item, text)


# -- long texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [5, 40])
def test_steps_over_two_bytes_and_over_one(variant: str, words: int) -> None:
    """The core steps over two bytes at a time when tables are small. Test sizes around its window sizes."""
    letters = [chr(0x61 + number) if number < 26 else chr(0x100 + 29 * number) for number in range(2 * words)]
    expression = "|".join(map("".join, zip(letters[::2], letters[1::2], strict=True))) + r"| +(?! )|\n\n?"
    cutter = Pretokenizer((Split(expression, "oniguruma", "Removed", invert=True),))
    rng = Random(words)
    for size in [1, 2, 3, *(2**power + more for power in range(5, 14) for more in (-1, 0, 1, 2))]:
        pool = letters if size % 2 else letters[:4] * 5
        text = "".join(rng.choices([*pool, " ", "\n", "中"], k=size))
        assert cutter.pretokens(text) == regex.findall(expression, text), size


@pytest.mark.parametrize("repeats", [1, 100, 200, 1000])
def test_a_long_piece_whose_first_character_needs_a_register(repeats: int) -> None:
    """The register already held a later part of the piece, and the piece was cut there."""
    lower, title, upper = "\u6587", "\u01c5", "\u212a"
    text = f"{lower}{upper * 3}%{lower}{upper * 6}{(lower * 4 + title * 2) * repeats}{lower}"
    assert Pretokenizer.from_pattern("o200k").pretokens(text) == regex.findall(PATTERNS["o200k"], text)


@pytest.mark.parametrize("size", [4_094, 4_095, 4_096, 4_097, 8_192, 50_001])
@pytest.mark.parametrize("before", ["", "a", "é" * 2_000, "word " * 700])
def test_boundaries_decided_by_distant_later_text(size: int, before: str) -> None:
    """A run of digits longer than the lookahead: groups of three from its end, or none if a letter follows."""
    cutter = Pretokenizer((Split(THREES, "oniguruma"),))
    digits = "٣12" * (size // 3) + "1" * (size % 3)
    threes = [digits[max(0, stop - 3) : stop] for stop in range(size % 3 or 3, size + 1, 3)]
    for after in ("", " more", "é", ". 12345678 and"):
        text = before + digits + after
        rest = [". ", "12", "345", "678", " and"] if "." in after else [after]
        expected = [text] if after == "é" else [piece for piece in [before, *threes, *rest] if piece]
        assert cutter.pretokens(text) == expected


@pytest.mark.promise("linear-time")
def test_no_input_backtracks() -> None:
    cutter = Pretokenizer((Split(r"(?:a|aa|a[ab])+$|(?m:.)", "oniguruma"),))
    text = "a" * 100_000
    assert cutter.pretokens(text) == [text]
    assert cutter.pretokens(text + "c") == [*text, "c"]


# -- several phases ----------------------------------------------------------------------------------------------


def test_pieces_of_later_phases_are_counted() -> None:
    found = pretokenizer_from_json(FALCON)
    assert found.changes is None
    rng = Random(5)
    text = "".join(text_of(rng) for _ in range(40))
    assert count_pretokens([text.encode()], [], found).as_dict() == Counter(ours(found, text))


def test_pieces_of_later_phases_are_encoded(variant: str) -> None:
    """Words of up to a few blocks between pieces that reach a later phase."""
    found = pretokenizer_from_json(FALCON)
    by_text = _core.EntryFile.from_entries(ENTRIES, MERGES).encoder({}, found.automaton, False)
    by_pieces = _core.EntryFile.from_entries(ENTRIES, MERGES).encoder({}, None, False)
    rng = Random(6)
    for _ in range(60):
        words = [
            "".join(rng.choices("naturliejs", k=rng.choice([1, 3, 9, 40, 64, 100, 200])))
            + rng.choice(["é", " ", ", 12", "漢"])
            for _ in range(rng.randint(1, 60))
        ]
        text = "".join(words)
        pieces = ours(found, text)
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.uint64)
        assert by_text.encode(text) == by_pieces.encode_pretokens(b"".join(pieces), ends).tolist(), text


@pytest.mark.parametrize("first", "aé中")
def test_output_of_the_first_character_starts_the_input(first: str) -> None:
    """The space before the character and the text after it are pieces, and both get the treatment of the start of the
    input.
    """
    digits = {"type": "Digits", "individual_digits": False}
    space = {"type": "Split", "pattern": {"String": "Ġ"}, "behavior": "Isolated", "invert": False}
    byte_levels = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
    prefix = {"type": "Metaspace", "replacement": "Ġ", "prepend_scheme": "first", "split": False}
    item = {"type": "Sequence", "pretokenizers": [digits, byte_levels, space, prefix]}
    found, theirs = pretokenizer_from_json(item, as_text=True), peer(item)
    assert found.slow_because is None
    for text in (first, first + "b1c", f"1{first}2"):
        assert ours(found, text) == theirs(text), text


def test_scripts_of_all_characters_are_theirs() -> None:
    item = {"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}, byte_level(Random(1))]}
    item["pretokenizers"][1] |= {"use_regex": False, "add_prefix_space": False}
    found, theirs = pretokenizer_from_json(item, as_text=True), peer(item)
    assert found.slow_because is None
    text = "".join(
        chr(point) + "a " * (point % 3) for point in range(0x20000) if not 0xD800 <= point < 0xE000
    )
    assert ours(found, text) == theirs(text)


def test_metaspace_after_byte_level_is_refused() -> None:
    items = [{"type": "ByteLevel"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}]
    with pytest.raises(UnsupportedTokenizer):
        pretokenizer_from_json({"type": "Sequence", "pretokenizers": items})
