"""Encode with a fresh tokenizer in eight threads at once, then in a forked process.

    python first_use.py FOLDER

A separate program, because a fault in the core may kill it with a signal.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

from bpe import Tokenizer

THREADS, TURNS = 8, 4


def main(folder: Path) -> None:
    case: dict[str, Any] = json.loads((folder / "case.json").read_text())
    texts, expected = case["texts"], case["ids"]
    joined = "\ue0f0".join(texts).encode()

    def use(number: int) -> bool:
        barrier.wait()
        if number % 3 == 0:
            return [tokenizer.encode(text) for text in texts] == expected
        if number % 3 == 1:
            return [row.tolist() for row in tokenizer.encode_batch(texts, 2)] == expected
        return [row.tolist() for row in tokenizer.encode_documents(joined, "\ue0f0", 2)] == expected

    for _ in range(TURNS):
        tokenizer = Tokenizer.load(folder / case["name"], **case["load"])
        barrier = Barrier(THREADS)
        with ThreadPoolExecutor(THREADS) as pool:
            assert all(pool.map(use, range(THREADS))), "threads disagree"
    for fresh in (False, True):
        tokenizer = Tokenizer.load(folder / case["name"], **case["load"]) if fresh else tokenizer
        if (child := os.fork()) == 0:
            rows = tokenizer.encode_documents(joined, "\ue0f0", 2)
            os._exit([row.tolist() for row in rows] != expected)
        assert os.waitpid(child, 0)[1] == 0, "wrong after fork"


main(Path(sys.argv[1]))
