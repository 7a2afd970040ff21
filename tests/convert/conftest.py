"""Fixtures of the convert tests: a tokenizer trained once, the naive conversion, a folder to convert in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules that the tests share
sys.path.insert(0, str(Path(__file__).parents[1] / "inputs"))
sys.path.insert(0, str(Path(__file__).parents[1] / "fault"))
sys.path.insert(0, str(Path(__file__).parents[1] / "stores"))
sys.path.append(str(Path(__file__).parents[1] / "bpe"))

from naive_conversion import END, Naive, make_documents, train_tokenizer, tree
from stopped_runs import options

from convert import convert
from tokenmill.engines.inline_engine import InlineEngine

if TYPE_CHECKING:
    from store_runs import Place


@pytest.fixture(scope="session")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    train_tokenizer(path)
    return path


@pytest.fixture(scope="session")
def naive(tokenizer_path: Path) -> Naive:
    from bpe.tokenizer import Tokenizer

    return Naive(Tokenizer.load(tokenizer_path))


@pytest.fixture
def here(tmp_path: Path, tokenizer_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with tok.json and en.txt in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tok.json").write_bytes(tokenizer_path.read_bytes())
    (tmp_path / "en.txt").write_text(END.join(make_documents(60, seed=5)), newline="")
    return tmp_path


@pytest.fixture
def clean(here: Path) -> dict[str, bytes]:
    """The files of the dataset of `stopped_runs.options` by a run that nothing disturbs."""
    convert(options(output="clean"), InlineEngine())
    return tree(here / "clean")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run to a store that was killed is taken over at once, and each batch of results is put at once."""
    from convert.workdir import journal
    from tokenmill.stores import lease

    monkeypatch.setattr(lease, "TAKEN_OVER_SECONDS", 0.0)
    monkeypatch.setattr(lease, "WATCHED_SECONDS", 0.0)
    monkeypatch.setattr(journal, "PUT_SECONDS", 0.0)


@pytest.fixture
def place(here: Path) -> Place:
    """A store for the dataset of `here`."""
    from store_runs import in_memory

    return in_memory(here)


@pytest.fixture
def expected(here: Path) -> dict[str, bytes]:
    """The dataset of `Place.run` with MORE, made locally."""
    from store_runs import MORE

    convert(options(output="expected", **MORE), InlineEngine())
    return tree(here / "expected")
