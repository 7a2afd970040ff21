"""Run the examples of the README and of the docs, and check that all links lead to files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from inline_engine import InlineEngine
from page_runner import BLOCK, Page
from stand_ins import STAND_INS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "data/README.md")]
LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)\)")
REPOSITORY = re.compile(r"https://github\.com/tokenmill/tokenmill/(?:blob|tree)/main/")
LOSS = re.compile(r"^step (\d+) .*loss ([\d.]+)$", re.MULTILINE)
NEEDS = {"guides/fine-tuning-data": ["jinja2"]}
SERVERS = {"guides/convert-a-corpus": ["hub"], "guides/scale-out": ["s3", "scheduler"]}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [page for page in PAGES if BLOCK.search(page.read_text("utf-8"))], ids=name_of
)
def test_page_examples_run_as_shown(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    name = name_of(path)
    for module in NEEDS.get(name, []):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    servers = {server: request.getfixturevalue(server) for server in SERVERS.get(name, [])}
    # Starting workers would take most of the time.
    monkeypatch.setattr("tokenmill.engines.process_engine.ProcessEngine", lambda *_, **__: InlineEngine())
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "data").mkdir()
    for file in (ROOT / "data").iterdir():
        (tmp_path / "data" / file.name).symlink_to(file)
    for fill in STAND_INS.get(name, ()):
        fill()
    replaced = {"tcp://host:8786": servers["scheduler"]} if "scheduler" in servers else {}
    if "hub" in servers:  # HF_ENDPOINT has no effect after another test has imported the library
        replaced["--output hub.zarr"] = f"--output hub.zarr --storage-option endpoint={servers['hub']}"
    page = Page(path, replaced)
    page.run()
    check_losses(dict(page.printed))
    if name == "guides/evaluate":
        results = {text for _, text in page.printed}
        assert all(f" {page.names['text_bytes']} bytes" in text for text in results)
        assert len(results) <= 1, "the number of processes makes no difference"


def check_losses(printed: dict[str, str]) -> None:
    """Training lowers the loss. A resumed run repeats the losses, or nearly so with another number of processes."""
    losses = {command: dict(LOSS.findall(text)) for command, text in printed.items() if LOSS.search(text)}
    whole = {command: found for command, found in losses.items() if "--resume" not in command}
    for command, found in losses.items():
        by_step = [float(loss) for loss in found.values()]
        assert by_step[-1] < by_step[0], command
        first = whole.get(command) or whole.get(command.replace(" --resume", ""))
        if first is not None:
            assert found.items() <= first.items(), command
        else:
            program = command.rpartition("docs/")[2].replace(" --resume", "")
            first = next(found for name, found in whole.items() if name.endswith(program))
            assert by_step == pytest.approx([float(first[step]) for step in found], abs=1e-4), command
    assert all(len(found) == (5 if "--resume" in command else 10) for command, found in losses.items())


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name_of)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link, anchor in LINK.findall(page.read_text("utf-8")):
        if REPOSITORY.match(link):
            target = ROOT / REPOSITORY.sub("", link)
        elif ":" in link:
            continue
        else:
            target = page.parent / link if link else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
            assert anchor in anchors, f"{link}#{anchor}"
