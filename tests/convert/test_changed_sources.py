"""Sources that change while a run reads them, or before the next run resumes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from input_kinds import write_kind
from naive_conversion import make_documents, tree
from stopped_runs import options

from convert import convert
from convert.errors import BadInput, Refused
from tokenmill.engines.inline_engine import InlineEngine


class Disturbed(InlineEngine):
    """Calls `action` after a number of tasks."""

    def __init__(self, tasks: int, action: Callable[[], object]) -> None:
        self._tasks, self._action = tasks, action

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        self._tasks -= 1
        if not self._tasks:
            self._action()
        return future


def fail() -> None:
    raise BadInput("no more")


def leave_partial(**more: Any) -> None:
    with pytest.raises(BadInput, match="no more"):
        convert(options(**more), Disturbed(8, fail))


def test_a_source_that_changes_while_it_is_read(here: Path) -> None:
    def append() -> None:
        with Path("en.txt").open("a") as file:
            file.write("more")

    for action in (append, lambda: os.utime("en.txt", ns=(1, 1)), lambda: os.truncate("en.txt", 10)):
        with pytest.raises(BadInput, match=r"en\.txt"):
            convert(options(), Disturbed(4, action))
        assert not (here / "out").exists()
        shutil.rmtree(here / "out.partial", ignore_errors=True)


def test_a_source_whose_rights_change_or_that_is_gone_after_it_was_read(
    here: Path, clean: dict[str, bytes]
) -> None:
    convert(options(), Disturbed(4, lambda: Path("en.txt").chmod(0o400)))
    assert tree(here / "out") == clean
    convert(options(output="more"), Disturbed(19, Path("en.txt").unlink))  # text chunks
    assert tree(here / "more") == clean


@pytest.mark.parametrize("kind", ["txt.none", "jsonl.gz", "parquet.none"])
def test_a_changed_source_is_refused_by_the_next_run(kind: str, here: Path) -> None:
    path = write_kind(here / "more", make_documents(60, seed=6), kind)
    inputs = ["en.txt", path.name]
    leave_partial(inputs=inputs)
    status, data = path.stat(), path.read_bytes()
    os.utime(path, ns=(1, 1))
    with pytest.raises(Refused, match=rf"out\.partial: .*{path.name}"):
        convert(options(inputs=inputs), InlineEngine())
    path.write_bytes(data[:-1])
    with pytest.raises(Refused, match=rf"{path.name}.*{len(data)}.*{len(data) - 1}"):
        convert(options(inputs=inputs), InlineEngine())
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    convert(options(inputs=inputs), InlineEngine())
    convert(options(inputs=inputs, output="clean"), InlineEngine())
    assert tree(here / "out") == tree(here / "clean")


def test_a_copy_with_the_same_size_and_time_is_the_same_source(here: Path, clean: dict[str, bytes]) -> None:
    leave_partial()
    (here / "en.txt").rename("other")
    shutil.copy2("other", "en.txt")
    assert convert(options(), InlineEngine()).reused_shards
    assert tree(here / "out") == clean
