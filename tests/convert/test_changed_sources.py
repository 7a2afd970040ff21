"""Sources that are edited, touched or removed, while a run reads them or before the next one resumes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from convert.places.log import Log
from naive_conversion import tree
from stopped_runs import encode_or_fail, leave_partial, options

import convert.encode.encode_task
from convert import convert as run_conversion
from convert.encode.encode_task import ChunkResult, encode_chunk
from convert.errors import BadInput, Refused, UsageError
from convert.planning.plan import TextChunk
from tokenmill.engines.inline_engine import InlineEngine


def test_a_changed_source_is_refused_but_not_when_nothing_was_done(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_partial(monkeypatch)
    os.utime("en.txt", ns=(1, 1))
    with pytest.raises(Refused, match=r"en\.txt.*out\.partial"):
        run_conversion(options(), InlineEngine())
    size = (here / "en.txt").stat().st_size
    os.truncate("en.txt", size - 1)
    with pytest.raises(Refused, match=rf"en\.txt.*{size}.*{size - 1}"):
        run_conversion(options(), InlineEngine())
    Log(here / "out.partial/shards").path.unlink()
    run_conversion(options(), InlineEngine())
    assert (here / "out").exists()


@pytest.mark.parametrize("more", [{}, {"validation_docs": 20}], ids=str)
def test_a_source_with_other_rights_but_the_same_size_and_time_is_reused(
    more: dict[str, Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_conversion(options(output="clean", **more), InlineEngine())
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.encode_task, "encode_chunk", encode_or_fail)
        with pytest.raises(BadInput):
            run_conversion(options(**more), InlineEngine())
    path, status = here / "en.txt", (here / "en.txt").stat()
    path.write_bytes(path.read_bytes())
    path.chmod(0o400)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run_conversion(options(**more), InlineEngine()).reused_shards > 0
    assert tree(here / "out") == tree(here / "clean")


@pytest.mark.parametrize("index", [3, 18])
def test_a_source_that_changes_while_it_is_read(
    index: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append_first(chunk: TextChunk, *more: Any, **named: Any) -> ChunkResult:
        if chunk.index == index:
            with Path("en.txt").open("a") as file:
                file.write("more")
        return encode_chunk(chunk, *more, **named)

    monkeypatch.setattr(convert.encode.encode_task, "encode_chunk", append_first)
    with pytest.raises(BadInput, match=r"en\.txt"):
        run_conversion(options(), InlineEngine())
    assert not (here / "out").exists()


def test_a_source_that_is_gone(here: Path) -> None:
    (here / "en.txt").unlink()
    with pytest.raises(UsageError, match=r"en\.txt"):
        run_conversion(options(), InlineEngine())
