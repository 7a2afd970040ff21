"""Memory stays constant under load: many files, a long document, many tokens, many steps.

--points scales the load: 100 means 100,000 files, 400 MB of text, 10^8 tokens and 10^5 steps. Each command runs in
processes of its own. Their proportional set size, sampled every second, may grow by a bounded amount from the second
quarter of the run to the last.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from runs import tokenizer_bytes

import flat_tokens
from bpe import Tokenizer

pytestmark = [
    pytest.mark.promise("memory"),
    pytest.mark.stress,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
]
MB = 1 << 20
WORDS = ["the", "of", "naïve", "東京都", "it's", "\n\n", "x1", "12,345", "return", "größer", "—", "(a + b)"]
CONVERT = (
    "-m tokenmill convert corpus --tokenizer tok.json --output out --progress none --validation-fraction 0"
)
IMPORT = "-m tokenmill import train.bin --from nanogpt --separator-token 256 --output ids"
LOADER = """
import sys, flat_tokens
loader = flat_tokens.Loader(flat_tokens.open("ids").train, 128, 8)
for step, batch in zip(range(int(sys.argv[1])), loader.from_step(0)):
    assert batch.ids.size == 1024
"""


def memory_of(group: int) -> int:
    """Return the proportional set size of a process group in bytes."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                rollup = (folder / "smaps_rollup").read_text()
                total += sum(
                    int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:")
                )
        except OSError:
            continue
    return total


def run(words: list[str], folder: Path, allowed: int) -> None:
    """Run Python. Fail if it fails, or if its memory grows by more than the allowed bytes."""
    samples = []
    process = subprocess.Popen([sys.executable, *words], cwd=folder, start_new_session=True)
    try:
        started = time.monotonic()
        while process.poll() is None:
            samples.append(memory_of(process.pid))
            time.sleep(max(0.02, min(1.0, (time.monotonic() - started) / 20)))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == 0
    quarter = len(samples) // 4
    growth = max(samples[3 * quarter :], default=0) - max(samples[quarter : 2 * quarter], default=0)
    print(f"{' '.join(words)[:60]}: peak {max(samples) / MB:.0f} MB, growth {growth / MB:.0f} MB")
    assert growth <= allowed


@pytest.fixture
def load(request: pytest.FixtureRequest) -> float:
    return float(request.config.getoption("--points")) / 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tok.json").write_bytes(tokenizer_bytes())
    return tmp_path


def text_of(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def test_many_files(load: float, folder: Path) -> None:
    count, rng = int(100_000 * load), random.Random(0)
    for number in range(count):
        path = folder / "corpus" / f"{number // 1000:04}" / f"{number % 1000:03}.txt"
        if number % 1000 == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"{number} {text_of(rng, 8)}", encoding="utf-8")
    run(CONVERT.split(), folder, 64 * MB + 300 * count)
    assert flat_tokens.open(folder / "out").train.seq_count == count


def test_a_long_document(load: float, folder: Path) -> None:
    size, rng = int(4e8 * load), random.Random(0)
    (folder / "corpus").mkdir()
    with (folder / "corpus" / "a.txt").open("wb") as file:
        while file.tell() < size:
            file.write(f"{file.tell()} {text_of(rng, 2000)} ".encode() * 16)
        size = file.tell()
    run(CONVERT.split(), folder, 96 * MB)
    tokenizer, train = Tokenizer.load(folder / "tok.json"), flat_tokens.open(folder / "out").train
    lengths = np.array([len(tokenizer.decode_bytes([each])) for each in range(tokenizer.vocab_size)])
    blocks = (
        train.encoded_tokens[start : start + (1 << 24)] for start in range(0, train.token_count, 1 << 24)
    )
    assert sum(int(lengths[block >> 1].sum()) for block in blocks) == size


def test_many_tokens_and_steps(load: float, folder: Path) -> None:
    count, rng, documents = int(1e8 * load), np.random.default_rng(0), 0
    with (folder / "train.bin").open("wb") as file:
        for start in range(0, count, 1 << 24):
            ids = rng.integers(0, 256, min(1 << 24, count - start), dtype=np.uint16)
            ids[rng.integers(0, len(ids), max(1, len(ids) // 700))] = 256
            ids[-1] = 256
            documents += int((ids == 256).sum())
            file.write(ids.tobytes())
    run(IMPORT.split(), folder, 96 * MB)
    train = flat_tokens.open(folder / "ids").train
    assert (train.token_count, train.seq_count) == (count, documents)
    run("-m tokenmill verify ids".split(), folder, 96 * MB)
    run(["-c", LOADER, str(int(1e5 * load))], folder, 64 * MB)
