"""The job of tasks: written for workers elsewhere, read by its key alone, and without the settings of stores."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tokenmill.engines import job as jobs
from tokenmill.engines.errors import EngineFailure
from tokenmill.engines.job import JobKey, check_worker, find_job, write_job
from tokenmill.stores import StoreError

SECRET = "wJalrXUtnFEMI/K7MDENG"
OPTIONS = {"secret_access_key": SECRET, "region": "eu-west-1"}


class SmallJob(NamedTuple):
    """A job with settings in two places, as a conversion has of its inputs and its output."""

    inputs: tuple[tuple[str, str], ...]
    output: dict[str, str]
    text: bytes

    def prepare(self) -> None:
        """See `tokenmill.engines.job.Job`."""


@pytest.fixture(autouse=True)
def nothing_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_jobs", {})


def written(folder: Path, text: bytes = b"text") -> tuple[SmallJob, JobKey]:
    job = SmallJob(tuple(sorted(OPTIONS.items())), dict(OPTIONS), text)

    def put(data: bytes) -> str:
        (folder / "job").write_bytes(data)
        return str(folder / "job")

    return job, write_job(job, put, OPTIONS)


def test_settings_of_stores_are_in_the_key_and_not_in_the_file(tmp_path: Path) -> None:
    job, key = written(tmp_path)
    assert SECRET.encode() not in (tmp_path / "job").read_bytes()
    assert SECRET not in repr(key)
    found = find_job(key)
    assert found == job
    assert found.output["secret_access_key"] == SECRET
    assert find_job(key) is found


def test_another_file_is_not_read(tmp_path: Path) -> None:
    _, key = written(tmp_path)
    written(tmp_path, b"other")
    with pytest.raises(StoreError):
        find_job(key)


def test_a_worker_with_another_version_or_other_modules_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = written(tmp_path)
    check_worker(key)
    with pytest.raises(EngineFailure, match="another"):
        check_worker(key._replace(version="another"))
    monkeypatch.delattr(f"{__name__}.SmallJob")
    with pytest.raises(EngineFailure):
        find_job(key)
