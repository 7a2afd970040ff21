"""A `Tokenizer` of bpe.compat.huggingface is the one of tokenizers: files, vocabulary, changes, errors."""

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
from compared import assert_same, texts
from small_files import both, file_json, first_id, template

import bpe
from bpe.compat import huggingface
from bpe.compat.huggingface import AddedToken, DecodeStream, Tokenizer, decoders, normalizers, pre_tokenizers
from bpe.compat.huggingface.engine import CoreEngine, PlainEngine
from bpe.compat.huggingface.models import BPE
from bpe.compat.huggingface.processors import TemplateProcessing
from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer


def test_import_bpe_reads_none_of_it() -> None:
    code = "import bpe, sys; bpe.Tokenizer; assert not any(name.startswith('bpe.compat') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files(tmp_path: Path) -> None:
    ours, theirs = both(normalizer={"type": "NFC"}, post_processor=template())
    path = str(tmp_path / "tokenizer.json")
    ours.save(path)
    assert json.loads(ours.to_str()) == json.loads(theirs.to_str())
    for again in (
        Tokenizer.from_file(path),
        Tokenizer.from_str(ours.to_str()),
        Tokenizer.from_buffer(Path(path).read_bytes()),
        Tokenizer.from_pretrained(str(tmp_path)),
        tokenizers.Tokenizer.from_file(path),
        pickle.loads(pickle.dumps(ours)),
        copy.copy(ours),
        copy.deepcopy(ours),
    ):
        for text in texts(10, seed=21):
            assert_same(again.encode(text), theirs.encode(text), text)
    for each in (ours, theirs):
        each.enable_truncation(9, strategy="only_first")
        each.enable_padding(length=7)
    assert repr(ours) == repr(theirs)
    assert str(ours) == str(theirs)


def test_of_this_packages_tokenizer() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257}
    tokenizer = bpe.Tokenizer({id_: entry for entry, id_ in ranks.items()}, None, {"<s>": 258}, "cl100k")
    ours = Tokenizer.from_tokenizer(tokenizer)
    theirs = tokenizers.Tokenizer.from_str(ours.to_str())
    for text in texts(20, seed=22):
        assert ours.encode(text).ids == tokenizer.encode(text)
        assert_same(ours.encode(text), theirs.encode(text), text)
    with pytest.raises(BadArgument, match="revision"):
        Tokenizer.from_pretrained("x", revision="other")


def test_vocabulary() -> None:
    ours, theirs = both()
    for with_added in (False, True):
        assert ours.get_vocab(with_added) == theirs.get_vocab(with_added)
        assert ours.get_vocab_size(with_added) == theirs.get_vocab_size(with_added)
    for id_ in range(theirs.get_vocab_size() + 3):
        assert ours.id_to_token(id_) == theirs.id_to_token(id_)
    for token in ("Ġthe", "the", "<s>", "é", "nothing", ""):
        assert ours.token_to_id(token) == theirs.token_to_id(token)
    assert repr(ours.get_added_tokens_decoder()[first_id()]) == repr(
        theirs.get_added_tokens_decoder()[first_id()]
    )
    assert ours.num_special_tokens_to_add(True) == 0


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
    ours, theirs = both(post_processor=template())
    batch = texts(30, seed=23)
    for given in (
        batch,
        tuple(batch),
        np.array(batch),
        [(batch[1], batch[2]), batch[3], [batch[4], batch[5]]],
    ):
        for mine, other in zip(ours.encode_batch(given), theirs.encode_batch(given), strict=True):
            assert_same(mine, other)
    words = [["the", "mill"], (["a"], ["b", "c"])]
    for mine, other in zip(ours.encode_batch(words, True), theirs.encode_batch(words, True), strict=True):
        assert_same(mine, other)
    assert ours.encode_batch([]) == []
    assert [each.ids for each in ours.encode_batch_fast(batch)] == [
        each.ids for each in ours.encode_batch(batch)
    ]
    assert asyncio.run(ours.async_encode("a")) == ours.encode("a")
    assert asyncio.run(ours.async_encode_batch_fast(["a"])) == ours.encode_batch(["a"])
    assert asyncio.run(ours.async_decode_batch([[1, 2]])) == ours.decode_batch([[1, 2]])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda it: it.encode(3), "TextInputSequence must be str, got 3"),
        (lambda it: it.encode("a\ud800"), "character 1 .* is a lone surrogate"),
        (lambda it: it.encode("a", 3), "TextInputSequence must be str"),
        (lambda it: it.encode("a", is_pretokenized=True), "InputSequence must be Union"),
        (lambda it: it.encode_batch("text"), "^input: "),
        (lambda it: it.encode_batch(7), "^input: "),
        (lambda it: it.encode_batch(["a", "\udfff"]), "lone surrogate"),
        (lambda it: it.encode_batch([None]), "TextEncodeInput"),
        (lambda it: it.add_tokens([3]), "^token: .*3"),
    ],
)
def test_wrong_inputs(call: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        call(both()[0])


def test_added_tokens() -> None:
    ours, theirs = both(normalizer={"type": "Lowercase"})
    given: list[Any] = [
        "plain",
        AddedToken("  sp", lstrip=True),
        AddedToken("Norm", normalized=True),
        AddedToken(""),
    ]
    other: list[Any] = [
        tokenizers.AddedToken(**each.to_json()) if isinstance(each, AddedToken) else each for each in given
    ]
    assert ours.add_tokens(given) == theirs.add_tokens(other) == 3
    assert ours.add_tokens(given) == theirs.add_tokens(other) == 0
    assert ours.add_special_tokens(["<new>", "the"]) == theirs.add_special_tokens(["<new>", "the"])
    assert ours.add_special_tokens(other) == theirs.add_special_tokens(other)  # tokens of tokenizers, too
    pieces = ["plain", " sp", "NORM", "<new>", "the", "The mill"]
    for text in ["".join(pieces), *(" ".join([a, b]) for a in pieces for b in pieces)]:
        assert_same(ours.encode(text), theirs.encode(text), text)
        ids = ours.encode(text).ids
        for skip in (False, True):
            assert ours.decode(ids, skip) == theirs.decode(ids, skip)
    assert ours.get_vocab() == theirs.get_vocab()
    for each in (ours, theirs):
        each.encode_special_tokens = True
    for text in ("a<new>b", "plain<s>"):
        assert_same(ours.encode(text), theirs.encode(text), text)


def test_components_may_change() -> None:
    ours, theirs = both()
    text = "The Mill  é stands<s>"
    before = ours.encode(text).ids
    ours.normalizer, theirs.normalizer = normalizers.Lowercase(), tokenizers.normalizers.Lowercase()
    assert_same(ours.encode(text), theirs.encode(text))
    given = normalizers.Sequence([normalizers.NFD(), normalizers.Strip()])
    ours.normalizer = given
    other = tokenizers.normalizers
    theirs.normalizer = other.Sequence([other.NFD(), other.Strip()])
    assert_same(ours.encode(" " + text), theirs.encode(" " + text))
    given[1] = normalizers.Prepend("x")
    assert ours.encode(text).ids != theirs.encode(text).ids
    ours.normalizer = tokenizers.normalizers.NFC()  # a component of tokenizers
    assert isinstance(ours.normalizer, normalizers.NFC)
    ours.normalizer = None
    assert ours.encode(text).ids == before
    ours.pre_tokenizer.add_prefix_space = True
    assert isinstance(ours._current().engine, CoreEngine | PlainEngine)
    theirs.normalizer = None
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    assert_same(ours.encode(text), theirs.encode(text))
    ours.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", ours.token_to_id("<s>"))]
    )
    assert ours.encode("a").tokens[0] == "<s>"
    with pytest.raises(TypeError, match="must be a Normalizer or None"):
        ours.normalizer = 3
    with pytest.raises(TypeError, match="^model: .*3"):
        ours.model = 3


def test_changes_rebuilt_the_engines_of_other_tokenizers() -> None:
    """Each change of any tokenizer made all others build their engines again."""
    ours, other = both()[0], both()[0]
    built = ours._current()
    other.add_tokens(["new"])
    other.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    other.pre_tokenizer.add_prefix_space = False
    assert ours._current() is built
    ours.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(add_prefix_space=False)])
    copied = copy.deepcopy(ours)
    without = ours.encode("a").ids
    ours.pre_tokenizer[0].add_prefix_space = True
    assert ours.encode("a").ids == ours.encode(" a").ids != without
    assert copied.encode("a").ids == without
    copied.pre_tokenizer[0] = pre_tokenizers.ByteLevel(add_prefix_space=False)
    copied.pre_tokenizer[0].add_prefix_space = True
    assert copied.encode("a").ids == ours.encode("a").ids


def test_decoding() -> None:
    ours, theirs = both(added_tokens=[])
    added = ["é", "Ġ", "日本"]  # two are spelled as bytes are
    assert ours.add_tokens(added) == theirs.add_tokens(added)
    assert isinstance(ours._current().engine, PlainEngine)  # "é" has the id of a byte
    size = theirs.get_vocab_size()
    for ids in ([], [size, size + 7, 3], *(list(range(start, start + 9)) for start in range(0, size, 7))):
        assert ours.decode(ids) == theirs.decode(ids)
    stream, other = DecodeStream(), tokenizers.decoders.DecodeStream()
    for id_ in theirs.encode("the 日本語 é \U0001f44d mill").ids:
        assert stream.step(ours, id_) == other.step(theirs, id_)
    ours.decoder, theirs.decoder = None, None
    assert ours.decode([1, 2, 300]) == theirs.decode([1, 2, 300])
    ours.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    assert ours.decode([300])


@pytest.mark.parametrize("kind", ["WordPiece", "Unigram", "WordLevel"])
def test_other_models_are_refused(kind: str) -> None:
    with pytest.raises(UnsupportedTokenizer, match=f"model.type: .*{kind}"):
        Tokenizer.from_str(json.dumps({"model": {"type": kind, "vocab": {}}}))
    with pytest.raises(UnsupportedTokenizer, match=f"^{kind}: "):
        getattr(__import__("bpe.compat.huggingface.models", fromlist=[kind]), kind)()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"version": "2.0"}, "version"),
        ({"other": 1}, "other"),
        ({"pre_tokenizer": {"type": "New"}}, "New"),
        ({"model": {"type": "BPE", "vocab": {}, "merges": [], "new": 1}}, "model.new"),
        ({"model": {"type": "BPE", "vocab": [], "merges": []}}, "model.vocab"),
        ({"model": 3}, "model"),
        ({"truncation": {"max_length": -1}}, "truncation"),
    ],
)
def test_wrong_files(change: dict[str, Any], match: str) -> None:
    with pytest.raises(BadTokenizer, match=match):
        Tokenizer.from_str(json.dumps(json.loads(file_json()) | change)).encode("a")


def test_threads_share_one() -> None:
    ours, _ = both(normalizer={"type": "NFC"})
    batch = texts(60, seed=24)
    expected = [(each.ids, each.offsets) for each in ours.encode_batch(batch)]
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda _: [(e.ids, e.offsets) for e in ours.encode_batch(batch)], range(6)))
    assert runs == [expected] * 6


VOCAB = {
    text: id_
    for id_, text in enumerate("a b c é <0x41> <0xC3> <0xA8> ? ab bc abc ##b a##b c</w> aa <s>".split())
}
MERGES = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "a")]


class TestModelsMadeInPython:
    """Entries that are text, and models that the core does not hold."""

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"unk_token": "?"},
            {"unk_token": "?", "fuse_unk": True},
            {"byte_fallback": True, "unk_token": "?"},
            {"ignore_merges": True},
            {"continuing_subword_prefix": "##"},
            {"end_of_word_suffix": "</w>"},
        ],
        ids=str,
    )
    def test_options(self, options: dict[str, Any]) -> None:
        merges = [("a", "##b")] if "continuing_subword_prefix" in options else MERGES
        pair = (
            Tokenizer(BPE(VOCAB, merges, **options)),
            tokenizers.Tokenizer(tokenizers.models.BPE(VOCAB, merges, **options)),
        )
        for each in pair:
            each.add_special_tokens(["<s>"])
        pair[0].pre_tokenizer = pre_tokenizers.Whitespace()
        pair[1].pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        for text in ("", "abc", "aabb éA è", "xx yx<s>abé", "è" * 3, "aaaa abcabc"):
            assert_same(pair[0].encode(text), pair[1].encode(text), text)
            assert pair[0].decode(pair[0].encode(text).ids) == pair[1].decode(pair[1].encode(text).ids)
        again = pickle.loads(pickle.dumps(pair[0]))
        assert again.encode("aabb").ids == pair[1].encode("aabb").ids

    @pytest.mark.parametrize(("byte_fallback", "fuse_unk"), [(True, True), (False, True), (False, False)])
    def test_as_llama(self, byte_fallback: bool, fuse_unk: bool) -> None:
        made = []
        for package in (huggingface, tokenizers):
            vocab = {
                "<unk>": 0,
                "▁": 1,
                "t": 2,
                "h": 3,
                "e": 4,
                "▁t": 5,
                "he": 6,
                "▁the": 7,
            } | {f"<0x{byte:02X}>": 8 + byte for byte in range(256)}
            merges = [("▁", "t"), ("h", "e"), ("▁t", "he")]
            model = package.models.BPE(
                vocab, merges, unk_token="<unk>", byte_fallback=byte_fallback, fuse_unk=fuse_unk
            )
            tokenizer = package.Tokenizer(model)
            steps = package.normalizers
            tokenizer.normalizer = steps.Sequence([steps.Prepend("▁"), steps.Replace(" ", "▁")])
            parts = package.decoders
            tokenizer.decoder = parts.Sequence(
                [parts.Replace("▁", " "), parts.ByteFallback(), parts.Fuse(), parts.Strip(" ", 1, 0)]
            )
            tokenizer.add_special_tokens(["<s>"])
            made.append(tokenizer)
        for text in ["the the", "thé<s> é the", "xyz the x", "", " ", "日本the", *texts(30, seed=25)]:
            assert_same(made[0].encode(text), made[1].encode(text), text)
            ids = made[1].encode(text).ids
            assert made[0].decode(ids) == made[1].decode(ids)

    def test_empty(self) -> None:
        ours, theirs = Tokenizer(BPE()), tokenizers.Tokenizer(tokenizers.models.BPE())
        for each in (ours, theirs):
            each.add_tokens(["my", "name"])
        assert_same(ours.encode("my name is"), theirs.encode("my name is"))
        assert repr(ours) == repr(theirs)

    def test_in_the_core_where_it_holds_them(self) -> None:
        model = json.loads(file_json())["model"]
        ours = Tokenizer(BPE(model["vocab"], model["merges"]))
        ours.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        assert isinstance(ours._current().engine, CoreEngine)
        assert ours.encode("the mill").ids == both()[1].encode("the mill").ids

    def test_wrong_models(self) -> None:
        with pytest.raises(UnsupportedTokenizer, match="dropout"):
            Tokenizer(BPE(dropout=0.5)).encode("a")
        with pytest.raises(BadTokenizer, match=r"model.merges\[0\]"):
            Tokenizer(BPE({"a": 0}, [("a", "b")])).encode("a")
