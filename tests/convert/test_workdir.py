"""The work folder, on a disk and on a store: what it resumes, refuses and removes, and what a kill leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import convert
from convert import ConvertOptions
from convert.errors import Refused, StorageError, UsageError
from convert.planning.plan_record import PLAN_VERSION, PlanRecord
from convert.workdir import workdir
from convert.workdir.folder import FolderWorkDir
from convert.workdir.journal import threshold_entry
from convert.workdir.store import open_workdir
from convert.workdir.workdir import REMOVED, WorkDir, remove_folder
from flat_tokens.format import SPLITS
from flat_tokens.storage.existing_output import not_ours
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import SplitRecord
from flat_tokens.writer import write_file, write_root
from tokenmill.stores import Store, lease, open_store
from tokenmill.stores.folder_lock import boot_id

WORK = [threshold_entry(1, 2)]


def plan(number: int = 1, version: int = PLAN_VERSION) -> PlanRecord:
    return PlanRecord({"tokenmill_plan": version, "options": {"seed": number}})


def at(output: object, **more: Any) -> WorkDir:
    return open_workdir(ConvertOptions(["in"], "tok.json", str(output), **more))


def on_disk(output: object, **more: Any) -> FolderWorkDir:
    found = at(output, **more)
    assert isinstance(found, FolderWorkDir)
    return found


@pytest.fixture(params=["folder", "store"])
def output(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An output that does not exist. A killed run on a store is taken over at once."""
    if request.param == "folder":
        yield f"{tmp_path}/out.zarr"
        return
    pytest.importorskip("obstore", reason="obstore is not installed")
    monkeypatch.setattr(lease, "WATCHED_SECONDS", 0.0)
    yield f"memory://{uuid4().hex}/deep/out.zarr"


def partial_of(output: str) -> Store:
    return open_store(f"{output}.partial")


def keys(store: Store) -> list[str]:
    return [entry.key for entry in store.list()]


def start(output: str, number: int = 1, **more: Any) -> WorkDir:
    """An unfinished run that finished some work and is at work still."""
    found = at(output, **more)
    found.check_output()
    assert found.open(plan(number)) is False
    found.log.append(WORK)
    found.log.flush()
    return found


def finish(output: str, **more: Any) -> None:
    """A finished dataset, as far as a work folder can tell."""
    found = start(output, **more)
    write_dataset(found)
    found.publish()


def write_dataset(found: WorkDir) -> None:
    record = write_file(found.dataset, "data", b"data")
    splits = {split: SplitRecord(0, 0, 0) for split in SPLITS}
    write_root(found.dataset, splits, [record], ArrayLayout.create(zarr_format=3))


# -- one run


def test_an_interrupted_run_resumes_and_keeps_its_work(output: str) -> None:
    first = start(output)
    shards = first.shard_store.store
    shards.put("0.0-00.train", b"shard")
    first.close()
    second = at(output)
    assert second.open(plan()) is True
    assert second.holds_work
    assert second.log.recorded().threshold(1) == 2
    assert second.shard_store.store.read("0.0-00.train") == b"shard"
    second.clean_dataset(set())
    second.close()
    assert "plan.json" in keys(partial_of(output))


def test_a_run_without_work_leaves_nothing(output: str) -> None:
    first = at(output)
    first.open(plan())
    first.put_job(b"job")
    first.close()
    assert keys(partial_of(output)) == []


def test_a_run_that_ends_before_it_opens_keeps_the_work_of_another(output: str) -> None:
    start(output).close()
    second = at(output)
    second.acquire()
    second.close()
    third = at(output)
    assert third.open(plan()) is True
    third.close()


def test_another_plan_is_refused_unless_nothing_would_be_lost(output: str) -> None:
    first = at(output)
    first.open(plan(1))
    first.log.append([{"id": [0, 0], "intake": {"records": 0}}])  # an empty text chunk is no loss
    first.log.flush()
    first.close()
    second = start(output, 2)
    second.close()
    for more in ({}, {"overwrite": True}):
        third = at(output, **more)
        with pytest.raises(Refused, match=r"^\S*out\.zarr\.partial: .*--seed 2 \(now 3\).*--restart"):
            third.open(plan(3))
        third.close()
    again = at(output, restart=True)
    assert again.open(plan(3)) is False
    assert not again.holds_work
    assert again.log.recorded().threshold(1) is None
    again.close()


def test_restart_discards_work_with_the_same_plan(output: str) -> None:
    start(output).close()
    again = at(output, restart=True)
    assert again.open(plan()) is False
    again.close()
    assert keys(partial_of(output)) == []


def test_work_of_another_version_is_not_thrown_away(output: str) -> None:
    first = at(output)
    first.open(plan(1, PLAN_VERSION - 1))
    first._store.put("shards/0.0-00.train", b"of a journal that this version cannot read")
    first._is_open = False  # as if killed
    first.close()
    partial_of(output).delete(["lease"])
    second = at(output)
    with pytest.raises(Refused, match=r"plan version.*--restart"):
        second.open(plan(1))
    second.close()
    assert "shards/0.0-00.train" in keys(partial_of(output))


@pytest.mark.parametrize("text", [b"", b"{", b'{"run": "no number"}'])
def test_a_damaged_plan_is_refused(output: str, text: bytes) -> None:
    start(output).close()
    partial_of(output).put("plan.json", text)
    second = at(output)
    with pytest.raises(Refused, match=r"plan\.json: .*--restart"):
        second.open(plan())
    second.close()
    again = at(output, restart=True)
    assert again.open(plan()) is False
    again.close()


def test_overwrite_and_restart_have_separate_effects(output: str) -> None:
    finish(output)
    target = open_store(output)
    for more in ({}, {"restart": True}):
        with pytest.raises(Refused, match="--overwrite"):
            at(output, **more).check_output()
    replacing = start(output, 2, overwrite=True)
    replacing.close()
    resuming = at(output, overwrite=True)
    assert resuming.open(plan(2)) is True
    resuming.close()
    assert "data" in keys(target) or "memory" in output  # on a disk the former dataset stays until the end
    other = at(output, overwrite=True)
    with pytest.raises(Refused, match="--restart"):
        other.open(plan(3))
    other.close()
    finish(output, number=4, overwrite=True, restart=True)
    assert set(keys(target)) == {"data", "files.jsonl", "manifest.json", "sources.jsonl", "zarr.json"}
    assert keys(partial_of(output)) == []


def test_the_job_has_a_name_of_its_content(output: str) -> None:
    first = start(output)
    places = [first.put_job(data) for data in (b"one", b"two", b"one")]
    assert places[0] == places[2] != places[1]
    folder, _, name = places[0].rpartition("/")
    assert open_store(folder).read(name) == b"one"
    first.close()


def test_the_status_is_written_whole_and_not_too_often(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(workdir.time, "monotonic", lambda: now)
    first = at(output)
    first.write_status({"done": 0})  # it has no folder yet
    first.open(plan())
    first.log.append(WORK)
    for done in range(20):
        now += workdir.STATUS_SECONDS / 2
        first.write_status({"done": done, "total": 20})
        status = json.loads(bytes(partial_of(output).read("status.json")))
        assert status == {"done": done - done % 2, "total": 20}
    first.close()
    now += 100
    first.write_status({"done": 20})
    assert json.loads(bytes(partial_of(output).read("status.json")))["done"] < 20
    task = at(output)
    task.acquire((3, 4))
    task.open(plan())
    monkeypatch.setattr(type(task._store), "put", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    task.write_status({"done": 1})  # progress that cannot be written ends no run
    monkeypatch.undo()
    now += 100
    task.close()


# -- tasks of a job array


def task_of(output: str, index: int, count: int = 3) -> WorkDir:
    found = at(output)
    found.check_output()
    found.acquire((index, count))
    return found


def test_tasks_work_side_by_side_and_a_run_resumes_from_all(output: str) -> None:
    tasks = [task_of(output, index) for index in range(3)]
    resumed = [task.open(plan()) for task in tasks]
    assert resumed == [False, True, True]
    assert len({task.shard_store.place for task in tasks}) == 1
    for index, task in enumerate(tasks):
        task.log.append([threshold_entry(index, index)])
        task.log.flush()
        task.write_status({"done": index})
    for index, task in enumerate(tasks):
        with pytest.raises(Refused):
            at(output).open(plan())  # a run waits for all tasks
        with pytest.raises(Refused):
            task_of(output, index)  # one process per task
        task.close()
    assert {"status.0.json", "status.2.json"} <= set(keys(partial_of(output)))
    again = task_of(output, 1, 5)
    assert again.open(plan()) is True
    assert [again.log.recorded().threshold(index) for index in range(3)] == [0, 1, 2]
    again.close()
    whole = at(output)
    assert whole.open(plan()) is True
    assert [whole.log.recorded().threshold(index) for index in range(3)] == [0, 1, 2]
    with pytest.raises(Refused):
        task_of(output, 1)
    write_dataset(whole)
    whole.publish()
    assert keys(partial_of(output)) == []
    assert set(keys(open_store(output))) == {
        "data",
        "files.jsonl",
        "manifest.json",
        "sources.jsonl",
        "zarr.json",
    }
    with pytest.raises(Refused):
        at(output).check_output()


def test_a_task_never_discards_work(output: str) -> None:
    first = task_of(output, 0)
    first.open(plan())
    first.close()
    other = task_of(output, 1)
    with pytest.raises(Refused, match=r"--seed 1 \(now 2\).*delete"):
        other.open(plan(2))
    other.close()
    restarted = at(output, restart=True)
    restarted.acquire((1, 3))
    with pytest.raises(UsageError, match="--restart"):
        restarted.open(plan())
    restarted.close()
    assert "plan.json" in keys(partial_of(output))
    again = at(output, restart=True)
    assert again.open(plan(2)) is False
    again.close()


def test_a_killed_task_is_taken_over(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = task_of(output, 0)
    first.open(plan())
    first.log.append(WORK)
    first.log.flush()
    if isinstance(first, FolderWorkDir):
        for lock in first._locks:
            assert lock._file is not None
            lock._file.close()
    else:
        monkeypatch.setattr(lease, "TAKEN_OVER_SECONDS", 0.0)
    again = task_of(output, 0)
    assert again.open(plan()) is True
    again.close()
    whole = at(output)
    assert whole.open(plan()) is True
    assert whole.log.recorded().threshold(1) == 2
    whole.close()


# -- the scratch location


def test_the_plan_names_the_location_of_the_shards(output: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first = start(output, scratch=f"{tmp_path}/one")
    (folder,) = (tmp_path / "one").iterdir()
    assert first.shard_store.store.path == folder
    (folder / "0.0-00.train").write_bytes(b"shard")
    first.close()
    for asked in (None, f"{tmp_path}/two"):  # a resumed run continues where the shards are
        second = at(output, scratch=asked)
        assert second.open(plan()) is True
        assert second.shard_store.read("0.0-00.train") == b"shard"
        second.close()
    assert list((tmp_path / "two").iterdir()) == []
    (tmp_path / "one").rename(tmp_path / "gone")  # as on another machine
    third = at(output, scratch=f"{tmp_path}/two")
    assert third.open(plan()) is True
    assert len(list((tmp_path / "two").iterdir())) == 1
    third.close()
    finish(output, scratch=f"{tmp_path}/two", restart=True)
    assert list((tmp_path / "two").iterdir()) == []


def test_a_scratch_folder_of_another_user_is_refused(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").mkdir()
    start(output, scratch=f"{tmp_path}/one").close()
    user = os.geteuid()
    monkeypatch.setattr(workdir.os, "geteuid", lambda: user + 1)
    second = at(output)
    with pytest.raises(Refused, match="another user"):
        second.open(plan())
    second.close()


def test_a_missing_scratch_folder_is_told_before_anything_is_written(output: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        with pytest.raises(StorageError, match=f"{name}.*--scratch"):
            at(output, scratch=f"{tmp_path}/{name}").check_output()
    assert keys(partial_of(output)) == []


@pytest.mark.parametrize("name", ["folder", f"folder{REMOVED}"])
def test_a_folder_is_removed_while_a_late_task_writes_to_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "0").touch()
    late = (tmp_path / name / "0").open("w")
    remove_folder(tmp_path / "folder")
    late.write("late")
    late.close()
    assert list(tmp_path.iterdir()) == []
    remove_folder(tmp_path / "folder")


# -- on a disk


def a_dataset(path: Path, content: str) -> None:
    path.mkdir()
    record = write_file(path, "data", content.encode())
    splits = {name: SplitRecord(0, 0, 0) for name in SPLITS}
    write_root(path, splits, [record], ArrayLayout.create(zarr_format=3))


def test_publishing_moves_the_dataset_and_leaves_nothing(tmp_path: Path) -> None:
    first = on_disk(f"{tmp_path}/out.zarr/")
    assert first.open(plan()) is False
    (first.dataset / "data").write_text("new")
    first.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
    assert (tmp_path / "out.zarr/data").read_text() == "new"


def test_on_a_network_disk_publishing_ended_with_a_folder_that_was_not_empty(
    tmp_path: Path, open_files_keep_names: None
) -> None:
    """The lock, still open, kept a name in it."""
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial/.nfs01").touch()  # of a process that was killed
    first = on_disk(tmp_path / "out")
    first.open(plan())
    (first.dataset / "data").write_text("new")
    first.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_former_output_that_is_read_on_a_network_disk_does_not_fail_the_run(
    tmp_path: Path, open_files_keep_names: None
) -> None:
    a_dataset(tmp_path / "out", "former")
    with (tmp_path / "out/data").open() as reader:
        first = on_disk(tmp_path / "out", overwrite=True)
        first.open(plan())
        (first.dataset / "data").write_text("new")
        first.publish()
        assert (tmp_path / "out/data").read_text() == "new"
        assert reader.read() == "former"
    at(tmp_path / "out").remove_remains()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_resumed_run_keeps_only_recorded_files_of_the_dataset(tmp_path: Path) -> None:
    first = on_disk(tmp_path / "out")
    first.open(plan())
    (first.dataset / "train").mkdir()
    (first.dataset / "train/0").write_text("whole")
    (first.dataset / "train/.1.partial").write_text("half")
    first.clean_dataset({"train/0"})
    assert [path.name for path in first.dataset.rglob("*")] == ["train", "0"]
    first.close()


def test_a_run_that_had_not_begun_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "out.partial/shards").mkdir(parents=True)
    for name in ("plan.json.tmp", ".put-00ab", "stdin", f"dataset{REMOVED}"):
        (tmp_path / "out.partial" / name).touch()
    first = at(tmp_path / "out")
    assert first.open(plan()) is False
    first.close()
    assert list(tmp_path.iterdir()) == []


def test_the_former_output_comes_back_after_a_kill_between_the_renames(tmp_path: Path) -> None:
    a_dataset(tmp_path / "out", "old")
    first = on_disk(tmp_path / "out", overwrite=True)
    first.open(plan())
    (tmp_path / "out").rename(tmp_path / "out.partial/replaced")
    first.close()  # as if killed here
    careful = at(tmp_path / "out")
    with pytest.raises(Refused, match="--overwrite"):
        careful.open(plan())
    careful.close()
    assert (tmp_path / "out/data").read_text() == "old"
    again = on_disk(tmp_path / "out", overwrite=True)
    again.open(plan(2))
    (again.dataset / "data").write_text("new")
    again.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out/data").read_text() == "new"


def test_an_output_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    first = at(tmp_path / "out")
    first.check_output()
    first.open(plan())
    (tmp_path / "out").write_text("mine")
    with pytest.raises(Refused):
        first.publish()
    first.close()
    assert (tmp_path / "out").read_text() == "mine"


def test_what_a_killed_run_left_next_to_its_finished_output_goes(tmp_path: Path) -> None:
    first = on_disk(tmp_path / "out")
    first.open(plan())
    first.log.append(WORK)
    (first.dataset / "manifest.json").touch()
    first.dataset.rename(tmp_path / "out")
    at(tmp_path / "out").remove_remains()
    assert (tmp_path / "out.partial").exists()  # that run is still at work
    assert first._locks[0]._file is not None
    first._locks[0]._file.close()  # as if killed here
    at(tmp_path / "out").remove_remains()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["lock", "lock.2"])
def test_a_lock_of_another_host_is_not_taken_over(tmp_path: Path, name: str) -> None:
    (tmp_path / "out.partial").mkdir()
    lock = tmp_path / "out.partial" / name
    lock.write_text('{"host": "elsewhere", "process": 7, "started": "then", "boot": "another"}')
    for acquire in (lambda: at(tmp_path / "out").open(plan()), lambda: task_of(str(tmp_path / "out"), 2)):
        with pytest.raises(Refused, match="elsewhere"):
            acquire()
    for text in (json.dumps({"host": "elsewhere", "boot": boot_id()}), "", "[]", "x" * 5000, "77"):
        lock.parent.mkdir(exist_ok=True)
        lock.write_text(text)
        taken = at(tmp_path / "out")
        assert taken.open(plan()) is False
        taken.close()


@pytest.mark.parametrize("ended", [WorkDir.close, lambda found: found.open(plan(2))])
def test_the_lock_is_released_on_every_orderly_exit(tmp_path: Path, ended: Callable[[WorkDir], Any]) -> None:
    """Its file must not name this host, or another one could not resume."""
    first = start(str(tmp_path / "out"))
    first.close()
    second = at(tmp_path / "out")
    second.acquire()
    try:
        ended(second)
    except Refused:
        second.close()
    else:
        second.close()
    assert (tmp_path / "out.partial/lock").read_bytes() == b""


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    for name in ("jobs.txt", "journal.txt", "lock.x", "notes"):
        (tmp_path / "out.partial").mkdir()
        (tmp_path / "out.partial" / name).write_text("mine")
        found = at(tmp_path / "out")
        with pytest.raises(Refused, match=name):
            found.open(plan())
        found.close()
        assert (tmp_path / "out.partial" / name).read_text() == "mine"
        remove_folder(tmp_path / "out.partial")


# -- on a store


def test_foreign_objects_in_the_work_folder_stay(tmp_path: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    output = f"memory://{uuid4().hex}/out"
    foreign = ["job-1", "jobs.txt", "journal/readme", "logs", "notes.txt", "plan.json.bak", "tasks/a/lease"]
    for key in foreign:
        partial_of(output).put(key, b"mine")
    start(output).close()
    at(output).open(plan())
    partial_of(output).delete(["lease"])
    finish(output, restart=True)
    assert keys(partial_of(output)) == foreign


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
    assert sorted(convert.__all__) == ["ConvertOptions", "Summary", "convert", "encode_share"]
    assert all(callable(getattr(convert, name)) for name in convert.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = convert.nothing
