"""The documentation site: it is built without a warning, all that is public has a place in it, and it needs no network.

A warning is a link or an anchor that leads nowhere, a page without a place, a name that the reference does not find.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import bpe
import convert
import flat_tokens
import tokenmill
from tokenmill.__main__ import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))
site_docstrings, site_pages, site_reference = (
    pytest.importorskip(name, reason="the site's packages are not installed; pip install 'tokenmill[docs]'")
    for name in ("site_docstrings", "site_pages", "site_reference")
)

KINDS = ["Home", "Tutorials", "How-to", "Reference", "Explanation"]
RESOURCES = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
    "embed": "src",
    "input": "src",
    "form": "action",
}
ELSEWHERE = re.compile(r"^(?:\w+:)?//|^(?!data:|mailto:)\w+:", re.IGNORECASE)


class PageReader(HTMLParser):
    """What a page has in it: anchors, links, what it loads, the tab that it is under, the pages of its navigation."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors, self.links, self.loads = set[str](), list[str](), list[str]()
        self.tabs, self.nav = list[str](), list[str]()
        self._is_tab = self._is_active = False
        self._nav_depth = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        classes = values.get("class", "").split()
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
            if self._nav_depth and "md-nav__link" in classes:
                self.nav.append(values["href"])
        if tag in RESOURCES and RESOURCES[tag] in values:
            self.loads.append(values[RESOURCES[tag]])
        self.loads += re.findall(r"url\(['\"]?([^'\")]+)", values.get("style", ""))
        self._is_active |= "md-tabs__item--active" in classes
        self._is_tab = "md-tabs__link" in classes and self._is_active
        if tag == "nav" and (self._nav_depth or "md-nav--primary" in classes):
            self._nav_depth += 1

    def handle_data(self, data: str) -> None:
        if self._is_tab:
            self.tabs.append(data.strip())
            self._is_tab = self._is_active = False

    def handle_endtag(self, tag: str) -> None:
        if tag == "nav" and self._nav_depth:
            self._nav_depth -= 1


def built(output: Path, *configuration: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(output), *configuration],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site(tmp_path: Path) -> None:
    """One test, so that one process builds it."""
    done = built(tmp_path)
    assert done.returncode == 0, done.stderr
    # 404.html is for servers, and its links begin at their root.
    pages = {path: PageReader(path) for path in tmp_path.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 30
    check_every_page_has_one_kind(tmp_path, pages)
    check_links(pages)
    check_nothing_comes_from_elsewhere(tmp_path, pages)
    check_commands(tmp_path)
    check_bars_in_tables(pages)
    check_names(tmp_path, pages)


def check_every_page_has_one_kind(site: Path, pages: dict[Path, PageReader]) -> None:
    kinds = {page.path.relative_to(site).as_posix(): page.tabs for page in pages.values()}
    assert {path: tabs for path, tabs in kinds.items() if len(tabs) != 1 or tabs[0] not in KINDS} == {}
    assert {tab for tabs in kinds.values() for tab in tabs} == set(KINDS)
    listed = [
        (site / urldefrag(href).url).resolve() for href in pages[site / "index.html"].nav if "#" not in href
    ]
    listed = [site / "index.html" if path == site else path for path in listed]
    assert sorted(listed) == sorted(pages), "each page is once in the navigation"


def check_links(pages: dict[Path, PageReader]) -> None:
    broken = []
    for page in pages.values():
        for link in page.links:
            if ELSEWHERE.match(link):
                continue
            url, anchor = urldefrag(link)
            target = (page.path.parent / unquote(url)).resolve() if url else page.path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (
                anchor and target in pages and unquote(anchor) not in pages[target].anchors
            ):
                broken.append(f"{page.path.name}: {link}")
    assert broken == []


def check_nothing_comes_from_elsewhere(site: Path, pages: dict[Path, PageReader]) -> None:
    loaded = {
        f"{page.path.name}: {url}" for page in pages.values() for url in page.loads if ELSEWHERE.match(url)
    }
    for style in site.rglob("*.css"):
        urls = re.findall(r"(?:url\(|@import )['\"]?([^'\")]+)", style.read_text(encoding="utf-8"))
        loaded |= {f"{style.name}: {url}" for url in urls if ELSEWHERE.match(url)}
    assert loaded == set()
    assert (site / "search" / "search_index.js").is_file(), "the search works by file://"


def check_commands(site: Path) -> None:
    for command in COMMANDS:
        page = (site / "reference" / "commands" / f"{command}.html").read_text(encoding="utf-8")
        for parser in site_reference.parsers(command):
            for action in parser._actions:
                if action.help != argparse.SUPPRESS:
                    assert [name for name in action.option_strings if name not in page] == [], command


def check_bars_in_tables(pages: dict[Path, PageReader]) -> None:
    """GitHub wants "<\\|end\\|>" in a table's code, Markdown's other readers show the backslash."""
    for page in pages.values():
        cells = re.findall(r"<td.*?</td>", page.path.read_text(encoding="utf-8"), re.DOTALL)
        assert [cell for cell in cells if r"\|" in cell] == [], page.path.name


def check_names(site: Path, pages: dict[Path, PageReader]) -> None:
    folder = site / "reference" / "python"
    anchors = {
        f"{package.__name__}.{name}": pages[folder / f"{package.__name__}.html"].anchors
        for package in (bpe, convert, flat_tokens)
        for name in package.__all__
    }
    assert [name for name, found in anchors.items() if name not in found] == []
    names = (folder / "index.html").read_text(encoding="utf-8")
    assert [name for name in tokenmill.__all__ if f"{name}</code>" not in names] == []
    assert {"bpe.Tokenizer.encode", "bpe.Tokenizer.save"} <= anchors[
        "bpe.Tokenizer"
    ]  # the first is inherited
    assert {"flat_tokens.Loader.batch", "flat_tokens.Loader.from_step"} <= anchors["flat_tokens.Loader"]


def test_a_page_without_a_place_and_a_link_to_nowhere_are_errors(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "docs" / "lost.md").write_text(
        "# Lost\n\n[nowhere](missing.md), [no part](glossary.md#missing)\n"
    )
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    # What takes time is left out, and with it the names that pages are looked up by.
    text = re.sub(r"  - mkdocstrings:\n(    .*\n)*", "", text).replace(
        "docs_dir: docs", f"docs_dir: {tmp_path}/docs"
    )
    (tmp_path / "mkdocs.yml").write_text(
        text.replace("tools/site_pages.py", str(ROOT / "tools/site_pages.py"))
    )
    done = built(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert done.returncode == 1
    assert "'missing.md', but the target is not found" in done.stderr
    assert "does not contain an anchor '#missing'" in done.stderr
    assert 'not included in the "nav" configuration:\n  - lost.md\n' in done.stderr


def test_links_are_moved_to_the_site() -> None:
    assert site_pages.target_of("training.md", "../SECURITY.md") == "SECURITY.md"
    assert site_pages.target_of("README.md", "docs/training.md") == "docs/training.md"
    assert site_pages.target_of("how-to/a.md", "../training.md") == "docs/training.md"
    assert site_pages.target_of("reference/python/bpe.md", "../../training.md") is None
    assert site_pages.site_path("docs/training.md") == "training.md"
    assert site_pages.LINK.findall("[a](b.md#c), [d](https://e), [f](#g), `h`[i](j/k.py)") == [
        "b.md",
        "j/k.py",
    ]


def test_parameters_become_a_list() -> None:
    text = "A view.\n\narray: a split; seq_len: tokens\na row. ArgumentError if it is 0."
    assert site_docstrings.with_lists(text, ["array", "seq_len"]) == (
        "A view.\n\n- `array`: a split\n- `seq_len`: tokens a row.\n\nArgumentError if it is 0."
    )
    assert site_docstrings.with_lists("    code: x\n\nrank, or index: one", ["rank", "index"]) == (
        "    code: x\n\n- `rank`, or `index`: one"
    )
    assert site_docstrings.with_lists("no: names", []) == "no: names"
    assert site_docstrings.without_tags("a<s>, `<s>`\n    b<s>") == "a&lt;s>, `<s>`\n    b<s>"


def test_help_reads_the_same_as_a_page() -> None:
    assert site_reference.prose("a <b> *c* `d_*` [e|f]") == r"a &lt;b&gt; \*c\* `d_*` \[e\|f\]"
    assert "--stall-timeout" not in site_reference.command_page("convert")
    assert site_reference.public_names("convert")["convert"] == "convert.driver.pipeline"
    for package in (bpe, convert, flat_tokens):
        names = {*package.__all__, *(["open"] if package is flat_tokens else [])}
        assert set(site_reference.public_names(package.__name__)) == names
        listed = [name for _, group in site_reference.sorted_names(package.__name__) for name in group]
        assert sorted(listed) == sorted(names)
