"""Commands over a file system that behaves as NFS and its like do, compared with a local disk.

    python tools/check_network_disk.py [--points 200] [--seed 0] [--only late] [--job count] [--plant]

Each point takes a job and a kind of behaviour by the seed (tests/fault/network_disk.py), gives the command on such a
mount, and again on one without faults. What must be: a documented exit status, one line where it is not 0, no
traceback, no hang; after 0, and at the end, the whole folder as on a local disk, and nothing else in it. --plant: late
errors are not told, as if nobody looked at what close says; the check must fail. Needs Linux, /dev/fuse, fusermount
(fuse3) and `pip install mfusepy`, which the package does not need.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import random
import re
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / room) for room in ("fault", "stores"))]

from network_disk import Behaviour, Host  # noqa: E402 - found on the path above
from power_jobs import CONVERT, FIRST, JOBS, Job, command, in_fork, make_inputs  # noqa: E402
from power_loss import tree  # noqa: E402
from web_server import WebServer, web_server  # noqa: E402

import flat_tokens  # noqa: E402
from tokenmill.cli.failures import ended_by  # noqa: E402

MASKED = "convert marked.jsonl --prompt-field prompt --completion-field completion --tokenizer tok.json --output out "
EXPORT = "export out --to npy --output exported"
OWN = [
    Job("convert, format 3", (), FIRST.replace("--workers 2", "--workers 1 --zarr-format 3"), "out"),
    Job("convert, loss mask", (), MASKED + CONVERT, "out"),
    Job("export", (FIRST,), EXPORT, "exported"),
    Job("export over a former one", (FIRST, EXPORT), EXPORT + " --overwrite", "exported"),
    Job(
        "count in tasks",
        (),
        "count long.txt --executor process --workers 2 --scratch . --text-chunk-bytes 40k --output new.counts --quiet",
        "new.counts",
    ),
    Job(
        "train with little memory",
        (),
        "train long.txt --vocab-size 300 --max-memory 160MB --temp-dir . --output new.json --quiet"
        " --keep-counts kept.counts",
        "new.json",
    ),
    Job("loader", (FIRST,), "load {url}/out", "cache"),  # by two processes together: of two hosts
    Job("verify", (FIRST,), "verify out --workers 2", "out"),
]
ALL = {**JOBS, **{job.name: job for job in OWN}}
KINDS = ("repeats", "late", "stale", "old", "locks", "unsupported", "taken over", "together")
STATUSES = {0, 3, 4, 5, 6}


def work(words: Sequence[str]) -> int:
    """A command of tokenmill; "load URL" reads `out` and what is at the URL, cached in `cache`, and compares."""
    if words[0] != "load":
        status: int = command(words)
        return status
    try:
        here = flat_tokens.open("out").train
        for _ in range(3):
            there = flat_tokens.open(words[1], cache_dir="cache").train
            loaders = [flat_tokens.Loader(each, seq_len=16, batch_size=2) for each in (here, there)]
            for step in range(12):
                own, cached = (loader.batch(step) for loader in loaders)
                if not np.array_equal(own.inputs, cached.inputs):
                    return 1
    except Exception as error:
        return ended_by(error, debug=False)
    return 0


class Check:
    """The jobs and what a local disk has after them; folder: where all of it happens. server: of datasets, for
    loaders."""

    def __init__(self, folder: Path, plant: bool, server: WebServer) -> None:
        self._folder, self._plant, self._web = folder, plant, server
        self._server, self._host, self._other = folder / "server", folder / "host", folder / "other"
        self._known: dict[str, tuple[Path, dict[str, bytes | None], dict[str, int]]] = {}
        self.counts: Counter[str] = Counter()

    def _prepared(self, job: Job) -> tuple[Path, dict[str, bytes | None], dict[str, int]]:
        """What is there before; what is there after; how many operations of each kind there are."""
        if job.name not in self._known:
            self._host.mkdir()
            make_inputs(self._host)
            (self._host / "long.txt").write_text((self._host / "a.txt").read_text() * 40)
            records = [{"prompt": f"the {at} of", "completion": f"it's {at} naïve"} for at in range(60)]
            (self._host / "marked.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
            for words in job.before:
                status, told = in_fork(self._host, words.split())
                assert status == 0, told
            for path in self._host.rglob("*"):
                if path.is_file():
                    os.utime(path, (1e9, 1e9))
            before = self._folder / f"before {job.name}"
            shutil.copytree(self._host, before, copy_function=shutil.copy2)
            if job.name == "loader":
                self._web.files.update(
                    {f"/{key}": data for key, data in tree(before).items() if data is not None}
                )
            words = job.command.format(url=self._web.url).split()
            status, told = in_fork(self._host, words, work)
            assert status == 0, told
            after = _kept(tree(self._host))
            shutil.rmtree(self._host)
            self._reset(before)
            with Host(self._server, self._host, Behaviour()) as host:
                status, told = in_fork(self._host, words, work)
            assert status == 0, told
            assert self._found() == after, _difference(self._found(), after)
            self._known[job.name] = before, after, vars(host.counts)
        return self._known[job.name]

    def _reset(self, before: Path) -> None:
        shutil.rmtree(self._server, ignore_errors=True)
        shutil.copytree(before, self._server, copy_function=shutil.copy2)

    def _found(self) -> dict[str, bytes | None]:
        return _kept(tree(self._server))

    def point(self, job: Job, kind: str, rng: random.Random) -> str | None:
        """What is wrong; None: nothing."""
        before, after, operations = self._prepared(job)
        self._reset(before)
        behaviour = _chosen(kind, rng, operations, self._plant)
        words = job.command.format(url=self._web.url).split()
        others: list[tuple[int, str]] = []
        with Host(self._server, self._host, behaviour) as host:
            if kind == "together":
                with Host(self._server, self._other, behaviour):
                    beside = threading.Thread(target=lambda: others.append(in_fork(self._other, words, work)))
                    beside.start()
                    first = in_fork(self._host, words, work)
                    beside.join()
            else:
                first = in_fork(self._host, words, work)
        self.counts[f"{kind}: struck"] += bool(host.counts.struck or first[0])
        self.counts[f"{kind}: exit {first[0]}"] += 1
        for status, told in (first, *others):
            if "Traceback" in told:
                return f"a traceback: {told[-1800:]}"
            if status == -99:
                return f"it hangs: {told[-500:]}"
            if status not in STATUSES and not (kind == "taken over" and status == -9):
                return f"exit status {status}: {told[-500:]}"
            if status > 0 and "error: " not in told:
                return f"exit status {status} without a line: {told[-500:]}"
        found = self._found()
        if first[0] == 0 and not others and found != after:
            return f"exit status 0, but {_difference(found, after)}: {first[1][-300:]}"
        for name in re.findall(r"are kept in (\S+):", first[1]):  # as documented, to go on with
            (self._server / name).unlink()
        again = (0, "")
        if found != after:
            with Host(self._server, self._host, Behaviour(cache_seconds=behaviour.cache_seconds)):
                again = in_fork(self._host, words, work)
                if again[0] == 6 and "exists" in again[1]:  # it was whole, but for remains
                    again = (0, again[1])
        if again[0] or self._found() != after:
            return (
                f"{first[0]}, {first[1][-300:]}; then {again[0]}, {again[1][-300:]}: "
                f"{_difference(self._found(), after)}"
            )
        return None


def _chosen(kind: str, rng: random.Random, operations: dict[str, int], plant: bool) -> Behaviour:
    names, written, handles = (max(1, operations[name]) for name in ("names", "written", "handles"))
    if kind == "repeats":
        count = rng.choice([1, 1, 1, 3])
        return Behaviour(repeats=tuple(rng.randint(1, names) for _ in range(count)))
    if kind == "late":
        error = rng.choice([errno.ENOSPC, errno.EDQUOT, errno.EIO])
        return Behaviour(
            late=rng.randint(1, written), late_at=rng.choice([0, 0, 100]), late_error=error, deaf=plant
        )
    if kind == "stale":
        return Behaviour(stale=rng.randint(1, handles))
    if kind == "old":
        return Behaviour(
            cache_seconds=rng.choice([1, 3, 30]),
            clock_seconds=rng.choice([-90, -7, 7, 90]),
            whole_seconds=rng.random() < 0.5,
        )
    if kind == "locks":
        return Behaviour(locks=rng.choice(["local", errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS]))
    if kind == "unsupported":
        return Behaviour(links=False, folder_sync=rng.random() < 0.3, is_direct=rng.random() < 0.5)
    if kind == "taken over":
        return Behaviour(kill=rng.randint(1, names), cache_seconds=rng.choice([0, 5]))
    return Behaviour(cache_seconds=rng.choice([0, 0, 1]))


def _kept(files: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """Without the blocks of a cache, which may be missing, but not its unfinished files."""
    return {path: data for path, data in files.items() if path.split("/")[0] != "cache" or "/.tmp-" in path}


def _difference(found: dict[str, bytes | None], wanted: dict[str, bytes | None]) -> str:
    return str(
        sorted(path for path in {*found, *wanted} if found.get(path, b"-") != wanted.get(path, b"-"))[:4]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=KINDS, help="these kinds only")
    parser.add_argument("--job", action="append", choices=list(ALL), help="these jobs only")
    parser.add_argument("--plant", action="store_true", help="a fault that the check must find")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, web_server() as server:
        check = Check(Path(folder), options.plant, server)
        for at in range(options.points):
            rng = random.Random(f"{options.seed} {at}")
            kind = rng.choice(options.only or KINDS)
            job = ALL[rng.choice(options.job or list(ALL))]
            if problem := check.point(job, kind, rng):
                wrong += 1
                print(f"point {at}, {kind}, {job.name}: {problem}", flush=True)
    for name, count in sorted(check.counts.items()):
        print(f"  {name}: {count}")
    print(f"{options.points} points, seed {options.seed}; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
