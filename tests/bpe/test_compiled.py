"""The image of a tokenizer gives the same one, and nothing but: what is foreign, cut or changed is refused."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from pretoken_ends import automaton_of

from bpe import _core, compiled
from bpe.added_tokens import AddedToken
from bpe.errors import BadTokenizer, UncoveredText
from bpe.post_processing import PostProcessor
from bpe.pretokenization import read_oniguruma
from bpe.pretokenization.compiled import dropping
from bpe.tokenizer import Tokenizer
from tokenmill.inputs._core import xxh64

TEXT = "Hello, wörld!  It's the lazy dogs 12345 你好 xyzzy<|endoftext|>e\u0301 the the <s>"


def variants(listed: Any, ranked: Any) -> dict[str, Tokenizer]:
    return {
        "list": listed(),
        "list, ignore_merges": listed("llama3", ["<|endoftext|>", "<s>"], ignore_merges=True),
        "NFC": listed("qwen2", normalizer="NFC"),
        "flags": listed(
            special_tokens=[AddedToken("<s>", 990, special=False, rstrip=True), AddedToken("<t>", 991)]
        ),
        "post-processor": listed(post_processor=PostProcessor({"type": "ByteLevel"}, (1,), (2, 3))),
        "ranks": ranked("cl100k"),
        "an expression": listed("[a-z]+|[^a-z]+"),
        "a special token merges need": listed(special_tokens=["e", "th"]),
        "no special tokens": listed(special_tokens=[]),
        "read from a file": Tokenizer.from_compiled(ranked("o200k").compiled()),
    }


def test_the_compiled_tokenizer_is_the_same(listed: Any, ranked: Any) -> None:
    for name, tokenizer in variants(listed, ranked).items():
        for again in (Tokenizer.from_compiled(tokenizer.compiled()), pickle.loads(pickle.dumps(tokenizer))):
            assert again.encode(TEXT) == tokenizer.encode(TEXT), name
            assert again.encode(TEXT, allowed_special=()) == tokenizer.encode(TEXT, allowed_special=()), name
            assert again.decode(again.encode(TEXT)) == tokenizer.decode(tokenizer.encode(TEXT)), name
            assert dict(again.vocab) == dict(tokenizer.vocab), name
            assert again.ordinary_entries == tokenizer.ordinary_entries, name
            assert again.merges == tokenizer.merges, name
            assert again.vocab_size == tokenizer.vocab_size, name
            assert again.max_token_id == tokenizer.max_token_id, name
            assert again.added_tokens == tokenizer.added_tokens, name
            assert again.post_processor == tokenizer.post_processor, name
            assert repr(again) == repr(tokenizer), name
            assert again.fingerprint() == tokenizer.fingerprint(), name
            assert again.compiled() == tokenizer.compiled(), name


@pytest.mark.parametrize("kind", ["listed", "ranked"])
def test_images_that_were_changed_are_refused(kind: str, request: pytest.FixtureRequest) -> None:
    image = request.getfixturevalue(kind)().compiled()
    generator = random.Random(2)
    for place in [*range(72), *(generator.randrange(len(image)) for _ in range(200))]:
        changed = bytearray(image)
        changed[place] ^= 1 << generator.randrange(8)
        with pytest.raises(BadTokenizer, match="compile"):
            Tokenizer.from_compiled(changed)
    for size in [*range(64), *range(64, len(image), 997), len(image) - 1]:
        with pytest.raises(BadTokenizer, match="compile"):
            Tokenizer.from_compiled(image[:size])
    with pytest.raises(BadTokenizer):
        Tokenizer.from_compiled(image + b"\0")


@pytest.mark.parametrize("kind", ["listed", "ranked"])
def test_the_core_stays_within_a_changed_image(kind: str, request: pytest.FixtureRequest) -> None:
    """Without the checksum: ValueError, or an encoder that works on other data; never a crash."""
    image = request.getfixturevalue(kind)().core_encoder.image()
    generator = random.Random(3)
    outcomes = {"refused": 0, "read": 0}
    for _ in range(1500):
        changed = bytearray(image)
        for _ in range(generator.choice([1, 1, 8])):
            place = generator.randrange(0, len(image) - 8, 8)
            value = generator.choice([0, 1, 2**64 - 1, 2**63, 2**32, generator.getrandbits(64), len(image)])
            changed[place : place + 8] = struct.pack("<Q", value)
        try:
            encoder = _core.TokenizerCore.from_image(
                changed, {b"<|endoftext|>": 90_000}, automaton_of("gpt2"), True
            )
        except ValueError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        assert len(encoder.encode(TEXT + "a" * 100)) > 0
    assert min(outcomes.values()) > 0
    with pytest.raises(ValueError, match="behind its end"):
        _core.TokenizerCore.from_image(image + bytes(8), {}, automaton_of("gpt2"), True)


def test_an_image_with_entries_out_of_order_is_refused() -> None:
    """Ids and the places where the bytes of entries start do not rise; a merge makes what is no entry."""
    entries = {id: bytes([id]) for id in range(256)} | {256: b"ab", 257: b"cd"}
    merges = [(b"c", b"d"), (b"a", b"b")]
    image = _core.TokenizerCore(entries, merges, {}, automaton_of("gpt2"), True).image()
    for kind, values, wrong in [
        ("I", [*range(258)], [(1, 2), (2, 1), (2, 2**31)]),
        ("Q", [*range(257), 258, 260], [(1, 0), (3, 1), (2, 2**63)]),
        ("I", [257, 256], [(1, 258), (0, 2**32 - 1)]),  # the products
    ]:
        array = struct.pack(f"<Q{len(values)}{kind}", len(values), *values)
        assert image.count(array) == 1
        for which, value in wrong:
            changed = bytearray(image)
            place = image.index(array) + 8 + which * struct.calcsize(kind)
            struct.pack_into(f"<{kind}", changed, place, value)
            with pytest.raises(ValueError, match="entries"):
                _core.TokenizerCore.from_image(changed, {}, automaton_of("gpt2"), True)


def test_an_image_of_another_form_is_refused(listed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    image = listed().compiled()
    monkeypatch.setattr(compiled, "FORM", compiled.FORM + 1)
    with pytest.raises(BadTokenizer):
        Tokenizer.from_compiled(image)


@pytest.mark.parametrize(
    "key", ["form", "added_tokens", "pretokenizer", "ignore_merges", "normalizer", "post_processor"]
)
@pytest.mark.parametrize("value", [None, 5, "x", {"a": []}, ...])
def test_a_header_of_another_kind_is_refused(listed: Any, key: str, value: Any) -> None:
    """With a right checksum: other programs may write such; ...: without the key, or no JSON."""
    image = listed().compiled()
    magic, header_bytes, image_bytes, _ = compiled._START.unpack_from(image)
    body = image[compiled._START.size :]
    header = json.loads(body[:header_bytes])
    if value is ...:
        del header[key]
    else:
        header[key] = value
    for text in (json.dumps(header).encode(), b"{" * 20_000, b"\xff", b"[]"):
        changed = text + body[header_bytes:]
        start = compiled._START.pack(magic, len(text), image_bytes, xxh64(changed))
        try:
            Tokenizer.from_compiled(start + changed).encode("a")
        except (BadTokenizer, UncoveredText) as error:
            assert "\n" not in str(error)  # noqa: PT017 - some values are as good as others
        else:
            assert text == json.dumps(header).encode()


# -- beside a file


def test_a_file_beside_the_tokenizer_changes_nothing(tmp_path: Path, listed: Any) -> None:
    """Not even an image that former versions loaded unasked: of another tokenizer, with the hash of this one's file."""
    path, other = tmp_path / "tokenizer.json", listed("cl100k")
    listed().save(path)
    digest = hashlib.sha256(hashlib.sha256(path.read_bytes()).digest() + repr((None, None)).encode())
    text = json.dumps(
        {
            "form": [1, _core.IMAGE_VERSION, sys.byteorder],
            "source": digest.hexdigest(),
            "special_tokens": other.special_tokens,
            "stages": [["cl100k", "drop"]],
            "ignore_merges": False,
            "normalizer": None,
        }
    ).encode()
    text += b" " * (-len(text) % 8)
    image = other.core_encoder.image()
    sizes = struct.pack("<QQQQ", len(text), len(image), 0, xxh64(text + image))
    beside = path.with_name(path.name + ".compiled")
    beside.write_bytes(b"tokmill\0" + sizes + text + image)
    assert Tokenizer.load(path).pattern == "gpt2"
    assert Tokenizer.load(path).encode("don't 12345") == listed().encode("don't 12345")


@pytest.mark.parametrize(
    ("pattern", "is_compiled"), [("a+", True), ("a|bc", True), ("a*", False), ("a|", False)]
)
def test_patterns_that_may_match_nothing_are_not_dropped_by_the_core(pattern: str, is_compiled: bool) -> None:
    assert (dropping(read_oniguruma.read(pattern)) is not None) == is_compiled
