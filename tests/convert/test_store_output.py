"""Outputs on a store: the bytes of a local output, and nothing next to them at the end."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from runs import Inline, command, convert, error_of, sample_documents, tree
from servers import BUCKET, KEY, SECRET, s3_options
from store_runs import OPTIONS, Output, expired_leases
from strategies import compressed

from tokenmill.stores import AlreadyThere, Entry, lease, open_store
from tokenmill.stores.object import ObjectStore

pytest.importorskip("obstore", reason="obstore is not installed")


@pytest.fixture(autouse=True)
def clean(here: Path) -> Iterator[dict[str, bytes]]:
    """The dataset of en.txt on a disk."""
    convert(Inline(), output="clean", **OPTIONS)
    with expired_leases():
        yield tree("clean")


def credentials(options: dict[str, str]) -> list[str]:
    return [f"--storage-option={name}={value}" for name, value in options.items()]


@pytest.mark.slow
@pytest.mark.promise("deterministic")
@pytest.mark.parametrize("scratch", ["", "url"])
def test_worker_processes_and_a_server(
    scratch: str, here: Path, moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in sample_documents(40))
    (here / "lines.jsonl.gz").write_bytes(compressed(f"{lines}bad\n{lines}".encode(), "gz"))
    inputs, more = ["en.txt", "lines.jsonl.gz"], {"on_error": "quarantine", **OPTIONS}
    convert(Inline(), inputs=inputs, output="local", **more)
    (here / "temporary").mkdir()
    monkeypatch.setitem(__import__("runs").ENVIRONMENT, "TMPDIR", str(here / "temporary"))
    output = Output(f"s3://{BUCKET}/{uuid4().hex}/out", s3_options(moto))
    shards = open_store(f"s3://{BUCKET}/{uuid4().hex}", output.options)
    flags = {"output": output.url, "workers": 2, "progress": "none", **more}
    flags |= {"scratch": shards.url} if scratch else {}
    assert command(*inputs, *credentials(output.options), **flags)[::2] == (0, "")
    assert output.objects() == tree("local")
    assert not list(shards.list())
    assert not list((here / "temporary").iterdir())
    assert not any(SECRET.encode() in data or KEY.encode() in data for data in output.objects().values())


@pytest.mark.promise("foreign-files")
@pytest.mark.parametrize("overwrite", [False, True])
def test_foreign_objects_in_the_output_stay(overwrite: bool) -> None:
    output = Output()
    for key in ("notes.txt", "train/notes.txt", "manifest.json"):
        output.target.put(key, b"mine")
        error = error_of(Inline(), output=output.url, overwrite=overwrite, **OPTIONS)
        assert error.exit_code == 6
        assert output.target.read(key) == b"mine"
        output.target.delete([key])
        assert output.left() == []


def test_foreign_objects_next_to_the_output_stay(clean: dict[str, bytes]) -> None:
    output = Output()
    foreign = ["job-1", "jobs.txt", "journal/readme", "logs", "notes.txt", "plan.json.bak", "tasks/a/lease"]
    for key in foreign:
        output.partial.put(key, b"mine")
    output.stop()
    output.run(restart=True)
    assert output.left() == foreign
    output.partial.delete(foreign)
    assert output.objects() == clean


# -- leases


@pytest.mark.promise("one-run")
def test_two_runs_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "TAKEN_OVER_SECONDS", 60.0)
    output, is_working, may_end = Output(), threading.Event(), threading.Event()

    def wait(number: int) -> None:
        if number == 5:
            is_working.set()
            assert may_end.wait(30)

    first = threading.Thread(target=output.run, args=(Inline(wait),))
    first.start()
    try:
        assert is_working.wait(30)
        error = error_of(Inline(), output=output.url, **OPTIONS)
        assert (error.exit_code, f"process {os.getpid()}" in str(error)) == (6, True)
    finally:
        may_end.set()
        first.join()
    assert output.objects()


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b'{"holder": 1, "renewed": "x"}', b'{"holder": 1, "renewed": NaN}', None],
)
def test_a_lease_that_is_damaged_or_from_the_future(
    content: bytes | None, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "TAKEN_OVER_SECONDS", 60.0)
    output = Output()
    future = {"holder": "1", "host": "here", "process": 1, "renewed": time.time() + 86400}
    output.partial.put("lease", json.dumps(future).encode() if content is None else content)
    output.run()
    assert output.objects() == clean


def test_a_put_that_arrives_twice_is_not_another_run(
    clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    put = ObjectStore.put

    def twice(self: ObjectStore, key: str, data: Any, if_absent: bool = False) -> Entry:
        entry = put(self, key, data, if_absent)
        if if_absent and key.startswith(("journal/", "lease")):
            raise AlreadyThere(f"{key} is there")
        return entry

    monkeypatch.setattr(ObjectStore, "put", twice)
    output = Output()
    output.run()
    assert output.objects() == clean


# -- errors


@pytest.mark.parametrize("argument", ["", "/a/", "/**/*.txt", "/a/out"])
def test_an_output_inside_an_input(argument: str) -> None:
    bucket = f"memory://{uuid4().hex}"
    open_store(bucket).put("a/b.txt", b"text")
    assert error_of(Inline(), inputs=[bucket + argument], output=f"{bucket}/a/out").exit_code == 2
    convert(Inline(), inputs=[f"{bucket}/a/*.txt"], output=f"{bucket}/a/out")
