"""The documentation site builds without warnings, contains all that is public and loads nothing from the network.

mkdocs warns about broken links, missing anchors, pages without a place in the navigation and unknown names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import SUPPRESS
from pathlib import Path

import pytest

import bpe
import convert
import flat_tokens
import tokenmill
from tokenmill.__main__ import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))
site_docstrings, site_pages, site_reference = (
    pytest.importorskip(name) for name in ("site_docstrings", "site_pages", "site_reference")
)

TABS = ["Home", "Getting started", "Guides", "Reference", "Development"]
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|object|embed|link(?! rel="canonical"))\b[^>]*?(?:src|href|data)="?([^" >]+)"""
)
STYLE = re.compile(r"""(?:url\(|@import )['"]?([^'")]+)""")


def build(output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(output), *arguments]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("site")
    done = build(output)
    assert done.returncode == 0, done.stderr
    return output


def test_every_page_is_in_one_tab(site: Path) -> None:
    pages = [path for path in site.rglob("*.html") if path.name != "404.html"]
    assert len(pages) > 30
    for page in pages:
        text = page.read_text("utf-8")
        active = re.findall(r"md-tabs__item--active.*?>\s*<a[^>]*>\s*(.*?)\s*</a>", text, re.DOTALL)
        assert len(active) == 1, page
        assert active[0] in TABS, page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = [url for page in site.rglob("*.html") for url in LOADED.findall(page.read_text("utf-8"))]
    loaded += [url for style in site.rglob("*.css") for url in STYLE.findall(style.read_text("utf-8"))]
    assert [url for url in loaded if re.match(r"(\w+:)?//", url)] == []
    assert (site / "search" / "search_index.js").is_file(), "search works on pages opened from disk"


def test_commands_list_their_options(site: Path) -> None:
    for command in COMMANDS:
        page = (site / "reference" / "cli" / f"{command}.html").read_text("utf-8")
        actions = [action for parser in site_reference.parsers(command) for action in parser._actions]
        options = [name for action in actions if action.help != SUPPRESS for name in action.option_strings]
        assert [name for name in options if name not in page] == [], command


def test_public_names_have_anchors(site: Path) -> None:
    folder = site / "reference" / "python"
    for package in (bpe, convert, flat_tokens):
        page = (folder / f"{package.__name__}.html").read_text("utf-8")
        names = [f'id="{package.__name__}.{name}"' for name in package.__all__]
        assert [name for name in names if name not in page] == []
    index = (folder / "index.html").read_text("utf-8")
    assert [name for name in tokenmill.__all__ if f"{name}</code>" not in index] == []


def test_links_lead_to_pages_of_the_site_or_to_github() -> None:
    assert site_pages.site_link("guides/jax.md", "../../SECURITY.md") == "../SECURITY.md"
    assert site_pages.site_link("guides/jax.md", "evaluate.md") == "evaluate.md"
    assert site_pages.site_link("README.md", "docs/guides/jax.md", is_absolute=True) == "guides/jax.md"
    assert site_pages.site_link("guides/jax.md", "../../bpe/a.py") == site_pages.REPOSITORY + "bpe/a.py"
    text = f"[a](b.md#c), [d](https://e), [f](#g), [h]({site_pages.REPOSITORY}i.md)"
    assert [found[2] for found in site_pages.LINK.finditer(text)] == ["b.md", "i.md"]


def test_parameters_become_a_list() -> None:
    text = "A view.\n\narray: a split; seq_len: tokens\nper row. ArgumentError if it is 0."
    assert site_docstrings.with_lists(text, ["array", "seq_len"]) == (
        "A view.\n\n- `array`: a split\n- `seq_len`: tokens per row.\n\nArgumentError if it is 0."
    )
    assert site_docstrings.with_lists("    code: x\n\nrank, or index: one", ["rank", "index"]) == (
        "    code: x\n\n- `rank`, or `index`: one"
    )
    assert site_docstrings.with_lists("no: names", []) == "no: names"
    assert site_docstrings.without_tags("a<s>, `<s>`\n    b<s>") == "a&lt;s>, `<s>`\n    b<s>"


def test_help_becomes_markdown() -> None:
    assert site_reference.prose("a <b> *c* `d_*` [e|f]") == r"a &lt;b&gt; \*c\* `d_*` \[e\|f\]"
    assert "--stall-timeout" not in site_reference.command_page("convert")
