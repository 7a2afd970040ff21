"""initial_alphabet, limit_alphabet and max_token_length behave as in Hugging Face's BpeTrainer."""

from __future__ import annotations

import random
from typing import Any

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from bpe.errors import BadArgument
from bpe.formats.byte_alphabet import to_bytes, to_characters
from bpe.pretoken_counts.counts import PretokenCounts
from bpe.tokenizer import Tokenizer
from bpe.training import train, train_on, train_sizes
from bpe.training_options import TrainingOptions

ALL = sorted(pre_tokenizers.ByteLevel.alphabet())


def text_of(seed: int) -> str:
    """Every letter has a different frequency, since BpeTrainer breaks ties arbitrarily."""
    letters = [letter for rank, letter in enumerate("a bcdefghijklmn.,'") for _ in range(400 - 20 * rank)]
    letters += list("é" * 7 + "ü" * 5 + "日" * 3 + "本" * 2)
    random.Random(seed).shuffle(letters)
    return "".join(letters)


def train_by_huggingface(text: str, vocab_size: int, **options: Any) -> Any:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    given = {name: value for name, value in options.items() if value is not None}
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, **given)
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def ids_by_spelling(tokenizer: Tokenizer) -> dict[str, int]:
    ordinary = {to_characters(entry): id_ for id_, entry in tokenizer.ordinary_entries.items()}
    return ordinary | tokenizer.special_tokens


@pytest.mark.parametrize("min_frequency", [0, 2])
@pytest.mark.parametrize("special_tokens", [[], ["<s>", "<pad>"]], ids=len)
@pytest.mark.parametrize(
    ("initial", "limit"),  # with a lower limit BpeTrainer drops arbitrary initial ones
    [
        (initial, limit)
        for initial in ["", "zĠa", ALL]
        for limit in [None, 3, 10, 15, 300]
        if len(initial) <= (limit or 256)
    ],
    ids=lambda value: str(value)[:4],
)
def test_vocabularies_equal_bpe_trainer(
    initial: Any, limit: int | None, special_tokens: list[str], min_frequency: int
) -> None:
    text = text_of(len(initial) + (limit or 0))
    options: dict[str, Any] = {
        "initial_alphabet": list(initial),
        "limit_alphabet": limit,
        "special_tokens": special_tokens,
        "min_frequency": min_frequency,
    }
    theirs = train_by_huggingface(text, 400, **options)
    ours = train([text.encode()], 400, tie_break="huggingface", **options)
    vocab = theirs.get_vocab()
    ids = ids_by_spelling(ours)
    assert {spelling: ids[spelling] for spelling in vocab} == vocab
    outside = set(ids) - set(vocab)
    assert sorted(ids[byte] for byte in outside) == list(range(len(vocab), len(ids)))
    assert {*vocab, *outside} >= set(ALL)
    # If their encoding is lossless the IDs are equal; ours is lossless in any case.
    assert ours.decode(ours.encode(text)) == text
    known = {character for character in text if set(to_characters(character.encode())) <= set(vocab)}
    kept = "".join(character for character in text if character in known)
    assert ours.encode(kept, allowed_special=()) == theirs.encode(kept).ids


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 5, 9, 100])
def test_max_token_length_equals_bpe_trainer(most: int) -> None:
    text = text_of(most) + "ab" * 200 + "日本" * 50
    options: dict[str, Any] = {"initial_alphabet": ALL, "max_token_length": most}
    theirs = train_by_huggingface(text, 500, **options)
    ours = train([text.encode()], 500, tie_break="huggingface", **options)
    assert ids_by_spelling(ours) == theirs.get_vocab()
    assert len(ours.merges) > 3


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


def test_sizes_are_prefixes_and_bytes_outside_come_last() -> None:
    text = text_of(3).encode()
    options = TrainingOptions(["<s>"], limit_alphabet=5)
    sizes = train_sizes([text], [20, 60], options)
    assert [tokenizer.vocab_size for tokenizer in sizes.values()] == [20 + 251, 60 + 251]
    assert sizes[20].merges == sizes[60].merges[: 20 - 6]
    assert to_bytes("a") in [sizes[20].vocab[id_] for id_ in range(1, 6)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"initial_alphabet": ["日"]},
            "^initial_alphabet: .*'日'",
        ),
        ({"initial_alphabet": " "}, "^initial_alphabet: .*' '"),
        (
            {"initial_alphabet": "abc", "limit_alphabet": 2},
            "^limit_alphabet: .*3.*2",
        ),
        ({"limit_alphabet": -1}, "^limit_alphabet: .*-1"),
        ({"max_token_length": 3, "max_token_bytes": 2}, "^max_token_length: .*max_token_bytes"),
        ({"max_token_length": "3"}, "^max_token_length: "),
        (
            {"initial_alphabet": "abc", "vocab_size": 2},
            "^vocab_size: .*3.*2",
        ),
        ({"initial_alphabet": "abc", "vocab_size": 0, "special_tokens": ["<s>"]}, "^vocab_size: .*1.*0"),
    ],
)
def test_impossible_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"inputs": [b"ab"], "vocab_size": 300}
    with pytest.raises(BadArgument, match=message):
        train(**(arguments | options))
