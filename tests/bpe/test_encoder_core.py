"""Whole texts, batches and document streams through the core equal the reference for any threads and cache."""

from __future__ import annotations

import itertools
import random
import threading

import numpy as np
import pytest
from pretoken_ends import automaton_of, pretoken_ends
from small_encoder import (
    ENTRIES,
    MERGES,
    RULES,
    SENTENCES,
    SEPARATOR,
    core,
    reference,
    text_of,
)

from bpe import _core
from bpe.patterns import PATTERNS
from bpe.reference import encode_pretoken, pretokenize


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_encode_equals_the_reference(rule: str, pattern: str) -> None:
    encoder = core(rule, pattern)
    for seed in range(4):
        text = text_of(seed, 25)
        assert encoder.encode(text) == reference(text, rule, pattern)
        assert encoder.encode(text, special=False) == reference(text, rule, pattern, special=False)


@pytest.mark.parametrize("rule", RULES)
def test_every_prefix_of_a_text(rule: str) -> None:
    """Short texts, so that the last bytes of the buffer are at every offset of a key."""
    encoder = core(rule)
    for text in SENTENCES:
        for size in range(min(len(text), 40)):
            assert encoder.encode(text[:size]) == reference(text[:size], rule)


@pytest.mark.parametrize("count", [0, 1, 62, 63, 64, 65, 127, 128, 129, 300])
def test_pretoken_counts_around_a_batch(count: int) -> None:
    encoder = core("ranks")
    text = " a" * count
    assert encoder.encode(text) == reference(text, "ranks")
    documents = [" a" * (count % 7)] * count + [text]
    tokens, offsets = encoder.encode_documents(SEPARATOR.join(d.encode() for d in documents), SEPARATOR, 1)
    assert np.diff(offsets).tolist() == [len(reference(document, "ranks")) for document in documents]
    assert len(tokens) == offsets[-1]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("separator", [SEPARATOR, b"\n\n", b"a", b"--"])
def test_documents_equal_the_reference(threads: int, special: bool, separator: bytes) -> None:
    encoder = core("ranks")
    text = text_of(11, 60)
    tokens, offsets = encoder.encode_documents(text.encode(), separator, threads, special)
    want = [reference(document, "ranks", special=special) for document in text.split(separator.decode())]
    assert tokens.dtype == np.uint32
    assert offsets.dtype == np.uint64
    rows = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    assert [tokens[a:b].tolist() for a, b in rows] == want


@pytest.mark.parametrize("separator", [SEPARATOR, b"\n\n", b"--"], ids=["border-free", "newlines", "dashes"])
def test_pieces_of_any_thread_count_are_equal(separator: bytes) -> None:
    """Several megabytes, so that text is cut into pieces; documents from empty to longer than a piece; runs of
    separators.
    """
    rng = random.Random(3)
    parts = [text_of(seed, 40).encode() for seed in range(30)]
    documents = [b"".join(rng.choices(parts, k=rng.choice([0, 1, 1, 2, 5]))) for _ in range(900)]
    documents[500] = b"".join(rng.choices(parts, k=900))
    text = separator.join(documents)
    assert len(text) > 5 << 20
    one = core("ranks").encode_documents(text, separator, 1)
    rows = text.split(separator)
    assert len(one[1]) == len(rows) + 1
    encoder = core("ranks")
    for threads in [2, 3, 8]:
        many = encoder.encode_documents(text, separator, threads)
        assert np.array_equal(one[0], many[0])
        assert np.array_equal(one[1], many[1])
    for row in rng.sample(range(len(rows)), 40):
        start, stop = one[1][row : row + 2].tolist()
        assert encoder.decode(one[0][start:stop]) == rows[row]


@pytest.mark.parametrize("text", [b"", SEPARATOR, SEPARATOR * 3, b"a" + SEPARATOR, SEPARATOR + b"a"])
@pytest.mark.parametrize("threads", [1, 2])
def test_empty_documents_are_rows(text: bytes, threads: int) -> None:
    tokens, offsets = core("ranks").encode_documents(text, SEPARATOR, threads)
    assert np.diff(offsets).tolist() == [len(document) for document in text.split(SEPARATOR)]
    assert tokens.tolist() == [97] * text.count(b"a")


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 5, 4000])
def test_batches_equal_single_texts(threads: int, count: int) -> None:
    encoder = core("merges")
    texts = [text_of(seed % 50, seed % 9) for seed in range(count)]
    tokens, offsets = encoder.encode_batch(texts, threads)
    assert offsets.tolist()[0] == 0
    assert len(offsets) == count + 1
    want = {text: encoder.encode(text) for text in set(texts)}
    rows = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    assert [tokens[a:b].tolist() for a, b in rows] == [want[text] for text in texts]


@pytest.mark.parametrize("cache_bytes", [0, 1000, 100_000, 300_000, 2_000_000])
@pytest.mark.parametrize("rule", ["merges whole", "ranks"])
def test_the_cache_is_bounded_and_changes_no_id(cache_bytes: int, rule: str) -> None:
    rng = random.Random(5)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(1, 40))) for _ in range(6000)]
    text = " ".join(rng.choices(words, k=12_000))
    unbounded = core(rule).encode(text)
    encoder = core(rule, cache_bytes=cache_bytes)
    for threads in [1, 2, 1]:
        assert encoder.encode(text) == unbounded
        tokens, _ = encoder.encode_documents((text + "|" + text).encode() * 2, b"|", threads)
        assert tokens[: len(unbounded)].tolist() == unbounded
        assert encoder.cache_bytes_used() <= cache_bytes
    sample = " ".join(words[:300])
    assert encoder.encode(sample) == reference(sample, rule)


def test_the_cache_grows_with_the_words_it_holds_not_with_the_text() -> None:
    rng = random.Random(6)
    new = ["".join(rng.choices("abcdefghij", k=9)) for _ in range(200_000)]
    texts = {
        "new": " ".join(new[:28_000]),
        "again": " ".join(rng.choices(new[:28_000], k=600_000)),
        "many new": " ".join(new),
    }
    bytes_used = {}
    for name, text in texts.items():
        encoder = core("merges")
        ids = encoder.encode(text)
        bytes_used[name] = encoder.cache_bytes_used()
        assert encoder.decode(ids) == text.encode()
        assert encoder.encode(text) == ids  # now found in the cache
        assert encoder.encode(text[:100_000]) == core("merges", cache_bytes=0).encode(text[:100_000])
    # Slots of 4 and 32 MiB, plus storage for longer ID lists.
    assert 4 << 20 < bytes_used["again"] <= bytes_used["new"] < 8 << 20
    assert 32 << 20 < bytes_used["many new"] < 64 << 20


def test_the_cache_takes_its_whole_share_and_no_more() -> None:
    rng = random.Random(7)
    new = ["".join(rng.choices("abcdefghij", k=9)) for _ in range(200_000)]
    bytes_used = []
    for count in (50_000, 200_000):
        text = " ".join(new[:count])
        encoder = core("merges", cache_bytes=4 << 20)
        ids = encoder.encode(text)
        bytes_used.append(encoder.cache_bytes_used())
        assert encoder.decode(ids) == text.encode()
        assert encoder.encode(text) == ids
    # 2 MiB of slots, plus five twelfths of the share for longer ID lists.
    assert all(3 << 20 < size <= 4 << 20 for size in bytes_used)


def test_concurrent_calls() -> None:
    encoder = core("ranks", cache_bytes=4 << 20)
    texts = [text_of(seed, 200) for seed in range(8)]
    want = [core("ranks").encode(text) for text in texts]
    wrong: list[int] = []

    def work(index: int) -> None:
        for turn in range(20):
            i = (index + turn) % len(texts)
            if encoder.encode(texts[i]) != want[i]:
                wrong.append(i)
            if encoder.encode_batch([texts[i]] * 2, 2)[0].tolist() != want[i] * 2:
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    assert encoder.cache_bytes_used() <= 4 << 20


def test_given_pretokens() -> None:
    encoder = core("ranks", None)
    for text in SENTENCES:
        pretokens = pretokenize(text, "cl100k")
        ends = np.cumsum([len(pretoken) for pretoken in pretokens], dtype=np.uint64)
        got = encoder.encode_pretokens(text.encode(), ends)
        assert got.tolist() == reference(text, "ranks", "cl100k", special=False)
    assert encoder.encode_pretokens(b"", np.array([], np.uint64)).tolist() == []
    assert encoder.encode_pretokens(b"ab", np.array([0, 1, 1, 2, 2], np.uint64)).tolist() == [97, 98]
    with pytest.raises(ValueError, match="no pattern"):
        encoder.encode("a")


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ([2, 1], r"ends\[1\] = 1 is below ends\[0\] = 2"),
        ([1, 4], r"ends\[1\] = 4 is beyond the buffer of 3 bytes"),
    ],
)
def test_bad_ends_are_refused(ends: list[int], message: str) -> None:
    encoder = core("ranks")
    with pytest.raises(ValueError, match=message):
        encoder.encode_pretokens(b"abc", np.array(ends, np.uint64))
    assert encoder.encode("abc") == reference("abc", "ranks")  # the encoder is usable again


MISSING = {id_: entry for id_, entry in ENTRIES.items() if entry not in (b"a", b"\xff")}


@pytest.mark.parametrize(
    ("entries", "merges", "message"),
    [
        pytest.param(MISSING, None, r"lacks 2 of the 256 bytes \(b'a', b'\\xff'\)", id="missing bytes"),
        pytest.param({}, None, "lacks 256 of the 256 bytes .*, ...", id="nothing"),
        pytest.param(ENTRIES | {9000: b""}, None, "entry 9000 is empty", id="empty entry"),
        pytest.param(ENTRIES | {9000: b"a"}, None, "entries 97 and 9000 are both b'a'", id="same bytes"),
        pytest.param(
            ENTRIES | {2**31: b"xyz"}, None, "entry id 2147483648 is out of range", id="id too large"
        ),
        pytest.param(ENTRIES | {-1: b"xyz"}, None, "entry id -1 is out of range", id="id negative"),
        pytest.param(
            ENTRIES,
            [(b"a", b"qqq")],
            r"merges\[0\] \(b'a', b'qqq'\): its right part b'qqq' is not an entry",
            id="part",
        ),
        pytest.param(
            ENTRIES,
            [*MERGES, (b"\x01", b"\x02")],
            rf"merges\[{len(MERGES)}\] \(b'\\x01', b'\\x02'\): its product b'\\x01\\x02' is not an entry",
            id="product",
        ),
    ],
)
def test_bad_vocabularies_are_named(
    entries: dict[int, bytes], merges: list[tuple[bytes, bytes]] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _core.EntryFile.from_entries(entries, merges).encoder({}, automaton_of("gpt2"), False)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        core("ranks", "nonsense")
    encoder = core("ranks")
    with pytest.raises(ValueError, match="threads"):
        encoder.encode_batch(["a"], 0)
    with pytest.raises(ValueError, match="separator"):
        encoder.encode_documents(b"a", b"", 1)
    with pytest.raises(ValueError, match="cache_bytes"):
        core("ranks", cache_bytes=-1)
    with pytest.raises(UnicodeEncodeError):
        encoder.encode("\ud800")
    with pytest.raises(TypeError, match="text"):
        encoder.encode(b"a")  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", _core.simd_variants())
@pytest.mark.parametrize("rule", RULES)
def test_every_variant_merges_alike(variant: str, rule: str) -> None:
    """Many distinct short pretokens, so that groups of every size from 1 to a full batch are merged together."""
    rng = random.Random(8)
    pieces = (
        "internationalization fox the quick über漢字とのカ кий".split() + list("abcdefg-=_ ") + ["  ", "\n"]
    )
    best = _core.simd_variants()[0]
    _core.set_simd_variant(variant)
    try:
        encoder = core(rule)
        for known in range(0, 130, 3):  # each batch has some new and some known pretokens
            words = ["".join(rng.choices(pieces, k=rng.randint(1, 5))) for _ in range(64)]
            text = " ".join(words + ["the"] * known)
            assert encoder.encode(text) == reference(text, rule)
    finally:
        _core.set_simd_variant(best)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_threads_share_one_long_document(pattern: str) -> None:
    """No separator for megabytes, then one at every offset around a cut; a long span that cannot be cut."""
    special = {SEPARATOR: 5000}
    encoder = _core.EntryFile.from_entries(ENTRIES, None).encoder(special, automaton_of(pattern), True)
    sentences = [sentence.encode() for sentence in SENTENCES]
    rng = random.Random(5)
    text = b"".join(rng.choices(sentences, k=60_000))
    assert len(text) > 4 << 20
    texts = [text, text[: 3 << 20].decode(errors="ignore").encode() + b"x" * (5 << 20) + text]
    for distance in range(-20, 20, 3):
        place = (1 << 20) + distance
        texts.append(b"a b." * (place // 4) + b"a" * (place % 4) + SEPARATOR + b"a b." * (1 << 20))
    for long in texts:
        one = encoder.encode_documents(long, SEPARATOR, 1)
        two = encoder.encode_documents(long, SEPARATOR, 2)
        assert np.array_equal(one[0], two[0])
        assert np.array_equal(one[1], two[1])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_threads_share_a_long_document_that_is_full_of_special_tokens(pattern: str) -> None:
    """Special tokens that contain offsets to cut at, overlap, share prefixes, or are at every offset around a cut."""
    names = ["<|x|>", "<|x|>y", "x a b", "b x", ". . . .", SEPARATOR.decode()]
    special = {name.encode(): 5000 + i for i, name in enumerate(names)}
    encoder = _core.EntryFile.from_entries(ENTRIES, None).encoder(special, automaton_of(pattern), True)
    rng = random.Random(6)
    parts = [*names[:-1], *SENTENCES, "a b", " ", ". .", "x", "<|", "y"]
    texts = ["".join(rng.choices(parts, k=300_000)), "a b x " * 500_000, ". " * 1_000_000]
    for distance in range(-20, 20, 3):
        texts.append("a b." * (((1 << 18) + distance) // 4) + "<|x|>y" + "a b." * (1 << 18))
    for text in map(str.encode, texts):
        one = encoder.encode_documents(text, SEPARATOR, 1)
        two = encoder.encode_documents(text, SEPARATOR, 2)
        assert np.array_equal(one[0], two[0])
        assert np.array_equal(one[1], two[1])


@pytest.mark.parametrize("cache_bytes", [60_000, 65_536, 70_000, 1 << 28])
def test_known_long_pretokens_are_read_where_the_arena_is_now(cache_bytes: int) -> None:
    """Misses are encoded when their window is full of IDs of other pretokens; the arena then grows or is cleared."""
    known = ["internationalization " * 2, "QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "🙂🙃👩‍👩‍👧 ", "-" * 41 + " "]
    uncached = core("ranks", cache_bytes=0)
    for seed in range(6):
        rng = random.Random(seed)
        parts = []
        for _ in range(6000 if cache_bytes < 1 << 20 else 20_000):
            parts.append(rng.choice(known) * rng.randint(1, 8))
            if rng.random() < 0.01:
                parts.append(" " + "".join(rng.choices("abcdefgh", k=rng.randint(20, 200))))
        text = "".join(parts).encode()
        encoder = core("ranks", cache_bytes=cache_bytes)
        expected = uncached.encode_documents(text, SEPARATOR, 1)[0]
        for _ in range(2):
            assert np.array_equal(encoder.encode_documents(text, SEPARATOR, 1)[0], expected)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_character_by_itself_may_be_an_entry_that_no_merge_reaches(pattern: str) -> None:
    entries = {value: bytes([value]) for value in range(256)} | {300: "\u200d".encode(), 301: "中".encode()}
    encoder = _core.EntryFile.from_entries(entries, []).encoder({b"<|x|>": 400}, automaton_of(pattern), True)
    for character, tail, before in itertools.product(
        "\u200d中", ["", " ", "b", "!", " <|x|>"], ["é", "a ", "한한 ", "中"]
    ):
        for size in (0, 1, 2, 5, 13, 14, 15, 16, 31, 59, 60, 61, 62, 63, 64, 100, 140):
            text = (before * size)[:size] + "e" + character + tail
            expected = []
            for part in text.split("<|x|>"):
                ends = [0, *pretoken_ends(part.encode(), pattern).tolist()]
                for start, end in itertools.pairwise(ends):
                    pretoken = part.encode()[start:end]
                    expected += [id_ for id_, entry in entries.items() if entry == pretoken] or list(pretoken)
                expected.append(400)
            assert encoder.encode(text) == expected[:-1], text


def characters_vocabulary(rng: random.Random) -> dict[int, bytes]:
    """Return entries that start and end within three-byte characters, and some that contain two of them."""
    alphabet = "中文字符あいう한국어ไทย€"
    entries = dict.fromkeys(bytes([value]) for value in range(256))
    text = "".join(rng.choices(alphabet, k=400)).encode()
    for _ in range(150):
        start = rng.randrange(len(text) - 8)
        entries[text[start : start + rng.randint(2, 7)]] = None
    return dict(enumerate(entries))


@pytest.mark.parametrize("variant", _core.simd_variants())
@pytest.mark.parametrize("whole", [False, True], ids=["by merges", "whole"])
@pytest.mark.parametrize("first_id", [0, (1 << 21) - 300, 1 << 21], ids=["small", "partly large", "large"])
def test_lines_of_characters_with_commas_in_them(variant: str, whole: bool, first_id: int) -> None:
    """Runs that span many pretokens and end in every way, in a lent buffer of exactly the required size. Single
    characters are entries that no merge reaches. IDs from 2^21 on do not fit the table of characters.
    """
    rng = random.Random(first_id)
    listed = dict.fromkeys(characters_vocabulary(rng).values()) | {c.encode(): None for c in "中符。あ"}
    entries = {first_id + i: entry for i, entry in enumerate(listed)}
    ranks = {entry: id_ for id_, entry in entries.items()}
    best = _core.simd_variants()[0]
    _core.set_simd_variant(variant)
    try:
        encoder = _core.EntryFile.from_entries(entries, None).encoder({}, automaton_of("gpt2"), whole)
        ends = ["", "\n", " ", "a", "é", "я", "😀", "ไ", "12", "。\n", "，a", "ー-", "\u3000"]
        for size in [*range(1, 20), 31, 32, 33, 47, 48, 49, 63, 64, 65, 255, 256, 257]:
            weights = [4, 4, 4, 1, 1, 1, 2, 2, 1]
            text = "".join(
                "".join(rng.choices("龍鳳麟あ中符，。ー", weights, k=rng.choice([size, size, 3]))) + end
                for end in ends
            )
            expected = [
                i for p in pretokenize(text) for i in encode_pretoken(p, ranks, None, ignore_merges=whole)
            ]
            out = np.empty(_core.TokenizerCore.out_tokens(len(text.encode())), np.uint32)
            got = encoder.encode_documents(text.encode(), SEPARATOR, 1, out=out)[0]
            assert got.tolist() == expected, size
    finally:
        _core.set_simd_variant(best)


@pytest.mark.parametrize("first_id", [0, (1 << 18) - 110, 1 << 18, (1 << 31) - 256])
def test_a_cached_pretoken_of_any_count_of_ids(first_id: int) -> None:
    """A cache slot holds up to seven IDs below 2^18; other lists are in the arena."""
    encoder = _core.EntryFile.from_entries({first_id + i: bytes([i]) for i in range(256)}, None).encoder(
        {}, automaton_of("gpt2"), False
    )
    rng = random.Random(first_id)
    words = ["".join(rng.choices("abcklmnoxyz", k=size)) for size in range(1, 20) for _ in range(20)]
    for _ in range(3):  # merged, then from the cache
        rng.shuffle(words)
        text = " ".join(words)
        assert encoder.encode(text) == [first_id + byte for byte in text.encode()]


def test_a_cache_that_grows_while_a_long_pretoken_is_taken_from_it() -> None:
    """The window of misses has no room for its IDs, so the misses are encoded and the small table moves. valgrind
    reported reads from the freed table.
    """
    rng = random.Random(5)
    encoder = _core.EntryFile.from_entries({i: bytes([i]) for i in range(256)}, None).encoder(
        {}, automaton_of("gpt2"), False
    )
    long, *words = ("".join(rng.choices("abcdefghijklmnop", k=size)) for size in [400] + [8] * 2200)
    known, fresh = words[:200], words[200:]
    first = " ".join([long, *known])
    assert encoder.encode(first) == list(first.encode())
    mixed = (word for i in range(0, len(fresh), 5) for word in [*fresh[i : i + 5], long])
    text = " ".join([*mixed, *known, *known])
    assert encoder.encode(text) == list(text.encode())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("whole", [False, True], ids=["by merges", "whole"])
def test_characters_of_three_bytes_equal_the_reference(seed: int, whole: bool) -> None:
    rng = random.Random(seed)
    entries = characters_vocabulary(rng)
    id_of = {entry: id_ for id_, entry in entries.items()}
    encoder = _core.EntryFile.from_entries(entries, None).encoder({}, None, whole)
    alphabet = [
        "中",
        "文",
        "字",
        "符",
        "あ",
        "い",
        "한",
        "ไ",
        "ท",
        "€",
        "a",
        " ",
        "é",
        "я",
        "😀",
        "\u0800",
        "\uffff",
    ]
    weights = [9, 9, 9, 9, 5, 5, 5, 5, 5, 3, 1, 1, 1, 1, 1, 1, 1]
    pretokens = ["".join(rng.choices(alphabet, weights, k=rng.randint(1, 14))).encode() for _ in range(600)]
    # Also invalid UTF-8, cut at any offset.
    pretokens += [pretoken[rng.randint(0, 2) : -1 - rng.randint(0, 2)] for pretoken in pretokens]
    pretokens += list(entries.values())
    pretokens += [
        b"\xe0\x80\x80\xe4\xb8\xad",
        b"\xe4\xe4\xb8",
        b"\xe4\xb8\xad\xe4\xb8",
        b"\xed\xa0\x80\xed\xbf\xbf",
    ]
    pretokens = [pretoken for pretoken in pretokens if pretoken]
    ends = np.cumsum([len(pretoken) for pretoken in pretokens], dtype=np.uint64)
    expected = [i for p in pretokens for i in encode_pretoken(p, id_of, None, ignore_merges=whole)]
    assert encoder.encode_pretokens(b"".join(pretokens), ends).tolist() == expected
