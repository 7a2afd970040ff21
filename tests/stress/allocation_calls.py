"""Calls of the native cores with a failing allocation.

Each call is made once to count its allocations, then once per allocation with that one failing. It must raise
MemoryError or return the usual result, because caches are optional. The next call on the same object must succeed.
`run(build)` starts this file under the library.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from allocation_faults import ALWAYS, Counter, environment
from processes import ROOT

TEXT = (
    "The quick brown fox, it's 12345 and 字字字字 größer! " * 40 + "x" * 3000 + " " * 900 + "\n" + "ab" * 5000
)


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


def sweep(stride: int, only: list[str]) -> int:
    """Let every n-th allocation of each call fail, and print the wrong results. Return the exit status."""
    counter = Counter(os.environ["ALLOCATIONS_COUNTER"])
    counter.arm(0)
    wrong = points = 0
    for name, (make, call) in calls().items():
        if only and name not in only:
            continue
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


def run(build: Path, stride: int = 1, *only: str) -> subprocess.CompletedProcess[str]:
    """Sweep over the calls in a process under the library. stride: try every n-th allocation."""
    variables = {name: value for name, value in environment(build).items() if value is not None}
    return subprocess.run(
        [sys.executable, __file__, str(stride), *only],
        env={**os.environ, **variables, "PYTHONPATH": str(ROOT), "ALLOCATIONS_FOLDER": str(build)},
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(sweep(int(sys.argv[1]), sys.argv[2:]))
