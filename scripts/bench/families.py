"""How far apart are the families of vocabularies in time per byte?

The families differ in their pattern, in how many entries they have (GPT-2 50,000, o200k 200,000) and in the rule by
which pairs may merge. Each is measured on the same text, one thread, into a fresh array, cold and warm as in encode.py;
"of the fastest" is the time per byte against that of the fastest family. Ids are compared with tiktoken's before.

    python scripts/bench/families.py --corpus en.txt multi.txt --tokenizers gpt2.json cl100k.tiktoken=cl100k

A rank file says nothing of its pattern, so it is named behind it.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import harness
import numpy as np
from encoders import Tiktoken, first_difference, installed

import bpe
from bpe import patterns


class Family:
    """One vocabulary; what harness.take_turns calls is cold_and_warm."""

    def __init__(self, given: str) -> None:
        path, _, pattern = given.partition("=")
        self.path, self.pattern = Path(path), pattern or None
        tokenizer = self.fresh()
        self.name = self.path.name.partition(".")[0]
        self.entries = tokenizer.vocab_size
        self.warm: list[float] = []

    def fresh(self) -> bpe.Tokenizer:
        return bpe.Tokenizer.load(self.path, self.pattern)

    def cold_and_warm(self, text: bytes) -> float:
        tokenizer = self.fresh()
        tokenizer.encode_documents(b"")  # what is made at the first call is no work per byte
        cold, warm = (harness.timed(lambda: tokenizer.encode_documents(text))[0] for _ in range(2))
        self.warm.append(warm)
        return cold

    def expected(self, text: bytes) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """tiktoken's ids, document after document."""
        if self.path.suffix != ".tiktoken":
            oracle = Tiktoken(self.path, 1)
            return oracle.ids(oracle.encode(oracle.fresh(), oracle.prepare(text)))
        import tiktoken

        ours = self.fresh()
        ranks = {entry: id_ for id_, entry in ours.vocab.items() if id_ not in ours.special_tokens.values()}
        pattern = patterns.PATTERNS[str(self.pattern)].replace(r"\Z", "$")
        encoding = tiktoken.Encoding(self.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        documents = text.decode().split(harness.SEPARATOR.decode())
        return np.array([i for ids in encoding.encode_ordinary_batch(documents) for i in ids], np.uint32)


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.add_argument(
        "--tokenizers", nargs="+", metavar="FILE[=PATTERN]", help="default: --tokenizer alone"
    )
    parser.add_argument("--slow-mb", type=float, default=2, help="text to compare ids on (default 2)")
    options = harness.parse(parser)

    machine = harness.facts()
    rows: list[harness.Row] = []
    notes: list[str] = []
    texts = []
    for path in options.corpus:
        text = harness.read_text(path, options.limit_mb * 1e6)
        texts.append(harness.describe(path, text))
        families = [Family(given) for given in options.tokenizers or [str(options.tokenizer)]]
        notes.append(compare(families, path.stem, harness.read_text(path, options.slow_mb * 1e6)))
        harness.progress(path.stem)
        contenders = {f.name: functools.partial(f.cold_and_warm, text) for f in families}
        cold = harness.take_turns(contenders, options.turns)
        rows += rows_of(path.stem, text, families, cold)
    harness.save("families", machine, rows, texts, notes)


def rows_of(
    name: str, text: bytes, families: list[Family], cold: dict[str, list[float]]
) -> list[harness.Row]:
    """A row a family; time per byte beside that of the fastest."""
    rates = {f.name: [harness.summary(runs, len(text)) for runs in (cold[f.name], f.warm)] for f in families}
    best = [max(rate[state]["mb_per_s"] for rate in rates.values()) for state in range(2)]
    rows = []
    for family in families:
        at_first, again = rates[family.name]
        rows.append(
            {
                "text": name,
                "vocabulary": family.name,
                "entries": family.entries,
                "text_bytes": len(text),
                "cold, MB/s": at_first["mb_per_s"],
                "spread": at_first["spread"],
                "of the fastest": f"{best[0] / at_first['mb_per_s']:.2f}",
                "warm, MB/s": again["mb_per_s"],
                "of the fastest, warm": f"{best[1] / again['mb_per_s']:.2f}",
                "turns": at_first["turns"],
            }
        )
    return rows


def compare(families: list[Family], name: str, text: bytes) -> str:
    """What was compared; ends the run when a family of ours differs."""
    if not any(encoder.name == "tiktoken" for encoder in installed()[0]):
        return "tiktoken is not installed: ids were not compared"
    for family in families:
        ours = np.asarray(family.fresh().encode_documents(text).tokens)
        if difference := first_difference(ours, family.expected(text)):
            sys.exit(f"error: {name}: {family.name} differs from tiktoken: {difference}")
    return f"{name}: ids of all {len(families)} vocabularies equal tiktoken's over {len(text):,} bytes"


if __name__ == "__main__":
    main()
