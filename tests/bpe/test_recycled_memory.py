"""Memory of dropped results is reused, and never while another reference exists."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe import Tokenizer

ROOT = Path(__file__).parents[2]

# IDs take four times the bytes of the text: below and above the reuse limit, and in huge pages.
SIZES = [100_000, 300_000, 1 << 20, (1 << 20) + 1, 3_000_000, 8_000_000]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_referenced_result_never_changes(threads: int) -> None:
    """Results and views of them, made by several callers; some drop them at once."""
    tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [])

    def work(seed: int) -> bool:
        rng = random.Random(seed)
        held: list[tuple[Any, Any]] = []
        for _ in range(12):
            text = rng.randbytes(1000).translate(bytes(b"abcdefgh "[byte % 9] for byte in range(256)))
            text = (text * 8001)[: rng.choice(SIZES)]
            tokens = tokenizer.encode_documents(text, "\0", threads).tokens
            expected = np.frombuffer(text, np.uint8)
            if not np.array_equal(tokens, expected):
                return False
            half = len(text) // 2
            held += rng.choice([[], [(tokens, expected)], [(tokens[half:], expected[half:])]])
        return all(np.array_equal(tokens, expected) for tokens, expected in held)

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(work, range(4)))


GIVEN_BACK = """
import resource
from pathlib import Path
from bpe import Tokenizer
tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [])
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + (900 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for mebibytes in (12, 10, 9, 250):  # sizes of ID arrays; the last one evicts the others
    tokenizer.encode_documents(b"abcdefg " * (mebibytes << 15), b"\\0")
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_several_go_at_once_where_too_much_is_kept() -> None:
    """Evict each block once: evicting the same one repeatedly frees nothing, and the list grows without bound."""
    command = [sys.executable, "-c", GIVEN_BACK]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) >> 10 < 500, (
        "the peak in MiB; the libraries, the last text and its result take less than 400"
    )
