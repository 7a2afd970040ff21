"""A `Tokenizer` of bpe.compat.huggingface behaves as in tokenizers: drawn calls, and one test per past bug."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from compared import BYTE_LEVEL, assert_same, both, file_of, template, texts, token
from drawn import calls

import bpe
from bpe.compat import huggingface
from bpe.compat.huggingface import AddedToken, Encoding, Tokenizer, normalizers, pre_tokenizers, processors
from bpe.compat.huggingface.models import BPE
from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer
from bpe.formats import huggingface as huggingface_file
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER

BYTES = {character: id_ for id_, character in enumerate(BYTE_TO_CHARACTER.values())}


@pytest.mark.slow
@pytest.mark.promise("compat-huggingface")
@pytest.mark.parametrize("start", range(0, 60, 10))
def test_drawn_calls(start: int) -> None:
    assert sum(calls(seed) for seed in range(start, start + 10)) >= 4  # the others are refused


def test_import_of_bpe_does_not_import_this_package() -> None:
    code = "import bpe, sys; bpe.Tokenizer; assert not any(name.startswith('bpe.compat') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files(tmp_path: Path) -> None:
    ours, theirs = both(normalizer={"type": "NFC"}, post_processor=template())
    path = str(tmp_path / "tokenizer.json")
    ours.save(path)
    for again in (Tokenizer.from_file(path), Tokenizer.from_pretrained(str(tmp_path)), copy.copy(ours)):
        for text in texts(10, seed=21):
            assert_same(again.encode(text), theirs.encode(text), text)
    for each in (ours, theirs):
        each.enable_truncation(9, strategy="only_first")
        each.enable_padding(length=7)
    assert json.loads(ours.to_str()) == json.loads(theirs.to_str())
    assert repr(ours) == repr(theirs)
    assert str(ours) == str(theirs)
    with pytest.raises(BadArgument, match="revision"):
        Tokenizer.from_pretrained("x", revision="other")


def test_texts_of_ids_are_not_searched_for() -> None:
    """Each ID took a pass over the vocabulary, also in `decode`."""
    vocab = {f"{number:05}": number for number in range(30_000)}
    tokenizer = Tokenizer(BPE(vocab, []))
    ids = range(len(vocab))
    before = time.process_time()
    assert [tokenizer.model.id_to_token(id_) for id_ in ids] == list(vocab)
    assert [tokenizer.id_to_token(id_) for id_ in ids] == list(vocab)
    assert tokenizer.decode(ids) == " ".join(vocab)
    assert time.process_time() - before < 3


def test_batches() -> None:
    ours, theirs = both(post_processor=template(), normalizer={"type": "NFC"})
    batch = texts(30, seed=23)
    for given in (
        batch,
        tuple(batch),
        np.array(batch),
        [(batch[1], batch[2]), batch[3], [batch[4], batch[5]]],
    ):
        for mine, other in zip(ours.encode_batch(given), theirs.encode_batch(given), strict=True):
            assert_same(mine, other)
    assert asyncio.run(ours.async_encode("a")) == ours.encode("a")
    assert asyncio.run(ours.async_encode_batch_fast(["a"])) == ours.encode_batch(["a"])
    assert asyncio.run(ours.async_decode_batch([[1, 2]])) == ours.decode_batch([[1, 2]])
    expected = [(each.ids, each.offsets) for each in ours.encode_batch(batch)]
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda _: [(e.ids, e.offsets) for e in ours.encode_batch(batch)], range(6)))
    assert runs == [expected] * 6


def test_lists_belong_to_the_caller() -> None:
    encoding = both()[0].encode("the mill")
    encoding.ids.clear()
    encoding.tokens.clear()
    assert len(encoding.ids) == len(encoding) == len(encoding.tokens)
    assert encoding.token_to_chars(len(encoding)) is None
    with pytest.warns(DeprecationWarning, match="word_ids"):
        assert encoding.words == encoding.word_ids
    assert Encoding().ids == []


def test_encodings_keep_the_post_processor_of_their_call() -> None:
    """Tokens are computed when they are first read, which may be after a change."""
    ours = both()[0]
    ours.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 7)])
    expected = ours.encode("the mill").tokens
    encoding = ours.encode("the mill")
    ours.post_processor.single = "$A"
    assert encoding.tokens == expected
    assert encoding.ids[0] == 7
    assert len(encoding) == len(expected)


def test_components_may_change() -> None:
    ours, theirs = both()
    text = "The Mill  é is<s>"
    before = ours.encode(text).ids
    given = normalizers.Sequence([normalizers.NFD(), normalizers.Strip()])
    ours.normalizer = given
    other = tokenizers.normalizers
    theirs.normalizer = other.Sequence([other.NFD(), other.Strip()])
    assert_same(ours.encode(" " + text), theirs.encode(" " + text))
    given[1] = normalizers.Prepend("x")
    theirs.normalizer = other.Sequence([other.NFD(), other.Prepend("x")])
    assert_same(ours.encode(text), theirs.encode(text))
    ours.normalizer = other.NFC()  # of tokenizers
    assert isinstance(ours.normalizer, normalizers.NFC)
    ours.normalizer = None
    assert ours.encode(text).ids == before
    copied = copy.deepcopy(ours)
    ours.pre_tokenizer.add_prefix_space = True
    theirs.normalizer = None
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    assert_same(ours.encode(text), theirs.encode(text))
    assert copied.encode(text).ids == before


@pytest.mark.parametrize("kind", ["BertProcessing", "RobertaProcessing"])
def test_an_encoding_that_is_processed_again(kind: str) -> None:
    """Added tokens and padding become tokens of the text. Those of Bert keep their types."""
    flags = {"trim_offsets": True, "add_prefix_space": False} if kind == "RobertaProcessing" else {}
    ours, theirs = both(post_processor={"type": kind, "sep": ["</s>", 361], "cls": ["<s>", 360], **flags})
    for tokenizer in (ours, theirs):
        tokenizer.enable_truncation(9)
        tokenizer.enable_padding(length=16, pad_type_id=3)
    pair = ("the mill is where", "the river bends and sings")
    mine, other = ours.encode(*pair), theirs.encode(*pair)
    assert_same(ours.post_process(mine, mine), theirs.post_process(other, other))
    assert_same(mine, other)


def test_a_token_within_the_whitespace_that_another_took() -> None:
    """A batch of texts ended with an IndexError."""
    components = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL}
    ours, theirs = both(file_of(BYTES, token("\n", 256, rstrip=True), components=components))
    for text in ("s\n\n\\_é", "\n \n\n x", "é\n\n", "\n\u3000\n\té\n"):
        assert_same(ours.encode(text), theirs.encode(text), text)


@pytest.mark.parametrize("fuse_unk", [True, False])
def test_an_unknown_character_before_byte_entries(fuse_unk: bool) -> None:
    """The unknown token comes after them."""
    vocab = {"?": 0, "a": 1, "<0xC3>": 2, "<0x9F>": 3}
    ours, theirs = both(file_of(vocab, unk_token="?", byte_fallback=True, fuse_unk=fuse_unk))
    for text in ("xßya", "xxß", "ßx", "a\u3000ßyßa", "中ß中ßa"):
        assert_same(ours.encode(text), theirs.encode(text), text)


def test_special_tokens_are_skipped_by_their_normalized_texts() -> None:
    """Decoding skipped "_a", the normalized text of the special token "a" that has the ID of an entry."""
    prepend = {"normalizer": {"type": "Prepend", "prepend": "_"}}
    added = token("a", 0, special=True, normalized=True)
    ours, theirs = both(file_of({"a": 0, "b": 1}, added, components=prepend))
    assert ours.decode([0, 1]) == theirs.decode([0, 1]) == "_a b"


def test_ignored_special_tokens_hide_tokens_that_start_in_them() -> None:
    """In "<x>", which was text, "x>" was a token."""
    letters = {letter: id_ for id_, letter in enumerate("<xs> \n")}
    added = [
        token(" ", 4, special=True),
        token("<x>", 6, special=True, rstrip=True),
        token("x>", 7),
        token("<s", 8, lstrip=True),
    ]
    ours, theirs = both(file_of(letters, *added))
    ours.encode_special_tokens = theirs.encode_special_tokens = True
    for text in ("<x>x>", "<<x> x><s", "x>  \n <s<x>  s", "<x><s"):
        assert_same(ours.encode(text), theirs.encode(text), text)
        assert ours.encode_batch([text])[0].ids == theirs.encode(text).ids
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert again.encode("<x>").ids == ours.encode("<x>").ids != [6]


TEXT = {"a": 0, "b": 1, "?": 2, "b$": 3, "<0x78>": 4}


@pytest.mark.parametrize(
    "model",
    [{"unk_token": "?", "fuse_unk": True}, {"end_of_word_suffix": "$"}, {"byte_fallback": True}],
    ids=str,
)
def test_of_a_tokenizer_with_entries_of_text(model: dict[str, Any]) -> None:
    """The model's rules for unknown characters were lost."""
    text = file_of(TEXT, token("<s>", 5, special=True), **model)
    made = Tokenizer.from_tokenizer(bpe.Tokenizer.from_parts(huggingface_file.read(text.encode())))
    theirs = tokenizers.Tokenizer.from_str(made.to_str())
    for each in ("axb", "xx<s>b", "ab"):
        assert_same(Tokenizer.from_str(text).encode(each), made.encode(each), each)
        assert_same(made.encode(each), theirs.encode(each), each)


@pytest.mark.parametrize(
    ("content", "model"),
    [
        ("x", {}),
        ("x$", {"end_of_word_suffix": "$"}),
        ("<0x79>", {"byte_fallback": True}),
        ("xy", {"ignore_merges": True}),
    ],
)
def test_an_added_token_is_no_entry_of_the_saved_file(content: str, model: Any, tmp_path: Path) -> None:
    """Where single_word excludes it, it became an entry."""
    path = str(tmp_path / "tokenizer.json")
    text = file_of(TEXT, token(content, 5, single_word=True), token("<s>", 6), **model)
    Path(path).write_text(text, encoding="utf-8")
    bpe.Tokenizer.load(path).save(path)
    saved = tokenizers.Tokenizer.from_file(path)
    for each in ("axb", "axyb", "xy", "x", "y", "ax$", "<s>x"):
        wanted = tokenizers.Tokenizer.from_str(text).encode(each).ids
        assert saved.encode(each).ids == bpe.Tokenizer.load(path).encode(each) == wanted, each


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_pre_tokenizer_that_spells_bytes(byte_fallback: bool) -> None:
    """ByteLevel without an expression was ignored: characters were encoded instead of bytes."""
    letters = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "Ã": 4, "©": 5}
    ours, theirs = both(file_of(letters, unk_token="<unk>"))
    ours.pre_tokenizer = pre_tokenizers.ByteLevel(False, use_regex=False)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(False, use_regex=False)
    for text in ("abé\n", "中a", "b b"):
        assert_same(ours.encode(text), theirs.encode(text), text)


@pytest.mark.parametrize("kind", ["WordPiece", "Unigram", "WordLevel"])
def test_other_models_are_refused(kind: str) -> None:
    with pytest.raises(UnsupportedTokenizer, match=f"model.type: .*{kind}"):
        Tokenizer.from_str(json.dumps({"model": {"type": kind, "vocab": {}}}))


def test_tokenizers_that_the_core_does_not_support() -> None:
    byte_level = both()[0]
    byte_level.add_tokens(["é"])  # which is how an entry of one byte is spelled
    assert byte_level.id_to_token(BYTES["é"]) is not None
    for make in (
        lambda: byte_level.encode("a"),
        lambda: Tokenizer(BPE(dropout=0.5)).encode("a"),
        lambda: Tokenizer.from_str(file_of({"a": 0}, components={"pre_tokenizer": {"type": "New"}})),
    ):
        with pytest.raises(BadTokenizer, match=r"added_tokens|model\.dropout|pre_tokenizer"):
            make()


def test_training_that_returned_a_tokenizer_of_the_other_library() -> None:
    """transformers makes a new tokenizer from the JSON of the old one, with the tokenizers library."""

    def train_new_from_iterator(wrapped: Any) -> Any:
        return tokenizers.Tokenizer.from_str(wrapped.to_str())

    tokenizer = huggingface.Tokenizer(BPE())
    with pytest.raises(UnsupportedTokenizer, match="train_from_iterator"):
        train_new_from_iterator(tokenizer)
    with pytest.raises(UnsupportedTokenizer, match=r"tokenizers\.trainers"):
        tokenizer.train_from_iterator(["a"], tokenizers.trainers.BpeTrainer(show_progress=False))
    with pytest.raises(TypeError, match="Encoding"):
        tokenizer.post_process(tokenizers.Tokenizer.from_str(tokenizer.to_str()).encode("a"))


def test_added_tokens_of_tokenizers() -> None:
    ours, theirs = both(normalizer={"type": "Lowercase"})
    given = [
        "plain",
        tokenizers.AddedToken("  sp", lstrip=True),
        tokenizers.AddedToken("Norm", normalized=True),
    ]
    assert ours.add_tokens(given) == theirs.add_tokens(given) == 3
    assert repr(AddedToken("a", lstrip=True)) == repr(tokenizers.AddedToken("a", lstrip=True))
    assert_same(ours.encode("a plain  sp NORM"), theirs.encode("a plain  sp NORM"))
