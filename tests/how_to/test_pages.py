"""The pages of docs/how-to: their blocks run in order in a fresh folder, on small files in the published layout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one

from page_runner import Page
from stand_ins import STAND_INS

from engines.inline_engine import InlineEngine

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "how-to").glob("*.md"))
NEEDS = {"fineweb-edu": ["pyarrow"], "openwebtext": ["pyarrow"], "tinystories": ["pyarrow"]}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in NEEDS.get(page.stem, []):
        pytest.importorskip(module, reason=f"{module} is not installed")
    monkeypatch.chdir(tmp_path)
    # Without workers, whose start is most of what such small files take.
    monkeypatch.setattr("engines.process_engine.ProcessEngine", lambda *_, **__: InlineEngine())
    STAND_INS[page.stem]()
    assert Page(page).run() >= 2
