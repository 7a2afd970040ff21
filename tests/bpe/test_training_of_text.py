"""Training with text entries: merges and IDs equal Hugging Face's BpeTrainer."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from bpe import Tokenizer, _core, train
from bpe.errors import BadArgument
from bpe.formats.huggingface_components import pretokenizer_from_json
from bpe.like import TextRule, rule_like
from bpe.pretoken_counts.counting import count_pretokens
from bpe.training import train_on
from bpe.training_options import TrainingOptions
from bpe.vocabulary import TextRules

SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def text_of(seed: int, words: int = 4000) -> str:
    """Return words of skewed frequency in several scripts, so that counts tie, and whitespace of all kinds."""
    rng = random.Random(seed)
    parts = [
        "the",
        "in",
        "er",
        "a",
        "ab",
        "\u0430\u0432",
        "\u65e5\u672c",
        "e\u0301",
        "12",
        "\u2581",
        "\U0001f44d",
        "<x>",
    ]
    known = ["".join(rng.choices(parts, k=rng.randint(1, 5))) for _ in range(250)]
    weights = [1 / (rank + 1) for rank in range(len(known))]
    return "".join(
        word + rng.choice([" ", " ", "  ", "\n", "\t"]) for word in rng.choices(known, weights, k=words)
    )


def theirs(text, vocab_size, has_prefix, pre_tokenizer, **options):
    """Return BpeTrainer's merges and vocabulary."""
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    spaces = normalizers.Replace(" ", "\u2581")
    made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), spaces]) if has_prefix else spaces
    if pre_tokenizer is not None:
        made.pre_tokenizer = pre_tokenizer
    special = [*SPECIAL, *BYTES]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, show_progress=False, **options
    )
    made.train_from_iterator([text], trainer)
    model = json.loads(made.to_str())["model"]
    merges = [(left.encode(), right.encode()) for left, right in model["merges"]]
    return merges, {id_: entry.encode() for entry, id_ in model["vocab"].items()}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("like", "has_prefix"), [("llama-2", True), ("gemma-3", False)])
def test_merges_and_ids_equal_bpe_trainer(like, has_prefix, threads):
    text = text_of(1)
    ours = train([text.encode()], 700, SPECIAL, like=like, tie_break="huggingface", threads=threads)
    words = pre_tokenizers.Split("\u2581", "merged_with_next")
    merges, vocab = theirs(text, 700, has_prefix, words)
    assert ours.merges == merges
    assert dict(ours.vocab) == vocab


def test_a_file_that_cuts_nothing_has_documents_for_pretokens(tmp_path):
    text = text_of(2, 300)
    first = train([text.encode()], 400, SPECIAL, like="llama-2", tie_break="huggingface")
    root = json.loads(first.canonical_json)
    root["pre_tokenizer"] = None
    (tmp_path / "like.json").write_text(json.dumps(root))
    ours = train([text.encode()], 500, SPECIAL, like=tmp_path / "like.json", tie_break="huggingface")
    merges, vocab = theirs(text, 500, True, None)
    assert ours.merges == merges
    assert dict(ours.vocab) == vocab


def test_max_token_length_counts_characters():
    text = text_of(7)
    words = pre_tokenizers.Split("\u2581", "merged_with_next")
    for length in (2, 3, 4):
        ours = train(
            [text.encode()], 700, SPECIAL, like="gemma-3", tie_break="huggingface", max_token_length=length
        )
        assert (ours.merges, dict(ours.vocab)) == theirs(text, 700, False, words, max_token_length=length)
    counted = count_pretokens([text.encode()], SPECIAL, ours.pretokenizer, normalizer=ours.parts.normalizer)
    options = TrainingOptions(SPECIAL, like="gemma-3", max_token_length=2)
    assert "entry of at most 2 characters" in train_on(counted, 2000, options).notes[0]


def test_an_alphabet_is_of_characters():
    text = text_of(3) + "ж" * 50
    ours = train(
        [text.encode()],
        400,
        SPECIAL,
        like="gemma-3",
        tie_break="huggingface",
        limit_alphabet=12,
        initial_alphabet=["z", "\u6f22"],
    )
    assert ours.token_to_id(b"z") is not None
    assert ours.token_to_id("\u6f22".encode()) is not None
    assert sum(len(entry.decode()) == 1 for entry in ours.ordinary_entries.values()) == 12
    assert ours.decode(ours.encode(text)) == text.replace("\u2581", " ")
    with pytest.raises(BadArgument, match="limit_alphabet"):
        train([b"ab"], 400, like="gemma-3", limit_alphabet=1, initial_alphabet=["x", "y"])


def test_the_tokenizer_encodes_as_tokenizers_does_and_loses_nothing(tmp_path):
    text = text_of(4)
    ours = train([text.encode()], 800, SPECIAL, like="llama-2")
    ours.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json") == ours
    same = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    for each in (text, "\u0416 unknown \U0001f9ff", "", " ", "a  b"):
        ids = list(ours.encode(each))
        assert same.encode(each, add_special_tokens=False).ids == ids
        assert ours.decode(ids) == each.replace("\u2581", " ")
    ours.export_sentencepiece(tmp_path / "t.model")
    assert Tokenizer.load(tmp_path / "t.model").encode(text) == ours.encode(text)


def test_text_that_spells_a_byte_never_becomes_that_byte():
    ours = train([b"<0x41>" * 9], 300, SPECIAL, like="gemma-3")
    assert ours.decode(ours.encode("<0x41>")) == "<0x41>"


def test_a_size_below_the_characters():
    with pytest.raises(BadArgument, match="vocab_size"):
        train([b"ab"], 100, SPECIAL, like="llama-2")
    with pytest.raises(BadArgument, match="vocab_size"):
        train([b"ab"], 260, SPECIAL, like="llama-2")
    with pytest.raises(BadArgument, match="vocab_size"):
        train([b"ab"], 300, like="clip")


def test_letters_are_counted_and_numbered():
    texts = ["a\u00e9\u65e5\U0001f44d", "", "\u07ff\u0800\uffff\U00010000\U0010ffff", "\x00\x7f\x80a"]
    weights = [3, 5, 2, 4]
    data = "".join(texts).encode()
    arrays = (
        np.frombuffer(data, np.uint8),
        np.cumsum([len(text.encode()) for text in texts], dtype=np.uint64),
        np.array(weights, np.uint64),
    )
    occurrences, places = _core.count_letters(*arrays, True)
    expected: Counter[int] = Counter()
    for text, weight in zip(texts, weights, strict=True):
        for character in text:
            expected[ord(character)] += weight
    assert {int(point): int(occurrences[point]) for point in np.flatnonzero(occurrences)} == expected
    seen: Counter[int] = Counter()
    for text in texts:
        for number, character in enumerate(text):
            seen[ord(character)] |= 1 << (2 * (number > 0) + (number == len(text) - 1))
    assert {int(point): int(places[point]) for point in np.flatnonzero(places)} == seen
    of_bytes, byte_places = _core.count_letters(*arrays, False)
    assert int(of_bytes.sum()) == sum(
        len(text.encode()) * weight for text, weight in zip(texts, weights, strict=True)
    )
    assert set(np.flatnonzero(byte_places & 0b1010)) == {text.encode()[-1] for text in texts if text}

    kept = [character for character in sorted(set("".join(texts))) if character not in "\u65e5\U0010ffff"]
    ids = np.full(0x110000, -1, np.int32)
    ids[[ord(character) for character in kept]] = np.arange(len(kept))
    last_ids = np.where(ids < 0, -1, ids + 100).astype(np.int32)
    within = (
        np.where(ids < 0, -1, ids + 200).astype(np.int32),
        np.where(ids < 0, -1, ids + 300).astype(np.int32),
    )
    found, ends = _core.letter_ids(*arrays, [ids, last_ids, *within])
    made = [part.tolist() for part in np.split(found, ends[:-1].astype(int))]
    # The last character of the third word has no ID; it is not replaced, and the character before it does not become
    # the last.
    assert made == [
        [
            kept.index(character) + 100 * (place == len(text)) + 200 * (place > 1)
            for place, character in enumerate(text, 1)
            if character in kept
        ]
        for text in texts
    ]
    with pytest.raises(ValueError, match="an id for each byte or for each character"):
        _core.letter_ids(*arrays, [ids[:5]] * 4)
    with pytest.raises(ValueError, match="an id for each byte or for each character"):
        _core.letter_ids(*arrays, [ids, ids, ids, ids[:256]])
    with pytest.raises(ValueError, match="at four places"):
        _core.letter_ids(*arrays, [ids] * 3)


@pytest.mark.parametrize("seed", range(20))
def test_pretokens_that_are_not_utf8_stay_within_their_bytes(seed):
    rng = random.Random(seed)
    data = bytes(rng.choice(b"a\x80\xc2\xe2\xf4\xff") for _ in range(200))
    ends = np.array([*sorted(rng.sample(range(200), 20)), 200], np.uint64)
    arrays = np.frombuffer(data, np.uint8), ends, np.ones(len(ends), np.uint64)
    counted = int(_core.count_letters(*arrays, True)[0].sum())
    every = np.zeros(0x110000, np.int32)
    ids, stops = _core.letter_ids(*arrays, [every] * 4)
    assert len(ids) == counted == stops[-1] <= 200


def words_with_suffix(seed: int) -> str:
    """Return words and word ends with distinct counts: BpeTrainer numbers letters with a suffix in arbitrary
    order.
    """
    rng = random.Random(seed)
    # One letter never ends a word.
    words = sorted(
        {
            "".join(rng.choices("abcde\u00e9\u65e5f", k=rng.randint(1, 6))).rstrip("f") or "a"
            for _ in range(40)
        }
    )
    return " ".join(word for number, word in enumerate(words) for _ in range(2 ** (number % 12) + number))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limit", [None, 4])
def test_merges_with_a_suffix_equal_bpe_trainer(seed, limit):
    text = words_with_suffix(seed)
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    options = {} if limit is None else {"limit_alphabet": limit}
    trainer = trainers.BpeTrainer(
        vocab_size=90, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False, **options
    )
    made.train_from_iterator([text], trainer)
    model = json.loads(made.to_str())["model"]
    rule = TextRule(
        pretokenizer_from_json({"type": "WhitespaceSplit"}, as_text=True),
        text_rules=TextRules(unk_token="<unk>", end_of_word_suffix="</w>"),
    )
    ours = train([text.encode()], 90, ["<unk>"], like=rule, tie_break="huggingface", limit_alphabet=limit)
    assert [[left.decode(), right.decode()] for left, right in ours.merges] == model["merges"]
    assert {entry.decode() for entry in ours.vocab.values()} == set(model["vocab"])
    same = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    for each in (text[:500], "a ab \u65e5b x abx</w> <unk>"):
        assert list(ours.encode(each, allowed_special="all")) == same.encode(each).ids


def test_clip_is_trained_and_no_byte_is_lost():
    text = text_of(5) + " </w> a</w>b ab</w> ab</w>" * 50
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    ours = train([text.encode()], 900, ["<s>"], like="clip", tie_break="huggingface")
    root = json.loads(ours.canonical_json)
    assert sorted(ours.vocab) == list(range(ours.vocab_size))
    assert ours.vocab_size > 600
    assert set(root["model"]["vocab"]) >= {*alphabet, *(byte + "</w>" for byte in alphabet)}
    same = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    for each in (text, "Ab\u0416 \u65e5\u672c\U0001f44d", "", "</w>", "a</w>", "na\u00efve  IT'S"):
        assert list(ours.encode(each)) == same.encode(each).ids
        assert ours.decode(ours.encode(each)) == same.decode(same.encode(each).ids)
        if "</w>" not in each:
            assert ours.decode(ours.encode(each)).replace("</w>", "") == "".join(each.lower().split())
    # No merge makes the letters of the suffix, which are text here.
    ends = [entry for entry in ours.vocab.values() if entry.endswith(b"</w>")]
    assert len(ends) == len(set(ends))
    assert not any(b"</w>" in left for left, _ in ours.merges)
    limited = train([text.encode()], 300, like="clip", limit_alphabet=10)
    assert limited.vocab_size > 512
    same = tokenizers.Tokenizer.from_str(limited.canonical_json.decode())
    assert list(limited.encode("\u0416 x")) == same.encode("\u0416 x").ids


def test_a_file_with_a_suffix_is_trained_like(tmp_path):
    first = train([text_of(6).encode()], 700, like="clip")
    first.save(tmp_path / "clip.json")
    assert train([text_of(6).encode()], 700, like=tmp_path / "clip.json") == first


@pytest.mark.parametrize("like", ["gemma-3", "llama-2", "clip"])
def test_counts_of_text_without_spaces_made_a_vocabulary_that_lost_them(like, tmp_path):
    rule = rule_like(like)
    text = b"the mill stands by the river " * 9
    counts = count_pretokens([text], (), rule.pretokenizer, normalizer=rule.normalizer)
    path = tmp_path / "a.counts"
    counts.save(path)
    message = "^counts: .*--like"
    with pytest.raises(BadArgument, match=message):
        train([], 300, counts=[path])
    with pytest.raises(BadArgument, match=message):
        train_on(counts, 300)
    made = train([], 600, counts=[path], like=like)
    back = made.decode(made.encode("the mill stands"))
    assert back.replace("</w>", " ").strip() == "the mill stands"  # done by CLIP's code, not its file
    assert len(train([], 700, counts=[path], continue_from=made)) >= len(made)
