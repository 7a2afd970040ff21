"""Jobs that a power failure may hit, and what may be found afterwards.

`Job.judge(folder, ask)` looks at a folder after the failure and gives the same command again: what is wrong, or how it
was. Commands run in forks of one process that has the packages imported, so a state takes some tenths of a second.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from power_loss import Record, State, tree

import flat_tokens
from bpe import reference
from bpe.tokenizer import Tokenizer
from convert.planning import plan
from convert.shards import shard_writer
from flat_tokens.errors import FlatTokensError
from tokenmill.errors import TokenmillError

END = "<|endoftext|>"
ERRORS = (FlatTokensError, TokenmillError)
SECONDS = 60.0
# A command in which parts of shards get files of their own soon, and what is compressed is several shards.
COMMAND = """
import sys
sys.path.insert(0, {folder!r})
from power_jobs import command
sys.exit(command(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Job:
    """before: commands that make what is there; command: the job; output: what it makes, or changes."""

    name: str
    before: tuple[str, ...]
    command: str
    output: str


CONVERT = "--text-chunk-bytes 700 --chunk-tokens 512 --validation-fraction 0.3 --progress none --workers 2"
FIRST = f"convert a.txt packed.gz --tokenizer tok.json --output out {CONVERT}"
JOBS = {
    job.name: job
    for job in [
        Job("convert", (), FIRST, "out"),
        Job("replace", (FIRST,), FIRST.replace("a.txt", "b.txt") + " --overwrite", "out"),
        Job("convert with scratch", (), f"{FIRST} --scratch scratch", "out"),
        Job("compact", (FIRST,), "compact out --output whole", "whole"),
        Job("retokenize", (FIRST,), "retokenize out --tokenizer other.json --output new", "new"),
        Job("train", (), "train a.txt --vocab-size 300 --quiet --output new.json", "new.json"),
        Job(
            "train over a former one",
            ("train a.txt --vocab-size 300 --quiet --output new.json",),
            "train b.txt --vocab-size 290 --quiet --output new.json",
            "new.json",
        ),
        Job("count", (), "count a.txt --output new.counts --quiet", "new.counts"),
    ]
}


def command(words: Sequence[str]) -> int:
    """`tokenmill` with these words, with small shards."""
    from tokenmill.__main__ import main

    shard_writer.BUFFER_BYTES = 60
    plan.MIN_GIVEN_SHARD_BYTES = 700
    return main(list(words)) or 0


def in_fork(
    folder: Path, words: Sequence[str], work: Callable[[Sequence[str]], int] = command
) -> tuple[int, str]:
    """The exit status of a command in a fork that works in `folder`, and what it told."""
    told = folder.with_name(folder.name + ".told")
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.setsid()
            os.chdir(folder)
            output = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
            status = work(words)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    deadline, ended, status = time.monotonic() + SECONDS, 0, 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0 if ended else 0.003)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
    text = told.read_text(errors="replace")
    told.unlink()
    return os.waitstatus_to_exitcode(status) if ended else -99, text


class Outcomes:
    """A job that was recorded in `folder`, and the states that are tried of it."""

    def __init__(self, job: Job, folder: Path, library: Path, forget: str = "") -> None:
        self._job = job
        self._tried = folder / "job"  # outputs may tell absolute paths of inputs
        root = self._tried
        root.mkdir()
        make_inputs(root)
        for words in job.before:
            status, told = in_fork(root, words.split())
            assert status == 0, told
        for path in root.rglob("*"):
            if path.is_file():
                os.utime(path, (1e9, 1e9))
        self._former = _part_of(tree(root), job.output)
        self.record = Record(root, forget)
        self.record.run(
            library,
            [sys.executable, "-c", COMMAND.format(folder=str(Path(__file__).parent)), *job.command.split()],
        )
        self._finished = _part_of(tree(root), job.output)
        self.counts = {"former": 0, "finished": 0, "refused": 0}

    def judge(self, state: State, must_be_finished: bool = False) -> str | None:
        """What is wrong in this state, None if nothing is."""
        shutil.rmtree(self._tried, ignore_errors=True)
        self._tried.mkdir()
        state.write(self._tried)
        how, told = self._look(_part_of(state.files, self._job.output))
        if how == "wrong":
            return told
        self.counts[how] += 1
        if must_be_finished and how != "finished":
            return f"the command had ended with 0, but the output is {how}: {told}"
        if how == "finished":
            return None
        status, output = in_fork(self._tried, self._job.command.split())
        if "Traceback" in output:
            return f"{how} ({told}), then a traceback: {output[-1500:]}"
        found = _part_of(tree(self._tried), self._job.output)
        listed = "listed" in output
        if status and not listed:
            return f"{how} ({told}), then exit status {status}: {output[-500:]}"
        if found != self._finished and not (listed and _visible(found) == _visible(self._finished)):
            return f"{how} ({told}), then other bytes: {_difference(found, self._finished)}; {output[-300:]}"
        return None

    def _look(self, found: dict[str, bytes | None]) -> tuple[str, str]:
        """former, finished, refused or wrong, with a reason."""
        if found == self._finished:
            return "finished", ""
        path = self._tried / self._job.output
        if _visible(found) == _visible(self._former):
            return "former", ""
        if not path.is_dir():
            return "wrong", f"{self._job.output} is neither the former one nor the new one"
        try:
            report = flat_tokens.verify_dataset(path)
        except ERRORS as error:
            return "refused", str(error)
        if report.ok and _visible(found) in (_visible(self._former), _visible(self._finished)):
            return "former" if _visible(found) == _visible(self._former) else "finished", ""
        try:
            dataset = flat_tokens.open(path)
            dataset.train.rows(range(1), 4)
        except ERRORS as error:
            return "refused", str(error)
        problem = report.problems[0] if report.problems else "other tokens"
        return "wrong", f"{self._job.output} opens and is wrong: {problem}"


def _part_of(files: dict[str, bytes | None], name: str) -> dict[str, bytes | None]:
    """What lies at a path and below."""
    return {path: data for path, data in files.items() if path == name or path.startswith(f"{name}/")}


def _visible(files: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """What a reader of a dataset sees: not what an unfinished part or a version that was not yet named holds."""
    versions = sorted(path for path in files if "/versions/" in path and path.endswith(".json"))
    parts = {f"part-{path.rpartition('/')[2].removesuffix('.json')}" for path in versions}
    seen = {}
    for path, data in files.items():
        names = path.split("/")
        if any(name.startswith((".put-", "part-")) and name not in parts for name in names[1:2] + names[-1:]):
            continue
        if names[1:] == ["versions"]:
            continue
        seen[path] = data
    return seen


def _difference(found: dict[str, bytes | None], wanted: dict[str, bytes | None]) -> str:
    return str(
        sorted(path for path in {*found, *wanted} if found.get(path, b"-") != wanted.get(path, b"-"))[:4]
    )


def make_inputs(root: Path) -> None:
    """Texts, two tokenizers and a folder for scratch."""
    (root / "scratch").mkdir()
    rng = random.Random(3)
    words = ["the", "of", "naïve", "東京都", "it's", "\n\n", "x1"]
    texts = [" ".join(rng.choices(words, k=rng.choice([0, 3, 20, 60]))) for _ in range(24)]
    for name, own in [("a.txt", texts[:12]), ("b.txt", texts[12:20]), ("c.txt", texts[20:])]:
        (root / name).write_text(END.join(own), encoding="utf-8", newline="")
    (root / "packed.gz").write_bytes(gzip.compress(END.join(texts[::3]).encode(), mtime=0))
    for name, count in [("tok.json", 30), ("other.json", 12)]:
        merges = reference.train(reference.count_pretokens(texts, [END]), count)
        vocab = {index: bytes([byte]) for index, byte in enumerate(reference.printable_bytes())}
        for left, right in merges:
            if left + right not in vocab.values():
                vocab[len(vocab)] = left + right
        Tokenizer(vocab, merges, [END]).save(root / name)
