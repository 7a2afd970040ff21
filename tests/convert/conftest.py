"""Fixtures of the convert tests, and the folders of the modules that they share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path.extend(str(TESTS / name) for name in ("convert", "convert/contract", "inputs", "stores", "bpe"))

from runs import sample_text, workplace  # noqa: E402 - found on the path above
from servers import moto_server  # noqa: E402


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new current folder that holds tok.json."""
    with workplace() as path:
        yield path


@pytest.fixture
def here(folder: Path) -> Path:
    """A new current folder that holds tok.json and en.txt, a text of 60 documents."""
    (folder / "en.txt").write_bytes(sample_text(60))
    return folder


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The address of moto's S3 server."""
    with moto_server() as address:
        yield address
