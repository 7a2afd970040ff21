"""Who is at a dask scheduler, looked at now and then: workers that come and go, and, while no result comes, what holds
it up, which nothing else would tell: a scheduler that does not answer, workers that are silent or that take no tasks.

dask itself gives the tasks of a silent worker to others, after `distributed.scheduler.worker-ttl` (five minutes).
"""

from __future__ import annotations

import time
from typing import Any

from tokenmill.engines.engine import Notice
from tokenmill.engines.errors import EngineFailure

CONNECT_SECONDS = 10
QUIET_SECONDS = 30.0  # without a word of the scheduler, a result, or a sign of life of a worker
GIVEN_UP_SECONDS = 300.0  # a scheduler that does not answer for so long counts as gone
_LOOK_SECONDS = 2.0
_LONG_SECONDS = 1800.0  # without a result, which is said where all is to be quiet, too
_ALONE_SECONDS = 60.0  # without a worker; told when twice as many have passed, and so on


class DaskWatch:
    """Looks by `client` at the scheduler at `address`, and tells what it sees by `notice`."""

    def __init__(self, client: Any, address: str, notice: Notice) -> None:
        self._client, self._address, self._notice = client, address, notice
        self.threads: dict[str, int] = {}  # of workers by address
        self._is_seen = False
        self._alone, self._next_word = 0.0, _ALONE_SECONDS  # seconds without a worker; when that is told
        self._next_look = self._next_close_look = 0.0
        self._last_look = time.monotonic()
        self._silent = self._quiet = 0.0  # seconds without an answer of the scheduler, without a result
        self._alive: dict[
            str, tuple[Any, float]
        ] = {}  # a worker's last sign of life, and when it was new here
        self._told = ""

    def moved(self) -> None:
        """A result has come."""
        self._quiet = 0.0

    def look(self) -> None:
        """Look, if it is time; EngineFailure if the scheduler has not answered for GIVEN_UP_SECONDS."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        # What is longer is this process's own: it stood still, or did something else.
        passed = min(now - self._last_look, CONNECT_SECONDS + 2 * _LOOK_SECONDS)
        self._silent += passed
        self._quiet += passed
        self._last_look = now
        try:
            self._take(self._client.nthreads(callback_timeout=CONNECT_SECONDS), passed)
            if self._quiet >= QUIET_SECONDS / 3 and now >= self._next_close_look:
                self._next_close_look = (
                    now + QUIET_SECONDS / 4
                )  # all that workers tell is long where they are many
                found = self._client.sync(
                    self._client.scheduler.identity, n_workers=-1, callback_timeout=CONNECT_SECONDS
                )
                self._look_closely(found["workers"], now)
        except OSError:  # the client tries to connect again; its status tells when it gives up
            if self._silent >= GIVEN_UP_SECONDS:
                raise EngineFailure(
                    f"dask scheduler {self._address}: no answer for {self._silent:.0f} s. Run the same command again "
                    "to resume."
                ) from None
            if self._silent >= QUIET_SECONDS:
                self._tell(
                    f"warning: dask scheduler {self._address}: no answer, waiting for at most {GIVEN_UP_SECONDS:.0f} s",
                    waits=True,
                )
            return
        self._silent = 0.0

    def _take(self, seen: dict[str, int], passed: float) -> None:
        lost = sorted(self.threads.keys() - seen.keys())
        if lost:
            others = ". The others redo its tasks." if seen else ""
            self._notice(f"warning: dask worker {_some(lost)}: lost, {len(seen)} left{others}")
        if not seen and (lost or not self._is_seen):
            self._notice(f"dask scheduler {self._address}: waiting for workers")
        self.threads, self._is_seen = seen, True
        self._alone = 0.0 if seen else self._alone + passed
        if not self._alone:
            self._next_word = _ALONE_SECONDS
        elif self._alone >= self._next_word:  # waited for however long: a queue may give one hours later
            self._next_word *= 2
            self._notice(
                f"warning: dask scheduler {self._address}: no workers for {self._alone:.0f} s. Start workers, or stop "
                "the command and run it again later to resume.",
                waits=True,
            )

    def _look_closely(self, workers: dict[str, dict[str, Any]], now: float) -> None:
        # Clocks differ: what counts is whether a sign of life is another than at the last look.
        before, self._alive = self._alive, {}
        for name, found in workers.items():
            sign = found.get("last_seen")
            last, since = before.get(name, (None, now))
            self._alive[name] = (sign, since if sign == last else now)
        silent = [name for name, (_, since) in self._alive.items() if now - since >= QUIET_SECONDS]
        held = [name for name, found in workers.items() if found.get("status") == "paused"]
        if silent:
            self._tell(
                f"warning: dask worker {_some(silent)}: no heartbeat. Stop it if it hangs, so that others redo its "
                "tasks.",
                waits=True,
            )
        elif held and len(held) == len(workers):
            self._tell(
                f"warning: dask scheduler {self._address}: all {len(held)} workers are paused because their memory is "
                "full. Give them more memory.",
                waits=True,
            )
        elif workers and self._quiet >= 2 * QUIET_SECONDS:
            is_long = self._quiet >= _LONG_SECONDS
            how_long = "half an hour" if is_long else "a minute"
            self._tell(
                f"warning: dask scheduler {self._address}: no task finished for {how_long} on {len(workers)} workers. "
                f"Check their logs.",
                waits=is_long,
            )
        else:
            self._told = ""

    def _tell(self, text: str, waits: bool = False) -> None:
        """Once, as long as it is so."""
        if text != self._told:
            self._told = text
            self._notice(text, waits=waits)


def _some(names: list[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
