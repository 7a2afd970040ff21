"""Trainings whose entries are text: merges and ids are those of Hugging Face's BpeTrainer."""

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

SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def text_of(seed: int, words: int = 4000) -> str:
    """Words of skewed frequency in several scripts, so that counts tie, and white space of all kinds."""
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
    """BpeTrainer's merges and vocabulary."""
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
def test_merges_and_ids_are_those_of_bpe_trainer(like, has_prefix, threads):
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
    with pytest.raises(BadArgument, match="limit_alphabet 1 is less than the 2 characters"):
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


def test_a_size_below_the_characters_and_what_is_not_trained(tmp_path):
    with pytest.raises(BadArgument, match="vocab_size must be at least 259 "):
        train([b"ab"], 100, SPECIAL, like="llama-2")
    with pytest.raises(BadArgument, match="vocab_size must be at least 262 .*characters of the text"):
        train([b"ab"], 260, SPECIAL, like="llama-2")
    with pytest.raises(BadArgument, match="'clip': entries with an end_of_word_suffix"):
        train([b"ab"], 300, like="clip")
    with pytest.raises(BadArgument, match="max_token_length counts bytes"):
        train([b"ab"], 300, like="gemma-3", max_token_length=4)
    made = train([b"ab ab"], 300, SPECIAL, like="llama-2")
    with pytest.raises(BadArgument, match="continue_from: its entries are text"):
        train([b"ab"], 400, continue_from=made)


def test_characters_of_all_lengths_are_counted_and_numbered():
    texts = ["a\u00e9\u65e5\U0001f44d", "", "\u07ff\u0800\uffff\U00010000\U0010ffff", "\x00\x7f\x80a"]
    weights = [3, 5, 2, 4]
    data = "".join(texts).encode()
    arrays = (
        data,
        np.cumsum([len(text.encode()) for text in texts], dtype=np.uint64),
        np.array(weights, np.uint64),
    )
    occurrences = _core.count_characters(*arrays)
    expected: Counter[int] = Counter()
    for text, weight in zip(texts, weights, strict=True):
        for character in text:
            expected[ord(character)] += weight
    assert {int(point): int(occurrences[point]) for point in np.flatnonzero(occurrences)} == expected
    id_of = np.full(0x110000, -1, np.int32)
    kept = [character for character in sorted(set("".join(texts))) if character != "\u65e5"]
    id_of[[ord(character) for character in kept]] = np.arange(len(kept))
    ids, ends = _core.character_ids(*arrays, id_of)
    without = [text.replace("\u65e5", "") for text in texts]
    assert "".join(kept[id_] for id_ in ids) == "".join(without)
    assert ends.tolist() == np.cumsum([len(text) for text in without]).tolist()
    with pytest.raises(ValueError, match="id_of has 5 items"):
        _core.character_ids(*arrays, id_of[:5])


@pytest.mark.parametrize("seed", range(20))
def test_pretokens_that_are_no_utf8_stay_within_their_bytes(seed):
    rng = random.Random(seed)
    data = bytes(rng.choice(b"a\x80\xc2\xe2\xf4\xff") for _ in range(200))
    ends = np.array(sorted(rng.sample(range(200), 20)) + [200], np.uint64)
    arrays = data, ends, np.ones(len(ends), np.uint64)
    counted = int(_core.count_characters(*arrays).sum())
    ids, stops = _core.character_ids(*arrays, np.zeros(0x110000, np.int32))
    assert len(ids) == counted == stops[-1] <= 200
