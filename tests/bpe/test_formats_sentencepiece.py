"""SentencePiece models: IDs equal the `sentencepiece` library's, read and written; inexact models are rejected."""

from __future__ import annotations

import pickle
import random
import struct
from contextlib import suppress

import pytest
import sentencepiece
from sentencepiece_models import SETTINGS, SYMBOLS, texts, train
from tokenizers import Tokenizer as HuggingFace

from bpe import Tokenizer
from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer
from bpe.formats.protobuf import bytes_field, fields, float_field, varint_field
from bpe.formats.sentencepiece import Model, build, merges_of, read, read_model
from bpe.vocabulary import TextRules


@pytest.fixture(scope="module")
def models():
    return {name: train(**settings) for name, settings in SETTINGS.items()}


def same_ids(model, tokenizer, count=1500):
    """Fail at the first text with different IDs."""
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
    allowed = [token.text for token in tokenizer.added_tokens if not token.special]
    for text in texts(7, count):
        assert list(tokenizer.encode(text, allowed_special=allowed)) == theirs.encode(text), text


@pytest.mark.parametrize("name", SETTINGS)
def test_ids_equal_sentencepiece(models, name):
    tokenizer = Tokenizer.from_parts(read(models[name]))
    same_ids(models[name], tokenizer)
    same_ids(models[name], pickle.loads(pickle.dumps(tokenizer)), 50)


@pytest.mark.parametrize("name", SETTINGS)
def test_long_documents_have_the_ids_of_the_whole(models, name):
    theirs = sentencepiece.SentencePieceProcessor(model_proto=models[name])
    tokenizer = Tokenizer.from_parts(read(models[name]))
    allowed = [token.text for token in tokenizer.added_tokens if not token.special]
    for text in texts(9, 200):
        pieces = (text[start : start + 7].encode() for start in range(0, len(text), 7))
        found = tokenizer.encode_blocks(pieces, allowed, 40)
        assert [id_ for part in found for id_ in part.tolist()] == theirs.encode(text), text


@pytest.mark.parametrize("name", SETTINGS)
def test_both_libraries_read_the_same_model(models, name, tmp_path):
    tokenizer = Tokenizer.from_parts(read(models[name]))
    tokenizer.export_sentencepiece(tmp_path / "m.model")
    written = (tmp_path / "m.model").read_bytes()
    again = Tokenizer.load(tmp_path / "m.model")
    assert again == tokenizer
    theirs = sentencepiece.SentencePieceProcessor(model_proto=models[name])
    of_ours = sentencepiece.SentencePieceProcessor(model_proto=written)
    assert theirs.piece_size() == of_ours.piece_size()
    for text in texts(8, 300):
        assert theirs.encode(text) == of_ours.encode(text), text


@pytest.mark.parametrize("name", [name for name in SETTINGS if "nfkc" not in name and name != "like mistral"])
def test_tokenizers_gives_the_same_ids_from_the_tokenizer_json(models, name, tmp_path):
    tokenizer = Tokenizer.from_parts(read(models[name]))
    tokenizer.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json") == tokenizer
    theirs = HuggingFace.from_file(str(tmp_path / "t.json"))
    for text in texts(9, 300):
        if "\x00" not in text:
            assert theirs.encode(text, add_special_tokens=False).ids == list(tokenizer.encode(text)), text


def test_tokenizers_refuses_a_charsmap_that_it_would_apply_in_another_way(models, tmp_path):
    tokenizer = Tokenizer.from_parts(read(models["nmt_nfkc"]))
    tokenizer.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json") == tokenizer
    with pytest.raises(Exception, match="untagged enum|unknown variant"):
        HuggingFace.from_file(str(tmp_path / "t.json"))


def test_tokenizers_refuses_a_prefix_that_symbols_do_not_have(models, tmp_path):
    tokenizer = Tokenizer.from_parts(read(models["like mistral"]))
    tokenizer.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json") == tokenizer
    same_ids(models["like mistral"], Tokenizer.load(tmp_path / "t.json"), 50)
    with pytest.raises(Exception, match="untagged enum|unknown variant"):
        HuggingFace.from_file(str(tmp_path / "t.json"))


def test_decoding_equals_sentencepiece(models):
    for name in ("like llama", "no white space", "no prefix", "like gemma"):
        tokenizer = Tokenizer.from_parts(read(models[name]))
        theirs = sentencepiece.SentencePieceProcessor(model_proto=models[name])
        for text in texts(10, 0):
            ids = theirs.encode(text)
            assert tokenizer.decode(ids) == theirs.decode(ids), (name, text)


def test_control_pieces_are_special_and_symbols_are_not(models):
    tokenizer = Tokenizer.from_parts(read(models["like gemma"]))
    assert {token.text for token in tokenizer.added_tokens if token.special} == {
        "<unk>",
        "<s>",
        "</s>",
        "<c>",
    }
    assert {token.text for token in tokenizer.added_tokens if not token.special} == set(SYMBOLS)


def test_merges_are_all_splits_by_score():
    assert merges_of({"a": -9, "b": -9, "ab": -1, "abb": -2}) == [("a", "b"), ("ab", "b")]
    assert merges_of({"a": -9, "aa": -1, "aaa": -2}) == [("a", "a"), ("a", "aa"), ("aa", "a")]
    with pytest.raises(UnsupportedTokenizer):
        merges_of({"a": -9, "b": -9, "ab": -1, "ba": -1})


def with_pieces(model, pieces):
    """Add pieces (text, score) to a model."""
    return model + b"".join(
        bytes_field(1, bytes_field(1, text.encode()) + float_field(2, score)) for text, score in pieces
    )


@pytest.mark.parametrize(
    "sizes",  # the first ones are Llama 2's and Mistral's
    [(2, 4, 8, 5, 16, 6, 12, 13, 10, 14, 3, 9, 7, 11), (2, 4, 8), (2, 4, 3)],
    ids=len,
)
def test_runs_of_spaces_of_one_score_are_joined_as_sentencepiece_does(models, sizes):
    space = "\u2581"
    with_runs = with_pieces(models["like llama"], [(space * size, -1e9) for size in sizes])
    tokenizer = Tokenizer.from_parts(read(with_runs))
    theirs = sentencepiece.SentencePieceProcessor(model_proto=with_runs)
    for length in range(100):
        for text in (" " * length, f"a{' ' * length}the\n{' ' * (length // 2)}x{space}", " " * 10 * length):
            assert list(tokenizer.encode(text)) == theirs.encode(text), length


def test_runs_of_one_score_are_accepted_if_ranks_agree():
    """All sets of lengths up to 7, in random order: accepted ones have SentencePiece's IDs, and many are accepted."""
    rng = random.Random(5)
    taken = refused = 0
    for number in range(1, 64):
        sizes = [size for size in range(2, 8) if number >> (size - 2) & 1]
        rng.shuffle(sizes)
        scores = {"a": -9.0, "b": -9.0} | {"a" * size: -9.0 for size in sizes}
        try:
            merges = merges_of(scores)
        except UnsupportedTokenizer:
            refused += 1
            continue
        taken += len(sizes) > 1
        pieces = [("<unk>", 0.0, 2), *((text, score, 1) for text, score in scores.items())]
        proto = b"".join(
            bytes_field(1, bytes_field(1, text.encode()) + float_field(2, score) + varint_field(3, kind))
            for text, score, kind in pieces
        )
        spec = varint_field(3, 0) + varint_field(4, 0)
        proto += bytes_field(2, varint_field(3, 2)) + bytes_field(3, spec)
        theirs = sentencepiece.SentencePieceProcessor(model_proto=proto)
        tokenizer = Tokenizer.from_parts(read(proto))
        assert len(merges) == len(tokenizer.merges)
        for length in range(1, 80):
            text = "a" * length + "b" + "a" * (length // 3)
            assert list(tokenizer.encode(text)) == theirs.encode(text), (sizes, length)
    assert taken > 5 < refused


@pytest.mark.parametrize(
    "scores",
    [
        {"a": -9, "b": -9, "aa": -1, "bb": -1},  # runs of two characters
        {"a": -9, "b": -9, "aa": -5, "aaa": -5, "ab": -6},  # joined after them
        {"a": -9, "b": -9, "aa": -5, "aaa": -5, "ab": -1, "aab": -1.5},  # joined to a run
        {"a": -9, "aa": -5, "aaa": -5, "aaaa": -4},  # a run before them
    ],
    ids=str,
)
def test_other_pieces_of_one_score_are_refused(scores):
    with pytest.raises(UnsupportedTokenizer):
        merges_of(scores)


PIECES = [("<unk>", 0, 2), ("<s>", 0, 3), ("a", -2, 1), ("b", -3, 1), ("ab", -1, 1)]


def changed(pieces=PIECES, **settings):
    return Model(pieces, 2, **{"remove_extra_whitespaces": False, **settings})


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Model(PIECES, 1), "trainer_spec.model_type: .*Unigram"),
        (Model(PIECES, 3), "trainer_spec.model_type: .*word"),
        (changed(suffixes_whitespace=True), "trainer_spec.treat_whitespace_as_suffix: "),
        (changed(denormalizes=True), "denormalizer_spec.precompiled_charsmap: "),
        (changed([*PIECES, ("c", 0, 5)]), r"pieces\[5\] 'c': .*UNUSED"),
        (changed([*PIECES, ("c", 0, 9)]), r"pieces\[5\] 'c': .*9"),
        (changed([*PIECES, ("c", 0, 3)]), r"pieces\[5\] 'c': "),
        (
            changed([*PIECES, ("<x>", 0, 4)], remove_extra_whitespaces=True),
            "normalizer_spec.remove_extra_whitespaces: .*'<x>'",
        ),
        (changed([*PIECES, ("x y", 0, 4)], add_dummy_prefix=False), "pieces: .*'x y'"),
    ],
)
def test_features_without_a_counterpart_are_refused_by_name(model, message):
    with pytest.raises(UnsupportedTokenizer, match=message):
        build(model)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (changed([*PIECES, ("a", 0, 1)]), r"pieces\[5\] 'a': "),
        (changed([*PIECES, ("", 0, 1)]), r"pieces\[5\] '': "),
        (changed([*PIECES, ("c", float("nan"), 1)]), r"pieces\[5\] 'c': .*nan"),
        (changed([*PIECES, ("<0x41>", 0, 6)]), r"pieces\[5\] '<0x41>': "),
        (changed(byte_fallback=True), "pieces: .*0"),
        (changed(PIECES[1:]), "pieces: .*0"),
        (changed([*PIECES, ("<u>", 0, 2)]), "pieces: .*2"),
        (changed(charsmap=b"\x00"), "the charsmap is cut short"),
    ],
)
def test_contradictory_files_are_refused(model, message):
    with pytest.raises(BadTokenizer, match=message):
        build(model)


def test_a_unigram_model_is_refused_in_one_line(tmp_path):
    (tmp_path / "spiece.model").write_bytes(train("unigram", vocab_size=60))
    with pytest.raises(UnsupportedTokenizer, match="spiece.model") as caught:
        Tokenizer.load(tmp_path / "spiece.model")
    assert "\n" not in str(caught.value)
    with pytest.raises(BadArgument):
        Tokenizer.load(tmp_path / "spiece.model", pattern="gpt2")


def test_damaged_files_are_refused_or_read(models):
    model = models["like llama"]
    rng = random.Random(3)
    cases = [model[:place] for place in range(0, len(model), 37)]
    for _ in range(300):
        damaged = bytearray(model)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        cases.append(bytes(damaged))
    for case in cases:
        with suppress(BadTokenizer):
            build(read_model(case))


def test_fields_of_a_message():
    message = varint_field(1, 150) + bytes_field(2, b"ab") + float_field(3, -1.5) + b"\x21" + bytes(8)
    assert message[:3] == b"\x08\x96\x01"
    assert [(number, kind) for number, kind, _ in fields(memoryview(message))] == [
        (1, 0),
        (2, 2),
        (3, 5),
        (4, 1),
    ]
    wrong = [
        b"\x08",
        b"\x08\x80",
        b"\x08" + b"\xff" * 10,
        b"\x12\x05ab",
        b"\x00\x00",
        b"\x0b",
        b"\x25\x00",
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    ]
    for case in wrong:
        with pytest.raises(BadTokenizer):
            list(fields(memoryview(case)))
    assert struct.pack("<f", -1.5) in message


RULES = TextRules(byte_fallback=False, unk_token="<unk>", fuse_unk=True)
VOCAB = {0: b"<unk>", 1: b"a", 2: b"b", 3: b"ab", 4: b"aba", 5: b"abab"}


def small(merges, vocab=VOCAB, like="no prefix", rules=RULES, **options):
    """Return a tokenizer with the normalizer and decoder of a model."""
    parts = build(changed(add_dummy_prefix=like != "no prefix"))
    options = {"normalizer": parts.normalizer, "decoder": parts.decoder, **options}
    return Tokenizer(
        vocab, merges, {"<unk>": 0}, parts.pretokenizer, text_rules=rules, ignore_merges=False, **options
    )


AB, ABA = (b"a", b"b"), (b"ab", b"a")


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (lambda: Tokenizer({i: bytes([i]) for i in range(256)}, []), "byte-level vocabulary: "),
        (lambda: small([AB, ABA, (b"a", b"ba")], {**VOCAB, 5: b"ba"}), "entry 'ba'"),
        (lambda: small([AB, (b"b", b"a"), ABA], {**VOCAB, 5: b"ba"}), None),
        (lambda: small([AB, ABA]), "entry 'abab'"),
        (lambda: small([AB, ABA, (b"ab", b"ab")]), None),
        (lambda: small([AB, (b"ab", b"ab"), ABA, (b"aba", b"b")]), "merges of 'abab'"),
        (lambda: small([AB, ABA], {**VOCAB, 9: b"c"}), "IDs with gaps: "),
        (lambda: small([AB, ABA], rules=TextRules(unk_token="<unk>")), "unk_token"),
        (lambda: small([AB, ABA], rules=TextRules()), "unk_token"),
        (lambda: small([AB, ABA], normalizer="NFC"), "normalizer NFC: "),
        (lambda: small([AB, ABA], decoder=None), "decoder"),
    ],
)
def test_inexpressible_models_are_not_written(tokenizer, message, tmp_path):
    path = tmp_path / "m.model"
    if message is None:
        made = tokenizer()
        made.export_sentencepiece(path)
        same_ids(path.read_bytes(), made, 300)
        return
    with pytest.raises(UnsupportedTokenizer, match=message):
        tokenizer().export_sentencepiece(path)
    assert not path.exists()
