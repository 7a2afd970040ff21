"""IDs equal tiktoken's, Hugging Face's and the reference's, for every pattern and merge rule."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from splits import split

from bpe import reference
from bpe.errors import BadArgument, InvalidText
from bpe.pretokenizer import Pretokenizer
from bpe.tokenizer import Tokenizer
from tokenmill.inputs import _core

LOOKAHEAD = r"\d{1,3}(?=(?:\d{3})*\b)|\d|\D+"  # the core cuts it by a scan in both directions
CUSTOM = r"[A-Za-z]+|\p{N}| ?[^\sA-Za-z\p{N}]+|\s+"  # matches all text


GAPPY = Pretokenizer((split(r"[A-Za-z]+|\p{N}{2}", "drop"),))


def texts_of(nasty_texts, random_texts, count=150):
    return [*nasty_texts.values(), *random_texts(seed=1, count=count, size=40)]


# -- equal to the other libraries --------------------------------------------------------------------------------


def test_rank_file_equals_tiktoken(pattern, ranked, tiktoken_of, nasty_texts, random_texts):
    ours, theirs = ranked(pattern), tiktoken_of(ranked(pattern))
    for text in texts_of(nasty_texts, random_texts):
        ids = ours.encode(text)
        assert ids == theirs.encode(text, allowed_special="all"), repr(text)
        assert ours.encode(text, allowed_special=()) == theirs.encode_ordinary(text), repr(text)
        assert ours.decode_bytes(ids) == text.encode()


@pytest.mark.parametrize("ignore_merges", [False, True], ids=["merges", "ignore_merges"])
def test_listed_merges_equal_hugging_face(
    pattern, ignore_merges, trained, huggingface_of, nasty_texts, random_texts
):
    entries, merges = trained(pattern)
    # Entries that no merge reaches: only ignore_merges may emit them.
    entries |= {900: b"xyzzy", 901: b" lazy dogs", 902: b"9876543", 903: "Größer".encode()}
    ours = Tokenizer(entries, merges, ["<|endoftext|>"], pattern, ignore_merges=ignore_merges)
    theirs = huggingface_of(ours)
    for text in [*texts_of(nasty_texts, random_texts), "xyzzy lazy dogs 9876543Größer", "xyzzy"]:
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, repr(text)


def test_rank_file_written_as_json_equals_hugging_face(
    pattern, ranked, huggingface_of, nasty_texts, random_texts
):
    ours = ranked(pattern)
    theirs = huggingface_of(ours)
    for text in texts_of(nasty_texts, random_texts):
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, repr(text)


def test_the_core_equals_the_reference(pattern, trained, nasty_texts, random_texts):
    entries, merges = trained(pattern)
    special_tokens = {"<|endoftext|>": 1000}
    for merge_list in (merges, None):
        ours = Tokenizer(entries, merge_list, special_tokens, pattern)
        for text in texts_of(nasty_texts, random_texts, count=40):
            expected = reference.encode(text, ours.vocab, merge_list, special_tokens, pattern)
            assert ours.encode(text) == expected, repr(text)


def test_custom_pattern_equals_tiktoken(ranked, tiktoken_of, nasty_texts, random_texts):
    ours, theirs = ranked(CUSTOM), tiktoken_of(ranked(CUSTOM))
    for text in texts_of(nasty_texts, random_texts):
        assert ours.encode(text) == theirs.encode(text, allowed_special="all"), repr(text)


def test_custom_pattern_equals_hugging_face(listed, huggingface_of, nasty_texts, random_texts):
    for expression in (CUSTOM, GAPPY):
        ours, theirs = listed(expression), huggingface_of(listed(expression))
        for text in texts_of(nasty_texts, random_texts):
            assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, repr(text)


# -- special tokens ----------------------------------------------------------------------------------------------


def test_overlapping_special_tokens_equal_hugging_face(listed, huggingface_of):
    """The leftmost match wins, then the longest: all pairs over two letters, all texts of up to six."""
    tokens = ["".join(letters) for size in (1, 2, 3) for letters in itertools.product("xy", repeat=size)]
    texts = ["".join(letters) for letters in itertools.product("xya", repeat=6)]
    generator = random.Random(2)
    for pair in generator.sample(list(itertools.combinations(tokens, 2)), 12):
        special_tokens = {text: 1000 + place for place, text in enumerate(pair) if len(text) > 1}
        if not special_tokens:
            continue
        ours = listed(special_tokens=special_tokens)
        theirs = huggingface_of(ours)
        for text in generator.sample(texts, 60):
            assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, (pair, text)


@pytest.mark.parametrize(
    "text",
    ["<s><s>", "<s><s>>", "a<s>b", " <s> ", "<<s>", "<s", "<s>\n", "<ss>", "<s>'s", "é<s>é", "<s>é<s"],
)
def test_special_tokens_cut_the_text(listed, huggingface_of, text):
    ours = listed(special_tokens=["<s>", "<s>>", "<ss>"])
    assert ours.encode(text) == huggingface_of(ours).encode(text, add_special_tokens=False).ids
    assert ours.decode(ours.encode(text)) == text


def test_allowed_special(listed):
    tokenizer = listed(special_tokens=["<a>", "<ab>"])
    a, ab = tokenizer.special_tokens["<a>"], tokenizer.special_tokens["<ab>"]
    text = "x<a><ab>"
    assert tokenizer.encode(text)[-2:] == [a, ab]
    assert tokenizer.encode(text, allowed_special=["<a>"])[1] == a
    assert ab not in tokenizer.encode(text, allowed_special=["<a>"])
    plain = tokenizer.encode(text, allowed_special=())
    assert not {a, ab} & set(plain)
    assert tokenizer.decode(plain) == text
    assert tokenizer.encode_batch([text, ""], allowed_special=()).tolist() == [plain, []]
    twice = ["<a>", "<a>"]
    assert tokenizer.encode(text, twice) == tokenizer.encode(text, ["<a>"])
    assert list(tokenizer.encode_iterable([text], twice)) == tokenizer.encode(text, ["<a>"])
    with pytest.raises(BadArgument):
        tokenizer.encode(text, allowed_special=[["<a>"]])
    with pytest.raises(BadArgument):
        tokenizer.encode(text, allowed_special=["<b>"])
    with pytest.raises(BadArgument):
        tokenizer.encode(text, allowed_special="none")


def test_a_special_token_of_one_byte_shares_its_entry(trained, huggingface_of):
    """As Hugging Face's trainer writes it: the text "a" is always the special token, and no other text needs the
    byte.
    """
    entries, merges = trained("gpt2")
    ours = Tokenizer(entries, merges, ["a"])
    assert ours.special_tokens == {"a": ord("a")}
    for text in ("a", "banana", "the quick"):
        assert ours.encode(text) == huggingface_of(ours).encode(text).ids


def test_some_of_the_special_tokens(listed, huggingface_of):
    tokenizer = listed(special_tokens=["<a>", "<b>", "<ab>"])
    plain = listed(special_tokens=[])
    text = "x<a>y<b>z<ab> <a"
    ids = tokenizer.special_tokens
    assert tokenizer.encode(text, {"<a>", "<b>", "<ab>"}) == tokenizer.encode(text)
    assert tokenizer.encode(text, ["<a>"]) == [
        *plain.encode("x"), ids["<a>"], *plain.encode("y<b>z<ab> <a"),
    ]  # fmt: skip
    assert tokenizer.encode("x<b>y", ["<a>"]) == plain.encode("x<b>y")
    assert tokenizer.encode_batch([text, "<b>"], allowed_special=()).tolist() == [
        plain.encode(text),
        plain.encode("<b>"),
    ]
    assert tokenizer.encode_batch([text], allowed_special=["<b>"]).tolist() == [
        tokenizer.encode(text, ["<b>"])
    ]


# -- batches, documents ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3, None])
def test_encode_batch_is_encode_for_each(listed, nasty_texts, random_texts, threads):
    tokenizer = listed()
    texts = texts_of(nasty_texts, random_texts)
    batch = tokenizer.encode_batch(texts, threads=threads)
    assert batch.tokens.dtype == np.uint32
    assert batch.offsets.dtype == np.uint64
    assert batch.tolist() == [tokenizer.encode(text) for text in texts]


@pytest.mark.parametrize("count", [0, 1])
def test_small_batches(listed, count):
    assert listed().encode_batch(["ab"] * count).tolist() == [listed().encode("ab")] * count


@pytest.mark.parametrize("expression", ["gpt2", GAPPY], ids=["core", "expression"])
@pytest.mark.parametrize("threads", [1, 2])
def test_encode_documents_is_encode_for_each(listed, nasty_texts, random_texts, expression, threads):
    tokenizer = listed(expression, special_tokens=["<|endoftext|>", "<x>"])
    documents = [text.replace("<|endoftext|>", "<x>") for text in texts_of(nasty_texts, random_texts, 40)]
    buffer = "<|endoftext|>".join(documents).encode()
    expected = [tokenizer.encode(text) for text in documents]
    assert tokenizer.encode_documents(buffer, threads=threads).tolist() == expected
    assert tokenizer.encode_documents(memoryview(buffer), b"<|endoftext|>", checked=True).tolist() == expected
    plain = [tokenizer.encode(text, allowed_special=()) for text in documents]
    assert tokenizer.encode_documents(buffer, allowed_special=()).tolist() == plain


@pytest.mark.parametrize(
    ("buffer", "rows"), [(b"", 1), (b"<s>", 2), (b"a<s><s>b", 3), (b"<s>a<s>", 3), (b"<s", 1)]
)
def test_n_separators_make_n_plus_one_rows(listed, buffer, rows):
    assert len(listed().encode_documents(buffer, "<s>")) == rows


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("broken", [b"\xff", b"\xe6\xbc", b"\x80", b"\xed\xa0\x80", b"\xf0\x9f\x99"])
@pytest.mark.parametrize("place", [0, 4, 70_000, 399_990])
def test_documents_that_are_not_utf8_are_refused_wherever_they_break(listed, threads, broken, place):
    """Documents are checked while others are encoded; the first fault in the buffer is reported."""
    tokenizer = listed()
    text = "a caf\u00e9 <s>".encode() * 40_000
    place = text.index(b"<s>", place) - place % 2  # after a character or before its document ends
    wrong = text[:place] + broken + text[place:] + broken
    offset = _core.validate_utf8(wrong)
    with pytest.raises(InvalidText, match=f"text.*{offset}"):
        tokenizer.encode_documents(wrong, "<s>", threads)
    assert len(tokenizer.encode_documents(text, "<s>", threads)) == 40_001


@pytest.mark.parametrize("shift", range(4))
def test_checking_ahead_may_end_within_a_character(listed, shift):
    """The check runs 16 KiB ahead and stops at any offset of documents of every size."""
    tokenizer = listed()
    rng = random.Random(shift)
    sizes = [rng.choice([0, 1, 2, 3, 30, 300]) for _ in range(200)] + [6_000, 0, 20_000]
    documents = ["\u6f22" * size for size in sizes] + ["a" * shift]
    rng.shuffle(documents)
    text = "<s>".join(["b" * shift, *documents]).encode()
    assert len(tokenizer.encode_documents(text, "<s>")) == len(documents) + 1
    for place in [*range(16_380, 16_390), *range(32_760, 32_770), len(text) - 1]:
        wrong = text[:place] + b"\xfe" + text[place + 1 :]
        with pytest.raises(InvalidText, match=f"text.*{_core.validate_utf8(wrong)}"):
            tokenizer.encode_documents(wrong, "<s>")


@pytest.mark.parametrize("pattern", ["gpt2", LOOKAHEAD, r"\w+|\W"])
@pytest.mark.parametrize("checked", [False, True])
def test_a_separator_that_cuts_characters_apart_crashed(listed, pattern, checked):
    tokenizer = listed(pattern)
    for separator in (b"\xa9", b"\xc3", b"\xff", b"<s>\xe6"):
        with pytest.raises(BadArgument, match="separator"):
            tokenizer.encode_documents("\u00e9a\u00e9".encode(), separator, checked=checked)


@pytest.mark.parametrize("pattern", ["gpt2", LOOKAHEAD])
@pytest.mark.parametrize("threads", [1, 2])
def test_checked_rows_that_cut_characters_apart_crashed(listed, pattern, threads):
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


def test_encode_documents_refuses_wrong_arguments(listed):
    with pytest.raises(InvalidText, match="text.*byte 2"):
        listed().encode_documents(b"ab\xffc")
    with pytest.raises(BadArgument, match="separator"):
        listed().encode_documents(b"ab", "")
    with pytest.raises(BadArgument, match="threads"):
        listed().encode_documents(b"ab", threads=0)
    with pytest.raises(BadArgument, match="threads"):
        listed().encode_batch(["ab"], threads=-1)


# -- NFC ---------------------------------------------------------------------------------------------------------


NFC_TEXTS = [
    "e\u0301 Cafe\u0301s",
    "a\u0327\u0301\u0323",
    "<to\u212a>",  # the Kelvin sign becomes K, but tokens are found before normalization
    "<toK>\u0338>",
    "x\u0338<toK>\u0338y",
    "\u1100\u1161\u11a8",  # Hangul from its parts
    "\u2126 \u212b \ufb01",
    "plain",
]


def test_nfc_equals_hugging_face(listed, huggingface_of, nasty_texts):
    ours = listed("qwen2", special_tokens=["<toK>"], normalizer="NFC")
    theirs = huggingface_of(ours)
    for text in [*NFC_TEXTS, *nasty_texts.values()]:
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, repr(text)


def test_nfc_documents(listed):
    tokenizer = listed("qwen2", special_tokens=["<toK>", "<s>"], normalizer="NFC")
    documents = ["one", "", *NFC_TEXTS, "", "two<toK>", "\u0301x"]
    rows = tokenizer.encode_documents("<s>".join(documents).encode(), "<s>")
    assert rows.tolist() == [tokenizer.encode(text) for text in documents]


MARKED_TEXTS = [
    "plain",
    "",
    "café e\u0301 cafe\u0301",
    "<s>\u0338 after a special token",  # composes with ">" unless the text is cut there
    "a<|endoftext|>\u0338b<|endoftext|>e\u0301",
    "\u0338<s>\u0301",
    "<\u212aelvin> \u2126 \u037e",
    "각 가\u11a8",
    "ক\u09c7\u09be কা",
    "\u0344\u0958",
]


def test_nfc_equals_normalizing_first(huggingface_of, listed):
    tokenizer = listed("qwen2", ["<|endoftext|>", "<s>", "<Kelvin>"], normalizer="NFC")
    theirs = huggingface_of(tokenizer)
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in MARKED_TEXTS]
    assert [tokenizer.encode(text) for text in MARKED_TEXTS] == expected
    assert tokenizer.encode_batch(MARKED_TEXTS).tolist() == expected
    assert tokenizer.encode_batch(MARKED_TEXTS[:2]).tolist() == expected[:2]
    assert [list(tokenizer.encode_iterable(text)) for text in MARKED_TEXTS] == expected
    for threads in (1, 2):
        for separator in ("<|endoftext|>", "<doc>"):
            texts = [text for text in MARKED_TEXTS if separator not in text]
            joined = separator.join(texts).encode()
            rows = tokenizer.encode_documents(joined, separator, threads).tolist()
            assert rows == [tokenizer.encode(text) for text in texts]
    rows = tokenizer.encode_documents(MARKED_TEXTS[4].encode()).tolist()
    assert rows == [tokenizer.encode(text) for text in MARKED_TEXTS[4].split("<|endoftext|>")]


# -- errors ----------------------------------------------------------------------------------------------------


def test_lone_surrogates_are_named(listed):
    for call in (
        lambda tokenizer: tokenizer.encode("ab\ud800"),
        lambda tokenizer: tokenizer.encode("ab\ud800", allowed_special=()),
        lambda tokenizer: tokenizer.encode_batch(["x", "ab\ud800"]),
    ):
        for expression in ("gpt2", GAPPY):
            with pytest.raises(InvalidText):
                call(listed(expression))


def test_other_types_than_text_are_type_errors(listed):
    with pytest.raises(TypeError, match="text"):
        listed().encode(b"ab")
    with pytest.raises(BadArgument):
        listed().encode_batch("ab")


def test_documents_that_normalization_changes_between_others(listed):
    """The changed documents are encoded individually, and their neighbours by the core in batches."""
    tokenizer = listed(normalizer="NFC")
    texts = [
        "one two",
        "",
        "e\u0301 three",
        "e\u0301",
        "four",
        "five the",
        "\u0301six",
        "seven",
        "eight e\u0301",
        "nine",
    ]
    expected = [tokenizer.encode(text) for text in texts]
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.uint64)
    assert tokenizer.encode_ragged(b"".join(data), offsets).tolist() == expected
    assert tokenizer.encode_documents(b"<|endoftext|>".join(data)).tolist() == expected


@pytest.mark.parametrize("options", [{"normalizer": "NFC"}, {"pattern": r"\w+|\W"}])
def test_invalid_text_is_named_where_the_core_does_not_look(listed, options):
    with pytest.raises(InvalidText, match="byte 9"):
        listed(**options).encode_documents(b"a e\xcc\x81 bcd\xff e")


@pytest.mark.parametrize(
    ("text", "offsets", "message"),
    [
        (b"ab\xffc", [0, 2, 4], "byte 2: "),
        ("aé".encode(), [0, 2, 3], "byte 2: "),
        ("aé".encode(), [0, 2], "byte 1: "),
        ("éa".encode(), [1, 3], "byte 1: "),
    ],
)
def test_each_row_of_encode_ragged_must_be_text(listed, text, offsets, message):
    with pytest.raises(InvalidText, match=message):
        listed().encode_ragged(text, offsets)
    # Only the rows are checked.
    assert len(listed().encode_ragged(b"\xff" + "aé".encode() + b"\xff", [1, 2, 2, 4])) == 3


def test_allowed_special_as_a_list_was_searched_once_per_token(listed):
    class Listed(list):
        def __contains__(self, value):
            raise AssertionError("a linear search")

    tokenizer = listed(special_tokens=["<a>", "<b>", "<c>"])
    allowed, text = Listed(["<a>", "<b>"]), "x<a>y<b>z<c>"
    expected = tokenizer.encode(text, {"<a>", "<b>"})
    assert tokenizer.encode(text, allowed) == expected
    assert list(tokenizer.encode_iterable(text, allowed)) == expected
