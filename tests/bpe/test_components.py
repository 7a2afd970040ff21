"""Sequences of all pre-tokenizer components, with ByteLevel at any index, cut text as tokenizers does."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
import tokenizers
from small_encoder import ENTRIES, MERGES

from bpe import _core
from bpe.errors import UnsupportedTokenizer
from bpe.formats.byte_alphabet import to_bytes
from bpe.formats.huggingface_components import components_from_json, pretokenizer_from_json
from bpe.normalizers import INPUT
from bpe.pretokenization.by_regex import RegexCutter
from bpe.pretokenization.stages import phases_of
from bpe.pretokenizer import Pretokenizer
from tests.bpe.random_patterns import TEXT, random_pattern

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


def byte_level(rng: Random) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": rng.random() < 0.5,
        "trim_offsets": True,
        "use_regex": rng.random() < 0.5,
    }


def component(rng: Random) -> dict[str, Any]:
    kind = rng.randrange(12)
    behavior = rng.choice(BEHAVIORS)
    if kind == 0:
        return byte_level(rng)
    if kind == 1:
        scheme = rng.choice(["always", "first", "never"])
        mark = rng.choice("▁▁_Ġ é")
        return {
            "type": "Metaspace",
            "replacement": mark,
            "prepend_scheme": scheme,
            "split": rng.random() < 0.6,
        }
    if kind == 2:
        return {"type": "Digits", "individual_digits": rng.random() < 0.5}
    if kind == 3:
        return {"type": "Punctuation", "behavior": behavior}
    if kind == 4:
        return {"type": "FixedLength", "length": rng.randint(1, 6)}
    if kind == 5:
        return {"type": "CharDelimiterSplit", "delimiter": rng.choice("a é漢Ġ▁")}
    if kind < 10:
        return {"type": ["Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts"][kind - 6]}
    pattern = rng.choice(
        [{"Regex": random_pattern(rng, "oniguruma", 2)}, {"String": rng.choice(["a", " ", "é", "Ġ", "12"])}]
    )
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": rng.random() < 0.3}


def sequence(rng: Random) -> dict[str, Any]:
    items = [component(rng) for _ in range(rng.randint(0, 3))]
    items.insert(rng.randint(0, len(items)), byte_level(rng))
    return {"type": "Sequence", "pretokenizers": items}


def text_of(rng: Random) -> str:
    return "".join(rng.choices([*TEXT, " ", " ", "a", "1", "▁", "Ġ", "д", "²"], k=rng.randint(0, 90)))


def theirs(cutter: Any, text: str) -> list[bytes | None]:
    return [to_bytes(piece) for piece, _ in cutter.pre_tokenize_str(text)]


def ours(cutter: Pretokenizer, text: str) -> list[bytes]:
    changes = cutter.changes
    changed = text if changes is None else changes.apply(text.encode(), INPUT).decode()
    return list(cutter.iterate(changed))


def pre_tokenizer_of(item: dict[str, Any]) -> Any:
    """Let tokenizers parse the pre-tokenizer as part of a file."""
    empty = {"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": item}
    return tokenizers.Tokenizer.from_str(json.dumps(empty)).pre_tokenizer


@pytest.mark.parametrize("seed", range(4))
def test_random_sequences_cut_as_theirs(seed: int) -> None:
    rng = Random(seed)
    for _ in range(12):
        item = sequence(rng)
        try:
            expected = pre_tokenizer_of(item)
        except Exception:  # tokenizers raises nothing narrower
            continue
        try:
            found = pretokenizer_from_json(item)
        except UnsupportedTokenizer:
            continue
        for text in [text_of(rng) for _ in range(25)] + [text_of(rng) * 60]:
            assert ours(found, text) == theirs(expected, text), (item, text)


@pytest.mark.parametrize("seed", range(3))
def test_the_regex_package_cuts_as_theirs(seed: int) -> None:
    """The fallback for patterns that cannot be compiled, here used for all of them."""
    rng = Random(100 + seed)
    for _ in range(12):
        item = sequence(rng)
        try:
            expected = pre_tokenizer_of(item)
            phases = phases_of(each for each, _ in components_from_json(item))
            cutter = RegexCutter(phases, "")
        except Exception:
            continue
        change = phases.phases[0].change
        for text in [text_of(rng) for _ in range(25)]:
            changed = text if change is None else change.apply(text.encode(), INPUT).decode()
            assert list(cutter.cut(changed)) == theirs(expected, text), (item, text)


def test_falcon_cuts_all_characters_as_theirs() -> None:
    found, expected = pretokenizer_from_json(FALCON), pre_tokenizer_of(FALCON)
    assert found.slow_because is None
    # All assigned code points, and one in a hundred of the others, which all behave alike.
    points = [
        *range(0x34000),
        *range(0x34000, 0xE0000, 101),
        *range(0xE0000, 0xE1000),
        *range(0xE1000, 0x110000, 101),
    ]
    characters = [chr(point) for point in points if not 0xD800 <= point < 0xE000]
    for form in ("a{}1", " {} ", "{}²7é"):
        for start in range(0, len(characters), 50_000):
            text = "".join(map(form.format, characters[start : start + 50_000]))
            assert ours(found, text) == theirs(expected, text), (form, start)


def test_pieces_of_later_phases_are_counted() -> None:
    found = pretokenizer_from_json(FALCON)
    assert found.changes is None
    rng = Random(5)
    text = "".join(text_of(rng) for _ in range(40))
    counter = _core.PretokenCounter(found.automaton)
    counter.count(text.encode(), [], threads=1)
    counted, ends, counts = counter.items()
    stops = ends.tolist()
    pretokens = [counted.tobytes()[start:stop] for start, stop in pairwise([0, *stops])]
    assert dict(zip(pretokens, counts.tolist(), strict=True)) == Counter(ours(found, text))


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
    found, expected = pretokenizer_from_json(item), pre_tokenizer_of(item)
    assert found.slow_because is None
    for text in (first, first + "b1c", f"1{first}2"):
        assert ours(found, text) == theirs(expected, text), text


def test_scripts_of_all_characters_are_theirs() -> None:
    item = {"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}, byte_level(Random(1))]}
    item["pretokenizers"][1] |= {"use_regex": False, "add_prefix_space": False}
    found, expected = pretokenizer_from_json(item), pre_tokenizer_of(item)
    assert found.slow_because is None
    text = "".join(
        chr(point) + "a " * (point % 3) for point in range(0x20000) if not 0xD800 <= point < 0xE000
    )
    assert ours(found, text) == theirs(expected, text)


def test_metaspace_after_byte_level_is_refused() -> None:
    items = [{"type": "ByteLevel"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}]
    with pytest.raises(UnsupportedTokenizer):
        pretokenizer_from_json({"type": "Sequence", "pretokenizers": items})
