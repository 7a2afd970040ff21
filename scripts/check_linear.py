"""Does the cost of encoding grow with the text and no faster, whatever the text?

Texts that undo careless encoders (one pretoken of millions of letters, spaces, digits, marks; Fibonacci words) are
encoded at doubling sizes. time(2n) / time(n) may be 2.3 at most where both take long enough to be told from noise, and
1 MB may take half a second. Exits 0 if so, else 1 with a line for each that fails.

    python scripts/check_linear.py [TOKENIZER.json ...] [--up-to-mb 64]
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

MAX_RATIO = 2.3
MAX_SECONDS_A_MB = 0.5
SHORTEST_SECONDS = 0.05  # below, a page fault more or less is a tenth
ROUNDS = 3


def repeated(unit: str) -> Callable[[int], bytes]:
    encoded = unit.encode()
    return lambda size: encoded * (size // len(encoded))


def drawn(alphabet: str) -> Callable[[int], bytes]:
    """Seeded random characters; a block of 64 KiB is repeated, which is no shorter a pretoken for that."""
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
    "one emoji": repeated("😀"),
    "combining marks": repeated("\u0301"),
    "random letters": drawn("abcdefghijklmnopqrstuvwxyz"),
    "random digits": drawn("0123456789"),
    "Fibonacci word": fibonacci,
    "Chinese without spaces": drawn("的一是不了人我在有他"),
    "spaces and newlines": repeated(" \n  "),
    "apostrophes": repeated("'s"),
}


def seconds(tokenizer: bpe.Tokenizer, text: bytes) -> float:
    """Processor time of the fastest round."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        tokenizer.encode_documents(text, threads=1)
        best = min(best, time.process_time() - started)
    return best


def small_tokenizer() -> bpe.Tokenizer:
    """Bytes and the runs of some of them: enough for merges without a file."""
    vocab = {value: bytes([value]) for value in range(256)}
    merges: list[tuple[bytes, bytes]] = []
    runs = [b"a", b" ", b"7", b"\n"]
    pairs = [(unit * 2**k, unit * 2**k) for k in range(6) for unit in runs]
    pairs += [(b"a", b"b"), (b"ab", b"a"), (b"t", b"h"), (b"th", b"e"), (b"i", b"n")]
    for left, right in pairs:
        vocab[len(vocab)] = left + right
        merges.append((left, right))
    return bpe.Tokenizer(vocab, merges, pattern="gpt2")


TOKENIZERS: dict[str | None, bpe.Tokenizer] = {}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "tokenizer", nargs="*", help="tokenizer.json files; none: a small one made on the spot"
    )
    parser.add_argument("--up-to-mb", type=int, default=64, metavar="N", help="largest text (default 64)")
    options = parser.parse_args()
    for path in options.tokenizer:
        TOKENIZERS[path] = bpe.Tokenizer.load(path)
    if not TOKENIZERS:
        TOKENIZERS[None] = small_tokenizer()

    failures = []
    for path, tokenizer in TOKENIZERS.items():
        for name, make in TEXTS.items():
            sizes = [1]
            while 2 * sizes[-1] <= options.up_to_mb:
                sizes.append(2 * sizes[-1])
            times = [seconds(tokenizer, make(size << 20)) for size in sizes]
            ratios = [
                longer / shorter
                for shorter, longer in itertools.pairwise(times)
                if shorter >= SHORTEST_SECONDS
            ]
            worst = f"{max(ratios):.2f}" if ratios else "-"
            where = Path(path).name if path else "small"
            print(
                f"{where:24} {name:24} 1 MB {times[0]:.3f} s, {sizes[-1]} MB {times[-1]:.3f} s, worst ratio {worst}"
            )
            if ratios and max(ratios) > MAX_RATIO:
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
