"""Executors of callers: threads and processes, several conversions in one pool, and values that are no executors."""

from __future__ import annotations

import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from input_kinds import KINDS, write_kind
from limits import small
from runs import Inline, convert, sample_documents, tree

OPTIONS: dict[str, Any] = {
    "inputs": ["in/*"],
    "text_chunk_bytes": 3000,
    "chunk_tokens": 64,
    "validation_fraction": 0.2,
    "workers": 4,
}
OTHERS: dict[str, Any] = {"seed": 5, "validation_fraction": 0.5, "separator": "e"}


@pytest.fixture
def clean(folder: Path) -> dict[str, bytes]:
    """The dataset of files of all kinds, some much longer than others."""
    (folder / "in").mkdir()
    for number, kind in enumerate(KINDS):
        texts = sample_documents(20 if number % 3 else 200, seed=number)
        write_kind(folder / "in" / f"{number}", texts, kind)
    convert(Inline(), output="clean", **OPTIONS)
    return tree("clean")


@pytest.mark.slow
def test_two_conversions_in_one_pool(clean: dict[str, bytes]) -> None:
    convert(Inline(), output="clean-other", **OPTIONS | OTHERS)
    with ThreadPoolExecutor(4) as pool:
        other = threading.Thread(target=convert, args=(pool,), kwargs=OPTIONS | OTHERS | {"output": "other"})
        other.start()
        convert(pool, **OPTIONS)
        other.join(120)
        assert not other.is_alive()
    assert tree("out") == clean
    assert tree("other") == tree("clean-other")


@pytest.mark.slow
def test_frames_that_a_profiler_holds(clean: dict[str, bytes]) -> None:
    """Workers of clusters have such a profiler. It held buffers that were to grow."""
    frames: deque[FrameType] = deque(maxlen=100_000)

    def hold(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            frames.append(frame)

    before = sys.getprofile()
    threading.setprofile(hold)
    try:
        with small(), ThreadPoolExecutor(3) as pool:
            convert(pool, **OPTIONS)
    finally:
        threading.setprofile(None)
        sys.setprofile(before)
    assert any("encode" in frame.f_code.co_name for frame in frames)
    assert tree("out") == clean


class CannotCancel(ThreadPoolExecutor):
    """As the executors of some clusters are."""

    def shutdown(self, wait: bool = True) -> None:  # type: ignore[override]
        super().shutdown(wait)


@pytest.mark.long
@pytest.mark.usefixtures("clean")
def test_an_executor_that_cannot_cancel_hides_no_error() -> None:
    Path("in/zz.jsonl").write_text('{"text": 5}\n')
    with pytest.raises(Exception, match=r"in/zz\.jsonl.*line 1"):
        convert(CannotCancel(2), **OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("executor", [ThreadPoolExecutor, object(), "threads"])
@pytest.mark.usefixtures("clean")
def test_a_value_that_is_no_executor(executor: Any) -> None:
    with pytest.raises(TypeError, match="executor"):
        convert(executor, **OPTIONS)
    assert not Path("out.partial").exists()
