"""Allocations of the native cores that fail (allocations.cpp), in jobs and in single calls.

Each call is made once to count its allocations, then once per allocation with that one failing. It must raise
MemoryError or return the usual result, because caches are optional. The next call on the same object must succeed.
`run(build)` starts this file under the library.
"""

from __future__ import annotations

import mmap
import os
import pickle
import random
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import Bench, Fault
from injector import compile_library
from processes import Outcome

SOURCE = Path(__file__).with_name("allocations.cpp")
ALWAYS = 1 << 40
# nanobind makes its types before the first call, and ends the process if it cannot.
IMPORTS = "import bpe._core, tokenmill.inputs._core, flat_tokens._core"
TEXT = (
    "The quick brown fox, it's 12345 and 字字字字 größer! " * 40 + "x" * 3000 + " " * 900 + "\n" + "ab" * 5000
)


class Counter:
    """The mapped file that counts allocations and selects those that fail."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:  # noqa: PTH123
            self._map = mmap.mmap(file.fileno(), 32)

    def arm(self, at: int, count: int = 1) -> None:
        """Reset the count. Allocations [at, at + count), counted from 1, will fail."""
        self._map[:] = struct.pack("=4q", 0, at, count, 0)

    @property
    def count(self) -> int:
        """The number of allocations since `arm`."""
        return int(struct.unpack_from("=q", self._map, 0)[0])


def environment(build: Path) -> dict[str, str]:
    """Return the variables of a process under the library."""
    library, counter = compile_library(SOURCE, build / "allocations.so"), build / "allocations"
    if not counter.exists():
        counter.write_bytes(bytes(32))
    return {
        "LD_PRELOAD": str(library),
        "ALLOCATIONS_COUNTER": str(counter),
        "ALLOCATIONS_OF": "bpe/_core.",
        "ALLOCATIONS_OF_TOO": "inputs/_core.",
    }


def start(build: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python under the library."""
    path = os.pathsep.join(filter(None, sys.path))
    variables = {**os.environ, **environment(build), "PYTHONPATH": path, "ALLOCATIONS_FOLDER": str(build)}
    return subprocess.run(
        [sys.executable, *arguments], env=variables, capture_output=True, text=True, check=False
    )


class AllocationFault(Fault):
    """`count` allocations of the cores fail in a row. A few are nanobind's own and abort the process."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name, (5, -signal.SIGABRT))
        self._count, self._first = count, 0

    def count_points(self, bench: Bench) -> int:
        variables = environment(bench.build)
        counter = Counter(variables["ALLOCATIONS_COUNTER"])
        if not self._first:
            counter.arm(0)
            assert start(bench.build, "-c", IMPORTS).returncode == 0
            self._first = counter.count
        counter.arm(0)
        bench.run(environment=variables)
        return max(0, counter.count - self._first)

    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        variables = environment(bench.build)
        Counter(variables["ALLOCATIONS_COUNTER"]).arm(self._first + at, self._count)
        return bench.run(environment=variables)


ALLOCATION_FAULTS = [AllocationFault("no memory, once", 1), AllocationFault("no memory from then on", ALWAYS)]


def calls() -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return by name: a function that makes a fresh object, and one that calls it."""
    import numpy as np

    from bpe.added_tokens import AddedToken
    from bpe.pretoken_counts.counting import count_pretokens
    from bpe.pretokenizer import named
    from bpe.tokenizer import Tokenizer
    from bpe.training import train
    from tokenmill.inputs import _core as corpus_core

    folder = Path(os.environ["ALLOCATIONS_FOLDER"])
    path, text = folder / "tokenizer.json", TEXT.encode()
    (folder / "text").write_bytes(text)
    trained = train([str(folder / "text")], vocab_size=400, special_tokens=["<|endoftext|>"])
    trained.save(path)
    documents = b"<|endoftext|>".join([text[:800]] * 30)
    offsets = np.array([len(TEXT[:characters].encode()) for characters in range(0, 701, 100)], np.uint64)
    ids = trained.encode(TEXT)
    tokens = [AddedToken("<s>", 1000), AddedToken("<n>", 1001, normalized=True)]

    def rows(ragged: Any) -> Any:
        return ragged.tokens.tolist(), ragged.offsets.tolist()

    fresh = lambda: Tokenizer.load(path)  # noqa: E731
    none = lambda: None  # noqa: E731
    return {
        "load": (none, lambda _: Tokenizer.load(path).encode("it's")),
        "encode": (fresh, lambda t: t.encode(TEXT)),
        "documents": (fresh, lambda t: rows(t.encode_documents(documents))),
        "documents, 3 threads": (fresh, lambda t: rows(t.encode_documents(documents * 40, threads=3))),
        "ragged": (fresh, lambda t: rows(t.encode_ragged(text[: int(offsets[-1])], offsets))),
        "batch": (fresh, lambda t: rows(t.encode_batch([TEXT, "a", "", TEXT[:99]]))),
        "pretokens": (
            fresh,
            lambda t: t.encode_pretokens(text, np.array([9, len(text)], np.uint64)).tolist(),
        ),
        "normalized": (
            lambda: Tokenizer(dict(trained.ordinary_entries), trained.merges, tokens, normalizer="NFC"),
            lambda t: t.encode(TEXT + "e\u0301<n>" * 9),
        ),
        "normalized documents": (
            lambda: Tokenizer(dict(trained.ordinary_entries), trained.merges, normalizer="NFC"),
            lambda t: rows(t.encode_documents((TEXT + "e\u0301").encode() * 3)),
        ),
        "normalized counts": (
            none,
            lambda _: count_pretokens([(TEXT + "e\u0301").encode()], normalizer="NFC").as_dict(),
        ),
        "decode": (fresh, lambda t: t.decode(ids)),
        "pickle": (fresh, lambda t: pickle.loads(pickle.dumps(t)).canonical_json),
        "pretokenize": (none, lambda _: named("gpt2").pretoken_spans(text.decode())[1].tolist()),
        "separators": (none, lambda _: corpus_core.find_separators(documents, b"<|endoftext|>").tolist()),
        "special": (
            none,
            lambda _: corpus_core.find_special_tokens(documents, [b"<|", b"<|endoftext|>"])[0].tolist(),
        ),
        "hash": (none, lambda _: corpus_core.hash_documents(documents, b"<|endoftext|>", 1).tolist()),
        "train": (none, lambda _: train([str(folder / "text")], vocab_size=300).canonical_json),
        "train, 2 threads": (
            none,
            lambda _: train([str(folder / "text")], vocab_size=300, threads=2).canonical_json,
        ),
    }


def sweep(stride: int) -> int:
    """Let every n-th allocation of each call fail, and print the wrong results. Return the exit status."""
    counter = Counter(os.environ["ALLOCATIONS_COUNTER"])
    counter.arm(0)
    wrong = points = 0
    for name, (make, call) in calls().items():
        expected = call(make())
        made = make()
        counter.arm(0)
        call(made)
        total, refused = counter.count, 0
        for count in (1, ALWAYS):
            for at in range(1, total + 1, stride):
                points += 1
                counter.arm(0)
                made = make()
                counter.arm(at, count)
                try:
                    got = call(made)
                except MemoryError:
                    got = expected
                    refused += 1
                except Exception as error:
                    got = repr(error)
                counter.arm(0)
                again = call(made)
                if got != expected or again != expected:
                    wrong += 1
                    print(f"  {name}, allocation {at}: {str(got)[:200]}", flush=True)
        print(f"{name}: {total} allocations, MemoryError {refused} times", flush=True)
    print(f"{points} points, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(sweep(int(sys.argv[1])))
