"""Compare the pieces of every family and pattern with tokenizers and tiktoken.

bpe/presets.py lists the families. Texts contain all scalar values in five contexts each, several hundred per text, so
that a class that differs for one character is detected. Other texts are all strings of a few difficult characters up to
a length, and random texts for each generated pattern.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from exact.steps import Step

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "bpe"))
from peer_pieces import tiktoken_pieces, tokenizers_pieces
from random_patterns import random_pattern, random_text

from bpe.errors import BadTokenizer
from bpe.formats.byte_alphabet import to_bytes
from bpe.formats.huggingface_components import pretokenizer_to_json
from bpe.presets import PRESETS
from bpe.pretokenization.components import Split
from bpe.pretokenizer import Pretokenizer

SCALARS = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
CONTEXTS = ("{0}", "a{0}b ", " {0}1", "1{0}.\n", "'{0}s{0}{0}")
SCALARS_A_TEXT = 256
# A letter of each case and one that folds to an ASCII letter, a digit, punctuation, all kinds of white space, a mark.
HARD = "aSſ1'.\u0301 \n\r\u3000漢"
STRINGS_A_STEP = 20_000

Cut = Callable[[str], list[bytes]]
PATTERNS_A_STEP = 20


def families() -> dict[str, tuple[Cut, Cut]]:
    """Return name -> (our cut, cut of tokenizers). Pieces are bytes, since some families cut inside a character."""
    import tokenizers

    made: dict[str, tuple[Cut, Cut]] = {}
    for preset in PRESETS:
        ours = Pretokenizer(preset.components)
        empty = {"type": "BPE", "vocab": {}, "merges": []}
        root: dict[str, Any] = {
            "version": "1.0",
            "added_tokens": [],
            "pre_tokenizer": pretokenizer_to_json(ours),
            "model": empty,
        }
        theirs: Any = tokenizers.Tokenizer.from_str(json.dumps(root)).pre_tokenizer

        def cut(text: str, theirs: Any = theirs) -> list[bytes]:
            return [to_bytes(piece) or piece.encode() for piece, _ in theirs.pre_tokenize_str(text)]

        def own_cut(text: str, ours: Pretokenizer = ours) -> list[bytes]:
            return list(ours.iterate(text))

        made[preset.names[0]] = own_cut, cut
    return made


def compare(name: str, cuts: tuple[Cut, Cut], text: str) -> tuple[int, str]:
    """Return the number of pieces and the difference, or ""."""
    ours, theirs = (cut(text) for cut in cuts)
    if ours == theirs:
        return len(ours), ""
    at = next(
        (at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]),
        min(len(ours), len(theirs)),
    )
    around = slice(max(0, at - 1), at + 3)
    return 0, f"{name}: {ours[around]!a} here, {theirs[around]!a} there, piece {at} of {text[:40]!a}"


def scalars(_: int, start: int) -> Iterator[Step]:
    """Compare all scalar values in five contexts. A step is a text of one family."""
    known = families()
    texts = range(0, len(SCALARS), SCALARS_A_TEXT)
    for number in range(start, len(known) * len(texts)):
        name = list(known)[number // len(texts)]
        first = texts[number % len(texts)]
        drawn = [chr(code) for code in SCALARS[first : first + SCALARS_A_TEXT]]
        text = "".join(context.format(character) for character in drawn for context in CONTEXTS)
        yield Step(number + 1, *compare(name, known[name], text))


def strings(length: int) -> Callable[[int, int], Iterator[Step]]:
    """Compare all strings of HARD up to a length. A step is several thousand of one family."""

    def steps(_: int, start: int) -> Iterator[Step]:
        known = families()
        count = sum(len(HARD) ** size for size in range(1, length + 1))
        parts = -(-count // STRINGS_A_STEP)
        for number in range(start, len(known) * parts):
            name = list(known)[number // parts]
            everything = (
                "".join(drawn)
                for size in range(1, length + 1)
                for drawn in itertools.product(HARD, repeat=size)
            )
            first = number % parts * STRINGS_A_STEP
            pieces = 0
            for text in itertools.islice(everything, first, first + STRINGS_A_STEP):
                found, difference = compare(name, known[name], text)
                pieces += found
                if difference:
                    yield Step(number, pieces, difference)
            yield Step(number + 1, pieces)

    return steps


def generated(seed: int, start: int) -> Iterator[Step]:
    """Compare generated patterns of both dialects, endlessly. A step is several patterns with eight texts each."""
    for number in itertools.count(start):
        drawn = random.Random(f"{seed} {number}")
        pieces = 0
        for _ in range(PATTERNS_A_STEP):
            dialect: Any = drawn.choice(["rust", "oniguruma"])
            expression = random_pattern(drawn, dialect)
            texts = [random_text(drawn, drawn.randint(1, 20)) for _ in range(8)]
            try:
                theirs = (
                    tokenizers_pieces(expression)
                    if dialect == "oniguruma"
                    else tiktoken_pieces(expression, texts)
                )
                # tiktoken drops text between matches.
                split = (
                    Split(expression, dialect, "Removed", True)
                    if dialect == "rust"
                    else Split(expression, dialect)
                )
                ours = Pretokenizer((split,)).checked()
            except (
                ValueError,
                BadTokenizer,
            ):  # tests of the readers cover unsupported patterns
                continue
            for text in texts:
                found, expected = ours.pretokens(text), [piece for piece in theirs(text) if piece]
                pieces += len(found)
                if found != expected:
                    what = f"{expression!a} on {text!a}: {found!a} here, {expected!a} there"
                    yield Step(number, pieces, f"seed {seed} step {number}: {what}")
        yield Step(number + 1, pieces)
