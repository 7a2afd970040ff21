"""Races: conversions of random corpora with random settings, delayed system calls and faults, on any executor.

`corpus_job(rng, number, for_store)` draws a corpus and its options, and `draw_race(rng, bench)` sets up a run with up
to a few hundred tasks and returns its faults.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import Bench, Fault
from faulty_proxy import HARMLESS, ORDERS, Faults
from file_faults import KILLS, RIVAL
from injector import Delays
from input_kinds import KINDS, PACKED, json_lines, write_kind
from jobs import Job, put_tokenizer
from naive import Naive, Rules, differences
from request_faults import REQUEST_KILLS
from runs import TRAINING_TEXT, tokenizer
from strategies import compressed

# Text of a corpus, sometimes more. Orders of events need many tasks and few bytes.
TEXT_BYTES = [200_000, 500_000, 1_000_000]
LARGE_BYTES = 4_000_000
WORDS = [*TRAINING_TEXT.split()[:20], "---", "🙂👍🏽", "\t", "x1", "2026", "\x00"]
FOLDERS = ("inputs", "held-out")
LEASE_SECONDS = 1.5
MAX_FAULTS = 3


@dataclass(frozen=True)
class Corpus(Job):
    """A conversion of a corpus.

    is_overtaken: one large compressed file, and many small files that are done before it.
    text_bytes: about the size of all documents.
    """

    rules: Rules = field(default_factory=Rules)
    is_overtaken: bool = False
    text_bytes: int = 0

    def difference(self, root: Path) -> str:
        """Return the first difference between the dataset and the naive conversion, "" if there is none."""
        files = [[str(path) for path in sorted((root / folder).iterdir())] for folder in FOLDERS]
        return next(iter(differences(root / "out", Naive(tokenizer(), self.rules).convert(*files))), "")


def corpus_job(rng: random.Random, number: int, scratch: Path, for_store: bool = False) -> Corpus:
    """Write a corpus to `scratch` and return the job that converts it. for_store: little text, output on a store."""
    for name in FOLDERS:
        (scratch / name).mkdir(parents=True)
    is_overtaken, folder = rng.random() < 0.5, scratch / "inputs"
    text_bytes = LARGE_BYTES if rng.random() < 0.06 else rng.choice(TEXT_BYTES)
    if for_store:
        text_bytes //= 10  # a request takes as long as many calls of a disk
    packed = [kind for kind in KINDS if kind.split(".")[1] in PACKED]
    kinds = packed if is_overtaken else rng.choice([KINDS, KINDS, [rng.choice(KINDS)]])
    for index, size in enumerate(_file_sizes(rng, text_bytes, is_overtaken)):
        _write(rng, folder / f"{index:03}", rng.choice(kinds), size)
    rules: dict[str, Any] = {"seed": rng.choice([0, 7])}
    split = rng.choice(["fraction", "fraction", "fraction", "count", "files"])
    if split == "fraction":
        rules["validation_fraction"] = rng.choice([0.0, 0.005, 0.1, 0.5, 1.0])
    elif split == "count":
        rules["validation_docs"] = rng.choice([0, 10, 200])
    else:
        _write(rng, scratch / "held-out" / "000", rng.choice(KINDS), text_bytes // 10 + 20_000)
    layouts = [("2", 1000), ("2", 3000), ("3", 10)]  # in format 3 a file has 256 Zarr chunks
    if not is_overtaken:
        layouts += [("2", 1 << 16), ("3", 100)]
    zarr_format, chunk_tokens = rng.choice([("3", 30), ("3", 100)] if for_store else layouts)
    place = "{store}/" if for_store and rng.random() < 0.5 else ""
    files = {path.relative_to(scratch).as_posix(): path.read_bytes() for path in sorted(scratch.glob("*/*"))}
    held_out = [f"{place}{name}" for name in files if name.startswith("held-out")]
    words = [f"convert {place}inputs/*", *(["--validation", *held_out] if held_out else [])]
    words += ["--tokenizer tok.json --output", "{store}/out" if for_store else "out", "--progress none"]
    words += ["--on-error", rng.choice(["skip", "quarantine"]), "--max-errors none"]
    words += [f"--zarr-format {zarr_format} --chunk-tokens {chunk_tokens}"]
    words += ["--compression", rng.choice(["zstd", "zstd", "none"]), "--workers 2"]
    words += [f"--{name.replace('_', '-')} {value}" for name, value in rules.items()]

    def make_inputs(root: Path) -> None:
        put_tokenizer(root)
        for name in FOLDERS:
            (root / name).mkdir()
        for name, data in files.items():
            (root / name).write_bytes(data)

    return Corpus(
        f"corpus {number}",
        " ".join(words),
        "out",
        settings={"lease_seconds": LEASE_SECONDS},
        objects=files if place else {},
        make_inputs=make_inputs,
        rules=Rules(**rules),
        is_overtaken=is_overtaken,
        text_bytes=text_bytes,
    )


def _file_sizes(rng: random.Random, text_bytes: int, is_overtaken: bool) -> list[int]:
    if is_overtaken:
        count = rng.choice([40, 80])
        weights = [count / 2 if number == 1 else 1.0 for number in range(count)]
    else:
        count = rng.choice([1, 2, 4, 8, 28])
        weights = [rng.choice([1.0, 1.0, 1.0, 5.6, rng.paretovariate(1)]) for _ in range(count)]
    return [int(text_bytes * weight / sum(weights)) for weight in weights]


def _write(rng: random.Random, path: Path, kind: str, size: int) -> None:
    texts = list(_documents(rng, size))
    members = 1 if kind.endswith(".none") else rng.choice([1, 1, 3])
    if kind.startswith("jsonl") and rng.random() < 0.2:  # with bad records
        lines = json_lines(texts, seed=size).splitlines()
        for at in sorted(rng.choices(range(len(lines) + 1), k=rng.choice([1, 20])), reverse=True):
            lines.insert(at, rng.choice([b"{", b'{"text": 5}', b'{"other": "x"}']))
        compression = kind.partition(".")[2]
        suffix = "" if compression == "none" else f".{compression}"
        data = compressed(b"\n".join(lines), compression, members)
        path.with_name(f"{path.name}.jsonl{suffix}").write_bytes(data)
    else:
        write_kind(path, texts, kind, members, seed=size)


def _documents(rng: random.Random, size: int) -> Iterator[str]:
    """Documents of about `size` characters: most are short, some are empty or copies, some files have a giant one."""
    giant = rng.random() * size if rng.random() < 0.15 else -1.0
    glue = rng.choice([" ", " ", "\n", "<|im_start|>", "<|endoftext"])
    mean, left, kept = rng.choice([20, 200, 200, 2000]), size, list[str]()
    while left > 0:
        chance = rng.random()
        length = 0 if chance < 0.05 else int(mean * rng.paretovariate(1.3))
        if left <= giant:
            length, giant = size // 2, -1.0
        length = min(length, left)
        if chance < 0.1 and kept:
            text = rng.choice(kept)
        else:
            text = glue.join([*rng.choices(WORDS, k=length // 5 + 1), str(rng.randrange(1000))])[:length]
        if len(kept) < 50:
            kept.append(text)
        yield text
        left -= len(text) + 15


def executors() -> list[str]:
    """Return the executors to choose from, ours most often."""
    dask = ["dask-threads", "dask-processes"] if importlib.util.find_spec("distributed") else []
    return [*["own"] * 16, *["threads"] * 6, *["twice"] * 2, *["fork-pool"] * 2, "spawn-pool", *dask]


def draw_race(rng: random.Random, bench: Bench, names: list[str]) -> list[tuple[Fault, int]]:
    """Set up the next run of the bench and return its faults. names: of executors.

    Delays of one kind of operation widen the time between two others.
    """
    corpus = bench.job
    assert isinstance(corpus, Corpus)
    executor, for_store = rng.choice(names), bool(bench.endpoint)
    if for_store and executor == "fork-pool":  # a forked process cannot use a store
        executor = "spawn-pool"
    if corpus.is_overtaken and rng.random() < 0.7:
        # Each small file is a text chunk. Its shards are merged while the large file is still read.
        chunks, shards, merges, only = rng.choice([150, 400]), rng.choice([400, 800]), 300, "write write open"
        rate, microseconds = rng.choice([(0, 0), (100_000, 300), (500_000, 60), (500_000, 150)])
    else:
        chunks, shards = rng.choice([1, 4, 30, 100, 200]), rng.choice([4, 50, 200, 500])
        merges, only = rng.choice([1, 30, 300]), "open read stat write write rename unlink fsync truncate "
        rate, microseconds = rng.choice(
            [(0, 0), (10_000, 500), (100_000, 500), (500_000, 50), (500_000, 100)]
        )
    if for_store:
        chunks, shards, merges = rng.choice([1, 4, 12, 30]), rng.choice([2, 8, 30]), rng.choice([1, 4, 12])
    delayed = rng.choice(only.split(" "))
    bench.delays = Delays(
        rate, microseconds if delayed else microseconds // 4, rng.randrange(1 << 32), delayed
    )
    bench.settled = rng.random() < 0.5
    bench.settings = {
        **corpus.settings,
        "executor": executor,
        "shard_bytes": corpus.text_bytes // shards + 1,
        "merge_tokens": corpus.text_bytes // 3 // merges + 1,
    }
    bench.options = f"--text-chunk-bytes {max(100, corpus.text_bytes // 3 // chunks)}"
    if executor == "own":
        bench.options += f" --start-method {rng.choice([*['auto'] * 7, 'spawn'])}"
    faults: list[Fault] = list(KILLS)
    if executor in ("threads", "twice"):  # all is one process
        faults = [fault for fault in KILLS if fault.who != "worker"]
    if executor.startswith("dask"):  # prints a traceback when it is interrupted
        faults = [fault for fault in faults if fault.name != "interrupted"]
    if for_store:
        faults = [*faults, *REQUEST_KILLS, *[RIVAL] * 2]
        rate_of = [
            (0.0, ORDERS),
            (0.3, ("wait",)),
            (0.05, ORDERS),
            (0.2, ORDERS),
            (0.03, (*ORDERS, *HARMLESS, "lost")),
        ]
        share, kinds = rng.choice(rate_of)
        late = rng.choice([0.02, 0.2, 0.6])
        bench.proxy.faults = Faults(kinds, share, rng.randrange(1 << 32), late_seconds=late)
    strikes: list[tuple[Fault, int]] = []
    while rng.random() < (0.6 if for_store else 0.4) and len(strikes) < MAX_FAULTS:
        fault = copy(rng.choice(faults))  # runs of other benches use it at the same time
        strikes.append(
            (fault, rng.randint(1, 20) if fault.name == RIVAL.name else int(10 ** rng.uniform(0.3, 2.7)))
        )
    return strikes
