"""Helpers that compare this package with tokenizers and tiktoken."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import tokenizers

import bpe
from bpe.compat.huggingface import Tokenizer
from bpe.formats.byte_alphabet import to_characters

COLUMNS = (
    "ids tokens offsets word_ids attention_mask type_ids special_tokens_mask sequence_ids n_sequences".split()
)
PIECES = (
    "the|The mill| river|\n| |  |   \n|\t|é|e\u0301|日本語|\u0301|\u0323\u0301|\U0001f44d|"
    "\U0001f469\u200d\U0001f467|'s|'LL|1234|!!|\x85|\r\n|한국어|\u1112\u1161\u11ab|ﬁ|\u212b|\u0958|Ǆ|İ|ß|"
    "\u00a0|\u200b|\u3000|①|㍿|\u0344|a\u0315\u0300\u05aeb|\u1e9b\u0323|\x00|\ufeff|Ġ|▁|<s>|</s>| <mask> |"
    "[END]  |Mill|wörd|Wörds|கி|\U0001d15e"
).split("|")
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
TEXT = (
    "The mill is where the river bends, and the miller's daughter sings: it's 1234 o'clock! "
    "Die Mühle steht am Fluß; 水車は川の曲がり角に立っている。 é à ü ñ "
) * 8


def texts(count: int, seed: int, most: int = 8) -> list[str]:
    """Return random texts, the first one empty."""
    rng = random.Random(seed)
    return ["", *("".join(rng.choices(PIECES, k=rng.randint(0, most))) for _ in range(count))]


def answer(question: Callable[[Any], Any], asked: Any) -> Any:
    """Return the result, or the error that was raised."""
    try:
        return question(asked)
    except BaseException as error:  # a panic is not an Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return error


def assert_same(ours: Any, theirs: Any, *where: Any) -> None:
    """Compare all columns of two encodings, and of their overflowing parts."""
    for column in COLUMNS:
        assert getattr(ours, column) == getattr(theirs, column), (where, column)
    for part, (mine, other) in enumerate(zip(ours.overflowing, theirs.overflowing, strict=True)):
        assert_same(mine, other, *where, "overflowing", part)


def token(content: str, id_: int, **flags: bool) -> dict[str, Any]:
    """Return an added token in tokenizer.json's form."""
    return {"id": id_, "content": content, **dict.fromkeys(FLAGS, False), **flags}


def file_of(vocab: dict[str, int], *added: dict[str, Any], components: Any = (), **model: Any) -> str:
    """Return the text of a tokenizer.json."""
    root = {"version": "1.0", "added_tokens": list(added), **dict(components)}
    return json.dumps(root | {"model": {"type": "BPE", "vocab": vocab, "merges": [], **model}})


@cache
def _trained() -> bpe.Tokenizer:
    return bpe.train([TEXT.encode()], 360)


def both(text: str | None = None, **components: Any) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    """Return the tokenizers of both packages: of a tokenizer.json, or of a trained vocabulary like GPT-2's."""
    if text is None:
        trained = _trained()
        vocab = {to_characters(entry): id_ for id_, entry in trained.vocab.items()}
        merges = [[to_characters(left), to_characters(right)] for left, right in trained.merges]
        added = [
            token("<s>", 360, special=True),
            token("</s>", 361, special=True),
            token("<mask>", 362, special=True, lstrip=True),
            token("Mill", 363, normalized=True),
        ]
        components = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL} | components
        text = file_of(vocab, *added, components=components, merges=merges)
    return Tokenizer.from_str(text), tokenizers.Tokenizer.from_str(text)


def template() -> dict[str, Any]:
    """Return a TemplateProcessing: <s> $A </s> $B:1 </s>:1."""

    def special(text: str, type_id: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": text, "type_id": type_id}}

    single = [special("<s>"), {"Sequence": {"id": "A", "type_id": 0}}, special("</s>")]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}, special("</s>", 1)]
    tokens = {
        text: {"id": text, "ids": [id_], "tokens": [text]} for text, id_ in (("<s>", 360), ("</s>", 361))
    }
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}
