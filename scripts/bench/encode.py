"""How fast is text encoded, cold and warm, by how many threads, beside the other encoders?

Equal first, fast second: the ids of every encoder are compared with tiktoken's (or tokenizers') before anything is
timed, and a difference in ours ends the run. Cold: the first text of an encoder made a moment ago. Warm: the same text
again. All have as many cores as threads. Encoders that take minutes for a large text are measured on its first
documents (--slow-mb).
"reused" writes into an array that is there already, as `convert` does; the others make theirs. "pretokenizer only"
checks the UTF-8 and finds the ends of the pretokens, "no cache" merges every pretoken anew: what the cache saves lies
between it and "reused".
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import numpy as np
import peers
from encoders import ENCODERS, Ours, first_difference, installed

import bpe
from bpe import _core


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    parser.add_argument("--slow-mb", type=float, default=8, help="text for the slow encoders (default 8)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = harness.parse(parser)
    if options.child:
        harness.pin(options.threads[0])
        print(json.dumps([measure(path, options.threads[0], options) for path in options.corpus]))
        return

    notes = peers.use() + installed()[1]
    machine = harness.facts()
    rows: list[harness.Row] = []
    # The thread pools of the peers are made once a process, so every thread count has a process of its own.
    for threads in options.threads:
        arguments = ["--child", "--corpus", *map(str, options.corpus), "--tokenizer", str(options.tokenizer)]
        arguments += ["--threads", str(threads), "--turns", str(options.turns)]
        arguments += ["--limit-mb", str(options.limit_mb), "--slow-mb", str(options.slow_mb)]
        for part in harness.run_child(__file__, arguments, threads):
            rows += part["rows"]
            notes += [note for note in part["notes"] if note not in notes]
    texts = [
        harness.describe(path, harness.read_text(path, options.limit_mb * 1e6)) for path in options.corpus
    ]
    harness.save("encode", machine, rows, texts, notes)


def measure(path: Path, threads: int, options: argparse.Namespace) -> dict[str, Any]:
    """Rows of one text and one thread count."""
    text = harness.read_text(path, options.limit_mb * 1e6)
    slow_text = harness.read_text(path, min(options.slow_mb, options.limit_mb) * 1e6)
    encoders = [encoder(options.tokenizer, threads) for encoder in installed()[0]]
    notes = compare(encoders, path.stem, text, slow_text)
    prepared = {e.name: e.prepare(slow_text if e.slow else text) for e in encoders}
    warm: dict[str, list[float]] = {e.name: [] for e in encoders}

    def cold_and_warm(encoder: Ours) -> float:
        fresh = encoder.fresh()
        cold_seconds = harness.timed(lambda: encoder.encode(fresh, prepared[encoder.name]))[0]
        warm[encoder.name].append(harness.timed(lambda: encoder.encode(fresh, prepared[encoder.name]))[0])
        return cold_seconds

    harness.progress(f"{path.stem}, {threads} threads")
    contenders = {e.name: functools.partial(cold_and_warm, e) for e in encoders}
    cold = harness.take_turns(contenders, options.turns)
    rows = []
    for encoder in encoders:
        size = len(slow_text if encoder.slow else text)
        cold_row, warm_row = (
            harness.summary(cold[encoder.name], size),
            harness.summary(warm[encoder.name], size),
        )
        rows.append(
            {
                "text": path.stem,
                "threads": threads,
                "encoder": encoder.name,
                "text_bytes": size,
                "cold, MB/s": cold_row["mb_per_s"],
                "spread": cold_row["spread"],
                "warm, MB/s": warm_row["mb_per_s"],
                "turns": cold_row["turns"],
            }
        )
    return {"rows": rows + stages(path.stem, text, threads, options), "notes": notes}


def stages(name: str, text: bytes, threads: int, options: argparse.Namespace) -> list[harness.Row]:
    """Our own encoder into a reused buffer, and its parts; one thread, since parts do not share work."""
    if threads != 1:
        return []
    tokenizer = bpe.Tokenizer.load(options.tokenizer)
    automaton = tokenizer.pretokenizer.automaton
    separator = harness.SEPARATOR
    special = {token.encode(): id_ for token, id_ in tokenizer.special_tokens.items()}
    image = tokenizer.core_encoder.image()
    room = np.zeros(_core.TokenizerCore.out_tokens(len(text)), np.uint32)

    def encoder(cache_bytes: int) -> _core.TokenizerCore:
        return _core.TokenizerCore.from_image(image, special, automaton, tokenizer.ignore_merges, cache_bytes)

    warm: dict[str, list[float]] = {}

    def reused(what: str, cache_bytes: int) -> float:
        core = encoder(cache_bytes)
        runs = [
            harness.timed(lambda: core.encode_documents(text, separator, 1, out=room))[0] for _ in range(2)
        ]
        warm.setdefault(what, []).append(runs[1])
        return runs[0]

    contenders: dict[str, Callable[[], float]] = {
        "tokenmill, reused": lambda: reused("tokenmill, reused", 256 << 20),
        "tokenmill, no cache": lambda: reused("tokenmill, no cache", 0),
    }
    if automaton is not None:
        contenders["tokenmill, pretokenizer only"] = lambda: harness.timed(
            lambda: _core.scan_pieces(automaton, text)
        )[0]
    seconds = harness.take_turns(contenders, options.turns)
    rows = []
    for what, runs in seconds.items():
        cold = harness.summary(runs, len(text))
        rows.append(
            {
                "text": name,
                "threads": 1,
                "encoder": what,
                "text_bytes": len(text),
                "cold, MB/s": cold["mb_per_s"],
                "spread": cold["spread"],
                "warm, MB/s": harness.summary(warm.get(what, runs), len(text))["mb_per_s"],
                "turns": cold["turns"],
            }
        )
    return rows


def compare(encoders: list[Ours], name: str, text: bytes, slow_text: bytes) -> list[str]:
    """Notes on who differs; ends the run when we do."""
    by_name = {encoder.name: encoder for encoder in encoders}
    oracle = next((by_name[o] for o in ("tiktoken", "tokenizers") if o in by_name), None)
    if oracle is None:
        return ["neither tiktoken nor tokenizers is installed: ids were not compared"]
    ids = {e.name: e.ids(e.encode(e.fresh(), e.prepare(slow_text))) for e in encoders}
    expected = ids[oracle.name]
    notes = []
    for encoder in encoders:
        difference = first_difference(ids[encoder.name], expected)
        if difference and isinstance(encoder, Ours) and encoder.name == ENCODERS[0].name:
            sys.exit(f"error: {name}: ours differs from {oracle.name}: {difference}")
        if difference:
            notes.append(f"{name}: {encoder.name} differs from {oracle.name}: {difference}")
    return notes or [
        f"{name}: all ids equal {oracle.name}'s over {len(slow_text):,} bytes, {len(expected):,} tokens"
    ]


if __name__ == "__main__":
    main()
