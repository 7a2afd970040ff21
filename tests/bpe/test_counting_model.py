"""A state machine of counting on an engine.

Tasks end in any order, run twice, lose their results with their worker, or run again much later; the scratch folder
contains the output of all of them. The counts equal a run on one machine.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from state_machines import finds_fault, run_model

from bpe import reference
from bpe.pretoken_counts import counts_writer, on_engine, scratch
from bpe.pretoken_counts.count_tasks import CountingJob, merge_range
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.runs import KeyRange, OpenRun, RunFile
from bpe.pretoken_counts.scratch import Scratch
from tokenmill.engines.engine import Engine, attempt, pickled
from tokenmill.engines.job import JobKey, hand_out
from tokenmill.engines.tasks import TaskPool

END = "<|endoftext|>"
CORPUS: list[Path] = []  # the files of all examples


class Waiting(Engine):
    """Tasks wait until the state machine lets a worker run one."""

    inherits = True

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], bytes]] = []

    @property
    def worker_count(self) -> int:
        return 2

    def start(self, max_tasks: int, prepare: Callable[..., None], *arguments: Any) -> None:
        prepare(*arguments)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        self.waiting.append((Future(), pickled(fn, *args)))
        return self.waiting[-1][0]


class Counting(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._engine, self._done = Waiting(), list[bytes]()
        self._scratch = CORPUS[0].parent / f"scratch-{os.urandom(8).hex()}"
        self._scratch.mkdir()
        options = CountingOptions(special_tokens=(END,), pattern="gpt2", threads=1)
        elsewhere = on_engine.Elsewhere(None, Scratch(str(self._scratch)), chunk_bytes=300)  # type: ignore[arg-type]
        chunks = on_engine._chunks(on_engine._files(CORPUS, options), elsewhere, self._engine)
        job = CountingJob(chunks, options, elsewhere.scratch, None)
        pool = TaskPool(self._engine)
        key = hand_out(self._engine, 100, job, elsewhere.scratch.put_job, options.storage_options)
        self._tree = on_engine._Tree(job, pool, key)
        self._driver, self._is_over = self._tree.count(), False
        self._step()

    def _step(self) -> None:
        self._is_over = self._is_over or next(self._driver, None) is None

    @rule()
    def look(self) -> None:
        """The driver fetches available results and submits more tasks."""
        self._step()

    @rule(count=st.integers(1, 3), place=st.integers(0, 5))
    def go_on(self, count: int, place: int) -> None:
        for _ in range(count):
            self.answer(place)
        self._step()

    @rule(place=st.integers(0, 5))
    def answer(self, place: int) -> None:
        if self._engine.waiting:
            future, call = self._engine.waiting.pop(place % len(self._engine.waiting))
            good, value = attempt(call)
            self._is_over = not good  # the driver waits for a result that will not come
            assert good, value
            self._done.append(call)
            future.set_result(value)

    @rule(place=st.integers(0, 2), half=st.booleans())
    def lose(self, place: int, half: bool) -> None:
        """Lose a worker after its task is done, or before; another worker repeats the task."""
        if self._engine.waiting and half:
            (self._scratch / f"{os.urandom(12).hex()}.run").write_bytes(b"half of a run")
        elif self._engine.waiting:
            good, value = attempt(self._engine.waiting[-1 - place % len(self._engine.waiting)][1])
            assert good, value

    @rule(place=st.integers(0, 20))
    def late(self, place: int) -> None:
        """A task that counts as lost keeps running, and its input may be gone."""
        if self._done:
            attempt(self._done[place % len(self._done)])

    def teardown(self) -> None:
        while not self._is_over:
            while self._engine.waiting:
                self.answer(0)
            self._step()
        result = self._tree.result
        assert result is not None
        found = {}
        for pretokens, ends, counts in OpenRun(result, str(self._scratch), {}).blocks():
            starts = [0, *ends.tolist()]
            for place, count in enumerate(counts.tolist()):
                found[pretokens[starts[place] : starts[place + 1]].tobytes()] = count
        texts = [path.read_text(encoding="utf-8") for path in CORPUS]
        assert found == dict(reference.count_pretokens(texts, [END]))
        assert self._tree.text_bytes == sum(path.stat().st_size for path in CORPUS)


@pytest.fixture(autouse=True)
def _corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    for number in range(3):
        words = rng.choices(["the", "of", "naïve", "東京都", "it's", "\n\n", END], k=150)
        (tmp_path / f"{number}.txt").write_text(" ".join(words), encoding="utf-8", newline="")
    CORPUS[:] = sorted(tmp_path.glob("*.txt"))
    monkeypatch.setattr(on_engine, "SHOW_SECONDS", 0.0)
    monkeypatch.setattr(on_engine, "FAN_IN", 3)
    monkeypatch.setattr(on_engine, "RANGE_BYTES", 300)  # most merges have several ranges
    monkeypatch.setattr(counts_writer, "BLOCK_PRETOKENS", 3)


def test_counts_equal_one_machine() -> None:
    run_model(Counting, 20, 30)


def _cleans_up(wanted: KeyRange, key: JobKey) -> RunFile:
    from tokenmill.engines.job import find_job

    merged = merge_range(wanted, key)
    with suppress(OSError):
        find_job(key).scratch.delete(piece.name for run in wanted.runs for piece in run)
    return merged


def _keeps_what_it_takes(tree: Any) -> Any:
    merge = NEXT_MERGE(tree)
    if merge is not None and merge.level == 1 and not vars(tree).setdefault("kept", []):
        tree.kept.append(merge.runs[0])  # once, so that merging ends
        tree._levels[0].append(merge.runs[0])
    return merge


NEXT_MERGE = on_engine._Tree._next_merge


@pytest.mark.parametrize(
    "fault", ["one name for all", "a task removes what it read", "a run is merged twice"]
)
def test_the_model_finds_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "one name for all":
        monkeypatch.setattr(scratch, "os", SimpleNamespace(urandom=bytes))
    elif fault == "a task removes what it read":
        monkeypatch.setattr(on_engine, "merge_range", _cleans_up)
    else:
        monkeypatch.setattr(on_engine._Tree, "_next_merge", _keeps_what_it_takes)
    finds_fault(Counting, 30, 30)
