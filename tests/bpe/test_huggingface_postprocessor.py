"""Begin and end tokens equal Hugging Face's when requested, and are never added otherwise."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import numpy as np
import pytest
import tokenizers

from bpe.errors import BadTokenizer
from bpe.formats import huggingface
from bpe.formats.huggingface_postprocessor import (
    padding_from_json,
    post_processor_from_json,
    truncation_from_json,
)
from bpe.post_processing import PostProcessor
from bpe.ragged import Ragged
from bpe.tokenizer import Tokenizer

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
SPECIALS = {"<s>": 900, "</s>": 901}


def piece(kind: str, id_: str, type_id: int = 0) -> dict[str, Any]:
    return {kind: {"id": id_, "type_id": type_id}}


def template(*single: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "type": "TemplateProcessing",
        "single": list(single),
        "pair": [piece("Sequence", "A"), piece("Sequence", "B", 1)],
        "special_tokens": {
            "<s>": {"id": "<s>", "ids": [900], "tokens": ["<s>"]},
            "two": {"id": "two", "ids": [901, 900], "tokens": ["</s>", "<s>"]},
        },
    } | changes


TEXT = piece("Sequence", "A")
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["</s>", 901],
    "cls": ["<s>", 900],
    "trim_offsets": True,
    "add_prefix_space": False,
}
HONOURED = {
    "ByteLevel": BYTE_LEVEL,
    "begin": template(piece("SpecialToken", "<s>"), TEXT),
    "both": template(piece("SpecialToken", "<s>"), TEXT, piece("SpecialToken", "two", 3)),
    "nothing": template(TEXT),
    "Roberta": ROBERTA,
    "Bert": {"type": "BertProcessing", "sep": ["</s>", 901], "cls": ["<s>", 900]},
    "Llama 3": {"type": "Sequence", "processors": [BYTE_LEVEL, template(piece("SpecialToken", "<s>"), TEXT)]},
    "nested": {
        "type": "Sequence",
        "processors": [{"type": "Sequence", "processors": [BYTE_LEVEL]}, ROBERTA, BYTE_LEVEL],
    },
}


@pytest.mark.parametrize("name", HONOURED)
def test_ids_are_theirs_with_and_without(name: str, listed: Any, nasty_texts: dict[str, str]) -> None:
    root = json.loads(listed(special_tokens=SPECIALS).canonical_json)
    root["post_processor"] = HONOURED[name]
    ours = Tokenizer.from_parts(huggingface.read(json.dumps(root).encode()))
    again = Tokenizer.from_parts(huggingface.read(ours.canonical_json))
    assert again == ours
    assert pickle.loads(pickle.dumps(ours)).post_processor == ours.post_processor
    theirs = tokenizers.Tokenizer.from_str(json.dumps(root))
    written = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    texts = [*nasty_texts.values(), "", "a<s>b", ""]
    for add in (False, True):
        expected = [theirs.encode(text, add_special_tokens=add).ids for text in texts]
        assert [ours.encode(text, add_special_tokens=add) for text in texts] == expected
        assert ours.encode_batch(texts, add_special_tokens=add).tolist() == expected
        assert [written.encode(text, add_special_tokens=add).ids for text in texts] == expected
    assert [ours.encode(text) for text in texts] == [
        ours.encode(text, add_special_tokens=False) for text in texts
    ]


@pytest.mark.parametrize(("front", "back"), [((), ()), ((1,), ()), ((), (2, 3)), ((1, 4), (2,))])
def test_rows_equal_texts(front: tuple[int, ...], back: tuple[int, ...]) -> None:
    processor = PostProcessor({}, front, back)
    for rows in ([], [[]], [[7], [], [8, 9], []], [[5] * 300] * 3):
        ragged = Ragged.from_rows([np.array(row, np.uint32) for row in rows])
        found = processor.around_rows(ragged)
        assert found.tolist() == [processor.around(row) for row in rows]
        assert (found.tokens.dtype, found.offsets.dtype) == (np.uint32, np.uint64)


WRONG = [
    (5, "post_processor: "),
    ({"type": "Else"}, "post_processor: "),
    ({"type": "Sequence", "processors": [ROBERTA, ROBERTA]}, "post_processor.processors[1]: "),
    (ROBERTA | {"more": 1}, "post_processor.more: unknown field"),
    (ROBERTA | {"sep": "</s>"}, "post_processor.sep: "),
    (ROBERTA | {"cls": ["<s>", -1]}, "post_processor.cls[1]: "),
    (ROBERTA | {"trim_offsets": 1}, "post_processor.trim_offsets: "),
    (BYTE_LEVEL | {"use_regex": 0}, "post_processor.use_regex: "),
    (template(), "post_processor.single: "),
    (template(TEXT, TEXT), "post_processor.single: "),
    (template(piece("Sequence", "B")), "post_processor.single[0].Sequence.id: "),
    (template(piece("Sequence", "C")), "post_processor.single[0].Sequence.id: "),
    (
        template(piece("SpecialToken", "<t>"), TEXT),
        "post_processor.single[0].SpecialToken.id: ",
    ),
    (template({}), "post_processor.single[0]: "),
    (template(TEXT | piece("SpecialToken", "<s>")), "post_processor.single[0]: "),
    (template({"Sequence": {"id": "A"}}), "post_processor.single[0].Sequence.type_id: "),
    (template(TEXT, pair=None), "post_processor.pair: "),
    (template(TEXT, special_tokens=[]), "post_processor.special_tokens: "),
    (
        template(TEXT, special_tokens={"<s>": {"id": "<s>", "ids": [7], "tokens": ["<s>"]}}),
        "post_processor.special_tokens['<s>'].ids: ",
    ),
    (
        template(TEXT, special_tokens={"x": {"id": "x", "ids": [7, 8], "tokens": ["x"]}}),
        "post_processor.special_tokens['x']: ",
    ),
]


@pytest.mark.parametrize(("value", "message"), WRONG, ids=lambda value: str(value)[:50])
def test_faults_are_named_by_path(value: Any, message: str) -> None:
    with pytest.raises(BadTokenizer, match=re.escape(message)):
        post_processor_from_json(value, SPECIALS)


TRUNCATION = {"direction": "Left", "max_length": 3, "strategy": "LongestFirst", "stride": 1}
PADDING = {
    "strategy": {"Fixed": 9},
    "direction": "Right",
    "pad_to_multiple_of": 8,
    "pad_id": 900,
    "pad_type_id": 0,
    "pad_token": "<s>",
}


def test_truncation_and_padding_are_kept_and_not_applied(listed: Any) -> None:
    root = json.loads(listed(special_tokens=SPECIALS).canonical_json)
    plain = Tokenizer.from_parts(huggingface.read(json.dumps(root).encode()))
    root |= {"truncation": TRUNCATION, "padding": PADDING}
    ours = Tokenizer.from_parts(huggingface.read(json.dumps(root).encode()))
    assert (ours.truncation, ours.padding) == (TRUNCATION, PADDING)
    assert ours != plain
    assert ours.encode("a b c d e f") == plain.encode("a b c d e f")
    assert pickle.loads(pickle.dumps(ours)) == ours
    theirs = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    assert theirs.to_str() == tokenizers.Tokenizer.from_str(json.dumps(root)).to_str()
    assert theirs.truncation is not None
    theirs.no_truncation()
    theirs.no_padding()
    assert theirs.encode("a b c d e f").ids == ours.encode("a b c d e f")


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (truncation_from_json, 5, "truncation: "),
        (truncation_from_json, TRUNCATION | {"more": 1}, "truncation.more: unknown field"),
        (
            truncation_from_json,
            TRUNCATION | {"strategy": "longest_first"},
            "truncation.strategy: ",
        ),
        (truncation_from_json, TRUNCATION | {"max_length": -1}, "truncation.max_length: "),
        (truncation_from_json, TRUNCATION | {"direction": "left"}, "truncation.direction: "),
        (padding_from_json, PADDING | {"more": 1}, "padding.more: unknown field"),
        (padding_from_json, PADDING | {"strategy": {"Fixed": "9"}}, "padding.strategy.Fixed: "),
        (padding_from_json, PADDING | {"strategy": "Longest"}, "padding.strategy: "),
        (padding_from_json, PADDING | {"pad_token": None}, "padding.pad_token: "),
        (padding_from_json, PADDING | {"pad_id": 1.0}, "padding.pad_id: "),
    ],
)
def test_wrong_truncation_and_padding(read: Any, value: Any, message: str) -> None:
    with pytest.raises(BadTokenizer, match=re.escape(message)):
        read(value)
    assert read(None) is None
