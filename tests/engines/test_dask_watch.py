"""What holds up the work of a dask cluster is told, once, and a scheduler that never answers ends it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tokenmill.engines import dask_watch
from tokenmill.engines.dask_watch import GIVEN_UP_SECONDS, QUIET_SECONDS, DaskWatch
from tokenmill.engines.errors import EngineFailure


class Cluster:
    """A client as the watch sees it. workers: None: the scheduler does not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.told, self.waits = 1000.0, list[str](), list[bool]()
        self.workers: dict[str, dict[str, Any]] | None = {name: {"last_seen": 0.0} for name in "ab"}
        self.scheduler = type("Scheduler", (), {"identity": None})
        monkeypatch.setattr(dask_watch.time, "monotonic", lambda: self.now)
        self.watch = DaskWatch(self, "tcp://s", self._notice)

    def _notice(self, text: str, waits: bool = False) -> None:
        self.told.append(text)
        self.waits.append(waits)

    def nthreads(self, callback_timeout: float) -> dict[str, int]:
        return dict.fromkeys(self.sync(None)["workers"], 2)

    def sync(self, function: Any, **more: Any) -> dict[str, Any]:
        if self.workers is None:
            self.now += dask_watch.CONNECT_SECONDS
            raise TimeoutError
        return {"workers": self.workers}

    def wait(self, seconds: float, alive: str = "ab") -> None:
        """Those that are alive say so meanwhile."""
        stop = self.now + seconds
        while self.now < stop:
            self.now += 1
            for name in alive if self.workers else "":
                self.workers[name]["last_seen"] = self.now
            self.watch.look()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def test_tasks_that_take_long_are_told_once(cluster: Cluster) -> None:
    cluster.wait(QUIET_SECONDS)
    assert cluster.told == []
    cluster.wait(20 * QUIET_SECONDS)
    (told,) = cluster.told
    assert re.search("tcp://s: .* a minute .*2 workers", told)
    cluster.wait(60 * QUIET_SECONDS)
    assert re.search("tcp://s: .* half an hour ", cluster.told[-1])
    assert cluster.waits == [False, True]


def test_workers_that_work_are_nothing_to_tell(cluster: Cluster) -> None:
    for _ in range(20):
        cluster.wait(QUIET_SECONDS)
        cluster.watch.moved()
    assert cluster.told == []


def test_a_worker_that_stands_still_held_up_all_without_a_word(cluster: Cluster) -> None:
    cluster.wait(4 * QUIET_SECONDS, alive="a")
    (told,) = cluster.told
    assert "dask worker b: " in told
    cluster.watch.moved()
    cluster.wait(QUIET_SECONDS)
    cluster.wait(4 * QUIET_SECONDS, alive="b")
    assert "dask worker a: " in cluster.told[-1]


def test_workers_whose_memory_is_full_held_up_all_without_a_word(cluster: Cluster) -> None:
    assert cluster.workers is not None
    cluster.workers["a"]["status"] = "paused"
    cluster.wait(2 * QUIET_SECONDS)
    assert cluster.told == []  # the other has the tasks
    cluster.workers["b"]["status"] = "paused"
    cluster.wait(3 * QUIET_SECONDS)
    (told,) = cluster.told
    assert re.search("tcp://s: .*2 workers .*memory", told)


def test_a_scheduler_that_stands_still_was_waited_for_without_a_word_and_for_ever(cluster: Cluster) -> None:
    cluster.wait(10)
    known, cluster.workers = cluster.workers, None
    cluster.wait(2 * QUIET_SECONDS)
    assert ["tcp://s: " in told and "300 s" in told for told in cluster.told] == [True]
    assert cluster.waits == [True]
    cluster.workers = known
    cluster.wait(10)
    cluster.workers = None
    with pytest.raises(EngineFailure):
        cluster.wait(2 * GIVEN_UP_SECONDS)


def test_a_stop_of_this_process_is_no_silence_of_the_scheduler(cluster: Cluster) -> None:
    cluster.wait(10)
    cluster.now += 10 * GIVEN_UP_SECONDS
    known, cluster.workers = cluster.workers, None
    cluster.watch.look()
    cluster.workers = known
    cluster.wait(10)
    assert cluster.told == []


def test_who_comes_and_goes(cluster: Cluster) -> None:
    cluster.watch.look()
    assert cluster.watch.threads == {"a": 2, "b": 2}
    cluster.workers = {}
    cluster.wait(5)
    lost, waits = cluster.told
    assert re.search(r"^warning: dask worker a and 1 more: .*\b0\b", lost)
    assert "tcp://s: " in waits


def test_a_cluster_without_workers_was_waited_for_without_a_word(cluster: Cluster) -> None:
    """Under --quiet; and else with one, which did not say how long, and one that looked for a fault of 0 workers."""
    cluster.watch.look()
    cluster.workers = {}
    cluster.wait(900)
    assert cluster.waits == [False, False, True, True, True, True]
    assert re.findall(r"tcp://s: .*?(\d+) s", "\n".join(cluster.told[2:])) == [
        "60",
        "120",
        "240",
        "480",
    ]
    cluster.workers = {"c": {"last_seen": 0.0}}
    cluster.wait(5, alive="c")
    cluster.workers = {}
    cluster.wait(70)
    assert cluster.waits[6:] == [False, False, True]
