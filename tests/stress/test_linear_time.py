"""The time of encoding is linear in the length of the text, even for adversarial text."""

from __future__ import annotations

import random
import time

import pytest
from jobs import END, trained

from bpe import Tokenizer

pytestmark = pytest.mark.stress
SIZES_MB = (1, 2, 4, 8, 16, 32)
MAX_RATIO = 2.3  # of the times for twice the text
MAX_SECONDS_PER_MB = 0.5
MIN_SECONDS = 0.05  # shorter times are noise


def fibonacci(size: int) -> str:
    a, b = "a", "ab"
    while len(b) < size:
        a, b = b, b + a
    return b


def drawn(alphabet: str) -> str:
    return "".join(random.Random(7).choices(alphabet, k=65536))


# One pretoken of any length, or few different ones. Each text is repeated up to the size.
UNITS = {
    "one letter": "a",
    "spaces": " ",
    "newlines": "\n",
    "digits": "7",
    "no-break spaces": "\u00a0",
    "ideographic spaces": "\u3000",
    "emoji": "😀",
    "marks": "a" + "\u0301" * 999,
    "Hangul": "\u1100\u1161\u11a8",
    "two letters": drawn("ab"),
    "letters": drawn("abcdefghijklmnopqrstuvwxyz"),
    "ideographs": drawn("的一是不了人我在有他"),
    "punctuation": drawn("!?.,;:-_"),
    "Fibonacci words": fibonacci(1 << 20),
    "parts of a special token": "<|endoftext",
}


def small(**options: object) -> Tokenizer:
    texts = [
        fibonacci(3000),
        drawn("ab")[:3000],
        drawn("abcdefgh")[:9000],
        "a" * 600,
        " " * 600,
        "的一是" * 200,
    ]
    return trained(texts, 300, [END], **options)


TOKENIZERS = {
    "gpt2": lambda: small(),
    "o200k": lambda: small(pattern="o200k"),
    "qwen2 and NFC": lambda: small(pattern="qwen2", normalizer="NFC"),
}


def seconds(tokenizer: Tokenizer, text: str, rounds: int = 3) -> float:
    """Return the least processor time."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        tokenizer.encode(text)
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.promise("linear-time")
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_linear(kind: str, name: str) -> None:
    tokenizer, unit = TOKENIZERS[kind](), UNITS[name]
    unit_bytes = len(unit.encode())
    texts = [unit * ((mb << 20) // unit_bytes) for mb in SIZES_MB]
    times = [seconds(tokenizer, text) for text in texts]
    assert times[0] <= MAX_SECONDS_PER_MB
    for index in range(len(times) - 1):
        if times[index] >= MIN_SECONDS and times[index + 1] > MAX_RATIO * times[index]:
            # Other processes compete for caches: measure again, alternating.
            pairs = [[seconds(tokenizer, text, 1) for text in texts[index : index + 2]] for _ in range(12)]
            shorter, longer = map(min, zip(*pairs, strict=True))
            assert longer <= MAX_RATIO * shorter
