"""Calls and changes of tokenizers of both packages, in random order.

Results must be equal, and errors of one class. The differences in docs/reference/drop-in-apis.md are not drawn: added
tokens that change `normalized`, and truncation below the number of added tokens.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NamedTuple

import tokenizers
from compared import COLUMNS, PIECES, answer
from odd_files import ADDED, Json, odd_component, odd_file, odd_flags, odd_text

from bpe.compat import huggingface
from bpe.errors import BadTokenizer

_MODULES: Final = (huggingface, tokenizers)
_KINDS: Final = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_CALLS: Final = 40
_MOST_PARTS: Final = 12  # overflowing ones of encodings that are merged, which multiply
_NO_TEXTS: Final = (None, 1, b"abc", ["a", 1], ("a", "b", "c"), "a\ud800b", [["a"], "b"])
_NO_NUMBERS: Final = (-1, 1 << 40, None, "a", 1.5)


class Outcome(NamedTuple):
    """kind: "same", "refused" (by this package or by a panic of tokenizers) or "different"."""

    kind: str
    what: str = ""


class _DifferentError(Exception):
    pass


class _EndError(Exception):
    """This package refuses the next call, or tokenizers panics."""


def difference(seed: int) -> Outcome:
    """Return the outcome of the calls of a seed."""
    calls = _Calls(random.Random(f"calls {seed}"))
    try:
        calls.begin()
        for _ in range(_CALLS):
            calls.one()
    except _DifferentError as error:
        return Outcome("different", str(error))
    except (BadTokenizer, _EndError) as error:
        return Outcome("refused", str(error))
    return Outcome("same")


def _seen(value: Any) -> Any:
    """Return the comparable parts of a result."""
    if isinstance(value, (list, tuple)):
        return [_seen(each) for each in value]
    if isinstance(value, (huggingface.Encoding, tokenizers.Encoding)):
        return {name: getattr(value, name) for name in COLUMNS} | {"parts": _seen(value.overflowing)}
    if isinstance(value, dict):
        return {key: _seen(each) for key, each in value.items()}
    if isinstance(value, (huggingface.AddedToken, tokenizers.AddedToken)):
        return repr(value)
    return value


class _Calls:
    """Both tokenizers, and encodings that calls returned."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.both: list[Any] = []
        self.encodings: list[tuple[Any, Any]] = []

    def begin(self) -> None:
        file = odd_file(self.rng)
        model = file["model"]
        if (model["continuing_subword_prefix"] or model["end_of_word_suffix"]) and model["byte_fallback"]:
            model["byte_fallback"] = False  # offsets differ
        try:
            theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
        except Exception as error:
            raise _EndError(f"tokenizers: {error}") from None
        self.both = [huggingface.Tokenizer.from_str(json.dumps(file)), theirs]
        self.both[0].encode("a")

    def one(self) -> None:
        """Make a call."""
        calls = [self.encode] * 4 + [self.encode_batch] * 2 + [self.of_an_encoding] * 5 + [self.decode] * 2
        calls += [
            self.truncation,
            self.padding,
            self.add,
            self.component,
            self.copied,
            self.process,
            self.vocabulary,
            self.special,
        ]
        self.rng.choice(calls)()

    def ask(self, what: str, given: Any, question: Callable[[ModuleType, Any], Any], of: Any = None) -> Any:
        """Return both results, or None for errors of one class. Raise _DifferentError if they differ."""
        of = self.both if of is None else of
        ours, theirs = (
            answer(lambda each, module=module: question(module, each), each)
            for module, each in zip(_MODULES, of, strict=True)
        )
        if isinstance(theirs, BaseException) and not isinstance(theirs, Exception):
            raise _EndError("tokenizers panics")
        if isinstance(ours, BadTokenizer) or str(ours).startswith("max_length: "):
            raise _EndError(str(ours))
        if isinstance(theirs, Exception) and isinstance(ours, type(theirs)):
            return None
        if isinstance(ours, Exception) or isinstance(theirs, Exception) or _seen(ours) != _seen(theirs):
            raise _DifferentError(f"{what}{given!r}: {_seen(ours)!r}, of tokenizers {_seen(theirs)!r}")
        return ours, theirs

    # -- texts ---------------------------------------------------------------------------------------------------

    def text(self) -> Any:
        if self.rng.random() < 0.03:
            return self.rng.choice(_NO_TEXTS)
        if self.rng.random() < 0.5:
            return odd_text(self.rng)
        return "".join(self.rng.choices(PIECES, k=self.rng.randint(0, 10)))

    def sequence(self, in_words: bool) -> Any:
        if not in_words:
            return self.text()
        words = [odd_text(self.rng)[:9] for _ in range(self.rng.randint(0, 4))]
        return words if self.rng.random() < 0.7 else tuple(words)

    def named(self, in_words: bool) -> Json:
        adds = {"add_special_tokens": self.rng.random() < 0.5} if self.rng.random() < 0.4 else {}
        return {"is_pretokenized": in_words, **adds}

    def encode(self) -> None:
        in_words = self.rng.random() < 0.3
        given = [self.sequence(in_words) for _ in range(self.rng.choice([1, 1, 2]))]
        named = self.named(in_words)
        self.keep(self.ask("encode", (given, named), lambda _, each: each.encode(*given, **named)))

    def encode_batch(self) -> None:
        in_words = self.rng.random() < 0.3
        given = [
            (self.sequence(in_words), self.sequence(in_words))
            if self.rng.random() < 0.3
            else self.sequence(in_words)
            for _ in range(self.rng.randint(0, 4))
        ]
        named = self.named(in_words)
        found = self.ask("encode_batch", (given, named), lambda _, each: each.encode_batch(given, **named))
        for pair in zip(*found, strict=True) if found else ():
            self.keep(pair)

    def keep(self, pair: tuple[Any, Any] | None) -> None:
        self.encodings = [*self.encodings, pair][-8:] if pair else self.encodings

    # -- encodings -----------------------------------------------------------------------------------------------

    def of_an_encoding(self) -> None:
        if not self.encodings:
            return
        rng = self.rng
        pair = rng.choice(self.encodings)
        place = rng.choice(_NO_NUMBERS) if rng.random() < 0.03 else rng.randint(0, len(pair[1]) + 2)
        direction = rng.choice(["left", "right", "right", "up"])
        length, stride, sequence = (
            rng.randint(0, len(pair[1]) + 3),
            rng.randint(0, 3),
            rng.choice([0, 0, 1, 2]),
        )
        others = [rng.choice(self.encodings) for _ in range(rng.randint(0, 3))]
        if sum(len(each.overflowing) for _, each in others) > _MOST_PARTS:
            return
        ours_of = {huggingface: 0, tokenizers: 1}
        questions: dict[str, Callable[[ModuleType, Any], Any]] = {
            "char_to_token": lambda _, each: each.char_to_token(place, sequence),
            "char_to_word": lambda _, each: each.char_to_word(place, sequence),
            "token_to_chars": lambda _, each: each.token_to_chars(place),
            "token_to_word": lambda _, each: each.token_to_word(place),
            "word_to_tokens": lambda _, each: each.word_to_tokens(place, sequence),
            "word_to_chars": lambda _, each: each.word_to_chars(place, sequence),
            "truncate": lambda _, each: each.truncate(length, stride, direction=direction),
            "pad": lambda _, each: each.pad(length, direction=direction, pad_id=5, pad_type_id=3),
            "pickle": lambda _, each: pickle.loads(pickle.dumps(each)),
            "overflowing": lambda _, each: each.overflowing,
            "merge": lambda module, _: module.Encoding.merge([each[ours_of[module]] for each in others]),
        }
        name = rng.choice(list(questions))
        found = self.ask(name, (place, length, stride, direction, sequence), questions[name], pair)
        if found and name in ("pickle", "merge"):
            self.keep(found)
        if found and name == "overflowing" and found[0]:
            self.keep((found[0][-1], found[1][-1]))
        self.ask(f"after {name}", (), lambda _, each: each, pair)

    def process(self) -> None:
        if not self.encodings:
            return
        pairs = [self.rng.choice(self.encodings) for _ in range(self.rng.choice([1, 2]))]
        if sum(len(each.overflowing) for _, each in pairs) > _MOST_PARTS:
            return
        given = list(zip(*pairs, strict=True))
        self.ask(
            "post_process",
            _seen([theirs for _, theirs in pairs]),
            lambda module, each: each.post_process(*given[module is tokenizers]),
        )

    # -- changes -------------------------------------------------------------------------------------------------

    def truncation(self) -> None:
        named = {
            "max_length": self.rng.randint(1, 14),
            "stride": self.rng.randint(0, 2),
            "strategy": self.rng.choice(["longest_first", "only_first", "only_second"]),
            "direction": self.rng.choice(["left", "right"]),
        }
        if self.rng.random() < 0.4:
            self.ask("no_truncation", (), lambda _, each: (each.no_truncation(), each.truncation))
        else:
            self.ask(
                "enable_truncation", named, lambda _, each: (each.enable_truncation(**named), each.truncation)
            )

    def padding(self) -> None:
        values = {
            "direction": ["left", "right"],
            "pad_id": [0, 7, -1],
            "pad_token": ["[P]", ""],
            "length": [None, 0, 12],
            "pad_to_multiple_of": [None, 0, 4],
        }
        named = {name: self.rng.choice(each) for name, each in values.items() if self.rng.random() < 0.4}
        if self.rng.random() < 0.4:
            self.ask("no_padding", (), lambda _, each: (each.no_padding(), each.padding))
        else:
            self.ask("enable_padding", named, lambda _, each: (each.enable_padding(**named), each.padding))

    def add(self) -> None:
        """Add tokens. Known ones keep `normalized`."""
        there = {
            token.content: token.normalized for token in self.both[1].get_added_tokens_decoder().values()
        }
        tokens = [
            {"content": text, **odd_flags(self.rng)}
            for text in self.rng.sample(ADDED, self.rng.randint(0, 3))
        ]
        for token in tokens:
            token["normalized"] = there.get(token["content"], token["normalized"])
        name = self.rng.choice(["add_tokens", "add_special_tokens"])
        self.ask(
            name,
            tokens,
            lambda module, each: getattr(each, name)([module.AddedToken(**token) for token in tokens]),
        )
        self.refused()  # if two tokens are one text now

    def component(self) -> None:
        name = self.rng.choice(_KINDS)
        component = odd_component(self.rng, name)

        def change(module: ModuleType, each: Any) -> Any:
            root = {"model": {"type": "BPE", "vocab": {}, "merges": []}, name: component}
            setattr(each, name, getattr(module.Tokenizer.from_str(json.dumps(root)), name))
            return repr(getattr(each, name))

        self.ask(f"set {name}", component, change)
        self.refused()

    def refused(self) -> None:
        """Raise BadTokenizer if this package does not support the tokenizer."""
        found = answer(lambda each: each.encode("a"), self.both[0])
        if isinstance(found, BadTokenizer):
            raise found

    def copied(self) -> None:
        change = self.rng.choice(
            [
                lambda _, each: copy.deepcopy(each),
                lambda _, each: pickle.loads(pickle.dumps(each)),
                lambda module, each: module.Tokenizer.from_str(each.to_str(True)),
                lambda module, _: module.Tokenizer.from_str(self.both[0].to_str()),
            ]
        )
        special = self.both[0].encode_special_tokens  # which copies of tokenizers lose
        self.both = [change(module, each) for module, each in zip(_MODULES, self.both, strict=True)]
        for each in self.both:
            each.encode_special_tokens = special
        self.ask("to_str", (), lambda _, each: json.loads(each.to_str()))

    def special(self) -> None:
        for each in self.both:
            each.encode_special_tokens = not self.both[1].encode_special_tokens
        self.both[0].encode_special_tokens = self.both[1].encode_special_tokens

    # -- vocabulary and decoding -----------------------------------------------------------------------------------

    def vocabulary(self) -> None:
        ids = [self.rng.randrange(self.both[1].get_vocab_size() + 6) for _ in range(5)]
        bad = self.rng.choice(_NO_NUMBERS)
        for added in (True, False):
            self.ask("get_vocab", added, lambda _, each, added=added: each.get_vocab(added))
            self.ask("get_vocab_size", added, lambda _, each, added=added: each.get_vocab_size(added))
            self.ask("added", added, lambda _, each, added=added: each.num_special_tokens_to_add(added))
        texts = [*self.both[1].get_vocab(), "no entry", ""]
        self.ask("token_to_id", texts, lambda _, each: list(map(each.token_to_id, texts)))
        self.ask("id_to_token", ids, lambda _, each: [each.id_to_token(id_) for id_ in ids])
        self.ask("id_to_token", bad, lambda _, each: each.id_to_token(bad))
        self.ask("get_added_tokens_decoder", (), lambda _, each: each.get_added_tokens_decoder())

    def decode(self) -> None:
        size = self.both[1].get_vocab_size()
        ids: list[Any] = [self.rng.randrange(size + 5) for _ in range(self.rng.randint(0, 9))]
        if self.encodings and self.rng.random() < 0.5:
            ids = self.rng.choice(self.encodings)[1].ids
        if self.rng.random() < 0.05:
            ids = [*ids, self.rng.choice(_NO_NUMBERS)]
        skip = self.rng.random() < 0.5
        self.ask("decode", (ids, skip), lambda _, each: each.decode(ids, skip))
