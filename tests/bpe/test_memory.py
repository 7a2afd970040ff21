"""Memory available to a process, as the system reports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe.pretoken_counts import memory
from bpe.pretoken_counts.sources import FileRange, total_bytes


def test_available_memory_is_what_linux_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = "MemTotal:       24000000 kB\nMemFree:  1 kB\nMemAvailable:   7000 kB\nBuffers: 3 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda path: meminfo if str(path) == "/proc/meminfo" else "")
    assert memory._machine_bytes() == 7000 * 1024


def test_the_size_of_a_range_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(bytes(50))
    assert total_bytes([FileRange(path, 10, 25)]) == 15
    assert total_bytes([FileRange(path, 10), b"12345"]) == 45
