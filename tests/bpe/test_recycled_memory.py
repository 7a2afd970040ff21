"""Memory of dropped results is reused, and never while another reference exists."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pretoken_ends import automaton_of

from bpe import _core

ROOT = Path(__file__).parents[2]

# IDs take four times the bytes of the text: below and above the reuse limit, and in huge pages.
SIZES = [100_000, 300_000, 1 << 20, (1 << 20) + 1, 3_000_000]


def byte_text(seed: int, size: int) -> bytes:
    """Return `size` random letters in words of up to nine."""
    rng = np.random.default_rng(seed)
    return rng.choice(np.frombuffer(b"abcdefgh ", np.uint8), size).tobytes()


@pytest.fixture(scope="module")
def encoder() -> _core.TokenizerCore:
    """Return an encoder with the bytes as IDs."""
    return _core.EntryFile.from_entries({i: bytes([i]) for i in range(256)}, []).encoder(
        {}, automaton_of("gpt2"), False
    )


def encode(encoder: _core.TokenizerCore, text: bytes, threads: int = 1) -> np.ndarray:
    return encoder.encode_documents(text, b"\0", threads)[0]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_a_referenced_result_never_changes(encoder: _core.TokenizerCore, size: int, threads: int) -> None:
    held = []
    for seed in range(6):
        text = byte_text(seed, size)
        tokens = encode(encoder, text, threads)
        assert np.array_equal(tokens, np.frombuffer(text, np.uint8))
        if seed % 2:
            held.append((text, tokens))
        del tokens  # the memory of the others is free for the next one
    for text, tokens in held:
        assert np.array_equal(tokens, np.frombuffer(text, np.uint8))


def test_a_view_keeps_the_memory(encoder: _core.TokenizerCore) -> None:
    text = byte_text(1, 2_000_000)
    view = encode(encoder, text)[1_000_000:]
    for seed in range(2, 5):
        encode(encoder, byte_text(seed, 2_000_000))
    assert np.array_equal(view, np.frombuffer(text, np.uint8)[1_000_000:])


def test_sizes_up_and_down(encoder: _core.TokenizerCore) -> None:
    for size in [3_000_000, 400_000, 2_000_000, 8_000_000, 300_000, 3_000_000]:
        text = byte_text(size, size)
        assert np.array_equal(encode(encoder, text), np.frombuffer(text, np.uint8))


GIVEN_BACK = """
import resource
from pathlib import Path
from bpe import _core
from bpe.pretokenizer import named
entries = _core.EntryFile.from_entries({i: bytes([i]) for i in range(256)}, [])
encoder = entries.encoder({}, named("gpt2").automaton, False)
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + (900 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for mebibytes in (12, 10, 9, 250):  # sizes of ID arrays; the last one evicts the others
    encoder.encode_documents(b"abcdefg " * (mebibytes << 15), b"\\0", 1)
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


def test_from_several_threads_at_once(encoder: _core.TokenizerCore) -> None:
    texts = [byte_text(seed, 700_000 + 50_000 * seed) for seed in range(8)]

    def right(text: bytes) -> bool:
        return all(np.array_equal(encode(encoder, text), np.frombuffer(text, np.uint8)) for _ in range(4))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, texts))
