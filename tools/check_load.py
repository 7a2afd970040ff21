"""Check that memory stays constant under load: a million files, a document of gigabytes, 10^9 tokens, 10^6 steps.

    python tools/check_load.py [--part files document tokens loader driver] [--folder /tmp/load] [--seed 0]
        [--files 1e6] [--document 4e9] [--tokens 1e9] [--steps 1e6] [--tasks 1e5] [--workers 2]

Each part generates seeded input and runs a command in separate processes. Their memory (proportional set size) is
sampled every second and printed occasionally. The output is counted. A part fails if the command fails, if data is
lost, or if memory in the last quarter exceeds memory in the second quarter by more than the part allows. The folder
needs space for input and output. It is emptied. Linux only.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

import flat_tokens  # noqa: E402 - found on the path above
from bpe import reference  # noqa: E402
from bpe.tokenizer import Tokenizer  # noqa: E402
from flat_tokens.format import decode_ids  # noqa: E402

MB = 1 << 20
WORDS = ["the", "of", "naïve", "東京都", "it's", "\n\n", "x1", "12,345", "return", "größer", "—", "(a + b)"]
SEPARATOR = 256  # separator of imported tokens
LOADER = """
import sys, flat_tokens
dataset, steps = sys.argv[1], int(sys.argv[2])
loader = flat_tokens.Loader(flat_tokens.open(dataset).train, 128, 8)
total = 0
for step, batch in zip(range(steps), loader.from_step(0)):
    total += batch.ids.size
print(steps, total)
"""


class Watched:
    """The memory of a command's processes, one sample per second."""

    def __init__(self, command: list[str], folder: Path, every: float) -> None:
        self.samples: list[int] = []
        self.seconds = 0.0
        started, shown = time.monotonic(), 0.0
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, start_new_session=True, stdout=told, stderr=told
            )
            try:
                while process.poll() is None:
                    self.seconds = time.monotonic() - started
                    self.samples.append(sum(map(memory_of, group_of(process.pid))))
                    if self.seconds - shown >= every:
                        shown = self.seconds
                        recent = max(self.samples[-max(1, int(every)) :])
                        print(f"  {self.seconds:6.0f} s {recent / MB:8.0f} MB", flush=True)
                    time.sleep(max(0.02, min(1.0, self.seconds / 20)))  # more often at the start
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            told.seek(0)
            self.output = told.read().decode(errors="replace")
        self.seconds, self.code = time.monotonic() - started, process.returncode

    @property
    def peak(self) -> int:
        """Return the maximum of all samples."""
        return max(self.samples)

    @property
    def growth(self) -> int:
        """Return the maximum of the last quarter minus the maximum of the second quarter."""
        count = len(self.samples)
        early, late = self.samples[count // 4 : count // 2], self.samples[3 * count // 4 :]
        return max(late, default=0) - max(early, default=0)


def group_of(group: int) -> list[int]:
    """Return the processes of a group."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group:
                found.append(int(folder.name))
    return found


def memory_of(process: int) -> int:
    """Return the proportional set size in bytes; 0 for a process that has ended."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))


class Parts:
    """The parts of the check. Each returns the memory samples, the allowed growth in bytes, and the fault or ""."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder, self._options = folder, options
        self._rng = random.Random(options.seed)

    def files(self) -> tuple[Watched, int, str]:
        """Convert many small files, one document each."""
        count = int(self._options.files)
        corpus = self._folder / "corpus"
        for number in range(count):
            folder = corpus / f"{number // 1000:04}"
            if number % 1000 == 0:
                folder.mkdir(parents=True)
            (folder / f"{number % 1000:03}.txt").write_text(f"{number} {self._text(8)}", encoding="utf-8")
        watched = self._convert("corpus")
        dataset = flat_tokens.open(self._folder / "out")
        found = sum(len(dataset[split]) for split in ("train", "validation"))
        return (
            watched,
            64 * MB + 300 * count,
            "" if found == count else f"{found:,} documents of {count:,} files",
        )

    def document(self) -> tuple[Watched, int, str]:
        """Convert one document of gigabytes. Its tokens must keep all bytes."""
        size, made = int(self._options.document), 0
        with (self._folder / "corpus.txt").open("wb") as file:
            while made < size:
                block = f"{made} {self._text(2000)} ".encode() * 16
                block = block[: size - made]
                while block and (block[-1] & 0x80):  # cut between characters
                    block = block[:-1]
                file.write(block or b" ")
                made += len(block or b" ")
        watched = self._convert("corpus.txt", "--validation-fraction", "0")
        if watched.code:
            return watched, 0, ""
        tokenizer = Tokenizer.load(self._folder / "tok.json")
        lengths = np.array([len(tokenizer.decode_bytes([each])) for each in range(tokenizer.vocab_size)])
        found = sum(
            int(lengths[ids].sum()) for ids in blocks_of(flat_tokens.open(self._folder / "out").train)
        )
        return watched, 96 * MB, "" if found == made else f"{found:,} bytes in tokens of {made:,}"

    def tokens(self) -> tuple[Watched, int, str]:
        """Import a file of IDs as a dataset, and verify it."""
        count, rng = int(self._options.tokens), np.random.default_rng(self._options.seed)
        separators = 0
        with (self._folder / "train.bin").open("wb") as file:
            for start in range(0, count, 1 << 24):
                ids = rng.integers(0, SEPARATOR, min(1 << 24, count - start), dtype=np.uint16)
                ends = rng.integers(0, len(ids), max(1, len(ids) // 700))
                ids[ends] = SEPARATOR
                ids[-1] = SEPARATOR
                separators += int((ids == SEPARATOR).sum())
                file.write(ids.tobytes())
        watched = self._run(
            "-m", "tokenmill", "import", "train.bin", "--from", "nanogpt", "--separator-token", str(SEPARATOR),
            "--output", "ids",
        )  # fmt: skip
        if watched.code:
            return watched, 0, ""
        (self._folder / "train.bin").unlink()
        verified = self._run("-m", "tokenmill", "verify", "ids")
        found = flat_tokens.open(self._folder / "ids").train.token_count
        wrong = "" if verified.code == 0 else f"verify: {verified.output[-300:]}"
        print(
            f"  verify: {verified.seconds:.0f} s, {verified.peak / MB:.0f} MB, growth {verified.growth / MB:.0f}"
        )
        documents = flat_tokens.open(self._folder / "ids").train.seq_count
        if (found, documents) != (count, separators):
            wrong = wrong or f"{found:,} tokens in {documents:,} documents of {count:,} in {separators:,}"
        return watched, 96 * MB, wrong

    def loader(self) -> tuple[Watched, int, str]:
        """Read a loader for many steps."""
        steps = int(self._options.steps)
        if not (self._folder / "ids").exists():
            self.tokens()
        watched = self._run("-c", LOADER, "ids", str(steps))
        return watched, 64 * MB, "" if f"{steps} {steps * 1024}" in watched.output else watched.output[-300:]

    def driver(self) -> tuple[Watched, int, str]:
        """Drive 200 workers with immediate results (tools/simulated_driver.py)."""
        tasks = int(self._options.tasks)
        script = str(ROOT / "tools" / "simulated_driver.py")
        watched = self._run(script, "--tasks", str(tasks), "--workers", "200")
        print("  " + watched.output.strip().replace("\n", "\n  "))
        return watched, 64 * MB + 1500 * tasks, ""

    def _convert(self, *words: str) -> Watched:
        merges = reference.train(reference.count_pretokens([self._text(500)], []), 60)
        vocab = {index: bytes([byte]) for index, byte in enumerate(reference.printable_bytes())}
        for left, right in merges:
            if left + right not in vocab.values():
                vocab[len(vocab)] = left + right
        Tokenizer(vocab, merges, ["<|endoftext|>"]).save(self._folder / "tok.json")
        return self._run(
            "-m", "tokenmill", "convert", *words, "--tokenizer", "tok.json", "--output", "out", "--progress", "none",
            "--workers", str(self._options.workers),
        )  # fmt: skip

    def _run(self, *words: str) -> Watched:
        return Watched([sys.executable, *words], self._folder, self._options.every)

    def _text(self, words: int) -> str:
        return " ".join(self._rng.choices(WORDS, k=words))


def blocks_of(split: flat_tokens.FlatTokensArray) -> Iterator[NDArray[np.uint32]]:
    """Yield all IDs of a split, in order, in blocks of bounded size."""
    for start in range(0, split.token_count, 1 << 24):
        yield decode_ids(split.encoded_tokens[start : start + (1 << 24)])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("files", "document", "tokens", "loader", "driver")
    parser.add_argument("--part", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--files", type=float, default=1e6)
    parser.add_argument("--document", type=float, default=4e9, help="bytes")
    parser.add_argument("--tokens", type=float, default=1e9)
    parser.add_argument("--steps", type=float, default=1e6)
    parser.add_argument("--tasks", type=float, default=1e5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=30.0, help="seconds between lines of output")
    parser.add_argument("--folder", type=Path, help="folder for inputs and outputs")
    options = parser.parse_args()
    failed = False
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="load-", dir=options.folder) as folder:
        made = Parts(Path(folder), options)
        for name in options.part:
            print(f"{name}:", flush=True)
            part: Callable[[], tuple[Watched, int, str]] = getattr(made, name)
            watched, allowed, wrong = part()
            if watched.code:
                wrong = f"exit status {watched.code}: {watched.output[-500:]}"
            elif watched.growth > allowed:
                wrong = (
                    wrong or f"memory grew by {watched.growth / MB:.0f} MB, allowed are {allowed / MB:.0f}"
                )
            print(
                f"{name}: {watched.seconds:.0f} s, peak {watched.peak / MB:.0f} MB, growth "
                f"{watched.growth / MB:.0f} MB, seed {options.seed}: {wrong or 'as it must be'}",
                flush=True,
            )
            failed |= bool(wrong)
            keep = ("ids",) if name == "tokens" else ()
            for path in Path(folder).iterdir():
                if path.name not in keep:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
