"""Components have the arguments, results and spelling of those of tokenizers."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
import tokenizers
from compared import texts

from bpe.compat import huggingface
from bpe.compat.huggingface import Regex, decoders, normalizers, pre_tokenizers, processors
from bpe.errors import BadArgument, UnsupportedTokenizer

# module, class, arguments by name; "regex:..." is a Regex.
MADE: list[tuple[str, str, dict[str, Any]]] = [
    *(
        ("normalizers", name, {})
        for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")
    ),
    ("normalizers", "ByteLevel", {}),
    ("normalizers", "Strip", {"left": False}),
    ("normalizers", "Prepend", {"prepend": "_"}),
    ("normalizers", "Replace", {"pattern": "a", "content": "b"}),
    ("normalizers", "Replace", {"pattern": "regex:a+", "content": ""}),
    ("normalizers", "BertNormalizer", {"lowercase": False, "strip_accents": True}),
    ("pre_tokenizers", "ByteLevel", {"add_prefix_space": False}),
    ("pre_tokenizers", "ByteLevel", {"use_regex": False}),
    ("pre_tokenizers", "Split", {"pattern": "regex:[a-e]+", "behavior": "merged_with_next"}),
    ("pre_tokenizers", "Split", {"pattern": " ", "behavior": "removed", "invert": True}),
    ("pre_tokenizers", "Digits", {"individual_digits": True}),
    ("pre_tokenizers", "Punctuation", {"behavior": "contiguous"}),
    ("pre_tokenizers", "Whitespace", {}),
    ("pre_tokenizers", "WhitespaceSplit", {}),
    ("pre_tokenizers", "BertPreTokenizer", {}),
    ("pre_tokenizers", "CharDelimiterSplit", {"delimiter": "i"}),
    ("pre_tokenizers", "FixedLength", {"length": 4}),
    *(("pre_tokenizers", "Metaspace", {"prepend_scheme": scheme}) for scheme in ("always", "first", "never")),
    ("pre_tokenizers", "Metaspace", {"replacement": "_", "split": False}),
    ("processors", "ByteLevel", {"trim_offsets": False}),
    ("processors", "BertProcessing", {"sep": ("S", 1), "cls": ("C", 2)}),
    ("processors", "RobertaProcessing", {"sep": ("S", 1), "cls": ("C", 2), "trim_offsets": False}),
    (
        "processors",
        "TemplateProcessing",
        {"single": "C $0 S:3", "pair": ["C", "$A:1", "S", "$B:2"], "special_tokens": [("S", 1), (2, "C")]},
    ),
    ("decoders", "ByteLevel", {}),
    ("decoders", "Replace", {"pattern": "▁", "content": " "}),
    ("decoders", "Replace", {"pattern": "regex:[_i]+", "content": "."}),
    ("decoders", "ByteFallback", {}),
    ("decoders", "Fuse", {}),
    ("decoders", "Strip", {"content": "_", "left": 1}),
    ("decoders", "Metaspace", {"replacement": "_"}),
    ("decoders", "BPEDecoder", {"suffix": "_"}),
    ("decoders", "WordPiece", {}),
    ("decoders", "CTC", {"pad_token": "_"}),
]
TOKENS = [
    "▁the",
    "_",
    "_mill",
    "mill",
    "mill",
    "##s",
    "<0xE6>",
    "<0x97>",
    "<0xA5>",
    "<0xC3>",
    "Ġ's",
    "'t_",
    "__a__",
    "é",
]


def made(package: Any, module: str, name: str, arguments: dict[str, Any]) -> Any:
    values = {
        key: package.Regex(value[6:]) if isinstance(value, str) and value.startswith("regex:") else value
        for key, value in arguments.items()
    }
    kind = getattr(getattr(package, module), name)
    return (
        kind(values["sep"], values["cls"], *list(values.values())[2:]) if "cls" in values else kind(**values)
    )


@pytest.mark.parametrize(("module", "name", "arguments"), MADE, ids=lambda value: str(value)[:40])
def test_components(module: str, name: str, arguments: dict[str, Any]) -> None:
    ours, theirs = (made(package, module, name, arguments) for package in (huggingface, tokenizers))
    assert json.loads(ours.__getstate__()) == json.loads(theirs.__getstate__())
    assert repr(ours) == repr(theirs)
    again = pickle.loads(pickle.dumps(ours))
    assert again == ours
    assert type(ours).base().taken(theirs) == ours
    if module == "decoders":
        for count in range(1, len(TOKENS) + 1):  # the last one is often treated in another way
            assert ours.decode(TOKENS[:count]) == theirs.decode(TOKENS[:count])
    if module == "processors":
        assert ours.num_special_tokens_to_add(True) == theirs.num_special_tokens_to_add(True)
    for text in texts(40, seed=31):
        if module == "normalizers":
            assert again.normalize_str(text) == theirs.normalize_str(text)
        if module == "pre_tokenizers":
            assert again.pre_tokenize_str(text) == theirs.pre_tokenize_str(text), text


def test_sequences() -> None:
    given = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    assert given.normalize_str("é") == "e"
    assert len(given) == 2
    assert type(pickle.loads(pickle.dumps(given))[0]) is normalizers.NFD
    given[0] = tokenizers.normalizers.Lowercase()
    assert given.normalize_str("É") == "é"
    with pytest.raises(IndexError):
        given[2]
    cut = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    assert [text for text, _ in cut.pre_tokenize_str("a 12")] == ["a", "1", "2"]


def test_a_sequence_within_a_sequence() -> None:
    """Its components are taken, but for decoders'; a component's text and an empty text."""
    for make in (
        lambda module: module.normalizers.Sequence([module.normalizers.Sequence([module.normalizers.NFC()])]),
        lambda module: module.decoders.Sequence([module.decoders.Sequence([module.decoders.Fuse()])]),
        lambda module: module.processors.Sequence(
            [module.processors.Sequence([module.processors.ByteLevel()])]
        ),
        lambda module: module.pre_tokenizers.Sequence(
            [module.pre_tokenizers.Sequence([module.pre_tokenizers.Whitespace()])]
        ),
    ):
        assert repr(make(huggingface)) == repr(make(tokenizers))
    for text in ("", "a b"):
        ours, theirs = (module.pre_tokenizers.Sequence([]) for module in (huggingface, tokenizers))
        assert ours.pre_tokenize_str(text) == theirs.pre_tokenize_str(text)


def test_the_model_alone() -> None:
    """Tokens of a pretoken, with offsets in bytes."""
    entries = {"h": 0, "é": 1, "l": 2, "hé": 3, "?": 4}
    for options in ({"unk_token": "?"}, {}, {"unk_token": "?", "fuse_unk": True}):
        ours, theirs = (
            module.models.BPE(entries, [("h", "é")], **options) for module in (huggingface, tokenizers)
        )
        for text in ("hélxxl", "", "é中h"):
            mine = [(each.id, each.value, each.offsets, each.as_tuple()) for each in ours.tokenize(text)]
            assert mine == [
                (each.id, each.value, each.offsets, each.as_tuple()) for each in theirs.tokenize(text)
            ]
        assert ours.get_trainer().vocab_size == theirs.get_trainer().vocab_size


def test_byte_fallback_reads_a_sign() -> None:
    ours, theirs = (module.decoders.ByteFallback() for module in (huggingface, tokenizers))
    for tokens in (["<0x+1>"], ["a", "<0xE4>", "<0xB8>", "<0xAD>", "<0x-1>", "<0x1+>"]):
        assert ours.decode(tokens) == theirs.decode(tokens)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: normalizers.NFC(3), TypeError, "takes 0 arguments"),
        (lambda: normalizers.Strip(up=True), TypeError, "no argument 'up'"),
        (lambda: normalizers.Replace("a"), TypeError, "needs the argument content"),
        (lambda: pre_tokenizers.Metaspace("ab"), BadArgument, "length 1"),
        (
            lambda: pre_tokenizers.UnicodeScripts().pre_tokenize_str("a"),
            UnsupportedTokenizer,
            "UnicodeScripts",
        ),
        (lambda: processors.TemplateProcessing(single="$C"), BadArgument, "Cannot build Piece"),
        (lambda: processors.TemplateProcessing(single="[X] $A"), BadArgument, r"Missing SpecialToken\(s\)"),
        (lambda: processors.TemplateProcessing(pair="$A"), BadArgument, "both sequences"),
        (lambda: decoders.Replace("a", "b").pattern, AttributeError, "pattern"),
        (
            lambda: huggingface.NormalizedString("a"),
            UnsupportedTokenizer,
            "^NormalizedString: ",
        ),
        (
            lambda: normalizers.Normalizer.from_json({"type": "New"}),
            UnsupportedTokenizer,
            "^Normalizer: .*'New'",
        ),
    ],
)
def test_wrong_arguments(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def test_patterns_are_hidden_as_in_tokenizers() -> None:
    given = normalizers.Replace(Regex("a+"), "b")
    given.content = "c"
    assert given.normalize_str("xaax") == "xcx"
    with pytest.raises(AttributeError):
        given.pattern = "x"
