"""What do many workers cost beside few, and how much faster are two than one?

    python scripts/bench/workers.py --corpus en.txt multi.txt --tokenizer tokenizer.json --scratch /dev/shm

The text is the documents of a file, drawn again and again in another order until there is enough (--text-mb), the rare
words of each time turned into others: a text that repeats itself has nothing new after its first copy, which each of
few workers has soon seen. Each run is a process, `python -m convert FILE --workers N`, from its start to a verified
dataset. "processor" is the time of it and of all its workers, and "system" the kernel's part of that; "times two" is
processor time beside that of two workers. The cores are those of the machine, however many workers there are. All
datasets must be equal. On a disk the figures also depend on what was deleted before (see conversion.py). Memory that a
virtual machine has not used for some seconds may have gone back to its host, and costs up to 25 times as much to write
to first, which would count against the many workers: so --touched-gb of memory are written to before each run.

What 30 more workers cost on two cores, by samples of the processor (256 MB of English, 3.5 s with two workers): page
faults two fifths (memory that is new to the process: the pretoken cache's huge pages, buffers; and pages of Python's
objects that a forked process writes its reference counts to), filling a pretoken cache of one's own, with misses of the
processor's caches, a third, Python's code that runs for the first time an eighth, forks a twentieth. It is paid once
for each worker. The modules that every worker used to import are imported before the fork now: 5 to 8 % of all
processor time at 32 workers.

What did not help, or too little for what it takes: a sample of the text encoded before the fork, so that workers
inherit a warm cache, 3 % at 32 workers, for 15 ms of start (2 MB; more text is no better); the same with the cache
copied into huge pages of the worker's own, no better than copy-on-write; a cache that is filled to one half or two
thirds before it doubles, nothing; malloc with huge pages, or without trimming, nothing.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain, count
from pathlib import Path

import harness

REST_SECONDS = 2.0  # see conversion.py
RARE = 3  # so often at most a word is in the file
WORDS = re.compile(rb"[A-Za-z]+")
# Vowels for vowels and consonants for consonants, so that what comes out looks like words.
ALPHABET = (b"aeiou", b"bcdfghjklmnpqrstvwxyz", b"AEIOU", b"BCDFGHJKLMNPQRSTVWXYZ")
LETTERS = b"".join(ALPHABET)


def turned_word(words: dict[bytes, bytes], found: re.Match[bytes]) -> bytes:
    """What a word is turned into."""
    return words.get(found[0], found[0])


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 32])
    parser.add_argument("--text-mb", type=float, nargs="+", default=[256])
    parser.add_argument("--start-method", default="auto")
    parser.add_argument("--zarr-format", default="2")
    parser.add_argument("--touched-gb", type=float, default=4, help="memory written to before each run")
    parser.add_argument(
        "--scratch", type=Path, default=harness.ROOT / "data", help="where texts and datasets lie"
    )
    options = harness.parse(parser)
    machine = harness.facts()
    rows: list[harness.Row] = []
    texts: list[harness.Row] = []
    options.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        for path in options.corpus:
            for megabytes in options.text_mb:
                text = Path(scratch) / f"{path.stem}-{megabytes:g}.txt"
                with text.open("wb") as file:
                    file.writelines(drawn(path, megabytes))
                with text.open("rb") as made, mmap.mmap(made.fileno(), 0, prot=mmap.PROT_READ) as content:
                    texts.append(harness.describe(text, content))
                rows += measured(text, options)
                text.unlink()
    harness.save("workers", machine, rows, texts, [])


def drawn(path: Path, megabytes: float) -> Iterator[bytes]:
    """The documents of a file in an order of their own each time; the rare words of each time are its own, too.

    A text that only repeats itself has nothing new after its first copy, which flatters few workers: each has then seen
    all of it.
    """
    documents = path.read_bytes().split(harness.SEPARATOR)
    counts = Counter(chain.from_iterable(map(WORDS.findall, documents)))
    rng = random.Random(path.stem)
    size = 0
    for copy in count():
        table = bytes.maketrans(LETTERS, b"".join(turned(row, copy) for row in ALPHABET))
        words = {word: word.translate(table) for word, seen in counts.items() if seen <= RARE}
        rng.shuffle(documents)
        for document in documents:
            changed = WORDS.sub(partial(turned_word, words), document) if copy else document
            yield harness.SEPARATOR + changed if size else changed
            size += len(changed) + len(harness.SEPARATOR)
            if size >= megabytes * 1e6:
                return


def turned(letters: bytes, places: int) -> bytes:
    """b"aeiou", 1 -> b"eioua"."""
    places %= len(letters)
    return letters[places:] + letters[:places]


def measured(text: Path, options: argparse.Namespace) -> list[harness.Row]:
    """A row for each number of workers, which take turns."""
    runs: dict[int, list[harness.Row]] = {workers: [] for workers in options.workers}
    manifest = b""
    for turn in range(options.turns):
        for workers, own in runs.items():
            own.append(convert(text, workers, options))
            if manifest not in (b"", own[-1]["manifest"]):
                sys.exit(f"error: {workers} workers wrote another dataset")
            manifest = own[-1]["manifest"]
            harness.progress(
                f"turn {turn + 1}/{options.turns}  {text.stem}  {workers}  {own[-1]['seconds']:.2f} s, "
                f"processor {own[-1]['user']:.2f} + {own[-1]['system']:.2f} s"
            )
    rows = []
    of_two = statistics.median(run["user"] + run["system"] for run in runs[2])
    for workers, own in runs.items():
        median = {key: statistics.median(run[key] for run in own) for key in own[0] if key != "manifest"}
        processor = [run["user"] + run["system"] for run in own]
        rows.append(
            {
                "text": text.stem,
                "workers": workers,
                "seconds": median["seconds"],
                "processor": statistics.median(processor),
                "system": median["system"],
                "times two": statistics.median(processor) / of_two,
                "spread": (max(processor) - min(processor)) / statistics.median(processor),
                "turns": len(own),
            }
        )
    return rows


def touch_memory(size: int) -> None:
    """Writes to so many bytes of memory and gives them back to the system, which then has them at hand."""
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1


def convert(text: Path, workers: int, options: argparse.Namespace) -> harness.Row:
    """Seconds, processor time and the dataset's manifest, of one conversion."""
    output = Path(tempfile.mkdtemp(dir=text.parent)) / "out"  # deleted at the end only: see conversion.py
    command = [sys.executable, "-m", "convert", str(text), "--tokenizer", str(options.tokenizer.resolve())]
    command += ["--output", str(output), "--workers", str(workers), "--progress", "none"]
    command += ["--start-method", options.start_method, "--zarr-format", options.zarr_format]
    os.sync()
    time.sleep(REST_SECONDS)
    touch_memory(round(options.touched_gb * 2**30))
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=harness.ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        sys.exit(f"error: `{' '.join(command[1:])}` ended with {os.waitstatus_to_exitcode(status)}")
    return {
        "seconds": seconds,
        "user": used.ru_utime,
        "system": used.ru_stime,
        "manifest": (output / "manifest.json").read_bytes(),  # with the digest of each file
    }


if __name__ == "__main__":
    main()
