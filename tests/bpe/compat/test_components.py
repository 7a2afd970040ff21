"""Components have the arguments, results, spelling and errors of the tokenizers library."""

from __future__ import annotations

import json
import pickle
import types
from collections.abc import Callable
from typing import Any

import pytest
import tokenizers
from compared import answer, both, texts

from bpe.compat import huggingface
from bpe.compat.huggingface import Regex, models, normalizers, pre_tokenizers
from bpe.errors import UnsupportedTokenizer

# module, class, arguments by name; "regex:..." is a Regex.
MADE: list[tuple[str, str, dict[str, Any]]] = [
    *(("normalizers", name, {}) for name in "NFC NFD NFKC NFKD Lowercase StripAccents Nmt ByteLevel".split()),
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
    *(("pre_tokenizers", name, {}) for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")),
    ("pre_tokenizers", "CharDelimiterSplit", {"delimiter": "i"}),
    ("pre_tokenizers", "FixedLength", {"length": 4}),
    *(("pre_tokenizers", "Metaspace", {"prepend_scheme": scheme}) for scheme in ("always", "first", "never")),
    ("pre_tokenizers", "Metaspace", {"replacement": "_", "split": False}),
    ("processors", "ByteLevel", {"trim_offsets": False}),
    ("processors", "BertProcessing", {"sep": ("S", 1), "cls_token": ("C", 2)}),
    ("processors", "RobertaProcessing", {"sep": ("S", 1), "cls_token": ("C", 2), "trim_offsets": False}),
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
TOKENS = "▁the|_|_mill|mill|mill|##s|<0xE6>|<0x97>|<0xA5>|<0x+1>|<0xC3>|Ġ's|'t_|__a__|é".split("|")


def made(package: Any, module: str, name: str, arguments: dict[str, Any]) -> Any:
    values = {
        key: package.Regex(value[6:]) if isinstance(value, str) and value.startswith("regex:") else value
        for key, value in arguments.items()
    }
    return getattr(getattr(package, module), name)(**values)


@pytest.mark.promise("compat-huggingface")
@pytest.mark.parametrize(("module", "name", "arguments"), MADE, ids=lambda value: str(value)[:40])
def test_components(module: str, name: str, arguments: dict[str, Any]) -> None:
    ours, theirs = (made(package, module, name, arguments) for package in (huggingface, tokenizers))
    assert json.loads(ours.__getstate__()) == json.loads(theirs.__getstate__())
    assert repr(ours) == repr(theirs)
    again = pickle.loads(pickle.dumps(ours))
    assert again == ours
    assert type(ours).coerce(theirs) == ours
    if module == "decoders":
        for count in range(1, len(TOKENS) + 1):  # many decoders change the first or last token only
            assert ours.decode(TOKENS[:count]) == theirs.decode(TOKENS[:count])
    if module == "processors":
        assert ours.num_special_tokens_to_add(True) == theirs.num_special_tokens_to_add(True)
    for text in texts(40, seed=31):
        if module == "normalizers":
            assert again.normalize_str(text) == theirs.normalize_str(text)
        if module == "pre_tokenizers":
            assert again.pre_tokenize_str(text) == theirs.pre_tokenize_str(text), text


@pytest.mark.promise("compat-huggingface")
@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [case for case in MADE if case[1] != "TemplateProcessing"],  # its templates are texts in tokenizers
    ids=lambda value: str(value)[:40],
)
def test_attributes(module: str, name: str, arguments: dict[str, Any]) -> None:
    ours, theirs = (made(package, module, name, arguments) for package in (huggingface, tokenizers))
    for key in dir(theirs):
        value = None if key.startswith("_") or key in ("pattern", "behavior") else getattr(theirs, key)
        if value is not None and not callable(value):
            assert getattr(ours, key) == value
            changed = not value if isinstance(value, bool) else value
            for component in (ours, theirs):
                setattr(component, key, changed)
            assert json.loads(ours.__getstate__()) == json.loads(theirs.__getstate__())


@pytest.mark.parametrize(
    "question",
    [
        lambda module: module.pre_tokenizers.CharDelimiterSplit(""),
        lambda module: module.pre_tokenizers.Metaspace("ab"),
        lambda module: module.decoders.Metaspace(replacement=""),
    ],
)
def test_the_error_for_another_length_than_one_has_the_words_of_tokenizers(question: Any) -> None:
    for package in (tokenizers, huggingface):
        with pytest.raises(ValueError, match="expected a string of length 1"):
            question(package)


def test_sequences() -> None:
    given = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    assert given.normalize_str("é") == "e"
    assert len(given) == 2
    assert type(pickle.loads(pickle.dumps(given))[0]) is normalizers.NFD
    given[0] = tokenizers.normalizers.Lowercase()
    assert given.normalize_str("É") == "é"
    with pytest.raises(IndexError):
        given[2]


def test_a_sequence_within_a_sequence_is_replaced_by_its_components_except_in_decoders() -> None:
    for make in (
        lambda module: module.normalizers.Sequence([module.normalizers.Sequence([module.normalizers.NFC()])]),
        lambda module: module.decoders.Sequence([module.decoders.Sequence([module.decoders.Fuse()])]),
        lambda module: module.processors.Sequence(
            [module.processors.Sequence([module.processors.ByteLevel()])]
        ),
    ):
        assert repr(make(huggingface)) == repr(make(tokenizers))
    for text in ("", "a b"):
        ours, theirs = (module.pre_tokenizers.Sequence([]) for module in (huggingface, tokenizers))
        assert ours.pre_tokenize_str(text) == theirs.pre_tokenize_str(text)


def test_model() -> None:
    entries = {"h": 0, "é": 1, "l": 2, "hé": 3, "?": 4, "<0xE4>": 5, "<0xB8>": 6, "<0xAD>": 7}
    for options in ({"unk_token": "?"}, {}, {"unk_token": "?", "fuse_unk": True}, {"byte_fallback": True}):
        ours, theirs = (
            module.models.BPE(entries, [("h", "é")], **options) for module in (huggingface, tokenizers)
        )
        for text in ("hélxxl", "", "é中h"):
            found, wanted = (
                [(each.id, each.value, each.offsets, each.as_tuple()) for each in model.tokenize(text)]
                for model in (ours, theirs)
            )
            assert found == wanted
        assert ours.get_trainer().vocab_size == theirs.get_trainer().vocab_size


def test_patterns_are_hidden() -> None:
    given = normalizers.Replace(Regex("a+"), "b")
    given.content = "c"
    assert given.normalize_str("xaax") == "xcx"
    with pytest.raises(AttributeError):
        given.pattern = "x"
    with pytest.raises(AttributeError):
        _ = given.pattern


@pytest.mark.parametrize(
    "make",
    [
        pre_tokenizers.UnicodeScripts().pre_tokenize_str,
        huggingface.NormalizedString,
        models.Unigram,
        lambda _: normalizers.Normalizer.from_json({"type": "New"}),
    ],
)
def test_unsupported(make: Any) -> None:
    with pytest.raises(UnsupportedTokenizer):
        make("a")


# -- errors ------------------------------------------------------------------------------------------------------------

OURS, THEIRS = both()
Question = Callable[[types.ModuleType, Any], Any]
QUESTIONS: list[Question] = [
    lambda _, tokenizer: tokenizer.add_tokens("abc"),
    lambda _, tokenizer: tokenizer.add_special_tokens([3]),
    lambda _, tokenizer: tokenizer.token_to_id(b"a"),
    lambda _, tokenizer: tokenizer.token_to_id("\ud800"),
    *(lambda _, tokenizer, ids=ids: tokenizer.decode(ids) for ids in ("abc", 5)),
    lambda _, tokenizer: tokenizer.decode(iter([1])),
    lambda _, tokenizer: tokenizer.encode("a", 3),
    lambda _, tokenizer: tokenizer.encode("a", is_pretokenized=True),
    lambda _, tokenizer: tokenizer.encode_batch("text"),
    lambda _, tokenizer: tokenizer.enable_truncation(5, strategy=3),
    lambda _, tokenizer: tokenizer.enable_padding(direction=-1),
    lambda _, tokenizer: tokenizer.enable_padding("left"),
    lambda _, tokenizer: tokenizer.enable_padding(pad_id=-1),
    lambda _, tokenizer: tokenizer.enable_padding(pad_token=5),
    lambda _, tokenizer: tokenizer.encode("a").pad(3, pad_id=-1),
    lambda _, tokenizer: tokenizer.encode("the mill").truncate(1, 0, "up"),
    lambda _, tokenizer: setattr(tokenizer, "normalizer", 3),
    lambda _, tokenizer: setattr(tokenizer, "model", 3),
    lambda module, _: module.AddedToken(5),
    lambda module, _: module.AddedToken("a", lstrip=1),
    lambda module, _: module.normalizers.NFC(3),
    lambda module, _: module.normalizers.Strip(up=True),
    lambda module, _: module.normalizers.Replace("a"),
    lambda module, _: module.normalizers.Prepend(4),
    lambda module, _: module.normalizers.BertNormalizer(True, True, 5),
    lambda module, _: module.normalizers.Sequence(module.normalizers.NFC()),
    lambda module, _: module.pre_tokenizers.Digits("a"),
    lambda module, _: module.pre_tokenizers.Split("a", "x"),
    lambda module, _: module.pre_tokenizers.Split(5, "removed"),
    lambda module, _: module.pre_tokenizers.Metaspace("ab"),
    lambda module, _: module.pre_tokenizers.Metaspace(prepend_scheme="x"),
    lambda module, _: module.processors.TemplateProcessing(single=5),
    lambda module, _: module.processors.TemplateProcessing(single="$C"),
    lambda module, _: module.processors.TemplateProcessing(single="[X] $A"),
    lambda module, _: module.processors.TemplateProcessing(pair="$A"),
    lambda module, _: module.processors.TemplateProcessing("[X]", None, [("[X]", "a")]),
    lambda module, _: module.models.BPE(vocab={"a": 0}),
    lambda module, _: module.models.BPE({"a": 0}, [("a", "b")]),
    lambda module, _: module.models.BPE(unk_token=5),
    *(
        lambda module, _, options=options: module.trainers.BpeTrainer(**options)
        for options in (
            {"vocab_size": -1},
            {"vocab_size": "a"},
            {"special_tokens": "abc"},
            {"initial_alphabet": "abc"},
            {"min_frequency": None},
            {"limit_alphabet": -1},
            {"max_token_length": 1.5},
        )
    ),
]


@pytest.mark.promise("compat-huggingface")
@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_errors_have_the_class_of_those_of_tokenizers(question: Question) -> None:
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
def test_unknown_arguments_are_ignored_with_a_warning(question: Question) -> None:
    ours, theirs = both()
    question(tokenizers, theirs)
    with pytest.warns(UserWarning, match="Ignored unknown kwarg option foo"):
        question(huggingface, ours)


def test_positional_arguments() -> None:
    """trim_offsets comes before use_regex."""
    for make in (
        lambda module: module.pre_tokenizers.ByteLevel(True, False),
        lambda module: module.processors.RobertaProcessing(("a", 1), ("b", 2), False),
        lambda module: module.decoders.ByteLevel(foo=1),
    ):
        assert repr(make(huggingface)) == repr(make(tokenizers))
