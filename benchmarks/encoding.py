"""Encoding throughput, load time and first-call latency of every encoder, each run in a new process.

A run loads a tokenizer file, encodes one short text (the first call), then encodes the text. Cold time is the first
call plus the text. Every run is compared with the IDs of tokenizers 0.23 for the same text.

    scripts/bench encoding --texts FOLDER --vocabularies FOLDER --scratch FOLDER

measures what tokenizers.toml lists under `release`.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import harness
from contenders import ENCODERS
from environments import MAIN, RC
from harness import OURS, Row
from tokenizer_files import CONFIGURATIONS, Tokenizer, build_files, file_digest

REFERENCE = "tokenizers"
SLOW = ("tokenizers", "tiktoken", "kitoken")
COLUMNS = (
    "configuration text threads engine turn text_bytes load_s first_call_s cold_s cold_cpu_s ids".split()
)


def main() -> None:
    parser = harness.parser(__doc__ or "")
    parser.add_argument("--text-mb", type=float, default=16, help="text per run (default: 16)")
    parser.add_argument("--slow-mb", type=float, default=1, help=f"for {', '.join(SLOW)} (default: 1)")
    parser.add_argument("--configurations", nargs="+", metavar="NAME", help="(default: all in `release`)")
    parser.add_argument(
        "--text", nargs="+", metavar="NAME", help="texts to measure (default: all in `release`)"
    )
    options = harness.parse(parser)
    if options.quick:
        options.text_mb, options.slow_mb = 2, 0.25
    texts = harness.unpack(options.texts, options.scratch)
    cells = list(release(options))
    facts = harness.facts(options)
    names = list(dict.fromkeys(name for name, _, _ in cells))
    files = {
        each.path.stem: each
        for each in build_files(options.vocabularies, options.scratch / "tokenizers", names)
    }
    described = [
        {"name": name, "title": each.title, "vocabulary": each.vocabulary, "origin": each.origin}
        | {"sha256": file_digest(each.path)}
        for name, each in files.items()
    ]
    used = [
        harness.describe(name, harness.sample(path, options.text_mb * 1e6, options.scratch))
        for name, path in texts.items()
        if any(name == text for _, text, _ in cells)
    ]
    runs: list[Row] = []
    failed: dict[str, dict[str, str]] = {}
    content = {"facts": facts, "configurations": described, "texts": used, "failed": failed}
    for name, text, threads in cells:
        if name not in files or text not in texts:
            harness.progress(f"{name}, {text}: skipped, the vocabulary or the text is missing")
            continue
        found, reasons = measure(files[name], texts[text], threads, options)
        runs += [{"configuration": name, "text": text, "threads": threads} | row for row in found]
        failed.setdefault(name, {}).update(reasons)
        # After each cell, so that an interrupted run keeps its results.
        harness.save("encoding", options.results, content, runs, COLUMNS)
    wrong = {row["configuration"] for row in runs if row["engine"] == OURS and row["ids"] == "differ"}
    if wrong := wrong | {name for name, reasons in failed.items() if OURS in reasons}:
        sys.exit(f"error: {OURS} fails or differs from {REFERENCE} on {', '.join(sorted(wrong))}")


def release(options: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """Yield configuration, text and thread count of each cell of the table."""
    for block in tomllib.loads(CONFIGURATIONS.read_text(encoding="utf-8"))["release"]:
        for name in block["configurations"]:
            for text in block["texts"]:
                if name in (options.configurations or [name]) and text in (options.text or [text]):
                    yield name, text, block.get("threads", 1)


def measure(
    file: Tokenizer, text: Path, threads: int, options: argparse.Namespace
) -> tuple[list[Row], dict[str, str]]:
    """Measure all engines on one file and text."""
    label = f"{file.path.stem}, {text.stem}, {threads} threads"

    def job(engine: str, threads: int) -> Row:
        megabytes = min(options.slow_mb, options.text_mb) if engine in SLOW else options.text_mb
        return run(
            engine,
            file.path,
            harness.sample(text, megabytes * 1e6, options.scratch),
            threads,
            options.scratch,
        )

    engines = [name for name in ENCODERS if name in (options.only or ENCODERS)]
    contenders = {name: functools.partial(job, name, threads) for name in engines}
    key = "s_per_mb"
    runs, failed = harness.measure(contenders, options.turns, key, label)
    for row in runs:
        megabytes = options.slow_mb if row["engine"] in SLOW else options.text_mb
        expected = reference(
            file.path, harness.sample(text, megabytes * 1e6, options.scratch), options.scratch
        )
        row["ids"] = "unknown" if expected is None else "equal" if row["digest"] == expected else "differ"
    return runs, failed


def run(engine: str, tokenizer: Path, text: Path, threads: int, scratch: Path) -> Row:
    job = {"kind": "encode", "engine": engine, "tokenizer": tokenizer, "text": text, "scratch": scratch}
    row = harness.run_child(job, RC if engine == "tokenizers-rc" else MAIN, threads)
    if "failed" in row:
        return row
    seconds = row["cold_cpu_s"] if threads == 1 else row["cold_s"]
    return row | {"s_per_mb": seconds / row["text_bytes"] * 1e6}


@functools.cache
def reference(tokenizer: Path, text: Path, scratch: Path) -> str | None:
    """Return the digest of the IDs of tokenizers, computed with all cores, or None if it does not load the file."""
    row = run(REFERENCE, tokenizer, text, len(os.sched_getaffinity(0)), scratch)
    return None if "failed" in row else str(row["digest"])


if __name__ == "__main__":
    main()
