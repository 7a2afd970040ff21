"""Whole texts, batches and document streams through the core equal the reference, for any threads and any cache."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from bpe import _core
from bpe.patterns import PATTERNS
from bpe.reference import count_pretokens, encode, encode_pretoken, pretokenize, train

BYTES = [bytes([value]) for value in range(256)]
SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "  It's 1234567 o'clock;\n\n\twe'll see\u00a0— naïve façade, ÆØÅ.",
    "def f(x):\n    return x ** 2  # squared\r\n",
    "漢字とカタカナ、한국어 그리고 русский язык уменьшить",
    "🙂🙃👩‍👩‍👧 e\u0301 \u200d ﬁ ½ ٣٤ \x00\x7f",
    "-----------------------------------------------------------------=====",
    "QWxhZGRpbjpvcGVuIHNlc2FtZQ==" * 9,
    " " * 70 + "x" + "\n" * 20,
    "internationalization " * 3,
]
SPECIAL = {"<|endoftext|>": 5000, "<|pad|>": 5001, "<|pad|>>": 5002, "EOT": 5003}
SEPARATOR = b"<|endoftext|>"


def text_of(seed: int, size: int) -> str:
    rng = random.Random(seed)
    parts = [rng.choice(SENTENCES) if rng.random() < 0.8 else rng.choice(list(SPECIAL)) for _ in range(size)]
    return rng.choice(["", " ", "\n"]).join(parts)


MERGES = train(count_pretokens(SENTENCES), 400)
ENTRIES = dict(enumerate(dict.fromkeys(BYTES + [left + right for left, right in MERGES])))
# Entries no merge reaches, one of which is a pretoken of the sentences and one a part of a pretoken.
ENTRIES |= {4000: b" fo", 4001: "字と".encode(), 4002: b"-" * 41, 4003: b"internationalizatio"}


def core(rule: str, pattern: str | None = "gpt2", **options: int) -> _core.Encoder:
    special = {text.encode(): id_ for text, id_ in SPECIAL.items()}
    return _core.Encoder(
        ENTRIES, None if rule == "ranks" else MERGES, special, pattern, rule != "merges", **options
    )


def reference(text: str, rule: str, pattern: str = "gpt2", special: bool = True) -> list[int]:
    merges = None if rule == "ranks" else MERGES
    return encode(text, ENTRIES, merges, SPECIAL if special else {}, pattern, rule != "merges")


RULES = ["merges", "merges whole", "ranks"]


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
    """Short texts, so that the last bytes of the buffer lie in every place of a key."""
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
def test_pieces_of_any_thread_count_give_the_same(separator: bytes) -> None:
    """Several megabytes, so that there are pieces; documents from empty to longer than a piece; runs of separators."""
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


def test_the_cache_grows_for_words_that_come_again_and_not_for_new_ones() -> None:
    rng = random.Random(6)
    letters = "abcdefghij"
    new = " ".join("".join(rng.choices(letters, k=9)) for _ in range(200_000))
    known = ["".join(rng.choices(letters, k=9)) for _ in range(45_000)]
    again = " ".join(rng.choices(known, k=600_000))
    bytes_used = {}
    for text in (new, again):
        encoder = core("merges")
        ids = encoder.encode(text)
        assert encoder.decode(ids) == text.encode()
        assert encoder.encode(text[:100_000]) == core("merges", cache_bytes=0).encode(text[:100_000])
        bytes_used[text] = encoder.cache_bytes_used()
    assert bytes_used[new] < 6 << 20 < bytes_used[again]  # slots of 1 and of 8 MiB, and many ids apart


def new_words(rng: random.Random, count: int, least: int, most: int) -> list[str]:
    return ["".join(rng.choices("abcdefghijnortqu", k=rng.randint(least, most))) for _ in range(count)]


LARGE = new_words(random.Random(3), 1, 8192, 8192)[0]
MISSES = {
    "one": [["word"]],
    "short, as many as are merged at once": [[word] for word in new_words(random.Random(1), 129, 1, 15)],
    "short, as many as are gathered": [[word] for word in new_words(random.Random(1), 1100, 5, 15)],
    "the same again and again": [["again and again"] * 40] * 40,
    "long": [new_words(random.Random(2), 9, 16, 80) for _ in range(16)],
    "around the longest that are gathered": [["x" * size, "y" * size] for size in (511, 512, 513, 600)],
    "around the longest that are kept": [
        ["x" * size, "new", "y" * size] for size in (4094, 4095, 8192, 8193)
    ],
    "more empty documents than are noted": [["new"], *[[]] * 1300, ["newer"], [], ["newest"]],
    "large hits": [[LARGE], ["fresh"], [LARGE], ["fresher", LARGE], [LARGE, LARGE]],
    "one in many hits": [["a b c d"] * 9000, ["fresh"], ["a b c d"] * 9000, ["fresher", "a b c d"]],
    "of all kinds": [
        [
            word
            for least, most in ((1, 9), (10, 30), (1, 90))
            for word in new_words(random.Random(seed), 9, least, most)
        ]
        for seed in range(60)
    ],
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", MISSES)
def test_pretokens_that_are_new_come_in_their_places(name: str, rule: str) -> None:
    """Each document by itself, and all together: what is new is merged at other times, and ids stay the same."""
    documents = [" ".join(words) for words in MISSES[name]]
    want = [core(rule).encode(document) for document in documents]
    text = SEPARATOR.join(document.encode() for document in documents)
    out = np.empty(_core.Encoder.out_tokens(len(text)), np.uint32)
    encoder = core(rule)
    for lent in (None, out, None):
        tokens, offsets = encoder.encode_documents(text, SEPARATOR, 1, out=lent)
        rows = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        assert [tokens[start:stop].tolist() for start, stop in rows] == want
    assert [encoder.decode(ids).decode() for ids in want] == documents
    if len(text) < 20_000:
        assert want == [reference(document, rule) for document in documents]


def test_calls_from_several_threads_at_once() -> None:
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
    assert encoder.encode("abc") == reference("abc", "ranks")  # the session is in order again


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
            r"merge 0 \(b'a', b'qqq'\): its right part b'qqq' is not an entry",
            id="part",
        ),
        pytest.param(
            ENTRIES,
            [*MERGES, (b"\x01", b"\x02")],
            rf"merge {len(MERGES)} \(b'\\x01', b'\\x02'\): its product b'\\x01\\x02' is not an entry",
            id="product",
        ),
    ],
)
def test_bad_vocabularies_are_named(
    entries: dict[int, bytes], merges: list[tuple[bytes, bytes]] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _core.Encoder(entries, merges, {}, "gpt2", False)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        core("ranks", "nonsense")
    encoder = core("ranks")
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        encoder.encode_batch(["a"], 0)
    with pytest.raises(ValueError, match="separator is empty"):
        encoder.encode_documents(b"a", b"", 1)
    with pytest.raises(ValueError, match="cache_bytes must be at least 0, got -1"):
        core("ranks", cache_bytes=-1)
    with pytest.raises(UnicodeEncodeError):
        encoder.encode("\ud800")
    with pytest.raises(TypeError, match="text must be str, got bytes"):
        encoder.encode(b"a")  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [0, 1, 1 << 10, 3 << 20])
def test_lent_memory_holds_the_tokens(threads: int, size: int) -> None:
    encoder = core("ranks")
    text = (SEPARATOR.join(text_of(seed, 40).encode() for seed in range(20)) * 200)[:size]
    text = text.decode(errors="ignore").encode()
    want = encoder.encode_documents(text, SEPARATOR, 1)
    out = np.zeros(encoder.out_tokens(len(text)), np.uint32)
    for _ in range(2):
        tokens, offsets = encoder.encode_documents(text, SEPARATOR, threads, out=out)
        assert len(tokens) == 0 or np.shares_memory(tokens, out)
        assert np.array_equal(tokens, want[0])
        assert np.array_equal(offsets, want[1])
    with pytest.raises(ValueError, match=rf"out has room for {len(out) - 1} tokens; a buffer of {len(text)}"):
        encoder.encode_documents(text, SEPARATOR, threads, out=out[:-1])
    # What was lent is not kept.
    out[:] = 7
    assert np.array_equal(encoder.encode_documents(text, SEPARATOR, threads)[0], want[0])
    assert (out == 7).all()


def test_lent_memory_of_another_kind_is_refused() -> None:
    readonly = np.zeros(2000, np.uint32)
    readonly.flags.writeable = False
    for out in [np.zeros(2000, np.int64), np.zeros(4000, np.uint32)[::2], readonly]:
        with pytest.raises(TypeError):
            core("ranks").encode_documents(b"abc", SEPARATOR, 1, out=out)  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", _core.simd_variants())
@pytest.mark.parametrize("rule", RULES)
def test_every_variant_merges_alike(variant: str, rule: str) -> None:
    """Many distinct short pretokens, so that groups of every size from 1 to a batch's are merged in turns."""
    rng = random.Random(8)
    pieces = (
        "internationalization fox the quick über漢字とのカ кий".split() + list("abcdefg-=_ ") + ["  ", "\n"]
    )
    best = _core.simd_variants()[0]
    _core.set_simd_variant(variant)
    try:
        encoder = core(rule)
        for known in range(0, 130, 3):  # of each batch some are new, some known
            words = ["".join(rng.choices(pieces, k=rng.randint(1, 5))) for _ in range(64)]
            text = " ".join(words + ["the"] * known)
            assert encoder.encode(text) == reference(text, rule)
    finally:
        _core.set_simd_variant(best)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_threads_share_one_long_document(pattern: str) -> None:
    """No separator for megabytes, then one in every place around a cut; a long stretch that can't be cut."""
    special = {SEPARATOR: 5000}
    encoder = _core.Encoder(ENTRIES, None, special, pattern, True)
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


IMAGE_TEXT = (
    b" some words again and again, " * 3
    + b"x" * 40
    + " 曉光緣圃麗芳氣滿街流 naïve ".encode()
    + b" 0123456789" * 9
)


def image_of(text: bytes) -> tuple[_core.Encoder, bytes]:
    encoder = _core.Encoder(gpt2_like(), None, {}, "gpt2", True)
    encoder.encode_documents(text, b"\0", 1)
    return encoder, encoder.cache_image()


def gpt2_like() -> dict[int, bytes]:
    pieces = [b" wor", b"ds", b" a", b"ga", b"in", b"xx", b"xxxx", b" words", "曉".encode()]
    return dict(enumerate([*(bytes([value]) for value in range(256)), *pieces]))


def test_a_cache_starts_from_the_image_of_another() -> None:
    encoder, image = image_of(IMAGE_TEXT)
    expected = encoder.encode_documents(IMAGE_TEXT, b"\0", 1)[0]
    warm = _core.Encoder(gpt2_like(), None, {}, "gpt2", True)
    warm.start_from_image(memoryview(image))
    assert np.array_equal(warm.encode_documents(IMAGE_TEXT, b"\0", 1)[0], expected)
    assert contents(warm.cache_image()) == contents(image), "all was there: nothing was added"
    more = IMAGE_TEXT + b" other words beyond" * 200
    assert np.array_equal(
        warm.encode_documents(more, b"\0", 1)[0], encoder.encode_documents(more, b"\0", 1)[0]
    )
    warm.start_from_image(b"")
    assert warm.cache_image() == b""


def contents(image: bytes) -> list[bytes]:
    """The slots in any order: a pretoken that is found may move to one where it is found sooner."""
    header, slot_bytes = 4 * 8, 32
    slots_stop = header + slot_bytes * int.from_bytes(image[8:16], "little")
    slots = [image[start : start + slot_bytes] for start in range(header, slots_stop, slot_bytes)]
    return [image[:header], *sorted(slots), image[slots_stop:]]


@pytest.mark.parametrize("count", [340, 342, 700, 30_000])
def test_a_growing_cache_forgets_nothing(count: int) -> None:
    """Around and beyond the sizes at which the table doubles: what was encoded once is found."""
    text = b" ".join(b"%x" % (i * 2654435761 % 2**32) for i in range(count))
    encoder, image = image_of(text)
    for _ in range(3):
        encoder.encode_documents(text, b"\0", 1)
        assert contents(encoder.cache_image()) == contents(image), "pretokens displaced each other"


def test_the_image_of_a_cache_without_an_empty_slot() -> None:
    """So many new words that the table stops growing and fills up to the last slot."""
    rng = random.Random(11)
    letters = bytes.maketrans(b"0123456789", b"qwertyuiop")
    text = b" ".join(b"%d" % rng.randrange(10**12) for _ in range(300_000)).translate(letters)
    encoder, image = image_of(text)
    slot_count, used = (int.from_bytes(image[start : start + 8], "little") for start in (8, 16))
    assert slot_count == used
    warm = _core.Encoder(gpt2_like(), None, {}, "gpt2", True)
    warm.start_from_image(image)
    for each in (text, text.replace(b"q", b"a")):
        assert np.array_equal(
            warm.encode_documents(each, b"\0", 1)[0], encoder.encode_documents(each, b"\0", 1)[0]
        )


def test_an_image_stays_within_the_cache_bound() -> None:
    _, image = image_of(b" ".join(b"%d" % i for i in range(5000)))
    small = _core.Encoder(gpt2_like(), None, {}, "gpt2", True, cache_bytes=20_000)
    small.start_from_image(image)
    text = b" ".join(b"%d" % i for i in range(4000, 6000))
    assert np.array_equal(small.encode_documents(text, b"\0", 1)[0], image_of(text)[0].encode(text.decode()))
    assert small.cache_bytes_used() <= 20_000


def test_a_damaged_image_is_refused() -> None:
    encoder, image = image_of(IMAGE_TEXT)
    for damaged in [image[:-1], image[:20], image + b"\0", b"\xff" + image[1:], b"x"]:
        with pytest.raises(ValueError, match="damaged or of another version"):
            encoder.start_from_image(damaged)
    rng = random.Random(5)
    text = IMAGE_TEXT * 4
    for _ in range(300):  # whatever the bytes say, nothing is read or written beyond them
        flipped = bytearray(image)
        flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        try:
            encoder.start_from_image(flipped)
        except ValueError:
            continue
        encoder.encode_documents(text, b"\0", 1)


def test_a_long_pretoken_is_found_by_its_bytes_not_by_its_hash_alone() -> None:
    """As if two had the same key: what the arena keeps is another pretoken."""
    encoder, image = image_of(IMAGE_TEXT)
    assert image.count(b"x" * 40) == 1
    encoder.start_from_image(image.replace(b"x" * 40, b"x" * 20 + b"y" + b"x" * 19))
    tokens, _ = encoder.encode_documents(IMAGE_TEXT * 3, b"\0", 1)
    assert encoder.decode(tokens.tolist()) == IMAGE_TEXT * 3


def characters_vocabulary(rng: random.Random) -> dict[int, bytes]:
    """Entries that begin and end within characters of three bytes, and some that hold two of them."""
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
    """Runs that go through many pretokens and end in every way, in lent memory that is just large enough. Single
    characters are entries that no merge reaches; ids from 2^21 on don't fit the table of characters."""
    rng = random.Random(first_id)
    listed = dict.fromkeys(characters_vocabulary(rng).values()) | {c.encode(): None for c in "中符。あ"}
    entries = {first_id + i: entry for i, entry in enumerate(listed)}
    ranks = {entry: id_ for id_, entry in entries.items()}
    best = _core.simd_variants()[0]
    _core.set_simd_variant(variant)
    try:
        encoder = _core.Encoder(entries, None, {}, "gpt2", whole)
        ends = ["", "\n", " ", "a", "é", "я", "😀", "ไ", "12", "。\n", "，a", "ー-", "\u3000"]
        for size in [*range(1, 20), 31, 32, 33, 47, 48, 49, 63, 64, 65, 255, 256, 257]:
            weights = [4, 4, 4, 1, 1, 1, 2, 2, 1]
            text = "".join(
                "".join(rng.choices("龍鳳麟あ中符，。ー", weights, k=rng.choice([size, size, 3]))) + end
                for end in ends
            )
            expected = [
                i for p in pretokenize(text) for i in encode_pretoken(p, ranks, None, whole_pretokens=whole)
            ]
            out = np.empty(_core.Encoder.out_tokens(len(text.encode())), np.uint32)
            got = encoder.encode_documents(text.encode(), SEPARATOR, 1, out=out)[0]
            assert got.tolist() == expected, size
    finally:
        _core.set_simd_variant(best)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("whole", [False, True], ids=["by merges", "whole"])
def test_characters_of_three_bytes_equal_the_reference(seed: int, whole: bool) -> None:
    rng = random.Random(seed)
    entries = characters_vocabulary(rng)
    id_of = {entry: id_ for id_, entry in entries.items()}
    encoder = _core.Encoder(entries, None, {}, None, whole)
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
    # And bytes that are no UTF-8: cut anywhere.
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
    expected = [i for p in pretokens for i in encode_pretoken(p, id_of, None, whole_pretokens=whole)]
    assert encoder.encode_pretokens(b"".join(pretokens), ends).tolist() == expected
