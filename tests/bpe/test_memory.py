"""Memory available to a process, as the system reports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe.pretoken_counts import memory


def test_available_memory_is_what_linux_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = "MemTotal:       24000000 kB\nMemFree:  1 kB\nMemAvailable:   7000 kB\nBuffers: 3 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda path: meminfo if str(path) == "/proc/meminfo" else "")
    assert memory._machine_bytes() == 7000 * 1024
