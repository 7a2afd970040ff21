"""Work begun ahead: in a thread or when it is asked for, with the same results and errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.loading.loader import Loader
from flat_tokens.loading.mixing import Mixture
from flat_tokens.rows.ahead import working_ahead
from flat_tokens.storage.layout import ArrayLayout


def fails() -> None:
    raise ValueError("it did not work")


@pytest.mark.parametrize(
    ("prefetch", "cpus", "is_threaded"),
    [(None, 1, False), (None, 2, True), (True, 1, True), (False, 8, False)],
)
def test_where_work_is_done(
    monkeypatch: pytest.MonkeyPatch, prefetch: bool | None, cpus: int, is_threaded: bool
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    done: list[int] = []
    with working_ahead(prefetch) as worker:
        assert worker.is_threaded == is_threaded
        first, second = (
            worker.begin(lambda number=number: done.append(number) or number) for number in (1, 2)
        )
        assert is_threaded or done == []
        assert (first.result(), second.result()) == (1, 2)
        assert done == [1, 2]
        name = worker.begin(lambda: threading.current_thread().name).result()
        assert name.startswith("flat_tokens-prefetch") == is_threaded
        with pytest.raises(ValueError, match="it did not work"):
            worker.begin(fails).result()


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_loader_on_one_processor(
    make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    layout = ArrayLayout.create(2, 2**12 if compression == "none" else 16, compression=compression)
    train = flat_tokens.open(make_dataset(random_sequences(5, 200), layout=layout)).train
    loader = Loader(train, 7, 4, 3, block_tokens=40, shuffle_blocks=4)
    expected = [batch.inputs for batch in loader.from_step(3, 3 * len(loader), prefetch=True)]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    before = threading.active_count()
    for batch, other in zip(loader.from_step(3, 3 * len(loader)), expected, strict=True):
        assert threading.active_count() == before
        assert np.array_equal(batch.inputs, other)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("steps_before", [1, 40])
@pytest.mark.parametrize("kind", ["loader", "mixture"])
def test_a_generator_goes_on_in_the_child_of_a_fork(
    make_dataset: Any, random_sequences: Any, compression: str, steps_before: int, kind: str
) -> None:
    layout = ArrayLayout.create(2, 2**12 if compression == "none" else 16, compression=compression)
    train = flat_tokens.open(make_dataset(random_sequences(5, 200), layout=layout)).train
    options: dict[str, Any] = {"block_tokens": 40, "shuffle_blocks": 4}
    loader: Any = (
        Loader(train, 7, 4, 3, **options)
        if kind == "loader"
        else Mixture([train, train], [1, 2], 7, 4, 3, **options)
    )
    running = loader.from_step(2, 100, prefetch=True)
    for _ in range(steps_before):
        next(running)
    expected = [loader.batch(step).inputs for step in range(2 + steps_before, 100)]
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        signal.alarm(10)  # rather than hang
        try:
            found = [batch.inputs for batch in running]
            os._exit(0 if np.array_equal(found, expected) else 1)
        except BaseException:
            os._exit(2)
    assert np.array_equal([batch.inputs for batch in running], expected)  # and in the parent
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_generator_that_a_child_of_a_fork_lets_go(make_dataset: Any, random_sequences: Any) -> None:
    train = flat_tokens.open(make_dataset(random_sequences(5, 200))).train
    running = Loader(train, 7, 4, 3).from_step(0, prefetch=True)
    next(running)
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        signal.alarm(10)
        running.close()  # type: ignore[attr-defined]
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_pass_let_go_as_the_interpreter_ends_says_nothing(make_dataset: Any, random_sequences: Any) -> None:
    """A library may hold it, as jax does what a compiled function refers to; modules are emptied before."""
    program = (
        "import os, sys, flat_tokens\n"
        "from flat_tokens.rows import ahead\n"
        "train = flat_tokens.open(sys.argv[1]).train\n"
        "running = flat_tokens.Loader(train, 7, 4, 3).from_step(0, prefetch=True)\n"
        "next(running), next(running)\n"
        "os.kept = running, ahead, os\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(make_dataset(random_sequences(5, 200)))],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
