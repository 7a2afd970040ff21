"""dask and Ray: clients, names, options and loggers of callers, and a cluster that is gone."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from sample_tasks import square

from tokenmill.engines import cluster_engine, ray_engine
from tokenmill.engines.choose import EngineOptions, open_engine
from tokenmill.engines.errors import EngineFailure


@pytest.fixture(autouse=True)
def many_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_engine, "LOOK_SECONDS", 0.02)


def wait_until(is_so: Callable[[], bool]) -> None:
    stop = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < stop
        time.sleep(0.01)


def test_a_client_of_the_caller_is_used_and_left_open(dask_cluster: Any) -> None:
    import distributed

    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    keys: list[str] = []
    with distributed.Client(dask_cluster.address, set_as_default=False) as client:
        submit = client.submit

        def spy(*arguments: Any, **options: Any) -> Any:
            assert options["priority"] == 5
            keys.append(options["key"])
            return submit(*arguments, **options)

        client.submit = spy
        engine = open_engine(EngineOptions(client, executor_options={"priority": 5}), print)
        assert engine.worker_count == 2
        assert engine.submit(square, 3, name="encode-3").result(60) == 9
        assert engine.submit(square, 4).result(60) == 16
        engine.shutdown()
        assert client.status == "running"
    assert keys[0].startswith("encode-3-")
    assert keys[1].startswith("square-")
    assert before == [(logger.level, list(logger.handlers)) for logger in loggers]


def test_the_number_of_workers_follows_the_cluster(dask_cluster: Any) -> None:
    notices: list[str] = []
    engine = open_engine(EngineOptions("dask", scheduler=dask_cluster.address), notices.append)
    for workers in (0, 2):
        dask_cluster.ask(f"scale {workers}")
        wait_until(lambda workers=workers: engine.worker_count == max(workers, 1))  # type: ignore[misc]
        engine.check()
    assert notices == [f"dask scheduler {dask_cluster.address}: waiting for workers"]
    engine.shutdown()


class Head:
    """Ray as the engine sees it; `answers` is clear while `nodes` waits."""

    def __init__(self) -> None:
        self.exceptions = type("exceptions", (), {"RayError": OSError})
        self.answers, self.is_shut_down = threading.Event(), False
        self.answers.set()
        self.initialized: dict[str, Any] = {}
        self.given: list[dict[str, Any]] = []  # options of tasks

    def is_initialized(self) -> bool:
        return False

    def init(self, address: str, **options: Any) -> None:
        self.initialized = {"address": address, **options}

    def remote(self, function: Any) -> Any:
        def options(**given: Any) -> Any:
            self.given.append(given)
            return type("Remote", (), {"remote": staticmethod(run)})

        def run(call: bytes) -> Any:
            answer: Future[Any] = Future()
            answer.set_result(function(call))
            return type("Reference", (), {"future": staticmethod(lambda: answer)})

        return type("Function", (), {"options": staticmethod(options)})

    def nodes(self) -> list[dict[str, Any]]:
        self.answers.wait()
        return [{"Alive": True, "Resources": {"CPU": 3.0}}, {"Alive": False}]

    def shutdown(self) -> None:
        self.is_shut_down = True


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Iterator[Head]:
    found = Head()
    monkeypatch.setattr(ray_engine, "package_of", lambda executor, name: found)
    yield found
    found.answers.set()


def test_tasks_of_ray_have_names_and_options_and_its_loggers_are_the_callers(head: Head) -> None:
    engine = open_engine(EngineOptions("ray", address="auto", executor_options={"num_cpus": 2}), print)
    assert engine.worker_count == 3
    assert engine.submit(square, 3, name="encode-3").result(10) == 9
    assert engine.submit(square, 3).result(10) == 9
    assert head.given[0] == {"name": "encode-3", "num_cpus": 2, "max_retries": 3}
    assert head.given[1]["name"] == "square"
    assert head.initialized == {"address": "auto", "configure_logging": False}
    engine.shutdown()
    assert head.is_shut_down


def test_a_handler_that_python_did_not_install_was_a_type_error(
    head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.getsignal", lambda number: None)
    open_engine(EngineOptions("ray", address="auto"), print).shutdown()
    assert head.is_shut_down


@pytest.mark.parametrize("form", ["[::1]:{}", "ray://[::1]:{}", "127.0.0.1:{}"])
def test_addresses_of_ray(form: str, head: Head) -> None:
    family, host = (socket.AF_INET6, "::1") if "::1" in form else (socket.AF_INET, "127.0.0.1")
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("this machine has no such address")
    with server:
        address = form.format(server.getsockname()[1])
        open_engine(EngineOptions("ray", address=address), print).shutdown()
        assert head.initialized["address"] == address
    with pytest.raises(EngineFailure, match="cannot connect"):
        open_engine(EngineOptions("ray", address=address), print)


def test_a_head_that_is_gone_was_waited_for_until_ray_ended_the_process(
    head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine.RayEngine, "silent_seconds", 0.1)
    monkeypatch.setattr(ray_engine, "LOOK_SECONDS", 0.02)
    engine = open_engine(EngineOptions("ray", address="auto"), print)
    head.answers.clear()

    def is_fine() -> bool:
        engine.check()
        return False

    with pytest.raises(EngineFailure, match="connection lost"):
        wait_until(is_fine)
    engine.kill()
    assert not head.is_shut_down
