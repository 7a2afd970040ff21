"""Reads a dataset in a process that may not take more than it should, and tells what went wrong.

All readers run, as by `info`, `head`, `verify` and a training job. Right is that they read, or a FlatTokensError of one
line. Wrong is anything else: another error, MemoryError at a limit on address space above all, a signal, too much time,
a file written.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from hostile_datasets import CHANGES, write_sound

import flat_tokens
from flat_tokens import statistics
from flat_tokens.errors import FlatTokensError
from flat_tokens.storage.entries import load_entries

HEADROOM_BYTES = 2**29  # of address space beyond what the process has; a bomb holds twice that
MOST_SECONDS = 30.0
M_ARENA_MAX = -8  # mallopt: each thread's arena takes 64 MiB of address space

Read = Callable[[Path], None]


def read_all(root: Path) -> None:
    """Everything that is read of a dataset. The first error ends a reader, not the others; then it is raised."""
    errors: list[FlatTokensError] = []
    for reader in (_verify, _open, _info, _head, _sequences, _rows, _batches, _packs):
        try:
            reader(root)
        except FlatTokensError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _verify(root: Path) -> None:
    for problem in flat_tokens.verify_dataset(root).problems:
        assert problem.isprintable(), repr(problem)


def _open(root: Path) -> None:
    flat_tokens.open(root)


def _info(root: Path) -> None:
    statistics.describe(flat_tokens.open(root))


def _head(root: Path) -> None:
    path = flat_tokens.open(root).tokenizer_path
    if path is not None:
        load_entries(path)


def _sequences(root: Path) -> None:
    for split in ("train", "validation"):
        for _ in itertools.islice(flat_tokens.open(root)[split], 200):
            pass


def _rows(root: Path) -> None:
    train = flat_tokens.open(root).train
    train.rows(range(min(train.row_count(7), 200)), 7)


def _batches(root: Path) -> None:
    for options in ({}, {"packed": False}):
        loader = flat_tokens.Loader(flat_tokens.open(root).train, 4, 2, streams=1, **options)
        list(loader.from_step(0, min(loader.order.steps_per_epoch, 20), prefetch=False))


def _packs(root: Path) -> None:
    packed = flat_tokens.PackedSequences(
        flat_tokens.open(root).train, 16, max_packs=20, split_across_pack=True
    )
    for index in range(len(packed)):
        packed[index]


def outcome_of(root: Path, read: Read, must_be_refused: bool = False) -> str:
    """Empty if all is right, else what is wrong. The reader runs in a child of this process."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        with suppress(BaseException):
            os.write(sender, _told(root, read, must_be_refused).encode(errors="backslashreplace")[:4000])
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        deadline = time.monotonic() + MOST_SECONDS
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return f"took more than {MOST_SECONDS:.0f} s"
            time.sleep(0.005)
        told = pipe.read().decode()
    return told.removeprefix("done ") if told else "ended by a signal, or without a word"


def _told(root: Path, read: Read, must_be_refused: bool) -> str:
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + HEADROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # pipes are not files
    try:
        read(root)
    except FlatTokensError as error:
        return "done " if str(error).isprintable() else f"done an error of several lines: {str(error)!r}"
    except BaseException:
        return f"done {traceback.format_exc()}"
    return "done a link was followed" if must_be_refused else "done "


class Fuzzer:
    """Datasets by a seed in a folder of their own; `run` yields what went wrong with each."""

    def __init__(self, folder: Path, read: Read = read_all) -> None:
        self._folder = folder
        self._read = read

    def run(self, seed: int, kind: str) -> str:
        """One dataset with changes of a kind."""
        rng = random.Random(f"{seed} {kind}")
        shutil.rmtree(self._folder, ignore_errors=True)
        root = self._folder / "d"
        self._folder.mkdir(parents=True)
        write_sound(root, rng)
        for _ in range(1 if kind == "link" else rng.choice([1, 1, 2])):
            with suppress(
                ValueError, IndexError, OSError, KeyError, TypeError
            ):  # the second, of what the first left
                CHANGES[kind](rng, root)
        return outcome_of(root, self._read, must_be_refused=kind == "link")

    def runs(self, seeds: range, kinds: list[str]) -> Iterator[tuple[int, str, str]]:
        """(seed, kind, what went wrong) of each."""
        for seed, kind in itertools.product(seeds, kinds):
            yield seed, kind, self.run(seed, kind)


if __name__ == "__main__":
    sys.exit("see scripts/check_readers.py")
