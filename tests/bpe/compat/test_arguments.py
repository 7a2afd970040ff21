"""What can't be an argument is the same kind of error as in tokenizers."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import tokenizers
from compared import answer
from small_files import both

from bpe.compat import huggingface

OURS, THEIRS = both()
NO_NUMBER = [-1, 1 << 64, 1.5, "a", None]
Question = Callable[[types.ModuleType, Any], Any]

QUESTIONS: dict[str, Question] = {
    "add_tokens of a text": lambda _, tokenizer: tokenizer.add_tokens("abc"),
    "add_special_tokens of numbers": lambda _, tokenizer: tokenizer.add_special_tokens([3]),
    "token_to_id of bytes": lambda _, tokenizer: tokenizer.token_to_id(b"a"),
    "token_to_id of a lone surrogate": lambda _, tokenizer: tokenizer.token_to_id("\ud800"),
    "decode of a text": lambda _, tokenizer: tokenizer.decode("abc"),
    "decode of texts": lambda _, tokenizer: tokenizer.decode(["a"]),
    "decode of a number": lambda _, tokenizer: tokenizer.decode(5),
    "decode of an iterator": lambda _, tokenizer: tokenizer.decode(iter([1])),
    "decode of what is no id": lambda _, tokenizer: tokenizer.decode([-1]),
    "decode of what can be no id": lambda _, tokenizer: tokenizer.decode([1 << 32]),
    "decode of a fraction": lambda _, tokenizer: tokenizer.decode([1.0]),
    "encode of a pair in one": lambda _, tokenizer: tokenizer.encode((("a",), ("b",))),
    "a strategy that is no text": lambda _, tokenizer: tokenizer.enable_truncation(5, strategy=3),
    "a direction that is no text": lambda _, tokenizer: tokenizer.enable_padding(direction=-1),
    "padding by place": lambda _, tokenizer: tokenizer.enable_padding("left"),
    "a pad_id below 0": lambda _, tokenizer: tokenizer.enable_padding(pad_id=-1),
    "a pad_token that is no text": lambda _, tokenizer: tokenizer.enable_padding(pad_token=5),
    "pad with an id below 0": lambda _, tokenizer: tokenizer.encode("a").pad(3, pad_id=-1),
    "AddedToken of a number": lambda module, _: module.AddedToken(5),
    "a flag that is no flag": lambda module, _: module.AddedToken("a", lstrip=1),
    "a flag of a component": lambda module, _: module.pre_tokenizers.Digits("a"),
    "a text of a component": lambda module, _: module.normalizers.Prepend(4),
    "a behavior": lambda module, _: module.pre_tokenizers.Split("a", "x"),
    "a pattern": lambda module, _: module.pre_tokenizers.Split(5, "removed"),
    "a scheme": lambda module, _: module.pre_tokenizers.Metaspace(prepend_scheme="x"),
    "strip_accents": lambda module, _: module.normalizers.BertNormalizer(True, True, 5),
    "a sequence of one": lambda module, _: module.normalizers.Sequence(module.normalizers.NFC()),
    "a template": lambda module, _: module.processors.TemplateProcessing(single=5),
    "a special token": lambda module, _: module.processors.TemplateProcessing("[X]", None, [("[X]", "a")]),
    "vocab without merges": lambda module, _: module.models.BPE(vocab={"a": 0}),
    "a merge of no entries": lambda module, _: module.models.BPE({"a": 0}, [("a", "b")]),
    "unk_token": lambda module, _: module.models.BPE(unk_token=5),
}
for method in ("char_to_token", "char_to_word", "token_to_chars", "token_to_sequence", "token_to_word"):
    for value in NO_NUMBER:
        QUESTIONS[f"{method}({value!r})"] = lambda _, tokenizer, method=method, value=value: getattr(
            tokenizer.encode("the mill"), method
        )(value)
for value in [*NO_NUMBER, 1 << 32]:
    QUESTIONS[f"word_to_tokens({value!r})"] = lambda _, tokenizer, value=value: tokenizer.encode(
        "the"
    ).word_to_tokens(value)
    QUESTIONS[f"id_to_token({value!r})"] = lambda _, tokenizer, value=value: tokenizer.id_to_token(value)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_errors(question: Question) -> None:
    theirs = answer(lambda tokenizer: question(tokenizers, tokenizer), THEIRS)
    assert isinstance(theirs, Exception)
    with pytest.raises(type(theirs)):
        question(huggingface, OURS)


@pytest.mark.parametrize(
    "question",
    [
        lambda _, tokenizer: tokenizer.enable_padding(foo=3),
        lambda _, tokenizer: tokenizer.enable_truncation(5, foo=3),
        lambda _, tokenizer: tokenizer.encode("a").pad(3, foo=3),
        lambda module, _: module.AddedToken("a", foo=3),
        lambda module, _: module.models.BPE(foo=3),
        lambda module, _: module.trainers.BpeTrainer(foo=3),
    ],
)
def test_unknown_arguments_are_told_and_ignored(question: Question) -> None:
    ours, theirs = both()
    question(tokenizers, theirs)
    with pytest.warns(UserWarning, match="Ignored unknown kwarg option foo"):
        question(huggingface, ours)


def test_arguments_by_place() -> None:
    """trim_offsets comes before use_regex; what attributes call `cls` is the argument cls_token."""
    for make in (
        lambda module: module.pre_tokenizers.ByteLevel(True, False),
        lambda module: module.processors.BertProcessing(sep=("a", 1), cls_token=("b", 2)),
        lambda module: module.processors.RobertaProcessing(("a", 1), cls_token=("b", 2), trim_offsets=False),
        lambda module: module.decoders.ByteLevel(foo=1),
    ):
        assert repr(make(huggingface)) == repr(make(tokenizers))
