"""Sources that are edited, touched or gone, while a run reads them or before the next one goes on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from naive_conversion import tree
from stopped_runs import leave_partial, options

import convert.encode.worker
from convert import convert as run_conversion
from convert.driver.ledger import Ledger
from convert.encode.worker import ChunkResult, encode_chunk
from convert.errors import BadInput, Refused, UsageError
from convert.planning.plan import TextChunk
from tokenmill.engines.inline_engine import InlineEngine


def test_a_changed_source_is_refused_but_not_when_nothing_was_done(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_partial(monkeypatch)
    os.utime("en.txt", ns=(1, 1))
    with pytest.raises(Refused, match=r"out\.partial.*modification time of en\.txt.*--restart"):
        run_conversion(options(), InlineEngine())
    size = (here / "en.txt").stat().st_size
    os.truncate("en.txt", size - 1)
    with pytest.raises(Refused, match=rf"size of en\.txt {size} \(now {size - 1}\)"):
        run_conversion(options(), InlineEngine())
    (here / "out.partial/journal").unlink()
    run_conversion(options(), InlineEngine())
    assert (here / "out").exists()


@pytest.mark.parametrize("change", ["touch", "rights", "copy"])
def test_a_source_with_the_same_size_and_time_is_not_read_again(
    change: str, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network disks give files new numbers when they are mounted again."""
    leave_partial(monkeypatch)
    path = here / "en.txt"
    status = path.stat()
    if change == "touch":
        os.utime(path, ns=(status.st_atime_ns, 1))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "rights":
        path.chmod(0o600)
    else:
        path.rename(here / "other")
        shutil.copy2(here / "other", path)
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", lambda *_: pytest.fail("text is encoded again"))
        summary = run_conversion(options(), InlineEngine())
    assert summary.reused_shards == summary.text_chunks
    assert tree(here / "out") == clean


def append_while_encoding(chunk: TextChunk, *more: Any) -> ChunkResult:
    result = encode_chunk(chunk, *more)
    if chunk.index == 3:
        with Path("en.txt").open("a") as file:
            file.write("more")
    return result


def test_a_source_that_changes_meanwhile(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert.encode.worker, "encode_chunk", append_while_encoding)
    with pytest.raises(BadInput, match=r"en\.txt"):
        run_conversion(options(), InlineEngine())
    assert not (here / "out").exists()


def test_a_source_whose_rights_change_meanwhile_is_no_other(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_rights(chunk: TextChunk, *more: Any) -> ChunkResult:
        Path("en.txt").chmod(0o400 + chunk.index % 2)
        return encode_chunk(chunk, *more)

    monkeypatch.setattr(convert.encode.worker, "encode_chunk", change_rights)
    run_conversion(options(), InlineEngine())
    assert tree(here / "out") == clean


def test_a_source_that_is_gone_at_the_end(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_whole = Ledger.check_whole

    def gone(ledger: Ledger) -> None:
        Path("en.txt").unlink()
        check_whole(ledger)

    monkeypatch.setattr(Ledger, "check_whole", gone)
    run_conversion(options(), InlineEngine())  # it was read and checked before: nothing is wrong
    with pytest.raises(UsageError, match=r"en\.txt"):
        run_conversion(options(output="again"), InlineEngine())
