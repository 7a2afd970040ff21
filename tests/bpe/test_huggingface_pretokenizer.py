"""pre_tokenizer of tokenizer.json, parsed and written back without loss; every wrong field is named."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tokenizers import pre_tokenizers as theirs
from tokenizers.pre_tokenizers import PreTokenizer

from bpe.errors import BadTokenizer
from bpe.formats.huggingface_components import (
    components_from_json,
    components_to_json,
    is_byte_level,
    pretokenizer_from_json,
)
from bpe.pretokenization.components import (
    BertPreTokenizer,
    ByteLevel,
    CharDelimiterSplit,
    Digits,
    FixedLength,
    Metaspace,
    Punctuation,
    Split,
    UnicodeScripts,
    Whitespace,
    WhitespaceSplit,
)

SPLIT = {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", "invert": False}
BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
TEXT = "Hello, it's  1234 ²³Ⅷ naïve日本ひらがな -- a_b\n\tx\u3000y▁z!?»"


def sequence(*items: Any) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(items)}


# Fields from published files, and every component with every value of its fields.
DOCUMENTS: dict[str, Any] = {
    "none": None,
    "ByteLevel": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    "ByteLevel, older": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False},
    "Falcon": sequence(
        {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        {"type": "Digits", "individual_digits": False},
        SPLIT,
    ),
    "BLOOM": sequence(
        SPLIT | {"pattern": {"Regex": " ?[^(\\s|[.,!?…。，、।۔،])]+"}},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    ),
    "StarCoder": sequence(
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ),
    "nested": sequence(sequence(SPLIT, sequence({"type": "Whitespace"})), {"type": "WhitespaceSplit"}),
    **{
        f"Split {behavior} {invert}": SPLIT | {"behavior": behavior, "invert": invert}
        for behavior in BEHAVIORS
        for invert in (False, True)
    },
    "Split of a text": SPLIT | {"pattern": {"String": "l.o"}},
    **{f"Punctuation {behavior}": {"type": "Punctuation", "behavior": behavior} for behavior in BEHAVIORS},
    "Punctuation": {"type": "Punctuation"},
    "BertPreTokenizer": {"type": "BertPreTokenizer"},
    "CharDelimiterSplit": {"type": "CharDelimiterSplit", "delimiter": "l"},
    "UnicodeScripts": {"type": "UnicodeScripts"},
    "FixedLength": {"type": "FixedLength", "length": 3},
    "FixedLength alone": {"type": "FixedLength"},
    "Metaspace": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
    "Metaspace, older": {"type": "Metaspace", "replacement": "_", "add_prefix_space": True, "str_rep": "_"},
    "Metaspace without": {
        "type": "Metaspace",
        "replacement": "_",
        "add_prefix_space": False,
        "prepend_scheme": "never",
    },
}


def theirs_of(value: Any) -> PreTokenizer | None:
    """Let tokenizers parse a JSON pre-tokenizer, inside a complete tokenizer."""
    import tokenizers

    root = {
        "version": "1.0",
        "pre_tokenizer": value,
        "model": {"type": "BPE", "vocab": {}, "merges": []},
        "added_tokens": [],
    }
    return tokenizers.Tokenizer.from_str(json.dumps(root)).pre_tokenizer


@pytest.mark.parametrize("name", DOCUMENTS)
def test_written_files_cut_like_the_original(name: str) -> None:
    value = DOCUMENTS[name]
    components = [component for component, _ in components_from_json(value)]
    written = components_to_json(components)
    assert [component for component, _ in components_from_json(written)] == components
    assert components_to_json(components) == written
    before, after = theirs_of(value), theirs_of(written)
    if before is None or after is None:
        assert before is after
        return
    assert before.pre_tokenize_str(TEXT) == after.pre_tokenize_str(TEXT)


@pytest.mark.parametrize(
    ("component", "their"),
    [
        (ByteLevel(), theirs.ByteLevel()),
        (Digits(), theirs.Digits()),
        (Punctuation(), theirs.Punctuation()),
        (Whitespace(), theirs.Whitespace()),
        (WhitespaceSplit(), theirs.WhitespaceSplit()),
        (BertPreTokenizer(), theirs.BertPreTokenizer()),
        (CharDelimiterSplit("-"), theirs.CharDelimiterSplit("-")),
        (UnicodeScripts(), theirs.UnicodeScripts()),
        (FixedLength(5), theirs.FixedLength()),
        (Metaspace(), theirs.Metaspace()),
        (Split("a", "text"), theirs.Split("a", "isolated")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_defaults_and_spellings_are_theirs(component: Any, their: Any) -> None:
    """Their serialized components parse to ours, and ours to theirs."""
    written = json.loads(their.__getstate__())
    assert [each for each, _ in components_from_json(written)] == [component]
    assert components_to_json([component]) == written


def test_paths_of_nested_components() -> None:
    found = components_from_json(DOCUMENTS["nested"])
    assert [path for _, path in found] == [
        "pre_tokenizer.pretokenizers[0].pretokenizers[0]",
        "pre_tokenizer.pretokenizers[0].pretokenizers[1].pretokenizers[0]",
        "pre_tokenizer.pretokenizers[1]",
    ]


def test_byte_level_need_not_be_the_last() -> None:
    byte_level = {
        name: is_byte_level(component for component, _ in components_from_json(DOCUMENTS[name]))
        for name in ("none", "Falcon", "StarCoder", "nested")
    }
    assert byte_level == {"none": False, "Falcon": True, "StarCoder": True, "nested": False}
    assert pretokenizer_from_json(DOCUMENTS["Falcon"]).slow_because is None


WRONG = [
    (5, "pre_tokenizer: "),
    ({"type": "Splat"}, "pre_tokenizer: "),
    (
        sequence({"type": "Digits", "individual_digits": 1}),
        "pre_tokenizer.pretokenizers[0].individual_digits: ",
    ),
    ({"type": "Sequence", "pretokenizers": {}}, "pre_tokenizer.pretokenizers: "),
    ({"type": "Sequence", "pretokenizers": [], "more": 1}, "pre_tokenizer.more: unknown field"),
    ({"type": "Whitespace", "more": 1}, "pre_tokenizer.more: unknown field"),
    ({"type": "ByteLevel", "use_regex": None}, "pre_tokenizer.use_regex: "),
    (SPLIT | {"behavior": "isolated"}, "pre_tokenizer.behavior: "),
    (SPLIT | {"invert": "no"}, "pre_tokenizer.invert: "),
    (SPLIT | {"pattern": "a"}, "pre_tokenizer.pattern: "),
    (SPLIT | {"pattern": {"Glob": "a"}}, "pre_tokenizer.pattern: "),
    (SPLIT | {"pattern": {"Regex": ""}}, "pre_tokenizer.pattern.Regex: "),
    (SPLIT | {"pattern": {"String": 5}}, "pre_tokenizer.pattern.String: "),
    ({"type": "Punctuation", "behavior": None}, "pre_tokenizer.behavior: "),
    (
        {"type": "CharDelimiterSplit", "delimiter": "ab"},
        "pre_tokenizer.delimiter: ",
    ),
    ({"type": "CharDelimiterSplit"}, "pre_tokenizer.delimiter: "),
    ({"type": "FixedLength", "length": 0}, "pre_tokenizer.length: "),
    ({"type": "FixedLength", "length": True}, "pre_tokenizer.length: "),
    ({"type": "Metaspace"}, "pre_tokenizer.replacement: "),
    (
        {"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"},
        "pre_tokenizer.prepend_scheme: ",
    ),
    (
        {"type": "Metaspace", "replacement": "_", "add_prefix_space": False},
        "pre_tokenizer.add_prefix_space: ",
    ),
]


@pytest.mark.parametrize(("value", "message"), WRONG, ids=lambda value: str(value)[:50])
def test_faults_are_named_by_path(value: Any, message: str) -> None:
    with pytest.raises(BadTokenizer, match=re.escape(message)):
        components_from_json(value)
