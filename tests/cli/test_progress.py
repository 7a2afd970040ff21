"""The displays of progress, which never interrupt the work."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from tokenmill.cli.progress import SECONDS, Progress


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def work(mode: str, stream: io.StringIO) -> list[str]:
    """The lines that a stage and a note show."""
    progress = Progress(mode, stream)
    stage = progress.stage("encode", 3_000_000)
    stage.advance(1_000_000, 250_000)
    progress.note("meanwhile")
    stage.advance(2_000_000, 500_000)
    stage.close()
    return stream.getvalue().splitlines()


def test_a_log_gets_one_line_per_stage_and_more_of_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    note, line = work("lines", io.StringIO())
    assert note == "meanwhile"
    assert line.startswith("encode: 3.0 MB in ")
    assert line.endswith(" M tokens/s)")
    monkeypatch.setitem(SECONDS, "lines", 0.0)
    assert work("lines", io.StringIO())[0].startswith("encode: 33 % of 3.0 MB, ")


def test_json() -> None:
    first, note, last = map(json.loads, work("json", io.StringIO()))
    assert first["state"] == "running"
    assert note == {"note": "meanwhile"}
    assert last.pop("seconds") >= 0
    assert last == {
        "stage": "encode",
        "state": "done",
        "current": 3_000_000,
        "total": 3_000_000,
        "tokens": 750_000,
    }


def test_running_tasks_are_shown_and_nothing_decreases() -> None:
    """A compressed file is one task: nothing of the largest one was shown until it was done."""
    stage = Progress().stage("encode", 100)
    shown = []
    for done, running in ((30, 0), (0, 10), (0, 50), (20, 0), (0, 0), (0, 90), (25, 0), (25, 0)):
        stage.advance(done) if done else stage.show_running(running)
        shown.append(stage.shown_bytes)
    assert shown == [30, 40, 80, 80, 80, 100, 100, 100]
    assert stage.done_bytes == 100


@pytest.mark.parametrize("mode", ["none", "lines", "json"])
def test_a_stream_that_cannot_be_written_is_no_error(mode: str) -> None:
    assert work(mode, Broken()) == []


def test_a_stage_that_failed_looked_like_success() -> None:
    stream = io.StringIO()
    Progress("lines", stream).stage("encode", 10).close(done=False)
    assert stream.getvalue() == ""
    Progress("json", stream).stage("encode", 10).close(done=False)
    assert json.loads(stream.getvalue().splitlines()[-1])["state"] == "failed"


@pytest.mark.parametrize("value", ["{no_such_field}", "{"])
def test_a_variable_that_tqdm_rejects_is_named(value: str) -> None:
    code = "import sys; from tokenmill.cli.progress import new_bar; new_bar('encode', 1, sys.stderr)"
    for name in ("TQDM_BAR_FORMAT", "TQDM_MININTERVAL"):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, name: value}, capture_output=True, text=True
        )
        last = done.stderr.splitlines()[-1]
        assert last.startswith(f"tokenmill.errors.BadArgument: {name}: "), done.stderr
