"""How long does it take to train a vocabulary, and how much memory, beside the other trainers?

The whole training is measured, from the file's bytes in memory to the merges. Every run is a process of its own: its
peak memory is its own too. Merges under the huggingface rule must equal tokenizers' and gigatoken's, in their order;
rustbpe, ffbpe and sentencepiece break ties by rules of their own, so their merges are only counted. All are measured
on GPT-2's pattern; "tokenmill, tekken" and the like are on other models' patterns, and "llama-2" has entries of text
and bytes, as sentencepiece's are.

    python scripts/bench/train.py --corpus en.txt.xz multi.txt.xz --sizes-mb 64 200 800 --turns 3

measures each text at each of these sizes it has; gigatoken alone takes minutes for the largest. Peers are installed
into .bench-venv; one that can't be, or that fails, stands in the notes.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib.util
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import harness
import peers
import texts
from trainers import TRAINERS

FAILED = float("inf")


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument(
        "--sizes-mb", type=float, nargs="+", help="measure each text at these sizes, in place of --limit-mb"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(TRAINERS), default=list(TRAINERS))
    parser.add_argument("--child", choices=list(TRAINERS), help=argparse.SUPPRESS)
    options = harness.parse(parser, needs_tokenizer=False)
    if options.child:
        child(options)
        return

    notes = peers.use()
    machine = harness.facts()
    rows: list[harness.Row] = []
    here = [name for name in options.only if importlib.util.find_spec(module_of(name)) is not None]
    notes += [f"{name} is not installed and was left out" for name in options.only if name not in here]
    described: list[harness.Row] = []
    corpus = [texts.unpacked(path) for path in options.corpus]
    for path, limit_mb in texts_of(corpus, options.sizes_mb or [options.limit_mb]):
        text = harness.describe(path, harness.read_text(path, limit_mb * 1e6))
        described.append(text)
        results: dict[str, harness.Row] = {}

        def run(
            name: str,
            path: Path = path,
            limit_mb: float = limit_mb,
            results: dict[str, harness.Row] = results,
        ) -> float:
            arguments = ["--child", name, "--corpus", str(path)]
            arguments += ["--vocab-size", str(options.vocab_size), "--threads", str(options.threads)]
            arguments += ["--limit-mb", str(limit_mb)]
            result = harness.run_child(__file__, arguments, options.threads)
            if "failed" in result:
                results[name] = result
                return FAILED
            before = results.get(name, {"peak_bytes": 0, "cpu": []})
            result["peak_bytes"] = max(result["peak_bytes"], before["peak_bytes"])
            result["cpu"] = [*before["cpu"], result["cpu"]]
            results[name] = result
            return float(result["seconds"])

        seconds = harness.take_turns({name: functools.partial(run, name) for name in here}, options.turns)
        what = f"{path.stem}, {text['text_bytes'] / 1e6:.0f} MB"
        notes += [f"{what}: {n} failed: {r['failed']}" for n, r in results.items() if "failed" in r]
        results = {name: result for name, result in results.items() if "failed" not in result}
        notes += compare(what, results)
        for name in results:
            row = harness.summary(seconds[name], text["text_bytes"])
            rows.append(
                {
                    "text": path.stem,
                    "trainer": name,
                    "threads": options.threads,
                    "text_bytes": row["text_bytes"],
                    "entries": results[name]["entries"],
                    "seconds": row["seconds"],
                    "spread": row["spread"],
                    "processor, s": statistics.median(results[name]["cpu"]),
                    "peak_bytes": results[name]["peak_bytes"],
                    "turns": row["turns"],
                }
            )
    harness.save("train", machine, rows, described, notes)


def texts_of(corpus: list[Path], sizes_mb: list[float]) -> Iterator[tuple[Path, float]]:
    """Each file with each size it has; with all of it where it is shorter than the next."""
    for path in corpus:
        for size_mb in sorted(sizes_mb):
            yield path, size_mb
            if path.stat().st_size <= size_mb * 1e6:
                break


def module_of(name: str) -> str:
    """ "tokenmill, tekken" -> "bpe"; a peer is named as its module is."""
    return "bpe" if name.startswith("tokenmill") else name.partition(",")[0]


def compare(name: str, results: dict[str, harness.Row]) -> list[str]:
    """Notes on whose merges equal ours under the huggingface rule."""
    notes = []
    for ours, peer in (
        ("tokenmill, huggingface rule", "tokenizers"),
        ("tokenmill, huggingface rule", "gigatoken"),
        ("tokenmill, huggingface rule", "gigabpe"),
        ("tokenmill, llama-2", "tokenizers, llama-2"),
    ):
        if ours in results and peer in results:
            equal = results[peer]["merges_sha256"] == results[ours]["merges_sha256"]
            notes.append(
                f"{name}: merges under the huggingface rule {'equal' if equal else 'DIFFER from'} {peer}'s"
            )
    return notes


def child(options: argparse.Namespace) -> None:
    """One training; the result is the last line of stdout."""
    # Each reads the text as it takes it, so that none is charged for a form that only others need.
    make, limit_bytes = TRAINERS[options.child], options.limit_mb * 1e6
    try:
        train = make(options.corpus[0], limit_bytes, options.vocab_size, options.threads)
        processor = time.process_time()
        seconds, merges = harness.timed(train)
        processor = time.process_time() - processor
    except BaseException as error:  # a panic of Rust is no Exception
        print(json.dumps({"failed": f"{type(error).__name__}: {error}".splitlines()[0]}))
        return
    peak = harness.peak_bytes()
    result = {"seconds": seconds, "cpu": processor, "peak_bytes": peak, "entries": options.vocab_size}
    if callable(merges):
        merges = merges()
    if isinstance(merges, int):
        result["entries"] = merges
    else:
        lines = (f"{left.hex()} {right.hex()}\n" for left, right in merges)
        result["merges_sha256"] = hashlib.sha256("".join(lines).encode()).hexdigest()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
