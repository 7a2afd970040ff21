"""Caches that start with common pretokens give the ids that empty ones give, in every process and thread."""

from __future__ import annotations

import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bpe.errors import BadArgument, BadTokenizer, InvalidText
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.tokenizer import Tokenizer
from bpe.warm_cache import commonest, warm_cache

SHORT = "Hello, wörld!  It's the lazy dogs 12345 xyzzy<|endoftext|>e\u0301 the the"
LONG = " 漢字と仮名の行" * 9 + " " + "x" * 40 + "abcdefghij" * 60 + " " * 700 + "привет" * 30 + "9" * 9000
TEXT = ((SHORT + LONG + " ") * 5).encode()


def texts(seed: int) -> list[bytes]:
    """What the warm caches hold, what they hold in part, and nothing of it."""
    rng = random.Random(seed)
    words = [" " + "".join(rng.choices("etaoin漢字é", k=rng.randint(1, 30))) for _ in range(3000)]
    return [TEXT, b"other words, " + TEXT, "".join(words).encode(), b""]


def rules(listed: Any, ranked: Any, pattern: str = "gpt2") -> dict[str, Tokenizer]:
    return {
        "listed merges": listed(pattern),
        "ignore_merges": listed(pattern, whole_pretokens=True),
        "a rank file": ranked(pattern),
        "NFC": listed(pattern, normalizer="NFC"),
    }


def test_a_warm_cache_changes_no_ids(pattern: str, listed: Any, ranked: Any) -> None:
    for name, tokenizer in rules(listed, ranked, pattern).items():
        specials = list(tokenizer.special_tokens)
        counts = count_pretokens([TEXT], specials, tokenizer._parts.pretokenizer)
        for known in (TEXT, counts, memoryview(TEXT)):
            image = tokenizer.compiled(warm_with=known)
            assert len(image) > len(tokenizer.compiled()), name
            warm = Tokenizer.from_compiled(image)
            for each in texts(7):
                expected = tokenizer.encode_documents(each).tolist()
                assert warm.encode_documents(each).tolist() == expected, name
                assert warm.encode_documents(each, threads=3).tolist() == expected, name


def test_an_expression_and_special_tokens_that_are_bytes(listed: Any) -> None:
    for tokenizer in (
        listed("[a-z]+|[^a-z]+"),
        listed(special_tokens=["e", "th"]),
        listed(special_tokens=[]),
    ):
        warm = Tokenizer.from_compiled(tokenizer.compiled(warm_with=TEXT))
        assert warm.encode_documents(TEXT).tolist() == tokenizer.encode_documents(TEXT).tolist()


def test_damage_is_refused(listed: Any) -> None:
    tokenizer = listed()
    cold = len(tokenizer.compiled())
    image = tokenizer.compiled(warm_with=TEXT)
    for place in range(cold, len(image), max(1, len(image) // 200)):
        changed = bytearray(image)
        changed[place] ^= 4
        with pytest.raises(BadTokenizer, match="damaged"):
            Tokenizer.from_compiled(changed)
    with pytest.raises(BadTokenizer, match="cut short"):
        Tokenizer.from_compiled(image[:-1])


def encoded(path: Path) -> list[list[int]]:
    rows: list[list[int]] = Tokenizer.load(path).encode_documents(TEXT).tolist()
    return rows


def test_processes_and_threads_share_one_file(tmp_path: Path, listed: Any) -> None:
    path = tmp_path / "tokenizer.json"
    listed().save(path)
    expected = encoded(path)
    warm = Tokenizer.load(path, cache=True, warm_with=TEXT)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(encoded, [path] * 4)) == [expected] * 4
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: warm.encode_documents(TEXT).tolist(), range(16))) == [expected] * 16


def test_what_the_tokenizer_encoded_before_is_no_part_of_it(listed: Any) -> None:
    tokenizer = listed()
    image = tokenizer.compiled(warm_with=TEXT)
    tokenizer.encode("never to be written down: hunter2")
    assert tokenizer.compiled(warm_with=TEXT) == image


def test_the_commonest_by_count_and_then_by_bytes() -> None:
    counts = PretokenCounts.from_mapping({b"d": 2, b"a": 2, b"bc": 7, b"e": 1, b"c": 2})
    for most, expected in [
        (1, [b"bc"]),
        (2, [b"bc", b"a"]),
        (4, [b"bc", b"a", b"c", b"d"]),
        (5, [b"bc", b"a", b"c", b"d", b"e"]),
        (6, [b"bc", b"a", b"c", b"d", b"e"]),
    ]:
        assert commonest(counts, most) == expected
    assert commonest(PretokenCounts.from_mapping({}), 3) == []


def test_the_commonest_of_many() -> None:
    rng = random.Random(3)
    counted = {b"%d" % i: rng.randint(1, 40) for i in range(5000)}
    expected = sorted(counted, key=lambda pretoken: (-counted[pretoken], pretoken))
    for most in (1, 255, 256, 257, 4999):
        assert commonest(PretokenCounts.from_mapping(counted), most) == expected[:most]


def test_its_size_is_bounded(listed: Any) -> None:
    text = b" ".join(b"%x" % (i * 2654435761 % 2**32) for i in range(100_000))
    image = warm_cache(listed()._parts, text)
    assert len(image) < 4 << 20
    assert warm_cache(listed()._parts, b"") == b""


def test_what_can_not_be_counted_is_refused(listed: Any) -> None:
    for tokenizer in (listed(), listed(normalizer="NFC")):
        with pytest.raises(InvalidText, match="byte 6"):
            tokenizer.compiled(warm_with=b"valid \xff not")
    with pytest.raises(BadArgument, match="counted with the pattern 'cl100k', the tokenizer's is 'gpt2'"):
        listed("gpt2").compiled(warm_with=count_pretokens([TEXT], pattern="cl100k"))
    assert listed("gpt2").compiled(warm_with=PretokenCounts.from_mapping({b"any": 1}))
