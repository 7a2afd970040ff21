"""The compiled form gives the same tokenizer, and nothing but: what is stale, foreign, cut or changed is refused."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from bpe import _core, compiled
from bpe.errors import BadArgument, BadTokenizer, EnvironmentFailure
from bpe.tokenizer import Tokenizer

TEXT = "Hello, wörld!  It's the lazy dogs 12345 你好 xyzzy<|endoftext|>e\u0301 the the <s>"


def variants(listed: Any, ranked: Any) -> dict[str, Tokenizer]:
    return {
        "list": listed(),
        "list, ignore_merges": listed("llama3", ["<|endoftext|>", "<s>"], whole_pretokens=True),
        "NFC": listed("qwen2", normalizer="NFC"),
        "plain added token": listed(special_tokens=["<s>", "<t>"], plain_added_tokens=["<s>"]),
        "template": listed(template={"type": "TemplateProcessing", "single": [], "special_tokens": {}}),
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
            assert again.plain_added_tokens == tokenizer.plain_added_tokens, name
            assert again.template == tokenizer.template, name
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
    with pytest.raises(BadTokenizer, match="cut short"):
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
            encoder = _core.Encoder.from_image(changed, {b"<|endoftext|>": 90_000}, "gpt2", True)
        except ValueError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        assert len(encoder.encode(TEXT + "a" * 100)) > 0
    assert min(outcomes.values()) > 0
    with pytest.raises(ValueError, match="behind its end"):
        _core.Encoder.from_image(image + bytes(8), {}, "gpt2", True)


def test_an_image_of_another_form_is_refused(listed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    image = listed().compiled()
    monkeypatch.setattr(compiled, "FORM", compiled.FORM + 1)
    with pytest.raises(BadTokenizer, match="another version's form"):
        Tokenizer.from_compiled(image)


@pytest.mark.parametrize(
    "key", ["form", "special_tokens", "stages", "whole_pretokens", "normalizer", "template"]
)
@pytest.mark.parametrize("value", [None, 5, "x", {"a": []}, ...])
def test_a_header_of_another_kind_is_refused(listed: Any, key: str, value: Any) -> None:
    """With a right checksum: other programs may write such; ...: without the key, or no JSON."""
    image = listed().compiled()
    magic, header_bytes, image_bytes, warm_bytes, _ = compiled._START.unpack_from(image)
    body = image[compiled._START.size :]
    header = json.loads(body[:header_bytes])
    if value is ...:
        del header[key]
    else:
        header[key] = value
    for text in (json.dumps(header).encode(), b"{" * 20_000, b"\xff", b"[]"):
        changed = text + body[header_bytes:]
        start = compiled._START.pack(magic, len(text), image_bytes, warm_bytes, _core.xxh64(changed))
        try:
            Tokenizer.from_compiled(start + changed).encode("a")
        except BadTokenizer as error:
            assert "\n" not in str(error)  # noqa: PT017 - some values are as good as others
        else:
            assert text == json.dumps(header).encode()


# -- the cache beside a file


@pytest.fixture
def saved(tmp_path: Path, listed: Any) -> Path:
    path = tmp_path / "tokenizer.json"
    listed().save(path)
    return path


def cache_of(path: Path) -> Path:
    return path.with_name(path.name + ".compiled")


def count_readings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    read: list[Path] = []

    def load(path: Path, *arguments: Any) -> Tokenizer:
        read.append(path)
        return original(path, *arguments)

    original = compiled.load
    monkeypatch.setattr(compiled, "load", load)
    return read


def test_no_cache_is_written_unasked(saved: Path) -> None:
    Tokenizer.load(saved)
    assert not cache_of(saved).exists()


def test_the_second_load_reads_the_cache(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = count_readings(monkeypatch)
    first, second = Tokenizer.load(saved, cache=True), Tokenizer.load(saved, cache=True)
    assert read == [saved]
    assert first == second == Tokenizer.load(saved)


def test_a_load_without_cache_uses_one_that_fits_and_writes_none(
    saved: Path, listed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Tokenizer.load(saved, cache=True)
    read = count_readings(monkeypatch)
    assert Tokenizer.load(saved) == listed()
    assert not read
    listed("cl100k").save(saved)
    stale = cache_of(saved).read_bytes()
    assert Tokenizer.load(saved) == listed("cl100k")
    assert read == [saved]
    assert cache_of(saved).read_bytes() == stale


def test_a_stale_cache_is_made_anew(saved: Path, listed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Tokenizer.load(saved, cache=True)
    other = listed("cl100k")
    other.save(saved)
    read = count_readings(monkeypatch)
    assert Tokenizer.load(saved, cache=True) == other
    assert Tokenizer.load(saved, cache=True) == other
    assert read == [saved]


def test_arguments_are_part_of_what_a_cache_is_of(tmp_path: Path, ranked: Any) -> None:
    path = tmp_path / "ranks.tiktoken"
    ranked("gpt2", ()).export_tiktoken(path)
    for pattern in ("gpt2", "cl100k", "gpt2"):
        assert Tokenizer.load(path, pattern, ["<s>"], cache=True).pattern == pattern
        assert Tokenizer.load(path, pattern, {"<t>": 5000}, cache=True).special_tokens == {"<t>": 5000}


DAMAGE = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-1],
    "a byte changed": lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:],
    "another file": lambda data: b"{}" * 100,
    "a header of another kind": lambda data: with_header(data, []),
    "a header without fields": lambda data: with_header(data, {"form": form(data)}),
}


def form(data: bytes) -> Any:
    start = compiled._START.size
    header_bytes = compiled._START.unpack_from(data)[1]
    return json.loads(data[start : start + header_bytes])["form"]


def with_header(data: bytes, header: Any) -> bytes:
    _, header_bytes, image_bytes, warm_bytes, _ = compiled._START.unpack_from(data)
    text = json.dumps(header).encode()
    body = text + b" " * (-len(text) % 8) + data[compiled._START.size + header_bytes :]
    sizes = (len(body) - image_bytes - warm_bytes, image_bytes, warm_bytes)
    start = compiled._START.pack(compiled.MAGIC, *sizes, _core.xxh64(body))
    return start + body


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_is_made_anew(saved: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Tokenizer.load(saved, cache=True)
    good = cache_of(saved).read_bytes()
    cache_of(saved).write_bytes(DAMAGE[damage](good))
    read = count_readings(monkeypatch)
    assert Tokenizer.load(saved, cache=True) == expected
    assert read == [saved]
    assert cache_of(saved).read_bytes() == good


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_has_no_cache(saved: Path) -> None:
    saved.parent.chmod(0o500)
    try:
        assert Tokenizer.load(saved, cache=True) == Tokenizer.load(saved)
        assert not cache_of(saved).exists()
    finally:
        saved.parent.chmod(0o700)


def test_a_cache_that_is_a_folder_is_left_alone(saved: Path) -> None:
    cache_of(saved).mkdir()
    assert Tokenizer.load(saved, cache=True) == Tokenizer.load(saved)
    assert cache_of(saved).is_dir()


# -- the warm cache (what goes into it: test_warm_cache.py)


def test_a_warm_cache_beside_the_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Tokenizer.load(saved, cache=True)
    without = cache_of(saved).stat().st_size
    Tokenizer.load(saved, cache=True, warm_with=TEXT.encode())
    assert cache_of(saved).stat().st_size > without
    read = count_readings(monkeypatch)
    warm = Tokenizer.load(saved, cache=True)
    assert not read
    assert warm.encode(TEXT) == Tokenizer.load(saved).encode(TEXT)


def test_a_warm_cache_needs_a_place(saved: Path) -> None:
    with pytest.raises(BadArgument, match="give cache=True too"):
        Tokenizer.load(saved, warm_with=b"text")
    assert not cache_of(saved).exists()


def test_compiled_beside_a_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled.compile_beside(saved, TEXT.encode()) == cache_of(saved)
    read = count_readings(monkeypatch)
    assert Tokenizer.load(saved).encode(TEXT)
    assert not read
    cache_of(saved).unlink()
    cache_of(saved).mkdir()
    with pytest.raises(EnvironmentFailure):
        compiled.compile_beside(saved)
