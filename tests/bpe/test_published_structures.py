"""Files built as publishers build theirs: added tokens, pre-tokenizers and post-processors together give their ids."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random
from typing import Any

import pytest
import tokenizers

from bpe.formats import huggingface
from bpe.long_text.long_document import encode_pieces
from bpe.tokenizer import Tokenizer

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
NO_REGEX = BYTE_LEVEL | {"use_regex": False}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True}
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = (
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(expression: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}


def sequence(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(items)}


def token(content: str, **flags: bool) -> dict[str, Any]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"content": content} | plain | flags


def template(front: list[str], back: list[str], ids: dict[str, int]) -> dict[str, Any]:
    def pieces(names: list[str]) -> list[dict[str, Any]]:
        return [{"SpecialToken": {"id": name, "type_id": 0}} for name in names]

    text = {"Sequence": {"id": "A", "type_id": 0}}
    pair = {"Sequence": {"id": "B", "type_id": 1}}
    return {
        "type": "TemplateProcessing",
        "single": [*pieces(front), text, *pieces(back)],
        "pair": [*pieces(front), text, *pieces(back), pair],
        "special_tokens": {
            name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in {*front, *back}
        },
    }


RUNS_OF_SPACES = [token(" " * count, normalized=True, special=False) for count in range(24, 1, -1)]
# name -> the added tokens and the parts of the document that are not those of the trained vocabulary.
STRUCTURES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "RoBERTa": (
        [token("<s>"), token("<pad>"), token("</s>"), token("<unk>"), token("<mask>", lstrip=True)],
        {
            "pre_tokenizer": BYTE_LEVEL,
            "post_processor": lambda ids: {
                "type": "RobertaProcessing",
                "sep": ["</s>", ids["</s>"]],
                "cls": ["<s>", ids["<s>"]],
                "trim_offsets": True,
                "add_prefix_space": False,
            },
        },
    ),
    "ModernBERT": (
        [
            token("<|padding|>"),
            *RUNS_OF_SPACES,
            token("[CLS]"),
            token("[SEP]"),
            token("[MASK]", lstrip=True),
            token("|||IP_ADDRESS|||", normalized=True, special=False),
        ],
        {
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": BYTE_LEVEL,
            "post_processor": lambda ids: template(["[CLS]"], ["[SEP]"], ids),
        },
    ),
    "Pythia": (
        [token("<|endoftext|>"), *RUNS_OF_SPACES],
        {
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": BYTE_LEVEL,
            "post_processor": lambda ids: BYTE_LEVEL,
        },
    ),
    "Phi-4": (
        [
            token("<|dummy_0|>", lstrip=True, rstrip=True),
            token("<|endoftext|>", lstrip=True, rstrip=True),
            token("<|im_start|>", lstrip=True, rstrip=True),
            token("<|im_sep|>", lstrip=True, rstrip=True),
        ],
        {"pre_tokenizer": sequence(split(LLAMA3), NO_REGEX)},
    ),
    "Llama 3": (
        [token("<|begin_of_text|>"), token("<|end_of_text|>")],
        {
            "pre_tokenizer": sequence(split(LLAMA3), NO_REGEX),
            "ignore_merges": True,
            "post_processor": lambda ids: {
                "type": "Sequence",
                "processors": [BYTE_LEVEL, template(["<|begin_of_text|>"], [], ids)],
            },
        },
    ),
    "StarCoder": (
        [token("<|endoftext|>"), token("<fim_prefix>"), token("<filename>")],
        {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, BYTE_LEVEL)},
    ),
    "DeepSeek": (
        [
            token("<｜begin▁of▁sentence｜>"),
            token("<｜end▁of▁sentence｜>"),
            token("<｜User｜>", special=False),
            token("<think>", special=False, normalized=True),
            token("<｜tool▁calls▁begin｜>", normalized=True, special=False),
            token("｜>", normalized=True, special=False),
            token("<th", special=False),
        ],
        {
            "pre_tokenizer": sequence(
                split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(LLAMA3), NO_REGEX
            ),
            "post_processor": lambda ids: template(["<｜begin▁of▁sentence｜>"], [], ids),
        },
    ),
    "Falcon": (
        [token(">>TITLE<<"), token(">>SUFFIX<<"), token("<|endoftext|>")],
        {
            "pre_tokenizer": sequence(
                {"type": "Punctuation", "behavior": "Contiguous"},
                BYTE_LEVEL,
                {"type": "Digits", "individual_digits": False},
                split("[0-9][0-9][0-9]"),
            )
        },
    ),
    "a space in front": (
        [
            token("<s>", normalized=True),
            token("</s>", normalized=True),
            token("<mask>", lstrip=True),
            token("the", single_word=True, special=False),
        ],
        {"pre_tokenizer": BYTE_LEVEL | {"add_prefix_space": True}},
    ),
    "a space in front of normalized text": (
        [token("<s>", normalized=True), token("</s>"), token("<mask>", rstrip=True)],
        {
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "NFC"}]},
            "pre_tokenizer": BYTE_LEVEL | {"add_prefix_space": True},
        },
    ),
    "words with a space each": (
        [token("<s>"), token("</s>", lstrip=True)],
        {"pre_tokenizer": sequence({"type": "WhitespaceSplit"}, BYTE_LEVEL | {"add_prefix_space": True})},
    ),
    "Metaspace": (
        [token("<s>", normalized=True), token("</s>"), token("<mask>", lstrip=True)],
        {
            "normalizer": {"type": "NFKC"},
            "pre_tokenizer": sequence(METASPACE | {"prepend_scheme": "always"}, NO_REGEX),
        },
    ),
    "Metaspace of inputs": (
        [token("<s>", normalized=True), token("</s>")],
        {"pre_tokenizer": sequence(METASPACE | {"prepend_scheme": "first", "split": False}, BYTE_LEVEL)},
    ),
    "Metaspace of pieces": (
        [token("<s>"), token("</s>")],
        {
            "pre_tokenizer": sequence(
                {"type": "Punctuation", "behavior": "Isolated"},
                METASPACE | {"prepend_scheme": "first"},
                BYTE_LEVEL | {"add_prefix_space": True},
            )
        },
    ),
    "words": (
        [
            token("the", single_word=True, special=False, normalized=True),
            token("Größe", special=False, rstrip=True),
        ],
        {"pre_tokenizer": BYTE_LEVEL, "normalizer": {"type": "NFC"}},
    ),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_ids_are_theirs(name: str, listed: Any, nasty_texts: dict[str, str], random_texts: Any) -> None:
    tokens, parts = STRUCTURES[name]
    root = json.loads(listed(special_tokens=[]).canonical_json)
    vocab = root["model"]["vocab"]
    first = max(vocab.values()) + 1
    new = [item for item in tokens if item["content"] not in vocab]
    ids = {item["content"]: first + place for place, item in enumerate(new)}
    root["added_tokens"] = [{"id": {**vocab, **ids}[item["content"]]} | item for item in tokens]
    root["normalizer"] = parts.get("normalizer")
    root["pre_tokenizer"] = parts["pre_tokenizer"]
    root["post_processor"] = parts.get("post_processor", lambda ids: None)(ids)
    root["model"]["ignore_merges"] = parts.get("ignore_merges", False)
    data = json.dumps(root).encode()
    ours, theirs = Tokenizer.from_parts(huggingface.read(data)), tokenizers.Tokenizer.from_buffer(data)
    written = tokenizers.Tokenizer.from_buffer(ours.canonical_json)
    contents = [item["content"] for item in tokens]
    joined = [f"a {one} {other}\tb{one}{other}e\u0301 " for one, other in pairwise(contents)]
    random = list(random_texts(seed=3, count=30, size=40))
    mixed = [f"{text[:9]}{contents[place % len(contents)]}{text[9:]}" for place, text in enumerate(random)]
    documents = "\ue000".join(mixed)
    rows = [theirs.encode(text, add_special_tokens=False).ids for text in mixed]
    assert [row.tolist() for row in ours.encode_documents(documents.encode(), "\ue000", 2)] == rows
    whole = theirs.encode("".join(mixed), add_special_tokens=False).ids
    assert list(ours.encode_iterable(mixed)) == whole
    pieces = (text.encode() for text in mixed)
    assert [id_ for part in encode_pieces(ours, pieces, "all", 50) for id_ in part.tolist()] == whole
    for text in [*nasty_texts.values(), *joined, *mixed, *random]:
        for add in (False, True):
            expected = theirs.encode(text, add_special_tokens=add).ids
            assert ours.encode(text, add_special_tokens=add) == expected, text
            assert written.encode(text, add_special_tokens=add).ids == expected, text
    assert Tokenizer.from_parts(huggingface.read(ours.canonical_json)) == ours
    rng = Random(2)
    # They take an added token of letters in the byte alphabet for bytes: docs/tokenizers.md.
    alike = [id_ for id_ in ours.vocab if id_ != ours.special_tokens.get("Größe")]
    for _ in range(50):  # bytes that are no UTF-8 among them
        drawn = rng.choices(alike, k=30)
        assert ours.decode(drawn) == theirs.decode(drawn, skip_special_tokens=False)
