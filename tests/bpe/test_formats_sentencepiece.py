"""SentencePiece models: IDs equal the `sentencepiece` library's, read and written; inexact models are refused."""

from __future__ import annotations

import pickle
import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tokenizers
from sentencepiece_models import SETTINGS, SYMBOLS, texts, train

from bpe import Tokenizer
from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer
from bpe.vocabulary import TextRules

NAMES = list(SETTINGS)


@cache
def model(name: str) -> bytes:
    return train(**SETTINGS[name])


@pytest.fixture
def load(tmp_path: Path) -> Callable[[bytes], Tokenizer]:
    def read(data: bytes) -> Tokenizer:
        (tmp_path / "m.model").write_bytes(data)
        return Tokenizer.load(tmp_path / "m.model")

    return read


def theirs_of(data: bytes) -> Any:
    return sentencepiece.SentencePieceProcessor(model_proto=data)


def same_ids(data: bytes, tokenizer: Tokenizer, found: list[str]) -> None:
    """Fail at the first text with different IDs, as a whole or in blocks of seven characters."""
    theirs = theirs_of(data)
    allowed = [token.text for token in tokenizer.added_tokens if not token.special]
    for number, text in enumerate(found):
        expected = theirs.encode(text)
        assert tokenizer.encode(text, allowed_special=allowed) == expected, text
        if number % 8 == 0:
            pieces = (text[start : start + 7].encode() for start in range(0, len(text), 7))
            blocks = tokenizer.encode_blocks(pieces, allowed, 40)
            assert [id_ for part in blocks for id_ in part.tolist()] == expected, text


@pytest.mark.promise("token-ids")
@pytest.mark.promise("saved-files")
@pytest.mark.parametrize("name", NAMES)
def test_ids_equal_sentencepiece_and_both_read_the_written_model(
    name: str, load: Any, tmp_path: Path
) -> None:
    data, path = model(name), tmp_path / "again.model"
    tokenizer = load(data)
    same_ids(data, tokenizer, texts(7, 1500))
    same_ids(data, pickle.loads(pickle.dumps(tokenizer)), texts(7, 50))
    tokenizer.export_sentencepiece(path)
    assert Tokenizer.load(path) == tokenizer
    same_ids(path.read_bytes(), tokenizer, texts(8, 300))
    assert theirs_of(path.read_bytes()).piece_size() == theirs_of(data).piece_size()
    tokenizer.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json") == tokenizer
    if (
        "nfkc" in name or name == "like mistral"
    ):  # tokenizers would apply the charsmap and the prefix differently
        with pytest.raises(Exception, match="untagged enum|unknown variant"):
            tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
        return
    peer = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    for text in texts(9, 300):
        if "\x00" not in text:
            assert peer.encode(text, add_special_tokens=False).ids == tokenizer.encode(text), text
    for text in texts(10, 0):
        ids = theirs_of(data).encode(text)
        assert name in ("unknown", "across words") or tokenizer.decode(ids) == theirs_of(data).decode(ids), (
            text
        )


def test_control_pieces_are_special_and_symbols_are_not(load: Any) -> None:
    tokens = load(model("like gemma")).added_tokens
    assert {token.text for token in tokens if token.special} == {"<unk>", "<s>", "</s>", "<c>"}
    assert {token.text for token in tokens if not token.special} == set(SYMBOLS)


# -- models of a few pieces, written field by field


def field(number: int, value: float | bytes | str) -> bytes:
    """Return a field of a message: a number, a float32, or bytes."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    low = bytes([value & 127 | (128 if value > 127 else 0)])
    return low + varint(value >> 7) if value > 127 else low


NORMAL, UNKNOWN, CONTROL, SYMBOL, UNUSED, BYTE = range(1, 7)
PIECES = [
    ("<unk>", 0, UNKNOWN),
    ("<s>", 0, CONTROL),
    ("a", -2, NORMAL),
    ("b", -3, NORMAL),
    ("ab", -1, NORMAL),
]


def proto(pieces: Any, trainer: bytes = b"", normalizer: bytes = b"", more: bytes = b"") -> bytes:
    """Return a model of BPE without a dummy prefix that keeps all white space."""
    data = b"".join(
        field(1, field(1, text) + field(2, float(score)) + field(3, kind)) for text, score, kind in pieces
    )
    settings = field(3, 0) + field(4, 0) + normalizer
    return data + field(2, field(3, 2) + trainer) + field(3, settings) + more


def scored(scores: dict[str, float]) -> bytes:
    return proto([("<unk>", 0, UNKNOWN), *((text, score, NORMAL) for text, score in scores.items())])


def test_merges_are_all_splits_by_score(load: Any) -> None:
    def merges(scores: dict[str, float]) -> list[tuple[bytes, bytes]]:
        return list(load(scored(scores)).merges)

    assert merges({"a": -9, "b": -9, "ab": -1, "abb": -2}) == [(b"a", b"b"), (b"ab", b"b")]
    assert merges({"a": -9, "aa": -1, "aaa": -2}) == [(b"a", b"a"), (b"a", b"aa"), (b"aa", b"a")]


@pytest.mark.parametrize(
    "sizes",  # the first ones are Llama 2's and Mistral's
    [(2, 4, 8, 5, 16, 6, 12, 13, 10, 14, 3, 9, 7, 11), (2, 4, 8), (2, 4, 3)],
    ids=len,
)
def test_runs_of_spaces_of_one_score_are_joined_as_sentencepiece_does(load: Any, sizes: Any) -> None:
    space = "\u2581"
    runs = (field(1, field(1, space * size) + field(2, -1e9)) for size in sizes)
    data = model("like llama") + b"".join(runs)
    found = [(" " * n, f"a{' ' * n}the\n{' ' * (n // 2)}x{space}", " " * 10 * n) for n in range(100)]
    same_ids(data, load(data), [text for each in found for text in each])


def test_runs_of_one_score_are_accepted_if_ranks_agree(load: Any) -> None:
    """All sets of lengths up to 7, in random order: accepted ones have SentencePiece's IDs, and many are accepted."""
    rng = random.Random(5)
    accepted = refused = 0
    for number in range(1, 64):
        sizes = [size for size in range(2, 8) if number >> (size - 2) & 1]
        rng.shuffle(sizes)
        data = scored({"a": -9.0, "b": -9.0} | {"a" * size: -9.0 for size in sizes})
        try:
            tokenizer = load(data)
        except UnsupportedTokenizer:
            refused += 1
            continue
        accepted += len(sizes) > 1
        same_ids(data, tokenizer, ["a" * length + "b" + "a" * (length // 3) for length in range(1, 80)])
    assert accepted > 5 < refused


UNSUPPORTED = {
    "a Unigram model": (proto(PIECES, field(3, 1)), "trainer_spec.model_type: .*Unigram"),
    "suffixes": (proto(PIECES, field(24, 1)), "trainer_spec.treat_whitespace_as_suffix: "),
    "a denormalizer": (
        proto(PIECES, more=field(5, field(2, b"x"))),
        "denormalizer_spec.precompiled_charsmap: ",
    ),
    "an unused piece": (proto([*PIECES, ("c", 0, UNUSED)]), r"pieces\[5\] 'c': .*UNUSED"),
    "a special character": (proto([*PIECES, ("c", 0, CONTROL)]), r"pieces\[5\] 'c': "),
    "a symbol and white space": (
        proto([*PIECES, ("<x>", 0, SYMBOL)], normalizer=field(4, 1)),
        "normalizer_spec.remove_extra_whitespaces: .*'<x>'",
    ),
    "equal scores": (scored({"a": -9, "b": -9, "ab": -1, "ba": -1}), "same score"),
    "runs of two characters": (scored({"a": -9, "b": -9, "aa": -1, "bb": -1}), "same score"),
    "joined to a run": (scored({"a": -9, "b": -9, "aa": -5, "aaa": -5, "ab": -1, "aab": -1.5}), "same score"),
}
CONTRADICTIONS = {
    "a piece twice": (proto([*PIECES, ("a", 0, NORMAL)]), r"pieces\[5\] 'a': "),
    "a byte without fallback": (proto([*PIECES, ("<0x41>", 0, BYTE)]), r"pieces\[5\] '<0x41>': "),
    "no unknown piece": (proto([("b", 0, NORMAL), *PIECES[2:3]]), "pieces: .*0"),
    "a charsmap": (proto(PIECES, normalizer=field(2, b"\x00")), "the charsmap is cut short"),
    "not UTF-8": (proto(PIECES, more=field(1, field(1, b"\xff"))), r"pieces\[5\]: not valid UTF-8"),
    **{
        f"damage {end.hex()}": (proto(PIECES, more=end), "byte ")
        for end in (b"\x08", b"\x08\x80", b"\x08" + b"\xff" * 10, b"\x12\x05ab", b"\0\0", b"\x0b", b"\x25\0")
    },
    "a length of 2^63": (proto(PIECES, more=b"\x12" + b"\xff" * 8 + b"\x7f"), "byte "),
}


@pytest.mark.promise("published-files")
@pytest.mark.parametrize("name", [*UNSUPPORTED, *CONTRADICTIONS])
def test_inexact_models_are_refused(name: str, load: Any, tmp_path: Path) -> None:
    data, message = (UNSUPPORTED | CONTRADICTIONS)[name]
    with pytest.raises(BadTokenizer, match=message) as caught:
        load(data)
    assert isinstance(caught.value, UnsupportedTokenizer) == (name in UNSUPPORTED)
    assert str(caught.value).startswith(str(tmp_path / "m.model: "))
    assert str(caught.value).isprintable()


def test_a_denormalizer_without_a_charsmap_and_other_fields_are_read(load: Any, tmp_path: Path) -> None:
    more = field(5, field(1, b"name") + field(2, b"")) + b"\x21" + bytes(8) + field(16, 2**64 - 1)
    assert load(proto(PIECES, more=more)) == load(proto(PIECES))
    with pytest.raises(BadArgument):
        Tokenizer.load(tmp_path / "m.model", pattern="gpt2")


# -- writing

RULES = TextRules(byte_fallback=False, unk_token="<unk>", fuse_unk=True)
VOCAB = {0: b"<unk>", 1: b"a", 2: b"b", 3: b"ab", 4: b"aba", 5: b"abab"}
AB, ABA = (b"a", b"b"), (b"ab", b"a")


@pytest.mark.parametrize(
    ("merges", "options", "message"),
    [
        ([AB, ABA, (b"a", b"ba")], {"vocab": {**VOCAB, 5: b"ba"}}, "entry 'ba'"),
        ([AB, (b"b", b"a"), ABA], {"vocab": {**VOCAB, 5: b"ba"}}, None),
        ([AB, ABA], {}, "entry 'abab'"),
        ([AB, ABA, (b"ab", b"ab")], {}, None),
        ([AB, (b"ab", b"ab"), ABA, (b"aba", b"b")], {}, "merges of 'abab'"),
        ([AB, ABA], {"vocab": {**VOCAB, 9: b"c"}}, "IDs with gaps: "),
        ([AB, ABA], {"text_rules": TextRules(unk_token="<unk>")}, "unk_token"),
        ([AB, ABA], {"text_rules": TextRules()}, "unk_token"),
        ([AB, ABA], {"normalizer": "NFC"}, "normalizer NFC: "),
        ([AB, ABA], {"decoder": None}, "decoder"),
        ([], {"vocab": {id_: bytes([id_]) for id_ in range(256)}, "text_rules": None}, "byte-level"),
    ],
)
def test_what_a_model_cannot_express_is_not_written(
    merges: Any, options: dict[str, Any], message: str | None, load: Any, tmp_path: Path
) -> None:
    like, path = load(proto(PIECES)).parts, tmp_path / "written.model"
    options = {
        "vocab": VOCAB,
        "normalizer": like.normalizer,
        "decoder": like.decoder,
        "text_rules": RULES,
    } | options
    specials = {"<unk>": 0} if options["text_rules"] else {}
    tokenizer = Tokenizer(
        options.pop("vocab"), merges, specials, like.pretokenizer, ignore_merges=False, **options
    )
    if message is None:
        tokenizer.export_sentencepiece(path)
        same_ids(path.read_bytes(), tokenizer, texts(7, 300))
        return
    with pytest.raises(UnsupportedTokenizer, match=message):
        tokenizer.export_sentencepiece(path)
    assert not path.exists()
