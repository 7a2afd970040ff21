"""Each known spelling of a pattern cuts like its name, in the library it is written for."""

from __future__ import annotations

import pytest
import regex

from bpe.patterns import _NAME_OF as NAME_OF
from bpe.patterns import HUGGINGFACE_SPELLINGS, PATTERNS, pattern_name

GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def pieces(expression, text):
    return [match.group() for match in regex.finditer(expression.replace("$", r"\Z"), text)]


@pytest.mark.parametrize("spelling", sorted(NAME_OF), ids=lambda spelling: NAME_OF[spelling])
def test_spellings_cut_alike(spelling, nasty_texts, random_texts):
    for text in [*nasty_texts.values(), *random_texts(seed=6, count=60, size=30)]:
        assert pieces(spelling, text) == pieces(PATTERNS[NAME_OF[spelling]], text), repr(text)


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_the_written_spelling_cuts_alike_in_hugging_face(name, nasty_texts, random_texts):
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(HUGGINGFACE_SPELLINGS[name]), "isolated")
    for text in [*nasty_texts.values(), *random_texts(seed=7, count=60, size=30)]:
        assert [piece for piece, _ in split.pre_tokenize_str(text)] == pieces(PATTERNS[name], text), repr(
            text
        )


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k"])
def test_the_spellings_of_the_installed_tiktoken(name):
    from tiktoken_ext import openai_public

    source = {"gpt2": "r50k_pat_str"}.get(name)
    if source is not None:
        assert pattern_name(getattr(openai_public, source)) == name
    assert pattern_name(PATTERNS[name].replace(r"\Z", "$")) == name


def test_names():
    assert pattern_name("gpt2") == "gpt2"
    assert pattern_name(GPT4) == "llama3"
    assert pattern_name(GPT4.replace("{1,3}", "")) == "qwen2"
    assert pattern_name(r"\w+") is None
