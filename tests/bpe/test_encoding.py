"""IDs equal the reference for every vocabulary, rule, SIMD variant, cache and entry point, and errors name their place.

`test_matrix` compares whole tokenizers with other libraries. These tests draw vocabularies that no training makes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest
from chinese_texts import LETTERS, WORDS, text_of
from hypothesis import given
from hypothesis import strategies as st
from pretoken_ends import automaton_of, pretoken_ends
from small_encoder import BYTES, ENTRIES, MERGES, RULES, SENTENCES, SEPARATOR, core
from strategies import examples

from bpe import _core, train
from bpe.errors import BadArgument, InvalidText
from bpe.patterns import PATTERNS
from bpe.reference import encode, encode_pretoken
from bpe.tokenizer import Tokenizer
from tokenmill.inputs._core import validate_utf8

LOOKAHEAD = r"\d{1,3}(?=(?:\d{3})*\b)|\d|\D+"  # the core cuts it by a scan in both directions
SPECIAL = {"<|x|>": 0, "<|x|>y": 1, "EOT": 2}  # numbers after the last entry
Entries = dict[int, bytes]
Merges = list[tuple[bytes, bytes]]


@cache
def sentences() -> tuple[Entries, Merges]:
    """Return a trained vocabulary with some entries that no merge reaches."""
    return dict(enumerate(ENTRIES.values())), MERGES


@cache
def parts_of_characters() -> tuple[Entries, Merges]:
    """Return entries that start and end within three-byte characters, and some with two of them."""
    rng = random.Random(1)
    text = "".join(rng.choices("中文字符あいう한국어ไทย€", k=400)).encode()
    starts = [rng.randrange(len(text) - 8) for _ in range(150)]
    entries = [*BYTES, *(text[start : start + rng.randint(2, 7)] for start in starts), "中".encode()]
    return dict(enumerate(dict.fromkeys(entries))), []


@cache
def chinese() -> tuple[Entries, Merges]:
    """Return entries trained on such text, with merges of characters with parts of others, and unreachable entries."""
    merges = list(train([text_of(random.Random(1), 9000).encode()], 256 + 500).merges)
    entries = dict.fromkeys([*BYTES, *(left + right for left, right in merges)])
    pairs = [*zip(WORDS, LETTERS[4:], strict=False), ("。", "天"), ("人", "，"), ("，", "天"), ("。", "\n")]
    for left, right in ((left.encode(), right.encode()) for left, right in pairs):
        for one, two in [
            *((left, right[:1]), (left + right[:1], right[1:]), (left[2:], right[:1])),
            *((left[2:] + right[:1], right[1:]), (left[1:], right)),
        ]:
            if one in entries and two in entries and one + two not in entries:
                merges.append((one, two))
                entries[one + two] = None
    unreachable = [a + b for a in LETTERS + "，。" for b in LETTERS[:6] + "，"]
    unreachable += [*LETTERS, "龍鳳麟", "…。", "雪山"]
    entries |= dict.fromkeys(map(str.encode, unreachable))
    return dict(enumerate(entries)), merges


# By lead byte: ASCII, C3, CF, D0, D8, E0, E1 (four ranges), EA (two), EB, EC, ED.
SCRIPTS = "abcdef éàüß λογος приветы سلام తెలుగు ሰላምነው ខ្មែរ ἀἐᾧὴ ᐊᐃᓄ ꯃꯤꯇ 각곡 한국어 힣픽".split()
BETWEEN = [" ", " ", " ", "", "\n", ", ", " -", "'s ", "12", *"—”。あ字\ue000，😀"]  # E2, E3, E5, EE, EF, F0


def words_of(rng: random.Random, count: int) -> str:
    """Words of every script and of most sizes within a block of 64 bytes."""
    sizes = [1, 2, 3, 4, 5, 6, 8, 15, 16, 20, 31, 63]
    words = ("".join(rng.choices(rng.choice(SCRIPTS), k=rng.choice(sizes))) for _ in range(count))
    return "".join(word + rng.choice(BETWEEN) for word in words)


VOCABULARIES = {made.__name__: made for made in (sentences, parts_of_characters, chinese)}


@contextmanager
def simd_variant(name: str) -> Iterator[None]:
    _core.set_simd_variant(name)
    try:
        yield
    finally:
        _core.set_simd_variant(_core.simd_variants()[0])


def texts() -> st.SearchStrategy[str]:
    """Sentences and parts of them, Chinese, new words, runs, and special tokens."""
    sentence = st.sampled_from(SENTENCES)
    return st.lists(
        st.one_of(
            sentence,
            st.builds(lambda text, size: text[:size], sentence, st.integers(0, 70)),
            st.builds(
                lambda seed, size: text_of(random.Random(seed), size), st.integers(0, 99), st.integers(1, 60)
            ),
            st.builds(
                lambda seed, count: words_of(random.Random(seed), count),
                st.integers(0, 99),
                st.integers(1, 20),
            ),
            st.text("abcdefgh", min_size=1, max_size=60).map(" ".__add__),
            st.builds(str.__mul__, st.sampled_from([*"a中龍，é -=", "\n", "字と"]), st.integers(1, 90)),
            st.sampled_from([*SPECIAL, " ", "\n", "\0"]),
        ),
        max_size=8,
    ).map("".join)


def rows_of(tokens: Any, offsets: Any) -> list[list[int]]:
    return [tokens[start:stop].tolist() for start, stop in itertools.pairwise(offsets.tolist())]


@pytest.mark.slow
@pytest.mark.promise("token-ids")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", VOCABULARIES)
@examples(1)
@given(data=st.data())
def test_every_entry_point_equals_the_reference(name: str, rule: str, data: st.DataObject) -> None:
    entries, merges = VOCABULARIES[name]()
    # Slots of the cache hold IDs below 2^18, and the table of characters those below 2^21.
    first_id = data.draw(st.sampled_from([0, (1 << 18) - 300, (1 << 21) - 300, 1 << 21, (1 << 31) - 5000]))
    pattern = data.draw(st.sampled_from(sorted(PATTERNS)))
    documents = data.draw(st.lists(texts(), max_size=9))
    entries = {first_id + id_: entry for id_, entry in entries.items()}
    special = {text: first_id + len(entries) + number for text, number in SPECIAL.items()}
    listed = None if rule == "ranks" else merges
    want = [encode(text, entries, listed, special, pattern, rule != "merges") for text in documents]
    buffer = SEPARATOR.join(map(str.encode, documents))
    offsets = np.cumsum([0, *(len(text.encode()) for text in documents)], dtype=np.uint64)
    file = _core.EntryFile.from_entries(entries, listed)
    tokens = {text.encode(): id_ for text, id_ in special.items()}
    for variant in _core.simd_variants():
        with simd_variant(variant):
            encoder = file.encoder(
                tokens,
                automaton_of(pattern),
                rule != "merges",
                cache_bytes=data.draw(st.sampled_from([0, 1000, 70_000, 256 << 20])),
            )
            assert [encoder.encode(text) for text in documents] == want
            assert rows_of(*encoder.encode_batch(documents, 2)) == want
            assert rows_of(*encoder.encode_ragged("".join(documents).encode(), offsets, 2)) == want
            for out in (None, np.empty(encoder.out_tokens(len(buffer)), np.uint32)):
                assert rows_of(*encoder.encode_documents(buffer, SEPARATOR, 1, out=out)) == (want or [[]])


@pytest.mark.parametrize("name", VOCABULARIES)
@examples(2)
@given(data=st.data())
def test_given_pretokens_may_be_any_bytes(name: str, data: st.DataObject) -> None:
    entries, _ = VOCABULARIES[name]()
    whole = data.draw(st.booleans())
    words = texts().map(lambda text: text[:14].encode()) | st.sampled_from(sorted(entries.values()))
    cut = st.builds(
        lambda word, start, stop: word[start : len(word) - stop], words, st.integers(0, 2), st.integers(0, 2)
    )
    odd = st.sampled_from(
        [b"\xe0\x80\x80\xe4\xb8\xad", b"\xe4\xe4\xb8", b"\xe4\xb8\xad\xe4\xb8", b"\xed\xa0\x80"]
    )
    pretokens = data.draw(st.lists(cut | odd, max_size=60))
    ends = np.cumsum([len(each) for each in pretokens], dtype=np.uint64)
    id_of = {entry: id_ for id_, entry in entries.items()}
    want = [encode_pretoken(each, id_of, None, ignore_merges=whole) if each else [] for each in pretokens]
    encoder = _core.EntryFile.from_entries(entries, None).encoder({}, None, whole)
    assert encoder.encode_pretokens(b"".join(pretokens), ends).tolist() == [
        id_ for ids in want for id_ in ids
    ]
    assert rows_of(*encoder.encode_pretoken_rows(b"".join(pretokens), ends)) == want


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pieces_of_any_length_between_characters(variant: str, pattern: str) -> None:
    """A scan that starts after a walk over characters meets pieces longer than its first lookahead, than a window, and
    than the buffer of the walk.
    """
    file = _core.EntryFile.from_entries(*chinese())
    with_pattern, of_pretokens = (file.encoder({}, each, False) for each in (automaton_of(pattern), None))
    rng = random.Random(pattern)
    for _ in range(25):
        text = rng.choice(
            ["龍鳳", "天地", "龍，", "龍鳳麟書あいカー한龍鳳麟書あいカー한\n", "，，"]
        ) * rng.choice([1, 3000])
        while len(text) < 3000:
            text += text_of(rng, rng.choice([1, 4, 30, 100])) + words_of(rng, rng.choice([0, 1, 9]))
            run = rng.choice([*LETTERS, *"，。…\u3000\u3099aé😀'7 \n-", "=-", "Aa", "\t ", "a b'12"])
            text += run * rng.choice([1, 2, 15, 20, *range(58, 70), 90, 300, 1500])
        data = text.encode()
        made = with_pattern.encode_documents(data, SEPARATOR, 1)[0]
        assert np.array_equal(made, of_pretokens.encode_pretokens(data, pretoken_ends(data, pattern)))


# -- threads and memory ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_threads_share_long_documents(pattern: str) -> None:
    """Separators and special tokens, also overlapping ones, at every offset around a cut; text that cannot be cut."""
    names = ["<|x|>", "<|x|>y", "x a b", "b x", ". . . .", SEPARATOR.decode()]
    special = {name.encode(): 5000 + number for number, name in enumerate(names)}
    file = _core.EntryFile.from_entries(ENTRIES, None)
    rng = random.Random(6)
    parts = [*names[:-1], *SENTENCES, "a b", " ", ". .", "x", "<|", "y"]
    long = "".join(rng.choices(SENTENCES, k=30_000))
    cases = [
        "".join(rng.choices(parts, k=100_000)),
        "a b x " * 200_000,
        ". " * 500_000,
        long + "x" * (3 << 20) + long,
    ]
    for distance in range(-20, 20, 3):
        for token in ("<|x|>y", SEPARATOR.decode()):
            place = (1 << 18) + distance
            cases.append("a b." * (place // 4) + "a" * (place % 4) + token + "a b." * (1 << 18))
    encoder = file.encoder(special, automaton_of(pattern), True)
    for text in map(str.encode, cases):
        one, two = (encoder.encode_documents(text, SEPARATOR, threads) for threads in (1, 2))
        assert np.array_equal(one[0], two[0])
        assert np.array_equal(one[1], two[1])


@pytest.mark.parametrize(
    "separator", [SEPARATOR, b"\n\n", b"aa"], ids=["border-free", "newlines", "overlapping"]
)
def test_pieces_of_any_thread_count_are_equal(separator: bytes) -> None:
    """Documents from empty to longer than a piece, and runs of separators. A lent buffer is not retained."""
    rng = random.Random(3)
    parts = ["".join(rng.choices(SENTENCES, k=30)).encode() for _ in range(30)]
    documents = [b"".join(rng.choices(parts, k=rng.choice([0, 1, 1, 2, 5]))) for _ in range(900)]
    documents[500] = b"".join(rng.choices(parts, k=300))
    text, encoder = separator.join(documents), core("ranks")
    want = encoder.encode_documents(text, separator, 1)
    out = np.zeros(encoder.out_tokens(len(text)), np.uint32)
    for threads in (1, 2, 3, 8):
        for lent in (None, out):
            made = encoder.encode_documents(text, separator, threads, out=lent)
            assert np.shares_memory(made[0], out) == (lent is not None)
            assert np.array_equal(want[0], made[0])
            assert np.array_equal(want[1], made[1])
    out[:] = 7
    assert np.array_equal(encoder.encode_documents(text, separator, 2)[0], want[0])
    assert (out == 7).all()
    for row, document in enumerate(text.split(separator)):
        assert encoder.decode(want[0][want[1][row] : want[1][row + 1]]) == document


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("documents", [1, 40, 1300])
def test_new_pretokens_come_in_their_places(documents: int, rule: str) -> None:
    """New pretokens are merged many at once, later than they occur: alone at other times than with other documents."""
    rng = random.Random(documents)
    sizes = [*[5, 9, 15, 16, 80] * 9, 511, 512, 513, 4094, 4095, 8192, 8193]
    known = ["".join(rng.choices("abcdefghijnortqu", k=rng.choice(sizes))) for _ in range(1500)]
    texts = [
        " ".join(rng.choices(known, k=rng.choice([0, 1, 9, 3000 // documents]))) for _ in range(documents)
    ]
    texts[9:9] = [""] * (documents // 50 * 50)
    alone, encoder = core(rule, cache_bytes=0), core(rule)
    want = [alone.encode(text) for text in texts]
    assert [alone.decode(ids).decode() for ids in want] == texts
    for _ in range(3):  # new, then from the cache
        assert (
            rows_of(*encoder.encode_documents(SEPARATOR.join(map(str.encode, texts)), SEPARATOR, 1)) == want
        )


@pytest.mark.parametrize("cache_bytes", [60_000, 65_536, 70_000, 1 << 28])
def test_long_pretokens_were_read_where_the_cache_had_been(cache_bytes: int) -> None:
    """The window of misses has no room for their IDs, so the misses are merged and the cache grows or is cleared."""
    known = ["internationalization " * 2, "QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "🙂🙃👩‍👩‍👧 ", "-" * 41 + " "]
    rng = random.Random(cache_bytes)
    parts = []
    for _ in range(6000):
        parts.append(rng.choice(known) * rng.randint(1, 8))
        if rng.random() < 0.01:
            parts.append(" " + "".join(rng.choices("abcdefgh", k=rng.randint(20, 200))))
        if rng.random() < 0.2:
            parts.append(" " + "".join(rng.choices("abcdefgh", k=8)))
    text = "".join(parts).encode()
    want = core("ranks", cache_bytes=0).encode_documents(text, SEPARATOR, 1)[0]
    encoder = core("ranks", cache_bytes=cache_bytes)
    for _ in range(2):
        assert np.array_equal(encoder.encode_documents(text, SEPARATOR, 1)[0], want)


# -- arguments and errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("buffer", "rows"), [(b"", 1), (b"<s>", 2), (b"a<s><s>b", 3), (b"<s>a<s>", 3), (b"<s", 1)]
)
def test_n_separators_make_n_plus_one_rows(listed: Any, buffer: bytes, rows: int) -> None:
    for threads in (1, 2):
        assert len(listed().encode_documents(buffer, "<s>", threads)) == rows


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("broken", [b"\xff", b"\xe6\xbc", b"\x80", b"\xed\xa0\x80", b"\xf0\x9f\x99"])
def test_documents_that_are_not_utf8_are_refused_wherever_they_break(
    listed: Any, threads: int, broken: bytes
) -> None:
    """Documents are checked while others are encoded; the first fault in the buffer is reported."""
    tokenizer, text = listed(), "a caf\u00e9 <s>".encode() * 40_000
    for place in (0, 4, 70_000, 399_990):
        place = text.index(b"<s>", place) - place % 2  # after a character or before its document ends
        wrong = text[:place] + broken + text[place:] + broken
        with pytest.raises(InvalidText, match=f"text.*{validate_utf8(wrong)}"):
            tokenizer.encode_documents(wrong, "<s>", threads)
    assert len(tokenizer.encode_documents(text, "<s>", threads)) == 40_001


@pytest.mark.parametrize("shift", range(4))
def test_checking_ahead_may_end_within_a_character(listed: Any, shift: int) -> None:
    """The check runs 16 KiB ahead and stops at any offset of documents of every size."""
    tokenizer, rng = listed(), random.Random(shift)
    sizes = [rng.choice([0, 1, 2, 3, 30, 300]) for _ in range(200)] + [6_000, 0, 20_000]
    text = "<s>".join(["b" * shift, *("\u6f22" * size for size in sizes)]).encode()
    assert len(tokenizer.encode_documents(text, "<s>")) == len(sizes) + 1
    for place in [*range(16_380, 16_390), *range(32_760, 32_770), len(text) - 1]:
        wrong = text[:place] + b"\xfe" + text[place + 1 :]
        with pytest.raises(InvalidText, match=f"text.*{validate_utf8(wrong)}"):
            tokenizer.encode_documents(wrong, "<s>")


@pytest.mark.parametrize("pattern", ["gpt2", LOOKAHEAD, r"\w+|\W"])
@pytest.mark.parametrize("checked", [False, True])
def test_a_separator_that_cuts_characters_apart_crashed(listed: Any, pattern: str, checked: bool) -> None:
    tokenizer = listed(pattern)
    for separator in (b"\xa9", b"\xc3", b"\xff", b"<s>\xe6", b""):
        with pytest.raises(BadArgument, match="separator"):
            tokenizer.encode_documents("\u00e9a\u00e9".encode(), separator, checked=checked)


@pytest.mark.parametrize("pattern", ["gpt2", LOOKAHEAD])
@pytest.mark.parametrize("threads", [1, 2])
def test_checked_rows_that_cut_characters_apart_crashed(listed: Any, pattern: str, threads: int) -> None:
    text, tokenizer = "\u6f22" * 100_000, listed(pattern)
    for offsets in ([0, 1, 300_000], [0, 30, 299_999], [2, 3], [0, 2]):
        with pytest.raises(InvalidText, match="byte"):
            tokenizer.encode_ragged(text.encode(), offsets, threads, checked=True)
    rng = random.Random(3)
    for size in (1, 5, 300, 9000):
        for _ in range(50):  # callers must not do it, but it must not crash
            wrong = bytes(rng.choices(b"\x80\xa9\xc3\xe6\xf0a1 ", k=size))
            tokenizer.encode_documents(wrong, "<s>", threads, checked=True)
    rows = tokenizer.encode_ragged(text.encode(), [0, 0, 3, 300_000], threads, checked=True)
    assert rows.tolist() == [[], tokenizer.encode("\u6f22"), tokenizer.encode("\u6f22" * 99_999)]


def test_each_row_of_encode_ragged_must_be_text(listed: Any) -> None:
    for text, offsets, place in [
        (b"ab\xffc", [0, 2, 4], 2),
        ("aé".encode(), [0, 2, 3], 2),
        ("aé".encode(), [0, 2], 1),
        ("éa".encode(), [1, 3], 1),
    ]:
        with pytest.raises(InvalidText, match=f"byte {place}: "):
            listed().encode_ragged(text, offsets)
    assert len(listed().encode_ragged(b"\xff" + "aé".encode() + b"\xff", [1, 2, 2, 4])) == 3  # only rows


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (InvalidText, lambda made: made.encode("ab\ud800")),
        (InvalidText, lambda made: made.encode("ab\ud800", allowed_special=())),
        (InvalidText, lambda made: made.encode_batch(["x", "ab\ud800"])),
        (InvalidText, lambda made: list(made.encode_iterable(["ab", "cd\ud800"]))),
        (InvalidText, lambda made: made.encode_documents(b"a e\xcc\x81 bcd\xff e")),
        (BadArgument, lambda made: made.encode_batch(["ab"], threads=-1)),
        (BadArgument, lambda made: made.encode_documents(b"ab", threads=0)),
    ],
)
@pytest.mark.parametrize("options", [{}, {"normalizer": "NFC"}, {"pattern": r"\w+|\W"}], ids=str)
def test_bad_arguments(listed: Any, error: type[Exception], call: Any, options: dict[str, str]) -> None:
    made: Tokenizer = listed(**options)
    with pytest.raises(error):
        call(made)
    assert made.decode(made.encode("abc")) == "abc"  # it is usable again
