"""Encodings have what those of tokenizers have, with every post-processor, truncated, padded, as pairs and in words."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest
import tokenizers
from compared import assert_same, texts
from small_files import BYTE_LEVEL, both, cls_and_sep, template

from bpe.compat.huggingface import Encoding
from bpe.errors import BadArgument

PROCESSORS: dict[str, Any] = {
    "none": None,
    "ByteLevel": BYTE_LEVEL,
    "ByteLevel, prefix": BYTE_LEVEL | {"add_prefix_space": True},
    "template": template(),
    "Roberta": cls_and_sep("RobertaProcessing", trim_offsets=True, add_prefix_space=True),
    "Roberta, whole": cls_and_sep("RobertaProcessing", trim_offsets=False, add_prefix_space=False),
    "Bert": cls_and_sep("BertProcessing"),
    "both": {"type": "Sequence", "processors": [BYTE_LEVEL, template()]},
}
TRUNCATIONS: list[dict[str, Any]] = [
    {"max_length": 9},
    {"max_length": 12, "stride": 2},
    {"max_length": 12, "stride": 1, "direction": "left"},
    {"max_length": 40, "strategy": "only_second"},
    {"max_length": 20, "strategy": "only_first", "stride": 3},
]
PADDINGS: list[dict[str, Any]] = [
    {},
    {"length": 14},
    {"direction": "left", "pad_to_multiple_of": 8, "pad_id": 3, "pad_type_id": 1, "pad_token": "<p>"},
]


@pytest.mark.parametrize("name", PROCESSORS)
def test_single_pairs_and_words(name: str) -> None:
    ours, theirs = both(post_processor=PROCESSORS[name], normalizer={"type": "NFC"})
    drawn = random.Random(11)
    for text in texts(40, seed=12):
        other = drawn.choice(texts(10, seed=13))
        words = drawn.choices(["the", " mill", "é", "", "日本", " <s>", "Mill"], k=drawn.randint(0, 5))
        for add in (False, True):
            assert_same(ours.encode(text, None, False, add), theirs.encode(text, None, False, add), text)
            assert_same(
                ours.encode(text, other, False, add), theirs.encode(text, other, False, add), text, other
            )
            given = (words, [*words, "a"], True, add)
            assert_same(ours.encode(*given), theirs.encode(*given), words)


@pytest.mark.parametrize("name", PROCESSORS)
def test_truncation_and_padding(name: str) -> None:
    ours, theirs = both(post_processor=PROCESSORS[name])
    single = [text for text in texts(12, seed=14, most=14) if len(text) > 3]
    pairs = list(zip(single, reversed(single), strict=True))
    for truncation in TRUNCATIONS:
        for padding in PADDINGS:
            for each in (ours, theirs):
                each.enable_truncation(**truncation)
                each.enable_padding(**padding)
            assert ours.truncation == theirs.truncation
            assert ours.padding == theirs.padding
            for batch in (single, pairs):
                expected = _encodings(theirs, batch)
                found = _encodings(ours, batch)
                assert (found is None) == (expected is None)
                for mine, other in zip(found or [], expected or [], strict=True):
                    assert_same(mine, other, truncation, padding)


@pytest.mark.parametrize("only", ["truncation", "padding", "none of it left"])
def test_one_of_both_is_enough(only: str) -> None:
    ours, theirs = both()
    batch = ["the mill at the river", "the", "", "mill mill"]
    for each in (ours, theirs):
        if only != "padding":
            each.enable_truncation(0 if only == "none of it left" else 2)
        if only == "padding":
            each.enable_padding()
    for mine, other in zip(ours.encode_batch(batch), theirs.encode_batch(batch), strict=True):
        assert_same(mine, other, only)
    for text in batch:
        assert_same(ours.encode(text), theirs.encode(text), only, text)


def _encodings(tokenizer: Any, batch: list[Any]) -> list[Any] | None:
    """None if it can't be done."""
    try:
        return tokenizer.encode_batch(batch)
    except Exception:
        return None


def test_lengths_of_a_file_are_applied() -> None:
    truncation = {"direction": "Left", "max_length": 5, "strategy": "LongestFirst", "stride": 1}
    padding = {
        "strategy": {"Fixed": 7},
        "direction": "Left",
        "pad_to_multiple_of": None,
        "pad_id": 2,
        "pad_type_id": 1,
        "pad_token": "#",
    }
    ours, theirs = both(truncation=truncation, padding=padding)
    for text in ("the mill at the river", "", "a"):
        assert_same(ours.encode(text), theirs.encode(text), text)
    ours.no_truncation()
    ours.no_padding()
    assert ours.encode("a").ids == theirs.encode("a").ids[-1:]


def test_lookups() -> None:
    ours, theirs = both(post_processor=template())
    mine, other = (each.encode("the mill é 日本 stands", "a river") for each in (ours, theirs))
    for sequence in (0, 1):
        for place in range(30):
            for name in ("char_to_token", "char_to_word", "word_to_tokens", "word_to_chars"):
                assert getattr(mine, name)(place, sequence) == getattr(other, name)(place, sequence), (
                    name,
                    place,
                )
    for place in range(len(other) + 3):
        for name in ("token_to_sequence", "token_to_chars", "token_to_word"):
            assert getattr(mine, name)(place) == getattr(other, name)(place), (name, place)
    with pytest.warns(DeprecationWarning, match="word_ids"):
        assert mine.words == other.word_ids


def test_changes_of_an_encoding() -> None:
    ours, theirs = both(post_processor=template())
    for direction in ("left", "right"):
        mine, other = (each.encode("the mill stands where the river bends") for each in (ours, theirs))
        for each in (mine, other):
            each.truncate(6, 2, direction)
            each.pad(9, direction=direction, pad_id=5, pad_token="#")
        assert_same(mine, other, direction)
    for growing in (False, True):
        parts = [[each.encode(text) for text in ("the mill", "", "a river")] for each in (ours, theirs)]
        merged = Encoding.merge(parts[0], growing), tokenizers.Encoding.merge(parts[1], growing)
        assert_same(*merged, growing)
    mine.set_sequence_id(3)
    other.set_sequence_id(3)
    assert mine.token_to_sequence(1) == other.token_to_sequence(1) == 3
    with pytest.raises(BadArgument, match="^stride: .*4"):
        ours.encode("the mill stands").truncate(4, 4)
    with pytest.raises(ValueError, match="Invalid truncation direction value : up"):
        mine.truncate(2, 0, "up")


def test_lists_are_the_callers() -> None:
    ours, _ = both()
    encoding = ours.encode("the mill")
    encoding.ids.append(7)
    encoding.ids.clear()
    assert len(encoding.ids) == len(encoding) == len(encoding.tokens)
    in_batch = ours.encode_batch(["the mill"])[0]
    in_batch.ids.append(7)
    assert in_batch == encoding


def test_pickled() -> None:
    ours, theirs = both(post_processor=template())
    for each in (ours, theirs):
        each.enable_truncation(9, stride=1)
    mine = ours.encode("the mill stands where the river bends", "é")
    assert_same(pickle.loads(pickle.dumps(mine)), theirs.encode("the mill stands where the river bends", "é"))
    assert repr(mine).startswith("Encoding(num_tokens=9, attributes=[ids, ")
    assert len(Encoding()) == 0
    assert Encoding().ids == []


@pytest.mark.parametrize("kind", ["BertProcessing", "RobertaProcessing"])
def test_an_encoding_that_is_processed_again(kind: str) -> None:
    """Tokens that were put around, and padding, are tokens of the text then; Bert's keep their types."""
    flags = {"trim_offsets": True, "add_prefix_space": False} if kind == "RobertaProcessing" else {}
    around = cls_and_sep(kind, **flags)
    for processor in (around, {"type": "Sequence", "processors": [template(), around]}):
        ours, theirs = both(post_processor=processor)
        for tokenizer in (ours, theirs):
            tokenizer.enable_truncation(9)
            tokenizer.enable_padding(length=16, pad_type_id=3)
        pair = ("the mill stands where", "the river bends and sings")
        mine, other = ours.encode(*pair), theirs.encode(*pair)
        assert_same(mine, other)
        assert_same(ours.post_process(mine), theirs.post_process(other))
        assert_same(ours.post_process(mine, mine), theirs.post_process(other, other))
        assert_same(mine, other)


def test_overflowing_parts_are_encodings_of_their_own() -> None:
    """One that was changed changed the encoding it came from, and those made of it."""
    ours, theirs = both(post_processor=template())
    for tokenizer in (ours, theirs):
        tokenizer.enable_truncation(5)
    pairs = [each.encode("the mill stands where the river bends") for each in (ours, theirs)]
    for encoding in pairs:
        encoding.overflowing[0].pad(9)
        encoding.overflowing[1].set_sequence_id(1)
    assert_same(*pairs)
    again = [each.post_process(one, one) for each, one in zip((ours, theirs), pairs, strict=True)]
    assert_same(*again)
    assert_same(*pairs)
