"""One run of a race: attempts that are killed, stopped and overtaken until one is complete.

No attempt may hang, print a traceback or end with a code that its fault does not allow. Of two drivers at one output,
one at most ends with 0. The result must be exactly the expected files, by a listing and the MD5 of an independent
reader. On a store, where requests may arrive late, one more command must remove the late objects.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from injector import Injector
from processes import ORPHAN_SECONDS, Outcome, Started, end_group, start
from race_corpora import Corpus
from race_places import Place, StorePlace, temporary_files
from race_settings import LEASE_SECONDS, REQUEST, REQUEST_KINDS, TWO_AT_ONCE, Fault, Settings
from store_faults import BATCH, HANG_SECONDS, Happening

DRIVER = Path(__file__).with_name("race_driver.py")
_REFUSED = 6
# Workers of standard pools outlive a killed parent, and forked ones hold its lock.
_OUTLIVING = ("fork-pool", "spawn-pool")
_LOCKED_SECONDS = 30.0
_LATE_SECONDS = 2.0  # for requests that were held or are in the network


class Problem(NamedTuple):
    """kind: one or two words."""

    kind: str
    text: str


class Attempts:
    """The run with these settings. expected: path -> MD5. planted: see race_driver.py. stopped: attempts that a fault
    ended."""

    def __init__(
        self,
        corpus: Corpus,
        injector: Injector,
        place: Place,
        settings: Settings,
        expected: dict[str, str],
        hang_seconds: float,
        planted: str = "",
    ) -> None:
        self.stopped, self._planted = 0, planted
        self._corpus, self._injector, self._place, self._expected = corpus, injector, place, expected
        self._settings, self._hang_seconds = settings, hang_seconds
        self._is_calm = True  # there was one attempt, without a fault
        self._groups: list[int] = []
        self._happenings: list[Happening] = []
        self._others: list[tuple[Started, Path]] = []

    def run(self) -> Problem | None:
        """Return the first problem."""
        try:
            found = self._attempts()
            for happening in self._happenings:
                happening.let_go()
        finally:
            left = [pid for group in self._groups for pid in end_group(group, 10)]
        if found is None and left:
            return Problem("processes left", f"{len(left)} processes are left")
        return found or self._finished()

    def _attempts(self) -> Problem | None:
        """Return None when the output is complete."""
        locked_until = 0.0
        faults = list(self._settings.faults)
        while True:
            fault, at = faults[0] if faults else (None, 0)
            ended = self._attempt(fault, at)
            others = self._ended_others()
            if problem := self._problem_of(ended, fault, others):
                return problem
            if self._place.is_published():  # an attempt may have been killed while it cleaned up
                return None
            if ended.code == 0:
                return Problem("no output", "exit code 0, and there is no output")
            if ended.code == _REFUSED and (fault is None or fault.mode != REQUEST):
                # The workers of the killed run keep the folder until their tasks end; on a store its lease remains.
                locked_until = locked_until or time.monotonic() + _LOCKED_SECONDS
                if time.monotonic() > locked_until:
                    return Problem("locked", ended.output)
                time.sleep(0.1)
                continue
            locked_until = 0.0
            executor = self._settings.executor
            if self._settings.waits or executor in _OUTLIVING:
                end_group(ended.group, 0 if executor in _OUTLIVING else ORPHAN_SECONDS)
            self.stopped += 1
            if isinstance(self._place, StorePlace):
                time.sleep(LEASE_SECONDS)
            if faults:
                faults.pop(0)
            # A resumed run may have another number of workers.
            self._settings = replace(self._settings, workers=1 + self._settings.workers * 7 % 5)

    def _problem_of(self, ended: Outcome, fault: Fault | None, others: Sequence[Outcome]) -> Problem | None:
        for each in (ended, *others):
            if each.hung:
                return Problem("hang", f"no end after {self._hang_seconds:g} s: {each.output[-2000:]}")
            if "Traceback" in each.output:
                return Problem("traceback", _end_of_traceback(each.output))
            codes = fault.codes if fault is not None and each is ended else ()
            if each.code == _REFUSED and ("another run" in each.output or "already exists" in each.output):
                continue
            if each.code not in (0, *codes):
                return Problem(f"exit code {each.code}", each.output[-2000:])
        if sum(each.code == 0 for each in (ended, *others)) > 1:
            return Problem("two winners", "two runs to one output ended with 0")
        return None

    def _attempt(self, fault: Fault | None, at: int) -> Outcome:
        """Start an attempt, with its fault, and wait for its end."""
        place, is_shim = self._place, fault is not None and fault.mode != REQUEST
        happening = None
        if isinstance(place, StorePlace):
            assert self._settings.store is not None
            place.proxy.faults = self._settings.store.network
            if fault is not None and fault.name in REQUEST_KINDS:
                kind = REQUEST_KINDS[fault.name]
                happening = Happening(kind, at, at, lambda: (), self._take_over(fault, at), lambda data: None)
                happening.proxy = place.proxy
                place.proxy.faults = replace(self._settings.store.network, strikes=happening.faults.strikes)
                self._happenings.append(happening)
            elif fault is not None and fault.name == TWO_AT_ONCE:
                self._begin_other()
        started = self._injector.start(
            self._command(),
            at if is_shim else 0,
            fault.mode if fault is not None and is_shim else "",
            who=fault.who if fault is not None else "all",
            reads=True,
            delays=self._settings.delays,
            temporary=place.temporary,
        )
        self._groups.append(started.pid)
        self._is_calm = fault is None and len(self._groups) == 1
        if happening is not None:
            happening.run = started
            happening.take_over()
        return started.wait(self._hang_seconds, settles=False)

    def _take_over(self, fault: Fault, at: int) -> Callable[[], None]:
        """Return a function that runs another driver while the first one is stopped and its lease expires."""

        def take_over() -> None:
            assert isinstance(self._place, StorePlace)
            time.sleep(LEASE_SECONDS)
            requests = self._place.proxy.requests
            before = len(requests)
            self._begin_other()
            other = self._others[-1][0].process
            if fault.name.endswith("takes over"):
                other.wait(self._hang_seconds)
            else:
                while other.poll() is None and not any(re.search(BATCH, line) for line in requests[before:]):
                    time.sleep(0.02)
                time.sleep(at % 4 * 0.2)

        return take_over

    def _begin_other(self) -> None:
        assert self._place.temporary is not None
        elsewhere = self._place.temporary / f"other-{len(self._groups)}"  # another machine
        elsewhere.mkdir()
        self._others.append(
            (start(self._command(), self._corpus.root, {"TMPDIR": str(elsewhere)}), elsewhere)
        )
        self._groups.append(self._others[-1][0].pid)

    def _ended_others(self) -> list[Outcome]:
        found = []
        for other, elsewhere in self._others:
            found.append(other.wait(HANG_SECONDS, settles=False))
            with suppress(OSError):  # `_finished` reports the rest
                if not temporary_files(elsewhere):
                    shutil.rmtree(elsewhere)
        self._others.clear()
        return found

    def _command(self) -> list[str | Path]:
        settings = self._settings
        driver = {
            "executor": settings.executor,
            "shard_bytes": settings.shard_bytes,
            "run_tokens": settings.run_tokens,
            "lease_seconds": LEASE_SECONDS,
            "planted": self._planted,
        }
        command = [sys.executable, DRIVER, json.dumps(driver), *self._corpus.command]
        command += [
            "--output",
            self._place.output,
            *self._place.words(settings.store.scratch if settings.store else ""),
        ]
        command += ["--workers", str(settings.workers), "--start-method", settings.start_method]
        return [*command, "--text-chunk-bytes", str(settings.chunk_bytes)]

    def _finished(self) -> Problem | None:
        """Return the problem of the output or of files next to it."""
        place = self._place
        if isinstance(place, StorePlace) and place.remains():
            if self._is_calm and not place.proxy.struck["late"]:
                return Problem(
                    "remains", f"{place.remains()[:5]} is left of a finished run that nothing happened to"
                )
            time.sleep(_LATE_SECONDS)
            place.proxy.faults = replace(place.proxy.faults, rate=0.0, strikes=())
            ended = self._injector.start(self._command(), temporary=place.temporary).wait(self._hang_seconds)
            if ended.code != _REFUSED or "already exists" not in ended.output:
                return Problem("one more run", f"it ends with {ended.code}: {ended.output[-2000:]}")
        found, expected = place.found(), self._expected
        if found != expected:
            other = [name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name)]
            return Problem(
                "other bytes",
                f"exit code 0, but {len(other)} of {len(expected)} files have other bytes: {' '.join(other[:5])}; "
                f"flat_tokens verify: {' '.join(place.problems()[:1]) or 'nothing wrong'}",
            )
        if left := place.remains():
            return Problem("remains", f"{left[:5]} is left of a finished run")
        return None


def _end_of_traceback(output: str) -> str:
    """Return the last frame and the error."""
    lines = output[output.rindex("Traceback") :].splitlines()
    end = next((place for place, line in enumerate(lines[1:], 1) if not line.startswith(" ")), len(lines) - 1)
    return "\n".join(lines[max(1, end - 4) : end + 1])
