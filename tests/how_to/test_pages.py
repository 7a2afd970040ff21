"""The pages of docs/how-to: their blocks run in order in a fresh folder, on small files in the published layout."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_files import hub_server
from page_runner import Page
from stand_ins import STAND_INS, texts, tokenizer

from tokenmill.engines.inline_engine import InlineEngine

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "how-to" / f"{name}.md" for name in sorted(STAND_INS)]
LINK = re.compile(r"\]\(([^):]+)\)")
NEEDS = {
    "chats": ["jinja2"],
    "laptop-to-cluster": ["distributed"],
    "fineweb-edu": ["pyarrow"],
    "huggingface-datasets": ["pyarrow", "fsspec", "huggingface_hub"],
    "openwebtext": ["pyarrow"],
    "source-code": ["pyarrow"],
    "tinystories": ["pyarrow"],
}


@pytest.fixture
def hub() -> Iterator[str]:
    """The address of a Hugging Face Hub on loopback, with one file."""
    table = io.BytesIO()
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": texts(50, 5)}), table)
    with hub_server() as server:
        server.commit({"data/train-00000-of-00001.parquet": table.getvalue()})
        yield server.url


@pytest.fixture
def scheduler() -> Iterator[str]:
    """The address of a dask cluster of one worker."""
    command = [sys.executable, str(Path(__file__).parents[1] / "convert" / "dask_cluster.py"), "1", "2"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as cluster:
        assert cluster.stdout is not None
        yield cluster.stdout.readline().strip()
        cluster.communicate(timeout=60)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for module in NEEDS.get(page.stem, []):
        pytest.importorskip(module, reason=f"{module} is not installed")
    monkeypatch.chdir(tmp_path)
    # Without workers, whose start is most of what such small files take.
    monkeypatch.setattr("tokenmill.engines.process_engine.ProcessEngine", lambda *_, **__: InlineEngine())
    replaced = {}
    if page.stem == "huggingface-datasets":
        # Not by HF_ENDPOINT: an earlier test may have imported the library.
        endpoint = f"--storage-option endpoint={request.getfixturevalue('hub')}"
        replaced["--output hub.zarr"] = f"--output hub.zarr {endpoint}"
    if page.stem == "laptop-to-cluster":
        replaced["tcp://host:8786"] = request.getfixturevalue("scheduler")
    STAND_INS[page.stem]()
    assert Page(page, replaced).run() >= 2


def test_every_page_is_run() -> None:
    """Here, or by tests/test_how_to.py, which runs the loops of trainers."""
    others = {path.stem for path in (ROOT / "docs" / "how-to").glob("*.md")} - set(STAND_INS)
    elsewhere = ROOT / "tests" / "test_how_to.py"
    text = elsewhere.read_text(encoding="utf-8") if elsewhere.exists() else ""
    assert [name for name in sorted(others) if name not in text] == []


def test_links_lead_to_pages_and_headings() -> None:
    for page in PAGES:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            name, _, heading = target.partition("#")
            other = page.parent / name if name else page
            assert other.is_file(), f"{page.name}: {target}"
            headings = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
            assert not heading or heading in anchors, f"{page.name}: {target}, of {sorted(anchors)}"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```sh\nls\n```\n\n```text\nnone.txt\n```\n", r"the page says\n  none\.txt"),
        ("```sh\ntokenmill info tok.json\n```\n\n```text\nsecond\n…entries\n```\n", "the page says"),
        ("```sh\ntokenmill info missing.json\n```\n", "exit code"),
        ("```sh\ntokenmill --version\n```\n\n```text\ntokenmill: error: no\n```\n", "exit code 0"),
        ("```python\n1 + 1  # 3\n```\n", "1 \\+ 1\nis 2"),
        ("```sh\nmake all\n```\n", "make is not known here"),
        ("```ruby\n1\n```\n", "a block of ruby"),
    ],
)
def test_a_page_that_says_something_else_fails(
    page: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("page.md").write_text(page)
    tokenizer("tok.json")
    with pytest.raises(AssertionError, match=message):
        Page(Path("page.md")).run()
