"""A Ray cluster whose head does not answer is told, and ends the run before Ray ends the process."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tokenmill.engines import ray_engine
from tokenmill.engines.errors import EngineFailure
from tokenmill.engines.ray_engine import GIVEN_UP_SECONDS, QUIET_SECONDS, RayEngine


class Head:
    """Ray as the engine sees it; `answers` is clear while `nodes` waits."""

    def __init__(self) -> None:
        self.answers, self.asked, self.is_shut_down = threading.Event(), threading.Event(), False
        self.answers.set()

    def is_initialized(self) -> bool:
        return False

    def init(self, *arguments: Any, **options: Any) -> None: ...

    def remote(self, **options: Any) -> Any:
        return lambda function: function

    def nodes(self) -> list[dict[str, Any]]:
        self.asked.set()
        self.answers.wait()
        return [{"Alive": True, "NodeID": "a", "Resources": {"CPU": 3.0}}]

    def shutdown(self) -> None:
        self.is_shut_down = True


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Iterator[Head]:
    found = Head()
    monkeypatch.setattr(ray_engine, "package_of", lambda executor, name: found)
    monkeypatch.setattr(ray_engine, "_LOOK_SECONDS", 0.02)
    yield found
    found.answers.set()


def test_a_head_that_is_gone_was_waited_for_without_a_word_until_ray_ended_the_process(
    head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, bool]] = []
    engine = RayEngine("auto", lambda text, waits=False: told.append((text, waits)))
    assert engine.worker_count == 3
    head.answers.clear()
    head.asked.clear()
    assert head.asked.wait(10)
    engine.check()
    assert told == []
    engine._silent = QUIET_SECONDS - 0.001
    engine._last_check -= 1
    for _ in range(3):
        engine.check()
    assert [waits for _, waits in told] == [True]
    assert re.search(r"Ray cluster auto: .*\b50 s", told[0][0])
    engine._silent = GIVEN_UP_SECONDS
    with pytest.raises(EngineFailure):
        engine.check()
    engine.stop(60)  # without waiting for what will not come
    assert not head.is_shut_down


def test_a_head_that_answers_again(head: Head) -> None:
    engine = RayEngine("auto", lambda text, waits=False: None)
    engine._silent = GIVEN_UP_SECONDS - 1
    head.asked.clear()
    for _ in range(2):
        assert head.asked.wait(10)
        head.asked.clear()
    engine.check()
    assert engine._silent < QUIET_SECONDS
    engine.shutdown()
    assert head.is_shut_down
