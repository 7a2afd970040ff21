"""A real browser for pages: the chromium that the machine has, driven by playwright (the extra `browser`)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("bpe", "flat_tokens", "stores")]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser without a network."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install '.[browser]'")
    executable = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if executable is None:
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"]
        )
        yield started
        started.close()
