"""Presets cut and normalize as tokenizers does with the same components; files bring their own rule."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from peer_pieces import tiktoken_pieces
from tokenizers import models, normalizers

from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer
from bpe.formats.byte_alphabet import to_bytes
from bpe.formats.huggingface_components import components_to_json
from bpe.like import TextRule, rule_like
from bpe.presets import PRESETS, Preset
from bpe.pretokenization.components import ByteLevel, Split
from bpe.tokenizer import Tokenizer
from bpe.training import train

NASTY = (
    "Hello World's  I'LL don't 12345 ٣٤٥ e\u0301a\u0308 ÀÉ日本語テキスト한국어 x=[a,b];//\r\n\r\n \t  end. "
    "a_b-c!? 👍🏽 ﬁ ß ſ 'S 3.14  \u00a0\u2003x\n\n\n  Ünï ЖзЩ उदाहरण।۔، <|x|>"
)


def random_text(rng: random.Random) -> str:
    return "".join(rng.choices(NASTY, k=rng.randint(0, 60)))


def by_huggingface(preset: Preset) -> Any:
    """Return a tokenizer with the preset's components, built with tokenizers."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    if preset.normalizer:
        tokenizer.normalizer = getattr(normalizers, preset.normalizer)()
    root = json.loads(tokenizer.to_str())
    root["pre_tokenizer"] = components_to_json(preset.components)
    return tokenizers.Tokenizer.from_str(json.dumps(root))


# Oniguruma reads tiktoken's spellings differently, so another test compares them in tiktoken's dialect.
@pytest.mark.parametrize(
    "preset",
    [
        each
        for each in PRESETS
        if not (isinstance(each.components[0], Split) and each.components[0].dialect == "rust")
    ],
    ids=lambda preset: preset.names[0],
)
def test_pretokens_equal_huggingface(preset: Preset) -> None:
    theirs = by_huggingface(preset)
    rule = rule_like(preset.names[0])
    assert str(rule.normalizer) == str(preset.normalizer)
    rng = random.Random(3)
    for text in [NASTY, *(random_text(rng) for _ in range(200))]:
        if preset.normalizer:
            assert rule.normalizer is not None
            text = theirs.normalizer.normalize_str(text)
            assert rule.normalizer.apply(text.encode()).decode() == text
        pieces = theirs.pre_tokenizer.pre_tokenize_str(text)
        if any(isinstance(component, ByteLevel) for component in preset.components):
            expected = [to_bytes(piece) for piece, _ in pieces]
        else:
            expected = [piece.encode() for piece, _ in pieces]
        assert list(rule.pretokenizer.iterate(text)) == expected


@pytest.mark.parametrize("name", ["gpt-4", "kimi-k2", "nanochat"])
def test_presets_in_the_dialect_of_tiktoken(name: str) -> None:
    (preset,) = [each for each in PRESETS if each.names[0] == name]
    split = preset.components[0]
    assert isinstance(split, Split)
    rng = random.Random(4)
    pretokenizer = rule_like(name).pretokenizer
    texts = [NASTY, *(random_text(rng) for _ in range(100))]
    theirs = tiktoken_pieces(split.expression, texts)
    for text in texts:
        assert pretokenizer.pretokens(text) == theirs(text)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.names[0])
def test_names_are_found_however_they_are_spelled(preset: Preset) -> None:
    for name in preset.names:
        assert rule_like(name) == rule_like(name.upper().replace("-", "_")) == rule_like(preset.names[0])


def test_a_file_gives_its_pretokenizer_and_normalizer_and_nothing_else(tmp_path: Path) -> None:
    made = train([b"aab ab"], 260, ["<s>"], like="qwen-3.5")
    assert isinstance(made, Tokenizer)
    made.save(tmp_path / "tokenizer.json")
    for path in (tmp_path, str(tmp_path / "tokenizer.json")):
        assert rule_like(path) == rule_like("qwen-3.5") == TextRule.of(made)
    root = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "unigram.json").write_text(json.dumps(root | {"model": {"type": "Unigram", "vocab": []}}))
    assert rule_like(tmp_path / "unigram.json") == TextRule.of(made)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(BadTokenizer, match=r"other\.json: pre_tokenizer: "):
        rule_like(tmp_path / "other.json")
    (tmp_path / "nfkc.json").write_text(json.dumps(root | {"normalizer": {"type": "NFKC"}}))
    assert str(rule_like(tmp_path / "nfkc.json").normalizer) == "NFKC"
    (tmp_path / "none.json").write_text(json.dumps(root | {"normalizer": {"type": "None"}}))
    with pytest.raises(UnsupportedTokenizer, match=r"none\.json"):
        rule_like(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"like": "gpt-5000"},
            "^like: .*'gpt-5000'.* gpt-2, ",
        ),
        ({"like": 3}, "^like: .*3"),
        ({"like": "gpt-2", "pattern": "gpt2"}, "^like: .*pattern"),
    ],
)
def test_unknown_presets_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        train([b"ab"], 300, **arguments)


def test_a_sentencepiece_model_and_a_tekken_file_are_trained_like(tmp_path: Path) -> None:
    """Both were read as tokenizer.json, so the error was about JSON."""
    text = b"the mill turns by the river and the miller turns the mill " * 20
    train([text], 300, ["<unk>"], like="llama-2").export_sentencepiece(tmp_path / "tokenizer.model")
    for like in (tmp_path / "tokenizer.model", tmp_path):
        made = train([text], 320, ["<unk>"], like=like)
        assert made.text_rules == Tokenizer.load(tmp_path / "tokenizer.model").text_rules
        assert made.decode(made.encode("the miller")) == "the miller"
