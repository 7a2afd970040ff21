"""Training time and peak memory of every trainer on the same text, each run in a new process with all cores.

The time is from the text to the merges. tokenmill, gigabpe and sentencepiece read the file within that time; the
others have the documents in memory before. All use GPT-2's pattern, except sentencepiece, which splits at spaces.
Trainers break ties between pairs of equal count by different rules. gigatoken, gigabpe and tokenizers share a rule, and
tokenmill has it as an option, which this benchmark sets. The merges of these engines are compared with the
merges of tokenizers. gigabpe differs, since it trains on the separators as text.

    scripts/bench training --texts FOLDER --vocabularies FOLDER --scratch FOLDER
"""

from __future__ import annotations

import functools
import os

import harness
from contenders import TRAINERS
from harness import Row

REFERENCE = "tokenizers"
SAME_RULE = ("tokenmill", "gigatoken", "gigabpe", REFERENCE)
COLUMNS = "text threads engine turn text_bytes train_s train_cpu_s peak_bytes entries merges".split()


def main() -> None:
    parser = harness.parser(__doc__ or "")
    parser.add_argument(
        "--text", nargs="+", default=["en", "multi"], metavar="NAME", help="(default: en multi)"
    )
    parser.add_argument("--text-mb", type=float, default=32, help="(default: 32)")
    parser.add_argument("--vocab-size", type=int, default=32_000, help="(default: 32000)")
    options = harness.parse(parser)
    if options.quick:
        options.text_mb, options.vocab_size = 2, 4000
    texts = harness.unpack(options.texts, options.scratch)
    facts = harness.facts(options)
    threads = len(os.sched_getaffinity(0))
    runs: list[Row] = []
    failed: dict[str, dict[str, str]] = {}
    used = []
    for name in options.text:
        path = harness.sample(texts[name], options.text_mb * 1e6, options.scratch)
        used.append(harness.describe(name, path))
        job = {"kind": "train", "text": path, "entries": options.vocab_size}
        contenders = {
            engine: functools.partial(harness.run_child, job | {"engine": engine}, threads=threads)
            for engine in TRAINERS
            if engine in (options.only or TRAINERS)
        }
        found, failed[name] = harness.measure(contenders, options.turns, "train_s", f"training, {name}")
        reference = next((row["merges"] for row in found if row["engine"] == REFERENCE), None)
        for row in found:
            if row["engine"] in SAME_RULE and reference:
                row["merges"] = "equal" if row["merges"] == reference else "differ"
            else:
                row["merges"] = "own rule"
        runs += [{"text": name, "threads": threads} | row for row in found]
    content = {"facts": facts, "texts": used, "failed": failed}
    harness.save("training", options.results, content, runs, COLUMNS)


if __name__ == "__main__":
    main()
