"""Merges and IDs equal Hugging Face's BpeTrainer: entries of bytes and of text, with affixes, alphabets and limits."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from skewed_texts import skewed_text
from tokenizers import models, normalizers, pre_tokenizers, trainers

from bpe import Tokenizer, reference, train
from bpe.errors import BadArgument
from bpe.formats.byte_alphabet import to_characters
from bpe.formats.huggingface_components import decoder_from_json, pretokenizer_from_json
from bpe.like import TextRule, rule_like
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.training import train_on
from bpe.training_options import TrainingOptions
from bpe.vocabulary import TextRules
from tests.strategies import examples

ALL = sorted(pre_tokenizers.ByteLevel.alphabet())
SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORDS = TextRules(unk_token="<unk>", continuing_subword_prefix="##")
TEXT = "the mill stands by the river, and the millers 日本 ## grind # " * 20
# Entries that grow long: runs, repeated spans, characters of several bytes.
LONG = ["a" * 3000, "ab" * 2000 + "a", ("-" * 300 + " | ") * 20, "日本語のテキスト" * 100, "abcabcabd" * 100]


def ranked_text(seed: int) -> str:
    """Every letter has another frequency, since BpeTrainer breaks ties of an alphabet arbitrarily."""
    letters = [letter for rank, letter in enumerate("a bcdefghijklmn.,'") for _ in range(400 - 20 * rank)]
    letters += list("é" * 7 + "ü" * 5 + "日" * 3 + "本" * 2)
    random.Random(seed).shuffle(letters)
    return "".join(letters)


def by_huggingface(tokenizer: Any, text: str, **options: Any) -> Any:
    """Train the tokenizer and return its model as JSON."""
    given = {name: value for name, value in options.items() if value is not None}
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(show_progress=False, **given))
    return json.loads(tokenizer.to_str())["model"]


def same_encoding(ours: Tokenizer, *texts: str) -> None:
    """Check that tokenizers loads our file and encodes alike."""
    theirs = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    for text in texts:
        ids = list(ours.encode(text, allowed_special="all"))
        assert ids == theirs.encode(text, add_special_tokens=False).ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


# -- bytes ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@examples(2)
@given(
    seed=st.integers(0, 999),
    special_tokens=st.sampled_from([[], ["<s>", "<pad>"]]),
    min_frequency=st.sampled_from([0, 2, 3]),
    initial=st.sampled_from(["", "zĠa", ALL, ALL]),
    limit=st.sampled_from([None, None, 3, 10, 15, 300]),
    longest=st.sampled_from([None, None, 0, 1, 2, 3, 4, 5, 9, 17, 100, 1025]),
)
def test_entries_of_bytes(
    seed: int, special_tokens: list[str], min_frequency: int, initial: Any, limit: Any, longest: Any
) -> None:
    if limit is not None and limit < len(initial):
        limit = None  # BpeTrainer would drop arbitrary initial letters
    rng = random.Random(seed)
    text = ranked_text(seed) if limit else skewed_text(seed) + rng.choice(LONG)
    options: dict[str, Any] = {
        "special_tokens": special_tokens,
        "min_frequency": min_frequency,
        "limit_alphabet": limit,
        "max_token_length": longest,
    }
    theirs = tokenizers.Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    vocab = by_huggingface(theirs, text, vocab_size=600, initial_alphabet=list(initial), **options)["vocab"]
    options |= {} if longest is not None else {"max_token_bytes": None}
    options["initial_alphabet"] = None if initial == ALL and limit is None else list(initial)
    ours = train([text.encode()], 600, tie_break="huggingface", threads=rng.choice([1, 3]), **options)
    ids = {to_characters(entry): id_ for id_, entry in ours.ordinary_entries.items()} | ours.special_tokens
    assert {spelling: ids[spelling] for spelling in vocab} == vocab
    outside = set(ids) - set(vocab)
    assert sorted(ids[byte] for byte in outside) == list(range(len(vocab), len(ids)))
    assert {*vocab, *outside} >= set(ALL)
    # Ours is lossless in any case. Where theirs is, the IDs are equal.
    assert ours.decode(ours.encode(text)) == text
    kept = "".join(each for each in text if set(to_characters(each.encode())) <= set(vocab))
    assert ours.encode(kept, allowed_special=()) == theirs.encode(kept).ids


def test_no_initial_alphabet_is_all_bytes_and_with_a_limit_none() -> None:
    counts = PretokenCounts.from_mapping({b"aab": 2, b"c": 3, b"d": 3})

    def letters(**options: Any) -> bytes:
        initial = train_on(counts, 300, TrainingOptions(**options)).initial
        return b"".join(sorted(initial.vocab.values()))

    assert letters() == bytes(range(256))
    assert letters(limit_alphabet=256) == b"abcd"
    assert letters(initial_alphabet=["zq", ""]) == b"abcdz"
    # b is rarest. c and d are equally rare, and c comes first in the byte alphabet.
    assert letters(limit_alphabet=2) == b"ad"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"initial_alphabet": ["日"]}, "initial_alphabet"),
        ({"initial_alphabet": " "}, "initial_alphabet"),
        ({"initial_alphabet": "abc", "limit_alphabet": 2}, "limit_alphabet"),
        ({"initial_alphabet": "xy", "limit_alphabet": 1, "like": "gemma-3"}, "limit_alphabet"),
        ({"limit_alphabet": -1}, "limit_alphabet"),
        ({"max_token_length": 3, "max_token_bytes": 2}, "max_token_length"),
        ({"max_token_length": "3"}, "max_token_length"),
        ({"initial_alphabet": "abc", "vocab_size": 2}, "vocab_size"),
        ({"initial_alphabet": "abc", "vocab_size": 0, "special_tokens": ["<s>"]}, "vocab_size"),
        ({"vocab_size": 100, "special_tokens": SPECIAL, "like": "llama-2"}, "vocab_size"),
        ({"vocab_size": 260, "special_tokens": SPECIAL, "like": "llama-2"}, "vocab_size"),
        ({"vocab_size": 300, "like": "clip"}, "vocab_size"),
        ({"vocab_size": 80, "special_tokens": ["##b"], "like": "words"}, "special_tokens"),
    ],
)
def test_impossible_arguments_are_refused(options: dict[str, Any], name: str) -> None:
    if options.get("like") == "words":
        words = pretokenizer_from_json({"type": "Whitespace"}, as_text=True)
        options = options | {"like": TextRule(words, text_rules=WORDS)}
    arguments: dict[str, Any] = {"inputs": [b"ab"], "vocab_size": 300}
    with pytest.raises(BadArgument, match=f"^{name}: "):
        train(**(arguments | options))


# -- text, with bytes for unknown characters -----------------------------------------------------------------


def like_sentencepiece(text: str, vocab_size: int, has_prefix: bool, **options: Any) -> Any:
    """Return BpeTrainer's merges and vocabulary."""
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    spaces = normalizers.Replace(" ", "\u2581")
    made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), spaces]) if has_prefix else spaces
    made.pre_tokenizer = pre_tokenizers.Split("\u2581", "merged_with_next")
    options["special_tokens"] = [*SPECIAL, *BYTES]
    model = by_huggingface(made, text, vocab_size=vocab_size, **options)
    merges = [(left.encode(), right.encode()) for left, right in model["merges"]]
    return merges, {id_: entry.encode() for entry, id_ in model["vocab"].items()}


@pytest.mark.promise("merges")
@pytest.mark.parametrize(
    ("like", "length"), [("llama-2", None), ("gemma-3", None), ("gemma-3", 2), ("llama-2", 3)]
)
def test_entries_of_text(like: str, length: int | None, tmp_path: Path) -> None:
    text = skewed_text(1, 4000)
    ours = train([text.encode()], 700, SPECIAL, like=like, tie_break="huggingface", max_token_length=length)
    expected = like_sentencepiece(text, 700, like == "llama-2", max_token_length=length)
    assert (ours.merges, dict(ours.vocab)) == expected
    ours.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json") == ours
    assert train([text.encode()], 700, SPECIAL, like=tmp_path / "t.json").text_rules == ours.text_rules
    same_encoding(ours, text, "Ж unknown \U0001f9ff", "", " ", "a  b")
    assert ours.decode(ours.encode("Ж a  b")) == "Ж a  b"
    ours.export_sentencepiece(tmp_path / "t.model")
    assert Tokenizer.load(tmp_path / "t.model").encode(text) == ours.encode(text)


def test_an_alphabet_is_of_characters() -> None:
    text = skewed_text(3) + "ж" * 50
    alphabet: dict[str, Any] = {"limit_alphabet": 12, "initial_alphabet": ["z", "\u6f22"]}
    ours = train([text.encode()], 400, SPECIAL, like="gemma-3", tie_break="huggingface", **alphabet)
    assert {b"z", "\u6f22".encode()} <= {*ours.vocab.values()}
    assert sum(len(entry.decode()) == 1 for entry in ours.ordinary_entries.values()) == 12
    assert ours.decode(ours.encode(text)) == text.replace("\u2581", " ")


def test_text_that_spells_a_byte_never_becomes_that_byte() -> None:
    ours = train([b"<0x41>" * 9], 300, SPECIAL, like="gemma-3")
    assert ours.decode(ours.encode("<0x41>")) == "<0x41>"


@pytest.mark.parametrize("like", ["gemma-3", "llama-2", "clip"])
def test_counts_of_text_without_spaces_made_a_vocabulary_that_lost_them(like: str, tmp_path: Path) -> None:
    rule = rule_like(like)
    text = b"the mill stands by the river " * 9
    counts = count_pretokens([text], (), rule.pretokenizer, normalizer=rule.normalizer)
    counts.save(tmp_path / "a.counts")
    with pytest.raises(BadArgument, match="^counts: "):
        train([], 300, counts=[tmp_path / "a.counts"])
    with pytest.raises(BadArgument, match="^counts: "):
        train_on(counts, 300)
    made = train([], 600, counts=[tmp_path / "a.counts"], like=like)
    back = made.decode(made.encode("the mill stands"))
    assert back.replace("</w>", " ").strip() == "the mill stands"  # done by CLIP's code, not its file
    assert len(train([], 700, counts=[tmp_path / "a.counts"], continue_from=made)) >= len(made)


# -- a prefix within words, a suffix at their ends -----------------------------------------------------------


@dataclass
class Drawn:
    """A text of few letters, so that counts tie, and its training options."""

    words: list[str]
    rules: TextRules
    special_tokens: list[str]
    options: dict[str, Any]

    @property
    def affixes(self) -> dict[str, str]:
        """The affixes as arguments."""
        names = ("continuing_subword_prefix", "end_of_word_suffix")
        return {name: text for name in names if (text := getattr(self.rules, name))}

    def letters(self) -> list[str]:
        """The entries of letters in the text: all plain ones, then those with suffix, prefix and both."""
        prefix, suffix = self.rules.continuing_subword_prefix, self.rules.end_of_word_suffix
        initial = [text[0] for text in self.options["initial_alphabet"] or ()]
        found = {(False, False, letter) for letter in [*"".join(self.words), *initial]}
        for word in self.words:
            for index, letter in enumerate(word):
                found.add((index > 0 and prefix != "", index == len(word) - 1 and suffix != "", letter))
        spelled = [prefix * within + letter + suffix * last for within, last, letter in sorted(found)]
        return list(dict.fromkeys(spelled))

    def train(self, vocab_size: int, **options: Any) -> Tokenizer:
        rule = TextRule(
            pretokenizer_from_json({"type": "WhitespaceSplit"}, as_text=True),
            text_rules=self.rules,
            decoder=decoder_from_json(None),
        )
        text = " ".join(self.words).encode()
        return train([text], vocab_size, self.special_tokens, like=rule, **self.options, **options)


def drawn(rng: random.Random, has_affixes_in_text: bool) -> Drawn:
    alphabet = rng.choice(["ab", "abc", "aé日", "abcde", "ab#", "a</w>", "xyz\u0301"])
    prefix = rng.choice(["", "##", "#", "\u2581", "é#", "</", "a"])
    suffix = rng.choice(["", "</w>", "w", "é", "##", "b"])
    if not has_affixes_in_text:
        alphabet = "".join(letter for letter in alphabet if letter not in prefix + suffix) or "xy"
    longest = rng.choice([2, 5, 9])
    words = ["".join(rng.choices(alphabet, k=rng.randint(1, longest))) for _ in range(rng.randint(1, 60))]
    unk_token = rng.choice([None, "<unk>"])
    return Drawn(
        [word for word in words for _ in range(rng.choice([1, 1, 2, 3, 7]))],
        TextRules(unk_token=unk_token, continuing_subword_prefix=prefix, end_of_word_suffix=suffix),
        ["<unk>", "<s>"][0 if unk_token else 1 : rng.randint(1, 2)],
        {
            "min_frequency": rng.choice([0, 1, 1, 2, 5]),
            "max_token_length": rng.choice([None, None, 2, 3, 5]),
            "initial_alphabet": rng.choice([None, ["z", "ab"]]),
        },
    )


@examples(3)
@given(st.randoms(use_true_random=False))
def test_affixes(rng: random.Random) -> None:
    """BpeTrainer numbers letters with an affix in arbitrary order; letters given as special tokens have fixed IDs."""
    case = drawn(rng, has_affixes_in_text=False)
    letters = case.letters()
    size = len(case.special_tokens) + len(letters) + rng.choice([0, 1, 5, 30, 200])
    unknown = {} if case.rules.unk_token is None else {"unk_token": case.rules.unk_token}
    made = tokenizers.Tokenizer(models.BPE(**unknown, **case.affixes))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special_tokens, text = [*case.special_tokens, *letters], " ".join(case.words)
    options = case.options | case.affixes | {"special_tokens": special_tokens}
    model = by_huggingface(made, text, vocab_size=size, **options)
    ours = case.train(size, tie_break="huggingface", threads=rng.choice([1, 3]))
    assert [[left.decode(), right.decode()] for left, right in ours.merges] == model["merges"]
    assert {entry.decode(): id_ for id_, entry in ours.vocab.items()} == model["vocab"]
    same_encoding(ours, text, "".join(rng.choices([*letters, " zq"], k=50)), "")


@pytest.mark.long
@examples(3)
@given(st.randoms(use_true_random=False), st.sampled_from(["lexicographic", "huggingface"]))
def test_text_that_spells_an_affix_is_merged_as_by_the_reference(rng: random.Random, tie_break: Any) -> None:
    case = drawn(rng, has_affixes_in_text=True)
    longest = case.options["max_token_length"]
    size = len(case.special_tokens) + len(case.letters()) + 60
    ours = case.train(size, tie_break=tie_break, max_token_bytes=0 if longest is None else 4096)
    first = list(ours.vocab.values())[len(case.special_tokens) : len(ours.vocab) - len(ours.merges)]
    assert {*first} == {letter.encode() for letter in case.letters()}
    assert ours.merges == reference.train(
        Counter(word.encode() for word in case.words),
        60,
        tie_break,
        case.options["min_frequency"],
        None,
        first,
        reserved=[token.encode() for token in case.special_tokens],
        text_rules=replace(case.rules, unk_token=None),
        max_token_letters=None if longest is None else max(2, longest - 1),
    )
    theirs = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    for text in (" ".join(case.words), "ab#</w>##a a# ##"):
        assert list(ours.encode(text)) == theirs.encode(text).ids


def test_clip_loses_no_byte(tmp_path: Path) -> None:
    text = skewed_text(5) + " </w> a</w>b ab</w> ab</w>" * 50
    ours = train([text.encode()], 900, ["<s>"], like="clip", tie_break="huggingface")
    assert sorted(ours.vocab) == list(range(ours.vocab_size))
    vocab = json.loads(ours.canonical_json)["model"]["vocab"]
    assert set(vocab) >= {*ALL, *(byte + "</w>" for byte in ALL)}
    same_encoding(ours, text, "AbЖ 日本\U0001f44d", "", "</w>", "a</w>", "naïve  IT'S")
    assert ours.decode(ours.encode("naïve  IT'S")).replace("</w>", "") == "naïveit's"
    # No merge makes the letters of the suffix, which are text here.
    ends = [entry for entry in ours.vocab.values() if entry.endswith(b"</w>")]
    assert len(ends) == len(set(ends))
    assert not any(b"</w>" in left for left, _ in ours.merges)
    ours.save(tmp_path / "clip.json")
    assert train([text.encode()], 900, ["<s>"], tie_break="huggingface", like=tmp_path / "clip.json") == ours
    limited = train([text.encode()], 300, like="clip", limit_alphabet=10)
    assert limited.vocab_size > 512
    same_encoding(limited, "Ж x")


def test_bytes_with_both_affixes_lose_no_byte() -> None:
    rules = TextRules(continuing_subword_prefix="##", end_of_word_suffix="</w>", byte_level=True)
    parts = [
        {"type": "WhitespaceSplit"},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
    ]
    rule = TextRule(pretokenizer_from_json({"type": "Sequence", "pretokenizers": parts}), text_rules=rules)
    with pytest.raises(BadArgument, match="^vocab_size"):
        train([b"ab"], 1000, like=rule)
    for options in ({}, {"initial_alphabet": ["a"]}, {"limit_alphabet": 6}):
        made = train([TEXT.encode()], 1100, like=rule, tie_break="huggingface", **options)
        same_encoding(made, TEXT, "Ж \U0001f44d x", "</w> a</w>b ##")
        assert made.merges
