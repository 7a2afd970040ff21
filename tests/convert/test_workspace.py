"""The partial folder: what is taken, what is refused, and what a kill between any two steps leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import convert
from convert.errors import Refused
from convert.places.log import Log, threshold_entry
from convert.places.workspace import Workspace
from convert.planning.plan_record import PlanRecord
from flat_tokens.storage.existing_output import not_ours
from tokenmill.stores.folder_lock import boot_id


def a_dataset(path: Path, content: str) -> None:
    path.mkdir()
    (path / "data").write_text(content)
    (path / "manifest.json").write_text('{"files": [{"path": "data"}]}')


def test_publishing_moves_the_dataset_and_leaves_nothing(tmp_path: Path) -> None:
    workspace = Workspace(f"{tmp_path}/out.zarr/")
    assert workspace.output == tmp_path / "out.zarr"
    workspace.check_output()
    assert workspace.open(PlanRecord({"a": 1})) is False
    (workspace.dataset / "data").write_text("new")
    workspace.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
    assert (tmp_path / "out.zarr/data").read_text() == "new"


def test_on_a_network_disk_publishing_ended_with_a_folder_that_was_not_empty(
    tmp_path: Path, open_files_keep_names: None
) -> None:
    """The lock, open still, kept a name in it."""
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial/.nfs01").touch()  # of a process that was killed
    workspace = Workspace(tmp_path / "out")
    workspace.open(PlanRecord({"a": 1}))
    (workspace.dataset / "data").write_text("new")
    workspace.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_former_output_that_is_read_on_a_network_disk_does_not_fail_the_run(
    tmp_path: Path, open_files_keep_names: None
) -> None:
    a_dataset(tmp_path / "out", "former")
    with (tmp_path / "out/data").open() as reader:
        workspace = Workspace(tmp_path / "out", overwrite=True)
        workspace.open(PlanRecord({"a": 1}))
        (workspace.dataset / "data").write_text("new")
        workspace.publish()
        assert (tmp_path / "out/data").read_text() == "new"
        assert reader.read() == "former"
    Workspace(tmp_path / "out").remove_remains()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_work_for_a_part_that_another_run_has_made_is_removed(tmp_path: Path) -> None:
    a_dataset(tmp_path / "out", "first")
    workspace = Workspace(tmp_path / "out/part-1")
    workspace.check_output()
    workspace.open(PlanRecord({"a": 1}))
    workspace.log.append([threshold_entry(1, 2)])
    a_dataset(tmp_path / "out/part-1", "of the other")
    with pytest.raises(Refused):
        workspace.publish()
    workspace.close()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["data", "manifest.json", "part-1"]


def test_going_on_keeps_the_shards_and_what_is_asked_for_of_the_dataset(tmp_path: Path) -> None:
    first = Workspace(tmp_path / "out")
    first.open(PlanRecord({"a": (1, 2)}))
    Log(first.shards).append([threshold_entry(1, 2)])
    (first.dataset / "train").mkdir()
    (first.dataset / "train/0").write_text("whole")
    (first.dataset / "train/.1.partial").write_text("half")
    first.close()
    second = Workspace(tmp_path / "out")
    assert second.open(PlanRecord({"a": [1, 2]})) is True
    assert [path.name for path in second.shards.iterdir()] == ["journal"]
    second.clean_dataset({"train/0"})
    assert [path.name for path in second.dataset.rglob("*")] == ["train", "0"]
    second.close()


def test_a_run_that_had_not_begun_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "out.partial/shards").mkdir(parents=True)
    (tmp_path / "out.partial/plan.json.tmp").touch()
    workspace = Workspace(tmp_path / "out")
    assert workspace.open(PlanRecord({"a": 1})) is False
    workspace.close()


def test_the_former_output_comes_back_after_a_kill_between_the_renames(tmp_path: Path) -> None:
    a_dataset(tmp_path / "out", "old")
    first = Workspace(tmp_path / "out", overwrite=True)
    first.open(PlanRecord({"a": 1}))
    (tmp_path / "out").rename(tmp_path / "out.partial/replaced")
    first.close()  # as if killed here
    careful = Workspace(tmp_path / "out")
    with pytest.raises(Refused):
        careful.open(PlanRecord({"a": 1}))
    careful.close()
    assert (tmp_path / "out/data").read_text() == "old"
    again = Workspace(tmp_path / "out", overwrite=True)
    again.open(PlanRecord({"a": 2}))
    a_dataset_file = again.dataset / "data"
    a_dataset_file.write_text("new")
    again.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out/data").read_text() == "new"


def test_an_output_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "out")
    workspace.check_output()
    workspace.open(PlanRecord({"a": 1}))
    (tmp_path / "out").write_text("mine")
    with pytest.raises(Refused):
        workspace.publish()
    workspace.close()
    assert (tmp_path / "out").read_text() == "mine"


def test_what_a_killed_run_left_behind_its_finished_output_goes(tmp_path: Path) -> None:
    first = Workspace(tmp_path / "out")
    first.open(PlanRecord({"a": 1}))
    Log(first.shards).append([threshold_entry(1, 2)])
    (first.dataset / "manifest.json").touch()
    first.dataset.rename(tmp_path / "out")
    assert first._lock.is_held
    Workspace(tmp_path / "out").remove_remains()
    assert (tmp_path / "out.partial").exists()  # that run is still at it
    assert first._lock._file is not None
    first._lock._file.close()  # as if killed here
    Workspace(tmp_path / "out").remove_remains()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_lock_of_another_host_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "out.partial").mkdir()
    lock = tmp_path / "out.partial/lock"
    lock.write_text('{"host": "elsewhere", "process": 7, "started": "then", "boot": "another"}')
    workspace = Workspace(tmp_path / "out")
    with pytest.raises(Refused):
        workspace.open(PlanRecord({"a": 1}))
    for text in (json.dumps({"host": "elsewhere", "boot": boot_id()}), "", "[]", "x" * 5000, "77"):
        lock.parent.mkdir(exist_ok=True)
        lock.write_text(text)
        taken = Workspace(tmp_path / "out")
        assert taken.open(PlanRecord({"a": 1})) is False
        taken.close()


def test_what_counts_as_ours(tmp_path: Path) -> None:
    a_dataset(tmp_path / "ours", "x")
    assert not_ours(tmp_path / "ours") is None
    (tmp_path / "ours/sub").mkdir()
    (tmp_path / "ours/sub/more").touch()
    assert "sub/more" in (not_ours(tmp_path / "ours") or "")
    (tmp_path / "ours/sub").rename(tmp_path / "ours/part-1")
    assert "part-1/more" in (not_ours(tmp_path / "ours") or "")
    for name, text in {"list": "[]", "none": '{"files": 3}', "text": "x", "other": '{"files": [1]}'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(text)
        assert "manifest.json" in (not_ours(tmp_path / name) or "")


def test_the_exported_names() -> None:
    assert sorted(convert.__all__) == ["ConvertOptions", "Summary", "append", "convert"]
    assert all(callable(getattr(convert, name)) for name in convert.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = convert.nothing


def test_finished_work_of_a_former_version_is_not_thrown_away(tmp_path: Path) -> None:
    first = Workspace(tmp_path / "out")
    first.open(PlanRecord({"tokenmill_plan": 3}))
    (first.shards / "00000000.json").write_text("{}")
    first.close()
    second = Workspace(tmp_path / "out")
    with pytest.raises(Refused):
        second.open(PlanRecord({"tokenmill_plan": 4}))
    second.close()
    assert (first.shards / "00000000.json").exists()
    third = Workspace(tmp_path / "out", overwrite=True)
    third.open(PlanRecord({"tokenmill_plan": 4}))
    assert not (first.shards / "00000000.json").exists()
    third.close()
