"""Shards in a folder of another place: found again by whoever goes on, and nothing stays of it."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from naive_conversion import tree
from stopped_runs import leave_partial, options

from convert import convert as run_conversion
from convert.errors import StorageError
from convert.places.scratch import NOTE_NAME, REMOVED, note_scratch, noted_scratch, remove_folder
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
        assert len(list((here / "elsewhere").glob("out-*.shards/*.small"))) > 5
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


def test_a_file_that_another_took_first_does_not_leave_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shards").mkdir()
    remove, turns = shutil.rmtree, iter([True])

    def rmtree(folder: Path) -> None:
        if next(turns, False):
            raise FileNotFoundError
        remove(folder)

    monkeypatch.setattr("convert.places.scratch.shutil.rmtree", rmtree)
    remove_folder(tmp_path / "shards")
    assert list(tmp_path.iterdir()) == []


def test_overwrite_and_another_plan_remove_the_former_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, bytes]
) -> None:
    leave_partial(monkeypatch, **MORE)
    run_conversion(options(overwrite=True, seed=5), InlineEngine())
    assert list((here / "elsewhere").iterdir()) == []


def test_two_outputs_of_one_name_do_not_meet(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "elsewhere").mkdir()
    leave_partial(monkeypatch, **MORE)
    (here / "out.partial").rename(here / "kept")
    leave_partial(monkeypatch, **MORE)
    assert len(list((here / "elsewhere").iterdir())) == 2


def test_a_folder_that_is_not_there_is_told_before_anything_is_written(here: Path) -> None:
    with pytest.raises(StorageError, match="--scratch"):
        run_conversion(options(scratch="nowhere"), InlineEngine())
    with pytest.raises(StorageError, match=r"en\.txt.*--scratch"):
        run_conversion(options(scratch="en.txt"), InlineEngine())
    assert not (here / "out.partial").exists()


def test_a_folder_that_is_still_written_to_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(200):
        (folder / f"{number}").touch()

    def write_on() -> None:
        for number in range(200, 100_000):
            try:
                (folder / f"{number}").touch()
            except FileNotFoundError:
                return

    writer = threading.Thread(target=write_on)
    writer.start()
    remove_folder(folder)
    writer.join(60)
    assert list(tmp_path.iterdir()) == []
    remove_folder(folder)


def test_a_run_that_was_killed_while_it_removed_a_folder_leaves_nothing_for_the_next(
    here: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, bytes]
) -> None:
    leave_partial(monkeypatch, **MORE)
    (folder,) = (here / "elsewhere").iterdir()
    folder.rename(folder.with_name(folder.name + REMOVED))
    (here / "out.partial/dataset").rename(here / f"out.partial/dataset{REMOVED}")
    run_conversion(options(overwrite=True, seed=5), InlineEngine())
    assert list((here / "elsewhere").iterdir()) == list(here.glob("out.partial*")) == []


def test_half_a_note_named_the_folder_around_which_would_have_been_removed(tmp_path: Path) -> None:
    place = note_scratch(tmp_path, str(tmp_path / "elsewhere"), "out.zarr")
    assert noted_scratch(tmp_path) == place
    note = (tmp_path / NOTE_NAME).read_bytes()
    for size in range(len(note)):
        for torn in (note[:size], note[:size] + bytes(len(note) - size)):
            (tmp_path / NOTE_NAME).write_bytes(torn)
            assert noted_scratch(tmp_path) is None
