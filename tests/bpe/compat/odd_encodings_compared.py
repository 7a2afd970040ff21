"""Compares random encodings of tiktoken and of this package, with odd ranks and special tokens."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import tiktoken as theirs_of
from compared import answer
from odd_files import SYMBOLS, odd_text

from bpe.compat import tiktoken as ours_of

# Each matches all text. Unmatched text is an error in this package only.
PATTERNS = [
    r"\p{L}+|\P{L}+",
    r"\s+|\S+",
    r"(?s:.)",
    r"'s|\w+|[^\w\s]+|\s+(?!\S)|\s+",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s",
]
# None is a prefix of another, as tiktoken's choice then depends on a hash map.
SPECIAL = ["<s>", "</s>", "<x>", "x>", "ab", " ", "é", "\n\n", "中", "<|endoftext|>"]


class Outcome(NamedTuple):
    """kind: "same" or "different"."""

    kind: str
    what: str = ""


class _DifferentError(Exception):
    pass


def odd_encoding(rng: random.Random) -> dict[str, Any]:
    """Return the arguments of an Encoding, with gaps in the ranks and unreachable entries."""
    entries = [bytes([byte]) for byte in rng.sample(range(256), 256)]
    for _ in range(rng.choice([0, 5, 50, 200])):
        text = odd_text(rng).encode()
        at = rng.randrange(len(text) + 1)
        pair = (
            text[at : at + rng.randint(2, 4)] if rng.random() < 0.7 else b"".join(rng.choices(entries, k=2))
        )
        entries += [pair] * (2 <= len(pair) < 40)
    entries = list(dict.fromkeys(entries))
    special = rng.sample(SPECIAL, rng.choice([0, 1, 3, 6]))
    gap = rng.choice([1, 1, 3])
    ranks = sorted(rng.sample(range(len(entries) * gap), len(entries)))
    ids = rng.sample(range(ranks[-1] + 1, ranks[-1] + 20), len(special))
    return {
        "name": "odd",
        "pat_str": rng.choice(PATTERNS),
        "mergeable_ranks": dict(zip(entries, ranks, strict=True)),
        "special_tokens": dict(zip(special, ids, strict=True)),
    }


def difference(seed: int) -> Outcome:
    """Return the outcome of a seed."""
    rng = random.Random(seed)
    given = odd_encoding(rng)
    both = ours_of.Encoding(**given), theirs_of.Encoding(**given)
    try:
        for _ in range(6):
            _compare(rng, both, given)
    except _DifferentError as error:
        return Outcome("different", str(error))
    return Outcome("same")


def _text(rng: random.Random, given: dict[str, Any]) -> str:
    pieces = [odd_text(rng), *rng.choices(SPECIAL, k=rng.randint(0, 3)), "".join(rng.choices(SYMBOLS, k=2))]
    if rng.random() < 0.1:
        pieces.append(rng.choice(["\ud800", "\udc00", "\ud83d\ude00"]))
    rng.shuffle(pieces)
    return "".join(pieces)


def _compare(rng: random.Random, both: tuple[Any, Any], given: dict[str, Any]) -> None:
    def ask(question: Callable[[Any], Any], *what: Any) -> None:
        ours, theirs = (answer(question, each) for each in both)
        if not _same(ours, theirs):
            raise _DifferentError(f"{what}: {ours!r}, of tiktoken {theirs!r}")

    text, other = _text(rng, given), _text(rng, given)
    some = set(rng.sample(SPECIAL, rng.randint(0, 4)))
    named: dict[str, Any] = rng.choice(
        [
            {},
            {"disallowed_special": ()},
            {"allowed_special": "all"},
            {"allowed_special": some, "disallowed_special": ()},
            {"allowed_special": some},
            {"disallowed_special": some},
        ]
    )
    ask(lambda encoding: encoding.encode_ordinary(text), "encode_ordinary", text)
    ask(lambda encoding: encoding.encode(text, **named), "encode", text, named)
    if text.isprintable() or not any(0xD800 <= ord(each) < 0xE000 for each in text):
        ask(lambda encoding: encoding.encode_to_numpy(text, **named).tolist(), "encode_to_numpy", text, named)
        ask(lambda encoding: encoding._encode_only_native_bpe(text), "_encode_only_native_bpe", text)
    ask(lambda encoding: encoding.encode_batch([text, other], **named), "encode_batch", text, other, named)
    ask(lambda encoding: encoding.encode_ordinary_batch([text, other]), "encode_ordinary_batch", text, other)
    data = text.encode("utf-8", "replace")
    data = data[rng.randint(0, 3) :][: rng.randint(1, 40)]
    ask(lambda encoding: encoding._encode_bytes(data), "_encode_bytes", data)
    ask(lambda encoding: encoding._encode_single_piece(data), "_encode_single_piece", data)
    for entry in (data[:2], rng.choice(SPECIAL), text[:1].encode("utf-8", "replace")):
        ask(lambda encoding, entry=entry: encoding.encode_single_token(entry), "encode_single_token", entry)
    top = max(*given["mergeable_ranks"].values(), *given["special_tokens"].values(), 0)
    for ids in (
        both[1].encode(data.decode("utf-8", "replace"), allowed_special="all"),
        [rng.randrange(top + 3) for _ in range(rng.randint(0, 6))],
        rng.choices(list(given["mergeable_ranks"].values()), k=5),
    ):
        for method in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets"):
            ask(lambda encoding, method=method, ids=ids: getattr(encoding, method)(ids), method, ids)
        ask(lambda encoding, ids=ids: encoding.decode(ids, "strict"), "decode, strict", ids)
        ask(lambda encoding, ids=ids: encoding.decode_batch([ids, []]), "decode_batch", ids)
        ask(lambda encoding, ids=ids: encoding.decode_bytes_batch([ids, []]), "decode_bytes_batch", ids)
        ask(lambda encoding, ids=ids: list(map(encoding.is_special_token, ids)), "is_special_token", ids)
    for name in ("n_vocab", "max_token_value", "eot_token", "special_tokens_set", "name"):
        ask(lambda encoding, name=name: getattr(encoding, name), name)
    ask(lambda encoding: encoding.token_byte_values(), "token_byte_values")


def _same(ours: Any, theirs: Any) -> bool:
    """Return whether both are equal, or errors of one class. Any result is right if tiktoken panics."""
    if not isinstance(theirs, BaseException):
        return bool(ours == theirs)
    return not isinstance(theirs, Exception) or isinstance(ours, type(theirs))
