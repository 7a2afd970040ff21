"""A small conversion broken at each of its file operations, resumed, and compared with one that was left alone.

`Sweep(folder).point(at, fault)` gives the first thing that was not as it must be, or None. What must be: exit codes as
documented, no process left behind, no hang, no traceback, no output under the final name unless it is whole; then the
same command, undisturbed and with another number of workers, ends with 0 and the same bytes as a run without faults.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import random
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from injector import Injector, Outcome

from bpe import reference
from bpe.tokenizer import Tokenizer

END = "<|endoftext|>"
# `python -m convert`, but that parts of shards get files of their own from 60 bytes on, and that what is compressed is
# several shards.
SMALL_SHARDS = """
import sys
from convert.planning import plan
from convert.__main__ import main
from convert.shards import shard_writer
shard_writer.BUFFER_BYTES = 60
plan.MIN_GIVEN_SHARD_BYTES = 700
sys.exit(main())
"""


@dataclass(frozen=True)
class Fault:
    """What happens at an operation; codes: with which the run may end then."""

    name: str
    mode: str
    codes: tuple[int, ...]
    error: int = 0
    who: str = "all"
    reads: bool = False
    only: str = ""


KILLED = -signal.SIGKILL
FAULTS = {
    fault.name: fault
    for fault in [
        Fault("worker killed", "kill", (0,), who="worker"),
        Fault("parent killed", "kill", (KILLED,), who="main"),
        Fault("parent killed while a worker works", "killmain", (KILLED,), who="worker"),
        Fault("group killed", "killgroup", (KILLED,)),
        Fault("no space, once", "errno", (0, 4), errno.ENOSPC),
        Fault("no space from then on", "sticky", (0, 4), errno.ENOSPC),
        Fault("I/O error, once", "errno", (0, 4), errno.EIO),
        Fault("quota from then on", "sticky", (0, 4), errno.EDQUOT),
        Fault("done, the answer lost, the repeat refused", "repeat", (0, 4), only="names"),
        Fault("lost, and told at close", "errno", (0, 4), errno.EDQUOT, only="close"),
        Fault("short write", "short", (0,)),
        Fault("short read", "short", (0,), reads=True),
        Fault("read error, once", "errno", (0, 2, 3, 4, 6), errno.EIO, reads=True),
    ]
}


class Sweep:
    """The job and its undisturbed result, made in `folder`."""

    def __init__(self, folder: Path, documents: int = 24, workers: int = 2) -> None:
        self.root = folder / "job"
        self.root.mkdir()
        self.workers = workers
        self._injector = Injector(folder, self.root)
        rng = random.Random(3)
        words = ["the", "of", "naïve", "東京都", "it's", "\n\n", "x1", "<|im_start|>"]
        texts = [" ".join(rng.choices(words, k=rng.choice([0, 3, 20, 60]))) for _ in range(documents)]
        (self.root / "text").write_text(END.join(texts), encoding="utf-8", newline="")
        (self.root / "packed.gz").write_bytes(gzip.compress(END.join(texts[::2]).encode(), mtime=0))
        merges = reference.train(reference.count_pretokens(texts, [END]), 30)
        vocab = {index: bytes([byte]) for index, byte in enumerate(reference.printable_bytes())}
        for left, right in merges:
            if left + right not in vocab.values():
                vocab[len(vocab)] = left + right
        Tokenizer(vocab, merges, [END, "<|im_start|>"]).save(self.root / "tok.json")
        clean = self.run()
        if clean.code:
            raise AssertionError(f"the job fails by itself: {clean.output}")
        self.operations = {
            counted: self._counted(*counted)
            for counted in {(fault.who, fault.reads, fault.only) for fault in FAULTS.values()}
        }
        self.expected = tree_hash(self.root / "out")

    def _counted(self, who: str, reads: bool, only: str) -> int:
        self.clear()
        return (
            self._injector.start(self._command(self.workers), who=who, reads=reads, only=only)
            .wait()
            .operations
        )

    def _command(self, workers: int) -> list[str]:
        command = [sys.executable, "-c", SMALL_SHARDS, "text", "packed.gz"]
        command += ["--tokenizer", "tok.json", "--output", "out"]
        command += ["--text-chunk-bytes", "700", "--chunk-tokens", "512", "--validation-fraction", "0.3"]
        return [*command, "--workers", str(workers), "--progress", "none"]

    def run(self, fault: Fault | None = None, at: int = 0, workers: int | None = None) -> Outcome:
        """One run of the job, with or without a fault."""
        command = self._command(workers or self.workers)
        if fault is None:
            return self._injector.start(command).wait()
        return self._injector.start(
            command, at, fault.mode, fault.error, fault.who, fault.reads, only=fault.only
        ).wait()

    def clear(self) -> None:
        """Away with whatever runs have left."""
        for name in ("out", "out.partial"):
            shutil.rmtree(self.root / name, ignore_errors=True)

    def points(self, fault: Fault) -> int:
        """How many operations the fault can hit."""
        return self.operations[fault.who, fault.reads, fault.only]

    def point(self, at: int, fault: Fault, again: tuple[int, Fault] | None = None) -> str | None:
        """What is wrong after the fault at operation `at`, and a second one in the run after it; None: nothing."""
        self.clear()
        for place, what in [(at, fault), *([again] if again else [])]:
            if (self.root / "out").exists():
                break  # done, whatever the first fault was
            wrong = self._after(self.run(what, place), what)
            if wrong:
                return (
                    f"{fault.name} at {at}{f', {what.name} at {place}' if what is not fault else ''}: {wrong}"
                )
        if not (self.root / "out").exists():
            last = self.run(workers=1 + at % 3)
            if last.code or last.hung or last.orphans:
                return f"{fault.name} at {at}: the next run ends with {last.code}: {last.output[-500:]}"
        if tree_hash(self.root / "out") != self.expected:
            return f"{fault.name} at {at}: other bytes than those of a run without faults"
        if (self.root / "out.partial").exists():  # killed while it cleaned up behind the finished dataset
            refused = self.run()
            if refused.code != 6 or (self.root / "out.partial").exists():
                return f"{fault.name} at {at}: something is left of a finished run: {refused.output}"
        return None

    def _after(self, outcome: Outcome, fault: Fault) -> str | None:
        if outcome.hung:
            return f"it hangs: {outcome.output[-500:]}"
        if outcome.orphans:
            return f"{len(outcome.orphans)} processes are left"
        if "Traceback" in outcome.output:
            return f"a traceback: {outcome.output[-2000:]}"
        if outcome.code not in (*fault.codes, 0):
            return f"exit code {outcome.code}: {outcome.output[-500:]}"
        if outcome.code == 4 and not outcome.output.startswith("tokenmill: error: "):
            return f"a message of another form: {outcome.output[-500:]}"
        out = self.root / "out"
        if outcome.code == 0 and not out.exists():
            return "exit code 0, but no output"
        if out.exists() and tree_hash(out) != self.expected:
            return "an output of other bytes"
        return None


def tree_hash(root: Path) -> str:
    """One hash of all files below, with their names."""
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file():
            whole.update(
                str(path.relative_to(root)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest()
            )
    return whole.hexdigest()
