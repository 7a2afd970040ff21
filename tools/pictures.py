"""Make the pictures of docs/guides/inspect-and-verify.md from reports on data/sample.txt, with the system's chromium.

pip install playwright && python tools/pictures.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "docs" / "assets"
MOST_BYTES = 100_000
END = "<|endoftext|>"
TYPED = """The miller's wheel turned 1,234,567 times.
    grain = mills[0].grind(kilos=12.5)
Größe, naïve, déjà vu: Мельница"""

SAMPLE = "data/sample.txt"
COMMANDS = [
    ["train", SAMPLE, "--vocab-size", "2000", "--special-token", END, "--output", "tokenizer.json"],
    ["train", SAMPLE, "--vocab-size", "600", "--pattern", "o200k", "--output", "smaller.json"],
    [
        *["convert", SAMPLE, "--tokenizer", "tokenizer.json", "--output", "sample.zarr", "--workers", "1"],
        *["--append-token", END, "--validation-fraction", "0.1"],
    ],
    ["report", "sample.zarr", "--output", "sample.html"],
    ["compare", "tokenizer.json", "smaller.json", "--output", "compare.html", "--text", TYPED],
]


class Picture(NamedTuple):
    """A part of a page that COMMANDS write: from the top of the element `start`, in pixels."""

    name: str
    page: str
    width: int
    height: int
    start: str = "body"


PICTURES = [
    Picture("report-dataset", "sample", 1000, 860, "section:nth-of-type(2)"),
    Picture("compare", "compare", 900, 715),
]


def main() -> None:
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        sys.exit("error: no chromium on this machine")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        (Path(folder) / "data").symlink_to(ROOT / "data")
        for words in COMMANDS:
            subprocess.run(
                [sys.executable, "-m", "tokenmill", *words],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                check=True,
                capture_output=True,
            )
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for picture in PICTURES:
            page = browser.new_page(viewport={"width": picture.width, "height": picture.height})
            page.goto((Path(folder) / f"{picture.page}.html").as_uri())
            if picture.page == "compare":
                page.wait_for_selector("body[data-ready]")
            start = page.locator(picture.start).first
            start.evaluate("(each) => scrollTo(0, each.getBoundingClientRect().top - 12)")
            path = ASSETS / f"{picture.name}.png"
            page.screenshot(path=str(path))
            page.close()
            size = path.stat().st_size
            print(f"{path.relative_to(ROOT)}: {size:,} bytes")
            if size > MOST_BYTES:
                sys.exit(f"error: {path.name} has more than {MOST_BYTES:,} bytes; make it smaller")
        browser.close()


if __name__ == "__main__":
    main()
