"""Memory limits of control groups: the lowest limit among a process's group and its ancestors applies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bpe import threads
from bpe.control_group import control_groups, quota_threads


def groups(folder: Path, lines: str, files: dict[str, str]) -> tuple[Path, Path]:
    """Return (membership, mounts) of a process in these groups, with these files."""
    mounted = folder / "mounted"
    for name, text in files.items():
        path = mounted / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    membership = folder / "membership"
    membership.write_text(lines)
    return membership, mounted


FULL, V1 = "100000 100000", "cpu/a/cpu.cfs_"


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/\n", {}, None),
        ("0::/\n", {"cpu.max": "max 100000"}, None),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000", "cpu.max": FULL}, 1),
        ("0::/a/b\n", {"a/b/cpu.max": "150000 100000", "a/cpu.max": "300000 100000"}, 2),
        ("0::/gone\n", {"cpu.max": "50000 100000"}, 1),
        ("0::/\n", {"cpu.max": "100000"}, None),
        ("0::/\n", {"cpu.max": "100000 0"}, None),
        ("4:cpu,cpuacct:/a\n0::/\n", {}, None),
        ("5:cpu,cpuacct:/a\n", {f"{V1}quota_us": "-1", f"{V1}period_us": "100000"}, None),
        ("5:cpu,cpuacct:/a\n4:x:/b\n", {f"{V1}quota_us": "400000", f"{V1}period_us": "100000"}, 4),
    ],
)
def test_the_tightest_quota_counts(
    lines: str, files: dict[str, str], expected: int | None, tmp_path: Path
) -> None:
    assert quota_threads(*groups(tmp_path, lines, files)) == expected


def test_without_groups_nothing_is_limited(tmp_path: Path) -> None:
    assert list(control_groups("memory", tmp_path / "none", tmp_path)) == []


def test_threads_are_limited_by_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for quota, expected in [(None, 8), (1, 1), (3, 3), (20, 8)]:
        monkeypatch.setattr(threads, "_quota", lambda quota=quota: quota)
        assert threads.available_threads() == threads.thread_count(None) == expected


def test_the_number_of_threads_is_capped() -> None:
    assert [threads.thread_count(count) for count in (1, 3, 10**9)] == [1, 3, threads.MAX_THREADS]
