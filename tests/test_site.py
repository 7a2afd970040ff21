"""The documentation site builds without warnings, lists all public names and loads nothing from the network.

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
from tokenmill.__main__ import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))
site_reference = pytest.importorskip("site_reference")

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|object|embed|link(?! rel="canonical"))\b[^>]*?(?:src|href|data)="?([^" >]+)"""
)
STYLE = re.compile(r"""(?:url\(|@import )['"]?([^'")]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(output)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = [url for page in site.rglob("*.html") for url in LOADED.findall(page.read_text("utf-8"))]
    loaded += [url for style in site.rglob("*.css") for url in STYLE.findall(style.read_text("utf-8"))]
    assert [url for url in loaded if re.match(r"(\w+:)?//", url)] == []
    assert (site / "search" / "search_index.js").is_file(), "search works on pages opened from disk"


@pytest.mark.long
def test_options_and_public_names_are_listed(site: Path) -> None:
    for command in COMMANDS:
        page = (site / "reference" / "cli" / f"{command}.html").read_text("utf-8")
        actions = [action for parser in site_reference.parsers(command) for action in parser._actions]
        options = [name for action in actions if action.help != SUPPRESS for name in action.option_strings]
        assert [name for name in options if name not in page] == [], command
    for package in (bpe, convert, flat_tokens):
        page = (site / "reference" / "python" / f"{package.__name__}.html").read_text("utf-8")
        names = [f'id="{package.__name__}.{name}"' for name in package.__all__]
        assert [name for name in names if name not in page] == []
