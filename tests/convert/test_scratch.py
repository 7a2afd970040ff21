"""Shards in --scratch: a resumed run finds them, and nothing stays there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from naive_conversion import tree
from stopped_runs import leave_partial, options

from convert import convert as run_conversion
from convert.workdir.workdir import REMOVED, remove_folder
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.process_engine import ProcessEngine

MORE: dict[str, Any] = {"scratch": "elsewhere", "chunk_tokens": 64}


@pytest.fixture
def expected(here: Path) -> dict[str, bytes]:
    """The dataset, and a folder for shards."""
    (here / "elsewhere").mkdir()
    run_conversion(options(output="expected", chunk_tokens=64), InlineEngine())
    return tree(here / "expected")


def test_the_dataset_is_the_same_and_nothing_stays(here: Path, expected: dict[str, bytes]) -> None:
    for number, engine in enumerate((InlineEngine(), ProcessEngine(2, "fork"))):
        run_conversion(options(output=f"out-{number}", **MORE), engine)
        assert tree(here / f"out-{number}") == expected
        assert list((here / "elsewhere").iterdir()) == []


def test_whoever_goes_on_finds_the_shards(
    here: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "third").mkdir()
    for scratch in (None, "elsewhere", "third"):  # it goes on where the shards are, whatever is asked for
        leave_partial(monkeypatch, **MORE)
        assert len(list((here / "elsewhere").glob("out-*.shards/*.train"))) > 5
        summary = run_conversion(options(**{**MORE, "scratch": scratch}), InlineEngine())
        assert summary.reused_shards > 5
        assert tree(here / "out") == expected
        assert list((here / "elsewhere").iterdir()) == list((here / "third").iterdir()) == []
        (here / "out").rename(here / f"out-{scratch}")


def test_shards_that_were_swept_away_are_made_again(
    here: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_partial(monkeypatch, **MORE)
    for folder in (here / "elsewhere").iterdir():
        remove_folder(folder)
    run_conversion(options(**MORE), InlineEngine())
    assert tree(here / "out") == expected


def test_a_restart_with_another_plan_removes_the_former_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, bytes]
) -> None:
    leave_partial(monkeypatch, **MORE)
    run_conversion(options(restart=True, seed=5), InlineEngine())
    assert list((here / "elsewhere").iterdir()) == []


def test_two_outputs_of_one_name_do_not_meet(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "elsewhere").mkdir()
    leave_partial(monkeypatch, **MORE)
    (here / "out.partial").rename(here / "kept")
    leave_partial(monkeypatch, **MORE)
    assert len(list((here / "elsewhere").iterdir())) == 2


def test_a_run_that_was_killed_while_it_removed_a_folder_leaves_nothing_for_the_next(
    here: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, bytes]
) -> None:
    leave_partial(monkeypatch, **MORE)
    (folder,) = (here / "elsewhere").iterdir()
    folder.rename(folder.with_name(folder.name + REMOVED))
    (here / "out.partial/dataset").rename(here / f"out.partial/dataset{REMOVED}")
    run_conversion(options(restart=True, seed=5), InlineEngine())
    assert list((here / "elsewhere").iterdir()) == list(here.glob("out.partial*")) == []
