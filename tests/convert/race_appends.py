"""Two commands that append to one dataset on a store at once, while requests wait, come twice and late, and one of the
two is killed or stands still; each that was not carried out is given again, alone.

What may come out: each that ends with 0 is listed, each that is refused (exit 6, in one line) is not, and none is
listed twice. When both were carried out, the newest version has both parts, each with the bytes that a disk has of its
file, what was there before is untouched, and nothing lies beside them. Read as a stranger does: listings, MD5, JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import md5
from pathlib import Path
from typing import NamedTuple

from faulty_proxy import HARMLESS, ORDERS, Faults, Strike, faulty_proxy
from injector import end_group
from naive_conversion import END, make_documents, train_tokenizer, tree
from race_attempts import DRIVER, Problem
from race_places import NAME, StorePlace, temporary_files
from race_runs import RUNS_OF_A_CORPUS, Result
from race_settings import LEASE_SECONDS
from store_faults import KILLED, Ended, Run

from convert import ConvertOptions, convert
from tokenmill.engines.inline_engine import InlineEngine

_FILES = ("first", "second")
_REFUSED = 6
_MOST_TURNS = 5  # of a command that is given alone, until it is carried out
_SMALL = {"chunk_tokens": 64, "validation_fraction": 0.2, "zarr_format": 3}


class PairSettings(NamedTuple):
    """fault: "", "killed" or "stopped", of the first command at its request number `at`, before or after which; begins:
    seconds until the second does, which of a fault that stops the first count from then on."""

    number: int
    executor: str
    fault: str
    at: int
    when: str
    begins: float
    network: Faults

    @property
    def text(self) -> str:
        """In one line."""
        first = f", first {self.fault} {self.when} request {self.at}" if self.fault else ""
        network = f"{self.network.rate:g} of {' '.join(self.network.kinds)}"
        return f"{self.executor}, second after {self.begins:.1f} s{first}, requests {network}"


def choose_pair(rng: random.Random, number: int) -> PairSettings:
    fault = rng.choice(["", "killed", "stopped"])
    kinds: tuple[tuple[float, Sequence[str]], ...] = (
        (0.0, ORDERS),
        (0.3, ("wait",)),
        (0.2, ORDERS),
        (0.03, (*ORDERS, *HARMLESS, "lost")),
    )
    rate, names = rng.choice(kinds)
    return PairSettings(
        number,
        rng.choice(["own", "threads"]),
        fault,
        int(10 ** rng.uniform(0, 2)),
        rng.choice(["before", "after"]),
        rng.choice([0.0, 0.0, 0.1, 0.5, LEASE_SECONDS, 2 * LEASE_SECONDS]),
        Faults(names, rate, rng.randrange(1 << 32), late_seconds=rng.choice([0.02, 0.2, 0.6])),
    )


class AppendRaces:
    """Pairs of commands, in folders of their own below `folder`; as Races, of stores alone."""

    def __init__(self, folder: Path, seed: int, endpoint: str, keep: bool = False, planted: str = "") -> None:
        self._folder, self._seed, self._endpoint = folder, seed, endpoint
        self._keep, self._planted = keep, planted
        train_tokenizer(folder / "tok.json")

    def group(self, group: int, numbers: Sequence[int] = ()) -> Iterator[Result]:
        """The runs of this number of group, or those of them, as often as they are named."""
        first = group * RUNS_OF_A_CORPUS
        for turn, number in enumerate(numbers or range(first, first + RUNS_OF_A_CORPUS)):
            settings = choose_pair(random.Random(f"{self._seed} pair {number}"), number)
            root = self._folder / f"pair-{number}-{turn}"
            root.mkdir()
            shutil.copy(self._folder / "tok.json", root)
            started = time.monotonic()
            with ExitStack() as stack:
                pair = _Pair(root, self._endpoint, settings, self._planted, stack)
                found = pair.run() or Problem("", "")
            yield Result(settings, time.monotonic() - started, *found, "", settings.fault != "")
            if found.kind and self._keep:
                return
            shutil.rmtree(root)


class _Pair:
    """expected: MD5 by path, of the dataset and of each part."""

    def __init__(
        self, root: Path, endpoint: str, settings: PairSettings, planted: str, stack: ExitStack
    ) -> None:
        self._root, self._endpoint, self._settings, self._planted = root, endpoint, settings, planted
        self._stack, self._runs = stack, list[Run]()
        self._expected: dict[str, dict[str, str]] = {}
        self._place = self._new_place(Faults())
        self._place.clear()
        for seed, name in enumerate((NAME, *_FILES)):
            documents = make_documents(25, seed=settings.number * len((NAME, *_FILES)) + seed)
            (root / f"{name}.txt").write_text(END.join(documents), newline="")
            local = str(root / f"{name}.zarr")
            options = ConvertOptions(
                [str(root / f"{name}.txt")], str(root / "tok.json"), local, progress="none", **_SMALL
            )
            convert(options, InlineEngine())
            files = tree(Path(local))
            self._expected[name] = {path: md5(data).hexdigest() for path, data in files.items()}
            if name == NAME:
                for path, data in files.items():
                    self._place.put(f"{NAME}/{path}", data)

    def run(self) -> Problem | None:
        """The first thing that is wrong."""
        try:
            return self._two_at_once() or self._the_rest() or self._at_last()
        finally:
            for run in self._runs:
                end_group(run.pid, 0)
            self._place.clear()

    def _two_at_once(self) -> Problem | None:
        settings, second = self._settings, self._new_place(self._settings.network)
        first = self._new_place(settings.network)
        struck = threading.Event()

        def strike(port: int) -> bool:
            stop = settings.fault == "stopped"
            os.kill(self._runs[0].pid, signal.SIGSTOP if stop else signal.SIGKILL)
            struck.set()
            return stop

        if settings.fault:
            first.proxy.faults.strikes = [Strike("", settings.at, settings.when, call=strike)]
        self._start(_FILES[0], first)
        while settings.fault == "stopped" and not struck.wait(0.05) and self._runs[0].process.poll() is None:
            pass
        time.sleep(settings.begins)
        other = self._start(_FILES[1], second).wait()
        if settings.fault == "stopped" and struck.is_set():
            os.kill(self._runs[0].pid, signal.SIGCONT)
        ended = {_FILES[0]: self._runs[0].wait(), _FILES[1]: other}
        for name, each in ended.items():
            codes = (0, _REFUSED, KILLED) if name == _FILES[0] and struck.is_set() else (0, _REFUSED)
            if problem := _problem_of(each, codes) or self._is_told_right(name, each):
                return problem
        return None

    def _is_told_right(self, name: str, ended: Ended) -> Problem | None:
        count = self._listed().count(name)
        if ended.code == 0 and count != 1:
            return Problem("lost or doubled", f"exit code 0, and its part is listed {count} times")
        if ended.code == _REFUSED and count:
            return Problem("refused and listed", ended.output)
        return None

    def _the_rest(self) -> Problem | None:
        """What was not carried out is given again; who was killed looks first whether it was."""
        for name in _FILES:
            for _ in range(_MOST_TURNS):
                if name in self._listed():
                    break
                time.sleep(1.2 * LEASE_SECONDS)
                ended = self._start(name, self._place).wait()
                if problem := _problem_of(ended, (0, _REFUSED)) or self._is_told_right(name, ended):
                    return problem
            else:
                return Problem("never done", f"{_MOST_TURNS} times refused: {ended.output}")
        return None

    def _at_last(self) -> Problem | None:
        listed = self._listed()
        if sorted(listed) != sorted(_FILES):
            return Problem("lost or doubled", f"the newest version has the parts {listed}")
        expected = dict(self._expected[NAME])
        for number, name in enumerate(listed, 1):
            expected |= {f"part-{number}/{path}": hash_ for path, hash_ in self._expected[name].items()}
        found = {
            path: hash_ for path, hash_ in self._place.found().items() if not path.startswith("versions/")
        }
        other = sorted(path for path, hash_ in expected.items() if found.get(path) != hash_)
        if other:
            return Problem("other bytes", f"{len(other)} objects are not those of a disk: {other[:5]}")
        if problems := self._place.problems():
            return Problem("not sound", problems[0])
        may_be_late = "late" in self._settings.network.kinds and self._settings.network.rate > 0
        left = sorted(found.keys() - expected.keys()) + self._place.remains()
        left += [name for machine in self._root.glob("machine-*") for name in temporary_files(machine)]
        if left and not may_be_late and self._settings.fault != "killed":
            return Problem("remains", f"{left[:5]} is left")
        return None

    def _listed(self) -> list[str]:
        """The files whose parts the newest version has, in order; "?" for one that is neither's."""
        keys = {path for path, _ in self._place.listed(NAME)}
        number = sum(path.startswith("versions/") for path in keys)
        if not number:
            return []
        names = {self._expected[name]["manifest.json"]: name for name in _FILES}
        found = self._place.found()
        parts = [
            part["path"] for part in json.loads(self._place.got(f"{NAME}/versions/{number}.json"))["parts"]
        ]
        return [names.get(found.get(f"{path}/manifest.json", ""), "?") for path in parts if path]

    def _new_place(self, faults: Faults) -> StorePlace:
        proxy = self._stack.enter_context(faulty_proxy(self._endpoint, faults))
        return StorePlace(self._endpoint, self._root.name, self._root, proxy)

    def _start(self, name: str, place: StorePlace) -> Run:
        told = {"executor": self._settings.executor, "lease_seconds": LEASE_SECONDS, "planted": self._planted}
        told |= dict.fromkeys(("flush_bytes", "shard_bytes", "run_tokens"), 0)
        command = [
            sys.executable,
            DRIVER,
            json.dumps(told),
            self._root / f"{name}.txt",
            "--append-to",
            place.output,
        ]
        command += ["--tokenizer", self._root / "tok.json", *place.words(""), "--workers", "2"]
        command += ["--text-chunk-bytes", "700", "--progress", "none"]
        temporary = self._root / f"machine-{len(self._runs)}"
        temporary.mkdir()
        self._runs.append(Run(command, self._root, temporary))
        return self._runs[-1]


def _problem_of(ended: Ended, codes: Sequence[int]) -> Problem | None:
    if ended.hung:
        return Problem("hang", ended.output[-2000:])
    if "Traceback" in ended.output or ended.code not in codes:
        return Problem(f"exit code {ended.code}", ended.output[-2000:])
    errors = [line for line in ended.output.splitlines() if line.startswith("tokenmill: error: ")]
    if len(errors) != (ended.code == _REFUSED):
        return Problem("no line", ended.output[-2000:])
    return None
