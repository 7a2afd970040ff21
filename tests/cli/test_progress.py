"""Each display says what it should, where it should, and never gets in the way."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import struct
import termios
from contextlib import suppress

import pytest

from tokenmill.cli.progress import SECONDS, Progress, make_progress, tokens_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("mode", "terminal", "kind"),
    [
        ("auto", True, "bar"),
        ("auto", False, "lines"),
        ("bar", False, "bar"),
        ("json", True, "json"),
        ("none", True, "none"),
    ],
)
def test_modes(mode: str, terminal: bool, kind: str) -> None:
    assert make_progress(mode, Terminal() if terminal else io.StringIO()).mode == kind


def test_none_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    work(make_progress("none"))
    assert capsys.readouterr().err == ""


def work(progress: Progress) -> None:
    stage = progress.stage("encode", 3_000_000)
    stage.advance(1_000_000, 250_000)
    stage.advance(2_000_000, 500_000)
    stage.close()
    progress.note("done")


def test_a_log_gets_one_line_a_stage() -> None:
    stream = io.StringIO()
    work(Progress("lines", stream))
    first, second = stream.getvalue().splitlines()
    assert first.startswith("encode: 3.0 MB in ")
    assert "B/s" in first
    assert "M tokens/s" in first
    assert second == "done"


def test_a_long_stage_shows_that_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SECONDS, "lines", 0.0)
    stream = io.StringIO()
    work(Progress("lines", stream))
    assert stream.getvalue().startswith("encode: 33 % of 3.0 MB, ")


def test_running_tasks_are_shown_and_nothing_goes_back() -> None:
    """A compressed file is one task: of the largest nothing was shown but 0 % until it was done."""
    stage = Progress().stage("encode", 100)
    shown = []
    for step in (30, "10", "50", 20, "0", "90", 25, 25):
        if isinstance(step, int):
            stage.advance(step)
        else:
            stage.show_running(int(step))
        shown.append(stage.shown_bytes)
    assert shown == [30, 40, 80, 80, 80, 100, 100, 100]
    assert stage.done_bytes == 100


def test_json() -> None:
    stream = io.StringIO()
    work(Progress("json", stream))
    records = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert records[0]["state"] == "running"
    assert {"stage": "encode", "state": "done", "current": 3_000_000, "total": 3_000_000}.items() <= records[
        -2
    ].items()
    assert records[-2]["tokens"] == 750_000
    assert records[-1] == {"note": "done"}


def test_a_bar_counts_bytes_and_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    work(Progress("bar", stream))
    assert "encode" in stream.getvalue()
    assert "MB/s" in stream.getvalue() or "B/s" in stream.getvalue()
    assert "3.00M/3.00M" in stream.getvalue()


@pytest.mark.parametrize("columns", [0, 40, 60, 71, 72, 80, 200])
def test_a_bar_shows_its_rate_on_every_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 columns it filled all with what else tqdm says, and the rate was cut off. Where the size is not known
    there were empty lines."""
    monkeypatch.delenv("COLUMNS", raising=False)
    main, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
    columns = columns or 80
    with os.fdopen(terminal, "w") as stream:
        stage = Progress("bar", stream).stage("encode", 3_000_000)
        stage.advance(3_000_000, 750_000)
        stage.close()
    seen = b""
    with suppress(OSError):  # the end, on Linux
        while part := os.read(main, 1 << 16):
            seen += part
    os.close(main)
    drawn = re.split(r"[\r\n]+", seen.decode())
    assert max(map(len, drawn)) < columns
    last = [line for line in drawn if line][-1]
    assert re.search(r"encode: 100%.*3\.00M/3\.00M.*B/s", last)
    assert ("tokens/s" in last) == (columns >= 72)


def test_a_note_was_written_behind_the_bar() -> None:
    stream = Terminal()
    bars = Progress("bar", stream)
    bars.note("before")
    stage = bars.stage("encode", 10)
    bars.note("while it is drawn")
    stage.advance(10)
    stage.close()
    bars.note("behind")
    lines = [line.rsplit("\r", 1)[-1] for line in stream.getvalue().split("\n")]
    assert lines[0] == "before"
    assert "while it is drawn" in lines
    assert lines[-2] == "behind"


@pytest.mark.parametrize("mode", ["lines", "json"])
def test_a_stream_that_cannot_be_written_is_no_error(mode: str) -> None:
    stream = Broken()
    work(Progress(mode, stream))
    assert stream.getvalue() == ""


def test_a_stage_that_failed_looked_like_success() -> None:
    stream = io.StringIO()
    Progress("lines", stream).stage("encode", 10).close(done=False)
    assert stream.getvalue() == ""
    Progress("json", stream).stage("encode", 10).close(done=False)
    assert json.loads(stream.getvalue().splitlines()[-1])["state"] == "failed"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 tokens"),
        (1, "1 token"),
        (9323, "9.3 k tokens"),
        (3_100_654, "3.1 M tokens"),
        (11_800_000_000, "11,800.0 M tokens"),
    ],
)
def test_small_inputs_were_0_0_m_tokens(count: int, text: str) -> None:
    assert tokens_text(count) == text
