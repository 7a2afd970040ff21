"""How long does it take to train a vocabulary, and how much memory, beside the other trainers?

The whole training is measured, from the file's bytes in memory to the merges. Every run is a process of its own: its
peak memory is its own too. Merges under the huggingface rule must equal tokenizers' and gigatoken's, in their order;
rustbpe breaks ties by a rule of its own, so its merges are only counted.

    python scripts/bench/train.py --corpus en.txt mixed.txt --sizes-mb 64 200 800 --turns 3

measures each text at each of these sizes it has; gigatoken alone takes minutes for the largest.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import harness

Merges = list[tuple[bytes, bytes]]
SEPARATOR = harness.SEPARATOR.decode()


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument(
        "--sizes-mb", type=float, nargs="+", help="measure each text at these sizes, in place of --limit-mb"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(TRAINERS), default=list(TRAINERS))
    parser.add_argument("--child", choices=list(TRAINERS), help=argparse.SUPPRESS)
    options = harness.parse(parser)
    if options.child:
        child(options)
        return

    machine = harness.facts()
    rows: list[harness.Row] = []
    here = [name for name in options.only if importlib.util.find_spec(MODULES[name]) is not None]
    notes = [f"{name} is not installed and was left out" for name in options.only if name not in here]
    texts: list[harness.Row] = []
    for path, limit_mb in texts_of(options.corpus, options.sizes_mb or [options.limit_mb]):
        text = harness.describe(path, harness.read_text(path, limit_mb * 1e6))
        texts.append(text)
        results: dict[str, harness.Row] = {}

        def run(
            name: str,
            path: Path = path,
            limit_mb: float = limit_mb,
            results: dict[str, harness.Row] = results,
        ) -> float:
            arguments = ["--child", name, "--corpus", str(path), "--tokenizer", str(options.tokenizer)]
            arguments += ["--vocab-size", str(options.vocab_size), "--threads", str(options.threads)]
            arguments += ["--limit-mb", str(limit_mb)]
            result = harness.run_child(__file__, arguments, options.threads)
            result["peak_bytes"] = max(result["peak_bytes"], results.get(name, result)["peak_bytes"])
            results[name] = result
            return float(result["seconds"])

        seconds = harness.take_turns({name: functools.partial(run, name) for name in here}, options.turns)
        notes += compare(f"{path.stem}, {text['text_bytes'] / 1e6:.0f} MB", results)
        for name in here:
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
                    "peak_bytes": results[name]["peak_bytes"],
                    "turns": row["turns"],
                }
            )
    harness.save("train", machine, rows, texts, notes)


def texts_of(corpus: list[Path], sizes_mb: list[float]) -> Iterator[tuple[Path, float]]:
    """Each file with each size it has; with all of it where it is shorter than the next."""
    for path in corpus:
        for size_mb in sorted(sizes_mb):
            yield path, size_mb
            if path.stat().st_size <= size_mb * 1e6:
                break


def compare(name: str, results: dict[str, harness.Row]) -> list[str]:
    """Notes on whose merges equal ours under the huggingface rule."""
    ours = results.get("tokenmill, huggingface rule")
    notes = []
    for peer in ("tokenizers", "gigatoken"):
        if ours and peer in results:
            equal = results[peer]["merges_sha256"] == ours["merges_sha256"]
            notes.append(
                f"{name}: merges under the huggingface rule {'equal' if equal else 'DIFFER from'} {peer}'s"
            )
    return notes


def child(options: argparse.Namespace) -> None:
    """One training; the result is the last line of stdout."""
    # Each reads the text as it takes it, so that none is charged for a form that only others need.
    make, limit_bytes = TRAINERS[options.child], options.limit_mb * 1e6
    train = make(options.corpus[0], limit_bytes, options.vocab_size, options.threads)
    seconds, merges = harness.timed(train)
    peak = harness.peak_bytes()
    result = {"seconds": seconds, "peak_bytes": peak, "entries": options.vocab_size}
    if callable(merges):
        merges = merges()
    if isinstance(merges, int):
        result["entries"] = merges
    else:
        lines = (f"{left.hex()} {right.hex()}\n" for left, right in merges)
        result["merges_sha256"] = hashlib.sha256("".join(lines).encode()).hexdigest()
    print(json.dumps(result))


# Each takes (file, limit in bytes, vocab_size, threads), loads what it needs, and gives the function to time; that one
# returns merges, the number of entries, or a function that gets the merges out once the clock has stopped.

Trainer = Callable[[Path, float, int, int], Callable[[], "Merges | int | Callable[[], Merges]"]]


def ours(tie_break: Literal["lexicographic", "huggingface"]) -> Trainer:
    def make(
        path: Path, limit_bytes: float, vocab_size: int, threads: int
    ) -> Callable[[], Callable[[], Merges]]:
        import bpe

        # The trainer reads files; the others get text in memory. Its time includes reading (from the page cache).
        file = first_documents(path, limit_bytes)

        def run() -> Callable[[], Merges]:
            tokenizer = bpe.train(
                [file],
                vocab_size=vocab_size,
                special_tokens=[SEPARATOR],
                pattern="gpt2",
                tie_break=tie_break,
                threads=threads,
            )
            if file != path:
                file.unlink()
            return lambda: list(tokenizer.merges)

        return run

    return make


def first_documents(path: Path, limit_bytes: float) -> Path:
    """The file if it is within the limit, else a temporary one of its first documents, as `read_text` has them.

    Copied by a process of its own, so that the text does not count as memory of this one.
    """
    if path.stat().st_size <= limit_bytes:
        return path
    handle, name = tempfile.mkstemp(suffix=".txt")
    os.close(handle)
    script = "import sys, pathlib, harness; p = pathlib.Path; a = sys.argv; "
    script += "p(a[2]).write_bytes(harness.read_text(p(a[1]), float(a[3])))"
    folder = Path(__file__).parent
    subprocess.run(
        [sys.executable, "-c", script, path.absolute(), name, str(limit_bytes)], cwd=folder, check=True
    )
    return Path(name)


def gigatoken(path: Path, limit_bytes: float, vocab_size: int, threads: int) -> Callable[[], Merges]:
    import gigatoken

    text = harness.read_text(path, limit_bytes)

    def run() -> Merges:
        merges: Merges = gigatoken.train_bpe(text, vocab_size, [SEPARATOR], separator=harness.SEPARATOR)[1]
        return merges

    return run


def rustbpe(path: Path, limit_bytes: float, vocab_size: int, threads: int) -> Callable[[], int]:
    import rustbpe

    from bpe import patterns

    documents = harness.read_text(path, limit_bytes).decode().split(SEPARATOR)
    tokenizer = rustbpe.Tokenizer()

    def run() -> int:
        tokenizer.train_from_iterator(iter(documents), vocab_size - 1, pattern=patterns.GPT2)
        return int(tokenizer.vocab_size) + 1  # it has no special tokens

    return run


def tokenizers(
    path: Path, limit_bytes: float, vocab_size: int, threads: int
) -> Callable[[], Callable[[], Merges]]:
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.trainers import BpeTrainer

    from bpe import reference

    documents = harness.read_text(path, limit_bytes).decode().split(SEPARATOR)
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[SEPARATOR],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )

    def batches() -> Iterator[list[str]]:
        for start in range(0, len(documents), 1000):
            yield documents[start : start + 1000]

    def merges() -> Merges:
        order = (
            reference.printable_bytes()
        )  # the 188 that print stand for themselves, the others follow from 256 on
        byte_of = {chr(byte if place < 188 else 256 + place - 188): byte for place, byte in enumerate(order)}
        listed = json.loads(tokenizer.to_str())["model"]["merges"]
        return [(bytes(byte_of[c] for c in left), bytes(byte_of[c] for c in right)) for left, right in listed]

    def run() -> Callable[[], Merges]:
        tokenizer.train_from_iterator(batches(), trainer)
        return merges

    return run


TRAINERS: dict[str, Trainer] = {
    "tokenmill": ours("lexicographic"),
    "tokenmill, huggingface rule": ours("huggingface"),
    "gigatoken": gigatoken,
    "rustbpe": rustbpe,
    "tokenizers": tokenizers,
}
MODULES = {"tokenmill": "bpe", "tokenmill, huggingface rule": "bpe"} | {
    name: name for name in ("gigatoken", "rustbpe", "tokenizers")
}


if __name__ == "__main__":
    main()
