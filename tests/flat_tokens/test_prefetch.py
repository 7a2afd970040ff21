"""Prefetching: in a thread or on demand, in forks, and at interpreter exit."""

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
from flat_tokens import ArgumentError
from flat_tokens.loading.loader import Loader
from flat_tokens.storage.layout import ArrayLayout


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


def test_an_iterator_in_the_child_of_a_fork_is_refused(make_dataset: Any, random_sequences: Any) -> None:
    """Its thread is in the parent, so the child would wait forever."""
    train = flat_tokens.open(make_dataset(random_sequences(5, 200))).train
    loader = Loader(train, 7, 4, 3)
    running = loader.from_step(0, prefetch=True)
    next(running), next(running)  # the second one starts the thread
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        signal.alarm(10)  # fail instead of hanging
        try:
            list(running)
        except ArgumentError:
            os._exit(0 if len(next(loader.from_step(0))) == 4 else 1)
        os._exit(2)
    assert len(next(running)) == 4
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_generator_dropped_by_a_forked_child(make_dataset: Any, random_sequences: Any) -> None:
    train = flat_tokens.open(make_dataset(random_sequences(5, 200))).train
    running = Loader(train, 7, 4, 3).from_step(0, prefetch=True)
    next(running)
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        signal.alarm(10)
        running.close()  # type: ignore[attr-defined]
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_pass_dropped_at_interpreter_exit_is_silent(make_dataset: Any, random_sequences: Any) -> None:
    """A library may keep the iterator, as jax keeps the objects of compiled functions. Modules are cleared before it
    is deleted.
    """
    program = (
        "import os, sys, flat_tokens\n"
        "train = flat_tokens.open(sys.argv[1]).train\n"
        "running = flat_tokens.Loader(train, 7, 4, 3).from_step(0, prefetch=True)\n"
        "next(running), next(running)\n"
        "os.kept = running, os\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(make_dataset(random_sequences(5, 200)))],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
