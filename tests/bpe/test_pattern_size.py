"""Repeats of repeats are counted before they are compiled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bpe.errors import BadTokenizer
from bpe.formats.huggingface import read
from bpe.pattern_size import MAX_ITEMS, check_size, expanded_items
from bpe.pretokenizer import Pretokenizer


@pytest.mark.parametrize(
    ("expression", "items"),
    [
        ("", 0),
        ("ab", 2),
        (r"\p{Lu}{2}\d", 3),
        ("(ab{3}){2}", 10),
        ("(ab{3})", 5),
        ("x{2,5}y{,3}z{4,}", 12),
        ("x{0}", 1),
        ("[ab]{3}", 12),
        ("[]ab]{2}", 10),
        ("[^]a]", 5),
        (r"[\]a]x", 5),
        ("[{3}]", 3),
        (r"\{3}", 3),
        ("a)b", 3),
        ("((a", 1),
    ],
)
def test_what_an_expression_comes_to(expression: str, items: int) -> None:
    assert expanded_items(expression) == items


@pytest.mark.parametrize(
    "expression",
    [
        "(?:(?:x{1000}){1000}){1000}",  # took 8.5 GB
        "x{100001}",
        "x{99999999999999999999999}",
        "(?:[abcdefgh]{100}|y){1000}",
        "(?:x{0,400}){300,}",
        "(" * 50_000 + ")" * 50_001,
    ],
)
def test_what_is_too_large_is_refused_before_it_is_compiled(expression: str, listed: Any) -> None:
    root = json.loads(listed().canonical_json)
    split = {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
    root["pre_tokenizer"]["use_regex"] = False
    root["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, root["pre_tokenizer"]]}
    for make in (lambda: Pretokenizer.from_pattern(expression), lambda: read(json.dumps(root).encode())):
        with pytest.raises(BadTokenizer, match="comes to more than 100,000 items") as raised:
            make()
        assert "\n" not in str(raised.value)
    check_size(["x" * (MAX_ITEMS - 100)])


def test_stages_count_together(listed: Any) -> None:
    """300 stages that are each within the limit took 3.9 GB."""
    root = json.loads(listed().canonical_json)
    split = {
        "type": "Split",
        "pattern": {"Regex": "(?:x{300}){300}"},
        "behavior": "Isolated",
        "invert": False,
    }
    for pattern, count in (("(?:x{300}){300}", 2), ("x", 1001)):
        stages = [split | {"pattern": {"Regex": pattern}}] * count
        root["pre_tokenizer"] = {
            "type": "Sequence",
            "pretokenizers": [
                *stages,
                {"type": "ByteLevel", "use_regex": False, "add_prefix_space": False, "trim_offsets": True},
            ],
        }
        with pytest.raises(BadTokenizer, match="smaller repeats or fewer stages"):
            _ = read(json.dumps(root).encode()).pretokenizer.compiled


@pytest.mark.parametrize("group", ["(", "(?:", "(?=", "(?:x|"])
def test_groups_that_nest_too_deeply_are_refused(group: str) -> None:
    with pytest.raises(BadTokenizer, match="nests groups too deeply") as raised:
        Pretokenizer.from_pattern(group * 3000 + "y" + ")" * 3000)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("part", ["(", "[", "[^", "{", "{1", r"\p{", "{1}", "(a{9}"])
def test_counting_takes_time_in_proportion(part: str) -> None:
    """What was quadratic took minutes."""
    assert expanded_items(part * (MAX_ITEMS // len(part))) >= 0
