"""Check that the IDs of adversarial text do not depend on the cache, the threads and the instruction set.

Each round draws a small vocabulary, a merge rule, a pattern, special tokens and a text: known and new words, short and
long, of several scripts, runs of one character, special tokens anywhere. The expected IDs come from the portable
variant without a cache, which merges every pretoken. The others start with a cache of random size, often so small that
it evicts, and encode the text three times with one to three threads. Short texts are also encoded by bpe/reference.py.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import regex

from bpe import _core
from bpe.patterns import PATTERNS
from bpe.pretokenizer import named
from bpe.reference import encode, train
from exact.steps import Step

SEPARATOR = b"<|endoftext|>"
SPECIAL: tuple[list[str], ...] = (
    ["<|endoftext|>"],
    ["<|endoftext|>", "<|x|>"],
    ["<|endoftext|>", "<|x|>", "<|x|>y", "a b"],
    [],
)
SCRIPTS = (
    "abcdefgh",
    "ABCé ÀÉ",
    "あいうえおカキクケコ、。",
    "한국어가나다ꯃ각힣",
    "ሰላምខ្មែរᐊᐃἀᾧ",
    "తెలుగు नमस्ते",
    "привет мир",
    "سلام عليكم",
    "ภาษาไทย",
    "🙂🙃👩‍👧",
    "0123456789",
    " \n\t\r\u3000\u00a0",
    ".,;-=|*/'\"",
    "e\u0301a\u0300\u200d",
)
# Lengths around the widths of registers, keys, lanes, gathered pretokens and sweeps.
LONG_WORDS = (16, 17, 31, 32, 33, 63, 64, 65, 100, 511, 512, 513, 1000, 5000)
REFERENCE_BYTES = 4000  # its time is quadratic in the longest pretoken
LONG_RUNS = (64, 127, 1000, 8191, 8192, 8193, 20_000)


@dataclass
class Round:
    """A text, a vocabulary, and the encoders that must agree."""

    entries: dict[int, bytes]
    merges: list[tuple[bytes, bytes]] | None
    special: dict[bytes, int]
    pattern: str
    ignore_merges: bool
    text: bytes

    def encoder(self, cache_bytes: int) -> _core.TokenizerCore:
        return _core.EntryFile.from_entries(self.entries, self.merges).encoder(
            self.special, named(self.pattern).automaton, self.ignore_merges, cache_bytes=cache_bytes
        )


def rounds(seed: int, start: int) -> Iterator[Step]:
    """Run rounds endlessly, each with a new seed. Steps count tokens."""
    for number in itertools.count(start):
        drawn = random.Random(f"{seed} {number}")
        case = draw(drawn)
        tokens, difference = compare(case, drawn)
        if difference:
            yield Step(number, 0, f"seed {seed} step {number}: {difference}")
        yield Step(number + 1, tokens)


def draw(drawn: random.Random) -> Round:
    scripts = [
        *SCRIPTS,
        "".join(chr(0x4E00 + drawn.randrange(0x5000)) for _ in range(drawn.choice([3, 20, 400]))),
    ]
    known = [
        drawn.choice(["", " "])
        + word(drawn, drawn.choice(scripts), drawn.choice([1, 2, 3, 5, 8, 15, 16, 30, 60]))
        for _ in range(drawn.choice([3, 30, 1000]))
    ]
    sample = text(drawn, scripts, known, 3000)
    counts = Counter(regex.findall(r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+", sample))
    merges = train({match.encode(): count for match, count in counts.items()}, drawn.choice([0, 30, 200]))
    spelled = dict.fromkeys(
        [bytes([value]) for value in range(256)] + [left + right for left, right in merges]
    )
    for _ in range(drawn.choice([0, 5, 50, 2000])):  # entries that merges may not reach
        name = drawn.choice(known).encode()
        start = drawn.randrange(len(name))
        spelled[name[start : start + drawn.randint(1, 12)]] = None
    rule = drawn.choice(["ranks", "merges", "ignore_merges"])
    ids = ids_for(drawn, len(spelled), in_order=rule == "ranks")
    entries = dict(sorted(zip(ids, spelled, strict=True)))
    return Round(
        entries,
        None if rule == "ranks" else merges,
        {name.encode(): max(ids) + 10 + i for i, name in enumerate(drawn.choice(SPECIAL))},
        drawn.choice(sorted(PATTERNS)),
        rule != "merges",
        text(drawn, scripts, known, drawn.choice([30, 100, 1000, 5000, 100_000, 1_500_000])).encode(),
    )


def ids_for(drawn: random.Random, count: int, in_order: bool) -> list[int]:
    """Return IDs, mostly from 0 on, otherwise with gaps, up to around the largest ID of the core's tables."""
    most = drawn.choice([count, count, count, 2**16 + 500, 2**21 + 500, 2**31 - 100])
    ids = sorted(drawn.sample(range(max(0, most - 3 * count) if drawn.random() < 0.5 else 0, most), count))
    if not in_order and drawn.random() < 0.5:
        drawn.shuffle(ids)
    return ids


def word(drawn: random.Random, script: str, length: int) -> str:
    return "".join(drawn.choices(script, k=length))


def text(drawn: random.Random, scripts: list[str], known: list[str], size: int) -> str:
    """Return about `size` characters, with random shares of new words, long words and special tokens."""
    own = drawn.sample(scripts, drawn.randint(1, len(scripts)))
    new, long = drawn.choice([0.0, 0.01, 0.1, 0.5, 1.0]), drawn.choice([0, 0.01, 0.2])
    special, between = drawn.choice([0, 0, 0.01, 0.2]), drawn.choice(["", " ", " ", " ", "\n"])
    parts: list[str] = []
    length = 0
    while length < size:
        if drawn.random() < special:
            part = drawn.choice(SPECIAL[2])
        elif drawn.random() < new:
            is_long = drawn.random() < long
            part = word(
                drawn, drawn.choice(own), drawn.choice(LONG_WORDS) if is_long else drawn.randint(1, 12)
            )
        elif drawn.random() < 0.003:
            part = drawn.choice(" \na-一😀0") * drawn.choice(LONG_RUNS)
        else:
            part = drawn.choice(known)
        parts.append(part)
        length += len(part) + len(between)
    return between.join(parts)


def compare(case: Round, drawn: random.Random) -> tuple[int, str]:
    """Return the number of tokens and the difference, or ""."""
    best, *others = _core.simd_variants()
    use_special = bool(case.special)
    try:
        _core.set_simd_variant("portable")
        plain = case.encoder(0)
        expected = plain.encode_documents(case.text, SEPARATOR, 1, use_special)
        if len(case.text) <= REFERENCE_BYTES and plain.encode(case.text.decode()) != encode(
            case.text.decode(),
            case.entries,
            case.merges,
            {name.decode(): id_ for name, id_ in case.special.items()},
            case.pattern,
            case.ignore_merges,
        ):
            return 0, "the portable variant without a cache gives others than bpe/reference.py"
        variant = drawn.choice([best, best, *others])
        _core.set_simd_variant(variant)
        cache_bytes = drawn.choice([1000, 20_000, 65_536, 300_000, 2_000_000, 1 << 28])
        encoder = case.encoder(cache_bytes)
        for turn in range(3):
            threads = drawn.choice([1, 1, 2, 3])
            found = encoder.encode_documents(case.text, SEPARATOR, threads, use_special)
            for what, ours, right in (
                ("id", found[0], expected[0]),
                ("row end", found[1], expected[1]),
            ):
                if not np.array_equal(ours, right):
                    count = min(len(ours), len(right))
                    place = int(np.argmax(np.append(ours[:count] != right[:count], True)))
                    return 0, (
                        f"{what} {place} of {len(right)} differs, turn {turn + 1}, {variant}, {threads} threads, "
                        f"a cache of {cache_bytes} bytes"
                    )
    finally:
        _core.set_simd_variant(best)
    return len(expected[0]), ""
