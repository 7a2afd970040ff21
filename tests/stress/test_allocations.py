"""Calls of the native cores without memory."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import allocation_calls
import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("c++") is None,
    reason="needs Linux and a C++ compiler",
)


@pytest.mark.slow
def test_calls_raise_memory_error_and_work_the_next_time(tmp_path: Path) -> None:
    done = allocation_calls.run(tmp_path, stride=7)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "decode: 0 allocations" not in done.stdout
