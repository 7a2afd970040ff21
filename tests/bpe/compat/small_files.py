"""tokenizer.json files of a small vocabulary, with any components around it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import tokenizers

import bpe
from bpe.compat.huggingface import Tokenizer
from bpe.formats.byte_alphabet import to_characters

TEXT = (
    "The mill stands where the river bends, and the miller's daughter sings: it's 1234 o'clock! "
    "Die Mühle steht am Fluß; 水車は川の曲がり角に立っている。 Мельница стоит у реки. é à ü ñ "
) * 8
SPECIAL = [
    {"content": "<s>", "special": True},
    {"content": "</s>", "special": True},
    {"content": "<mask>", "special": True, "lstrip": True},
    {"content": "[END]", "special": True, "rstrip": True},
    {"content": "Mill", "normalized": True},
    {"content": "wörd", "normalized": True, "single_word": True},
]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


@cache
def _trained() -> bpe.Tokenizer:
    return bpe.train([TEXT.encode()], 420)


def file_json(ignore_merges: bool = False, **components: Any) -> str:
    """The text of a tokenizer.json: byte-level as GPT-2's unless components say otherwise."""
    tokenizer = _trained()
    vocab = {to_characters(entry): id_ for id_, entry in tokenizer.vocab.items()}
    merges = [[to_characters(left), to_characters(right)] for left, right in tokenizer.merges]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    added = [{"id": len(vocab) + place, **flags, **token} for place, token in enumerate(SPECIAL)]
    root = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": BYTE_LEVEL,
        "post_processor": None,
        "decoder": BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": ignore_merges,
            "vocab": vocab,
            "merges": merges,
        },
    }
    return json.dumps(root | components)


def first_id() -> int:
    """The id of <s>; </s> has the next one."""
    return len(_trained().vocab)


def template() -> dict[str, Any]:
    """A TemplateProcessing: <s> $A </s>, and $B </s> of type 1."""
    tokens = {"<s>": first_id(), "</s>": first_id() + 1}

    def special(text: str, type_id: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": text, "type_id": type_id}}

    single = [special("<s>"), {"Sequence": {"id": "A", "type_id": 0}}, special("</s>")]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}, special("</s>", 1)],
        "special_tokens": {
            text: {"id": text, "ids": [id_], "tokens": [text]} for text, id_ in tokens.items()
        },
    }


def cls_and_sep(kind: str, **flags: Any) -> dict[str, Any]:
    """A RobertaProcessing or BertProcessing."""
    return {"type": kind, "sep": ["</s>", first_id() + 1], "cls": ["<s>", first_id()], **flags}


def both(**components: Any) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    """(the tokenizer of this package, that of tokenizers)."""
    text = file_json(**components)
    return Tokenizer.from_str(text), tokenizers.Tokenizer.from_str(text)
