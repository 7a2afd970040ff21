"""Training of text with a prefix within words, a suffix at their ends, or both: equal to BpeTrainer and the
reference.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from bpe import Tokenizer, reference, train
from bpe.errors import BadArgument
from bpe.formats.huggingface_components import decoder_from_json, pretokenizer_from_json
from bpe.like import TextRule
from bpe.vocabulary import TextRules

ALPHABETS = ["ab", "abc", "a\u00e9\u65e5", "abcde", "ab#", "a</w>", "xyz\u0301"]
PREFIXES = ["", "##", "#", "\u2581", "\u00e9#", "</", "a"]
SUFFIXES = ["", "</w>", "w", "\u00e9", "##", "b"]


@dataclass
class Drawn:
    """A text of few letters, so that counts tie, and its training options."""

    words: list[str]
    rules: TextRules
    alphabet: str
    special_tokens: list[str]
    min_frequency: int
    max_token_length: int | None
    initial_alphabet: list[str] | None

    @property
    def affixes(self) -> dict[str, str]:
        """Return the affixes as arguments."""
        names = ("continuing_subword_prefix", "end_of_word_suffix")
        return {name: text for name in names if (text := getattr(self.rules, name))}

    def letters(self) -> list[str]:
        """Return the entries of letters in the text: all plain ones, then those with suffix, prefix and both."""
        rules, known = self.rules, {*"".join(self.words), *(text[0] for text in self.initial_alphabet or ())}
        seen = {
            (bool(place and rules.continuing_subword_prefix), last and rules.end_of_word_suffix != "", letter)
            for word in self.words
            for place, letter in enumerate(word)
            for last in [place == len(word) - 1]
        }
        seen |= {(False, False, letter) for letter in known}
        spelled = [
            rules.continuing_subword_prefix * within + letter + rules.end_of_word_suffix * last
            for within, last, letter in sorted(seen)
        ]
        return list(dict.fromkeys(spelled))


def drawn(seed: int, has_affixes_in_text: bool) -> Drawn:
    rng = random.Random(seed)
    alphabet, prefix, suffix = rng.choice(ALPHABETS), rng.choice(PREFIXES), rng.choice(SUFFIXES)
    if not has_affixes_in_text:
        alphabet = "".join(letter for letter in alphabet if letter not in prefix + suffix) or "xy"
    longest = rng.choice([2, 5, 9])
    words = ["".join(rng.choices(alphabet, k=rng.randint(1, longest))) for _ in range(rng.randint(1, 60))]
    words = [word for word in words for _ in range(rng.choice([1, 1, 2, 3, 7]))]
    unk_token = rng.choice([None, "<unk>"])
    return Drawn(
        words,
        TextRules(unk_token=unk_token, continuing_subword_prefix=prefix, end_of_word_suffix=suffix),
        alphabet,
        ["<unk>", "<s>"][0 if unk_token else 1 : rng.randint(1, 2)],
        rng.choice([0, 1, 1, 2, 5]),
        rng.choice([None, None, 2, 3, 5]),
        rng.choice([None, ["z", "ab"]]),
    )


def trained(case: Drawn, vocab_size: int, **options: Any) -> Tokenizer:
    rule = TextRule(
        pretokenizer_from_json({"type": "WhitespaceSplit"}, as_text=True),
        text_rules=case.rules,
        decoder=decoder_from_json(None),
    )
    return train(
        [" ".join(case.words).encode()],
        vocab_size,
        case.special_tokens,
        like=rule,
        min_frequency=case.min_frequency,
        max_token_length=case.max_token_length,
        initial_alphabet=case.initial_alphabet,
        **options,
    )


@pytest.mark.parametrize("seed", range(60))
def test_merges_and_ids_equal_bpe_trainer(seed: int) -> None:
    """BpeTrainer numbers letters with an affix in arbitrary order; letters given as special tokens have fixed IDs."""
    case, rng = drawn(seed, has_affixes_in_text=False), random.Random(seed)
    letters = case.letters()
    size = len(case.special_tokens) + len(letters) + rng.choice([0, 1, 5, 30, 200])
    unknown = {} if case.rules.unk_token is None else {"unk_token": case.rules.unk_token}
    made = tokenizers.Tokenizer(models.BPE(**unknown, **case.affixes))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[*case.special_tokens, *letters],
        min_frequency=case.min_frequency,
        max_token_length=case.max_token_length,
        initial_alphabet=case.initial_alphabet or [],
        show_progress=False,
        **case.affixes,
    )
    made.train_from_iterator([" ".join(case.words)], trainer)
    model = json.loads(made.to_str())["model"]
    ours = trained(case, size, tie_break="huggingface", threads=rng.choice([1, 3]))
    assert [[left.decode(), right.decode()] for left, right in ours.merges] == model["merges"]
    assert {entry.decode(): id_ for id_, entry in ours.vocab.items()} == model["vocab"]
    same = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    for text in (" ".join(case.words), "".join(rng.choices(case.alphabet + " zq", k=50)), ""):
        ids = list(ours.encode(text))
        assert ids == same.encode(text).ids
        assert ours.decode(ids) == same.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("tie_break", ["lexicographic", "huggingface"])
@pytest.mark.parametrize("seed", range(40))
def test_text_that_spells_an_affix_is_merged_as_by_the_reference(seed: int, tie_break: Any) -> None:
    case = drawn(seed, has_affixes_in_text=True)
    size = len(case.special_tokens) + len(case.letters()) + 60
    ours = trained(
        case, size, tie_break=tie_break, max_token_bytes=0 if case.max_token_length is None else 4096
    )
    first = list(ours.vocab.values())[len(case.special_tokens) : len(ours.vocab) - len(ours.merges)]
    assert {*first} == {letter.encode() for letter in case.letters()}
    longest = case.max_token_length
    assert ours.merges == reference.train(
        Counter(word.encode() for word in case.words),
        60,
        tie_break,
        case.min_frequency,
        None,
        first,
        reserved=[token.encode() for token in case.special_tokens],
        text_rules=replace(case.rules, unk_token=None),
        max_token_letters=None if longest is None else max(2, longest - 1),
    )
    same = tokenizers.Tokenizer.from_str(ours.canonical_json.decode())
    for text in (" ".join(case.words), "ab#</w>##a a# ##"):
        assert list(ours.encode(text)) == same.encode(text).ids


def test_text_never_becomes_an_affix() -> None:
    rules = TextRules(continuing_subword_prefix="##", end_of_word_suffix="</w>")
    for left, right, expected in [
        (b"#", b"###", True),
        (b"##", b"##a", True),  # a word that starts like this
        (b"##a", b"##b", False),
        (b"a", b"##b</w>", False),
        (b"x</w", b"##>", True),
        (b"x", b"##</w>", True),
    ]:
        assert reference.looks_like_affix(left, right, rules) == expected


WORDS = TextRules(unk_token="<unk>", continuing_subword_prefix="##")
TEXT = "the mill stands by the river, and the millers \u65e5\u672c ## grind # " * 20


def test_a_file_is_trained_like_and_saved(tmp_path: Path) -> None:
    rule = TextRule(pretokenizer_from_json({"type": "BertPreTokenizer"}, as_text=True), text_rules=WORDS)
    first = train([TEXT.encode()], 80, ["<unk>"], like=rule)
    first.save(tmp_path / "words.json")
    assert Tokenizer.load(tmp_path / "words.json").encode(TEXT) == first.encode(TEXT)
    again = train([TEXT.encode()], 80, ["<unk>"], like=tmp_path / "words.json")
    assert (again.merges, dict(again.vocab)) == (first.merges, dict(first.vocab))
    assert b"##ill" in again.vocab.values() or b"mill" in again.vocab.values()


def test_bytes_with_both_affixes_lose_no_byte() -> None:
    rules = TextRules(continuing_subword_prefix="##", end_of_word_suffix="</w>", byte_level=True)
    split = {"type": "WhitespaceSplit"}
    words = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    rule = TextRule(
        pretokenizer_from_json({"type": "Sequence", "pretokenizers": [split, words]}), text_rules=rules
    )
    with pytest.raises(BadArgument, match="vocab_size"):
        train([b"ab"], 1000, like=rule)
    for options in ({}, {"initial_alphabet": ["a"]}, {"limit_alphabet": 6}):
        made = train([TEXT.encode()], 1100, like=rule, tie_break="huggingface", **options)
        same = tokenizers.Tokenizer.from_str(made.canonical_json.decode())
        for text in (TEXT, "\u0416 \U0001f44d x", "</w> a</w>b ##"):
            assert list(made.encode(text)) == same.encode(text).ids
            assert same.decode(same.encode(text).ids) == made.decode(made.encode(text))
        assert made.merges


def test_a_special_token_that_is_how_a_letter_is_written_is_refused() -> None:
    rule = TextRule(pretokenizer_from_json({"type": "Whitespace"}, as_text=True), text_rules=WORDS)
    with pytest.raises(BadArgument):
        train([b"ab"], 80, ["##b"], like=rule)
