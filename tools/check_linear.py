"""Check that the time of encoding is linear in the length of the text, even for adversarial text.

Adversarial texts (one pretoken of millions of letters, spaces, digits or marks; Fibonacci words) are encoded at
doubling sizes. time(2n) / time(n) must be at most 2.3 if both times are well above noise, and 1 MB must take at most
0.5 s. Times are the minimum processor time of several rounds. A doubling that exceeds the limit is measured again,
alternating n and 2n, because other processes compete for caches and memory bandwidth. Exits 1, with one line per
failure.

    python tools/check_linear.py [TOKENIZER.json | RANKS.tiktoken:PATTERN ...] [--up-to-mb 64]

A rank file is FILE:PATTERN. qwen2 is normalized with NFC first, as in its models.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import bpe
from bpe.patterns import PATTERNS

MAX_RATIO = 2.3
MAX_SECONDS_A_MB = 0.5
SHORTEST_SECONDS = 0.05  # below this, one page fault changes the time by a tenth
ROUNDS = 3
MORE_ROUNDS = 12  # for a doubling over the limit


def repeated(unit: str) -> Callable[[int], bytes]:
    encoded = unit.encode()
    return lambda size: encoded * (size // len(encoded))


def drawn(alphabet: str) -> Callable[[int], bytes]:
    """Return a generator of seeded random characters. It repeats a block of 64 KiB, still as one pretoken."""
    block = "".join(random.Random(7).choices(alphabet, k=65536)).encode()
    return lambda size: (block * (size // len(block) + 1))[: size - size % 12]


def fibonacci(size: int) -> bytes:
    a, b = b"a", b"ab"
    while len(b) < size:
        a, b = b, b + a
    return b[:size]


TEXTS: dict[str, Callable[[int], bytes]] = {
    "one letter": repeated("a"),
    "spaces": repeated(" "),
    "newlines": repeated("\n"),
    "digits": repeated("7"),
    "tabs": repeated("\t"),
    "no-break spaces": repeated("\u00a0"),
    "ideographic spaces": repeated("\u3000"),
    "one emoji": repeated("😀"),
    "flags": repeated("🇩🇪🇫🇷"),
    "combining marks": repeated("\u0301"),
    "marks out of order": repeated("\u0301\u0323"),
    "marks made of marks": repeated("\u0f73"),
    "random letters": drawn("abcdefghijklmnopqrstuvwxyz"),
    "random capitals": drawn("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "random case": drawn("abcdeABCDE"),
    "base64": drawn("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
    "random digits": drawn("0123456789"),
    "Fibonacci word": fibonacci,
    "Chinese without spaces": drawn("的一是不了人我在有他"),
    "Thai without spaces": drawn("ภาษาไทยไม่มีวรรค"),
    "Hangul taken apart": drawn("\u1112\u1161\u11ab"),
    "spaces and newlines": repeated(" \n  "),
    "apostrophes": repeated("'s"),
}


def seconds(tokenizer: bpe.Tokenizer, text: bytes, rounds: int = ROUNDS) -> float:
    """Return the processor time of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        tokenizer.encode_documents(text, threads=1)
        best = min(best, time.process_time() - started)
    return best


def doubling_times(tokenizer: bpe.Tokenizer, make: Callable[[int], bytes], up_to_mb: int) -> list[float]:
    """Return the processor time for 1, 2, 4 ... MB. A doubling over MAX_RATIO was measured MORE_ROUNDS times."""
    sizes = [1]
    while 2 * sizes[-1] <= up_to_mb:
        sizes.append(2 * sizes[-1])
    times = [seconds(tokenizer, make(size << 20)) for size in sizes]
    for index in range(1, len(sizes)):
        shorter, longer = (make(size << 20) for size in sizes[index - 1 : index + 1])
        for _ in range(MORE_ROUNDS):
            if not is_too_slow(times[index - 1], times[index]):
                break
            times[index - 1] = min(times[index - 1], seconds(tokenizer, shorter, 1))
            times[index] = min(times[index], seconds(tokenizer, longer, 1))
    return times


def is_too_slow(shorter: float, longer: float) -> bool:
    """Return whether the time for twice the text exceeds the limit, and both times are well above noise."""
    return shorter >= SHORTEST_SECONDS and longer > MAX_RATIO * shorter


def small_tokenizer() -> bpe.Tokenizer:
    """Return a tokenizer of the 256 bytes and runs of some, which has merges without a file."""
    vocab = {value: bytes([value]) for value in range(256)}
    merges: list[tuple[bytes, bytes]] = []
    runs = [b"a", b" ", b"7", b"\n"]
    pairs = [(unit * 2**k, unit * 2**k) for k in range(6) for unit in runs]
    pairs += [(b"a", b"b"), (b"ab", b"a"), (b"t", b"h"), (b"th", b"e"), (b"i", b"n")]
    for left, right in pairs:
        vocab[len(vocab)] = left + right
        merges.append((left, right))
    return bpe.Tokenizer(vocab, merges, pattern="gpt2")


def with_added_tokens(small: bpe.Tokenizer, longest: int) -> bpe.Tokenizer:
    """Add tokens that match partially at every offset but never fully, and some that strip whitespace."""
    runs = [
        unit * count + "#"
        for unit in ("a", " ", "7", "ภ", "\u0301")
        for count in range(1, longest, longest // 20)
    ]
    first = small.vocab_size
    tokens = [
        bpe.AddedToken(run, first + place, normalized=place % 2 == 1, single_word=place % 3 == 1)
        for place, run in enumerate(runs)
    ]
    tokens += [
        bpe.AddedToken("\n", first + len(runs), lstrip=True),
        bpe.AddedToken("\u3000", first + len(runs) + 1, rstrip=True),
        bpe.AddedToken("\t", first + len(runs) + 2, lstrip=True, rstrip=True, normalized=True),
    ]
    return bpe.Tokenizer(small.vocab, small.merges, tokens, pattern="gpt2")


def tokenizers_of(given: list[str]) -> dict[str, bpe.Tokenizer]:
    """Return name -> tokenizer for the arguments.

    Without arguments: the small tokenizer, alone, with NFC and with added tokens.
    """
    if not given:
        small = small_tokenizer()
        nfc = bpe.Tokenizer(small.vocab, small.merges, pattern="qwen2", normalizer="NFC")
        added = {f"small, added tokens {size}": with_added_tokens(small, size) for size in (21, 2000)}
        return {"small": small, "small, NFC": nfc, **added}
    loaded = {}
    for argument in given:
        path, _, pattern = argument.rpartition(":")
        if pattern not in PATTERNS:
            loaded[Path(argument).name] = bpe.Tokenizer.load(argument)
            continue
        ranks = bpe.Tokenizer.load(path, pattern=pattern)
        if pattern == "qwen2":
            ranks = bpe.Tokenizer(ranks.vocab, None, pattern=pattern, normalizer="NFC")
        loaded[Path(path).name] = ranks
    return loaded


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "tokenizer", nargs="*", help="tokenizer.json or FILE:PATTERN (default: small generated tokenizers)"
    )
    parser.add_argument(
        "--up-to-mb", type=int, default=64, metavar="N", help="size of the largest text (default: 64)"
    )
    options = parser.parse_args()

    failures = []
    for where, tokenizer in tokenizers_of(options.tokenizer).items():
        for name, make in TEXTS.items():
            times = doubling_times(tokenizer, make, options.up_to_mb)
            ratios = [
                longer / shorter
                for shorter, longer in itertools.pairwise(times)
                if shorter >= SHORTEST_SECONDS
            ]
            worst = f"{max(ratios):.2f}" if ratios else "-"
            largest = 1 << (len(times) - 1)
            print(
                f"{where:24} {name:24} 1 MB {times[0]:.3f} s, {largest} MB {times[-1]:.3f} s, worst ratio {worst}",
                flush=True,
            )
            if any(is_too_slow(*pair) for pair in itertools.pairwise(times)):
                failures.append(f"{where}, {name}: twice the text takes {max(ratios):.2f} times as long")
            if times[0] > MAX_SECONDS_A_MB:
                failures.append(f"{where}, {name}: 1 MB takes {times[0]:.2f} s")
    for failure in failures:
        print(
            f"error: {failure}; at most {MAX_RATIO} times and {MAX_SECONDS_A_MB} s are allowed",
            file=sys.stderr,
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
