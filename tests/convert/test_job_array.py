"""Tasks of a job array encode shares of a corpus side by side, and a plain run merges them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_runs import command, fails
from naive_conversion import END, make_documents, tree

from convert.__main__ import main

SMALL = ("--text-chunk-bytes", "700", "--validation-fraction", "0.3", "--workers", "1")


def tasks(count: int, *more: str) -> list[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "convert", *command(*SMALL, *more), "--task-count", str(count)]
    return [subprocess.Popen([*words, "--task-index", str(index)], text=True) for index in range(count)]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("has_scratch", [False, True])
def test_a_job_array_gives_the_same_bytes(count: int, has_scratch: bool, here: Path) -> None:
    (here / "en.txt").write_text(END.join(make_documents(400, seed=4)), newline="")
    (here / "scratch").mkdir()
    more = ["--scratch", "scratch"] if has_scratch else []
    assert [process.wait(120) for process in tasks(count, *more)] == [0] * count
    assert not (here / "out.zarr").exists()
    assert main(command(*SMALL, *more)) == 0
    assert main(command(*SMALL, output="plain.zarr")) == 0
    assert tree(here / "out.zarr") == tree(here / "plain.zarr")
    assert not list((here / "scratch").iterdir())


def test_the_last_run_encodes_the_share_of_a_task_that_failed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "en.txt").write_text(END.join(make_documents(400, seed=4)), newline="")
    first = command(*SMALL, "--task-index", "1", "--task-count", "3")
    assert main(first) == 0
    assert "task 1 of 3" in capsys.readouterr().out
    assert main(command(*SMALL)) == 0
    assert "reused" in capsys.readouterr().out
    assert main(command(*SMALL, output="plain.zarr")) == 0
    assert tree(here / "out.zarr") == tree(here / "plain.zarr")


def test_options_that_tasks_cannot_have(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = ("--task-index", "0", "--task-count", "2")
    fails(capsys, command("-", *task), 2, "-: ", "--task-index")
    fails(capsys, command(*task, "--validation-docs", "3"), 2, "--task-index: ", "--validation-docs")
    fails(capsys, command("--task-index", "0"), 2, "--task-index: ", "--task-count")


def test_a_status_file_shows_the_progress(here: Path) -> None:
    assert main(command(*SMALL, "--task-index", "0", "--task-count", "2")) == 0
    status = json.loads((here / "out.zarr.partial/status.0.json").read_text())
    assert status["stage"] == "encode"
    assert 0 <= status["done_bytes"] <= status["total_bytes"]
