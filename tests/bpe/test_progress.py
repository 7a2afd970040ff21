"""Progress: bars on a terminal, one line per phase in a log, and notes in both."""

from __future__ import annotations

import io
import re

import pytest

from bpe.progress import TrainingProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def use(progress):
    with progress:
        progress.begin("counting", 2_000_000, "bytes")
        progress.update(500_000)
        progress.update(2_000_000)
        progress.begin("merging", 100, "entries")
        progress.update(100)
        progress.note("stopped early")


def test_a_log_gets_a_line_a_phase():
    file = io.StringIO()
    use(TrainingProgress(file=file))
    counting, merging, note = file.getvalue().splitlines()
    assert re.fullmatch(r"counting: 2\.0 MB, [0-9,]+\.\d [kMG]B/s, \d\.\d s", counting)
    assert note == "tokenmill: note: stopped early"
    assert re.fullmatch(r"merging: 100 entries, \d\.\d s", merging)


def test_a_terminal_gets_bars():
    file = Terminal()
    use(TrainingProgress(file=file))
    assert "counting: 100%" in file.getvalue()
    assert "2.00M/2.00M" in file.getvalue()
    assert "MB/s" in file.getvalue() or "GB/s" in file.getvalue()
    assert "merging: 100%" in file.getvalue()
    assert "stopped early" in file.getvalue()


def test_quiet_keeps_the_notes():
    file = io.StringIO()
    use(TrainingProgress(quiet=True, file=file))
    assert file.getvalue() == "tokenmill: note: stopped early\n"


def test_a_failed_phase_prints_no_success():
    file = io.StringIO()
    progress = TrainingProgress(file=file)
    progress.begin("counting", 10, "bytes")
    with pytest.raises(KeyError), progress:
        raise KeyError
    assert file.getvalue() == ""


def test_a_full_or_closed_stderr_does_not_stop_the_training():
    class Full(io.StringIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    use(TrainingProgress(file=Full()))
