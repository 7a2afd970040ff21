"""Tokenizers of odd files beside those of tokenizers: all that can be asked of both is asked.

`difference` says the first thing that is not the same, or that this package refuses the file and why. What
docs/reference/drop-in-apis.md lists as different on purpose is not drawn, or is said as `refused`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import tokenizers
from compared import COLUMNS, answer
from odd_files import Json, odd_added_tokens, odd_file, odd_text

from bpe.compat.huggingface import AddedToken, Tokenizer
from bpe.errors import BadTokenizer


class Outcome(NamedTuple):
    """kind: "same", "refused" (by this package), "no file" (tokenizers refuses it) or "different"."""

    kind: str
    what: str = ""


_ERROR = "an error"


class _DifferentError(Exception):
    pass


class _Both:
    """A tokenizer of each package, and a question for both at a time."""

    def __init__(self, ours: Tokenizer, theirs: tokenizers.Tokenizer, file: Json) -> None:
        self.ours = ours
        self.theirs = theirs
        model = file["model"]
        marks = model["continuing_subword_prefix"] or model["end_of_word_suffix"]
        # Bytes of a prefix or suffix told one by one have no place in the text.
        self.columns = [
            name for name in COLUMNS if name != "offsets" or not (marks and model["byte_fallback"])
        ]

    def ask(self, question: Callable[[Any], Any], *what: Any) -> None:
        """_DifferentError if the answers are not the same; errors of both are."""
        ours, theirs = (_answer(question, each) for each in (self.ours, self.theirs))
        if ours != theirs:
            raise _DifferentError(f"{what}: {ours!r}, of tokenizers {theirs!r}")

    def seen(self, encoding: Any) -> Any:
        """What an encoding, or a list of them, holds."""
        if isinstance(encoding, list):
            return [self.seen(each) for each in encoding]
        columns = {name: getattr(encoding, name) for name in self.columns}
        return columns, len(encoding), self.seen(encoding.overflowing)


def _answer(question: Callable[[Any], Any], tokenizer: Any) -> Any:
    """The answer; all errors are alike."""
    found = answer(question, tokenizer)
    return _ERROR if isinstance(found, BaseException) else found


def difference(seed: int) -> Outcome:
    """What came of the file of this seed."""
    rng = random.Random(seed)
    file = odd_file(rng)
    text = json.dumps(file)
    try:
        theirs = tokenizers.Tokenizer.from_str(text)
    except Exception as error:
        return Outcome("no file", str(error))
    try:
        both = _Both(Tokenizer.from_str(text), theirs, file)
        both.ours.encode("a")
        _compare(rng, both, file)
    except BadTokenizer as error:
        return Outcome("refused", str(error))
    except _DifferentError as error:
        return Outcome("different", str(error))
    return Outcome("same")


def _compare(rng: random.Random, both: _Both, file: Json) -> None:
    _vocabulary(both, file)
    both.ask(lambda tokenizer: json.loads(tokenizer.to_str()), "to_str")
    _encodings(rng, both, 3)
    saved = _Both(
        Tokenizer.from_str(both.ours.to_str()), tokenizers.Tokenizer.from_str(both.ours.to_str()), file
    )
    _encodings(rng, saved, 1)
    _lengths(rng, both)
    _encodings(rng, both, 1)
    for each in (both.ours, both.theirs):
        each.no_truncation()
        each.no_padding()
    _add(rng, both, file)
    both.ours.encode("a")  # BadTokenizer, if two tokens are one text now
    _vocabulary(both, file)
    _encodings(rng, both, 2)
    both.ours.encode_special_tokens = both.theirs.encode_special_tokens = True
    _encodings(rng, both, 1)


def _vocabulary(both: _Both, file: Json) -> None:
    texts = [*file["model"]["vocab"], *(token["content"] for token in file["added_tokens"]), "no entry", ""]
    for added in (True, False):
        both.ask(lambda tokenizer, added=added: tokenizer.get_vocab(added), "get_vocab", added)
        both.ask(lambda tokenizer, added=added: tokenizer.get_vocab_size(added), "get_vocab_size", added)
    both.ask(
        lambda tokenizer: {id_: repr(token) for id_, token in tokenizer.get_added_tokens_decoder().items()},
        "get_added_tokens_decoder",
    )
    both.ask(lambda tokenizer: [tokenizer.id_to_token(id_) for id_ in range(len(texts) + 9)], "id_to_token")
    both.ask(lambda tokenizer: list(map(tokenizer.token_to_id, texts)), "token_to_id")
    for pair in (True, False):
        both.ask(
            lambda tokenizer, pair=pair: tokenizer.num_special_tokens_to_add(pair),
            "num_special_tokens_to_add",
        )


def _encodings(rng: random.Random, both: _Both, count: int) -> None:
    for _ in range(count):
        _some_encodings(rng, both, {"add_special_tokens": rng.random() < 0.6})


def _some_encodings(rng: random.Random, both: _Both, adds: Json) -> None:
    def encode(*given: Any, **named: Any) -> None:
        both.ask(
            lambda tokenizer: both.seen(tokenizer.encode(*given, **named, **adds)),
            "encode",
            given,
            named,
            adds,
        )

    def decode(ids: list[int], skip: bool) -> None:
        both.ask(lambda tokenizer: tokenizer.decode(ids, skip), "decode", ids, skip)

    first, second = odd_text(rng), odd_text(rng)
    words, others = ([odd_text(rng)[:9] for _ in range(rng.randint(0, 3))] for _ in range(2))
    encode(first)
    encode(first, second)
    encode(words, is_pretokenized=True)
    encode(words, others, is_pretokenized=True)
    batch = [first, (first, second), second, ""] if rng.random() < 0.5 else [first, second]
    both.ask(lambda tokenizer: both.seen(tokenizer.encode_batch(batch, **adds)), "encode_batch", batch, adds)
    _one_encoding(rng, both, first, second, adds)
    own = _answer(lambda tokenizer: tokenizer.encode(first).ids, both.ours)
    size = both.ours.get_vocab_size()
    for ids in ([] if own == _ERROR else own, [rng.randrange(size + 5) for _ in range(rng.randint(0, 8))]):
        decode(ids, True)
        decode(ids, False)


def _one_encoding(rng: random.Random, both: _Both, first: str, second: str, adds: Json) -> None:
    """The methods of an Encoding."""

    def places(tokenizer: Any) -> Any:
        encoding = tokenizer.encode(first, second, **adds)
        tokens, characters = range(len(encoding) + 2), range(len(first) + 1)
        by_word = [
            (encoding.word_to_tokens(word, of), encoding.word_to_chars(word, of))
            for word in range(5)
            for of in (0, 1)
        ]
        of_token = [
            (encoding.token_to_word(at), encoding.token_to_chars(at), encoding.token_to_sequence(at))
            for at in tokens
        ]
        of_character = [
            (encoding.char_to_token(at, of), encoding.char_to_word(at, of))
            for at in characters
            for of in (0, 1)
        ]
        return by_word, of_token, of_character

    if "offsets" in both.columns:
        both.ask(places, "methods", first, second, adds)
    length, stride, direction = rng.randint(0, 6), rng.choice([0, 0, 1, 2]), rng.choice(["left", "right"])

    def cut(tokenizer: Any) -> Any:
        encoding = tokenizer.encode(first, **adds)
        encoding.truncate(length, stride, direction)
        encoding.pad(length + 2, direction=direction, pad_id=7, pad_type_id=3, pad_token="P")
        return both.seen(encoding)

    both.ask(cut, "truncate and pad", first, adds, length, stride, direction)


def _lengths(rng: random.Random, both: _Both) -> None:
    added = max(map(both.theirs.num_special_tokens_to_add, (True, False)))
    truncation = {
        "max_length": added + rng.choice([1, 2, 3, 5, 8]),  # fewer than are added: an error here alone
        "stride": rng.choice([0, 0, 1, 2]),
        "strategy": rng.choice(["longest_first", "only_first", "only_second"]),
        "direction": rng.choice(["left", "right"]),
    }
    padding = {
        "direction": rng.choice(["left", "right"]),
        "pad_id": rng.choice([0, 3]),
        "pad_type_id": rng.choice([0, 2]),
        "pad_token": "a",
        "length": rng.choice([None, 6]),
        "pad_to_multiple_of": rng.choice([None, 4]),
    }
    if rng.random() < 0.7:
        both.ask(lambda tokenizer: tokenizer.enable_truncation(**truncation), "enable_truncation", truncation)
    if rng.random() < 0.6:
        both.ask(lambda tokenizer: tokenizer.enable_padding(**padding), "enable_padding", padding)
    both.ask(lambda tokenizer: (tokenizer.truncation, tokenizer.padding), "truncation and padding")


def _add(rng: random.Random, both: _Both, file: Json) -> None:
    """Adds tokens; one that is there keeps `normalized`, which tokenizers would go on to take for the old one."""
    there = {token["content"]: token["normalized"] for token in file["added_tokens"]}
    tokens = odd_added_tokens(rng, rng.randint(1, 4))
    for token in tokens:
        token["normalized"] = there.get(token["content"], token["normalized"])
    method = rng.choice(["add_tokens", "add_special_tokens"])
    both.ask(
        lambda tokenizer: getattr(tokenizer, method)(
            [(AddedToken if tokenizer is both.ours else tokenizers.AddedToken)(**token) for token in tokens]
        ),
        method,
        tokens,
    )
