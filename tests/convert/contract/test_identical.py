"""The bytes of a dataset do not depend on the number of workers, the engine or where the output is."""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import (
    ENVIRONMENT,
    Inline,
    command,
    convert,
    convert_by,
    sample_documents,
    sample_text,
    tree,
    workplace,
)
from strategies import FORMS, Corpus, record_files

SLOW = pytest.mark.stress
OPTIONS: dict[str, Any] = {
    "text_chunk_bytes": 700,
    "chunk_tokens": 64,
    "validation_fraction": 0.2,
    "on_error": "quarantine",
    "append_token": "<|endoftext|>",
}


def mixed_corpus() -> Corpus:
    """Two files of each kind, half of them with faults, a longer text, and an archive that is cut off."""
    found: list[Corpus] = []

    @settings(max_examples=1, database=None, derandomize=True)
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        for number, form in enumerate(FORMS[1:] * 2):
            records = [{"id": at, "text": text} for at, text in enumerate(sample_documents(15, seed=number))]
            found.append(data.draw(record_files(f"{number:02}", records, form, faults=number % 2 == 1)))

    draw()
    files = {name: data for each in found for name, data in each.files.items()}
    more = {"long.txt": sample_text(300), "cut.txt.gz": gzip.compress(sample_text(99), mtime=0)[:-99]}
    return Corpus(files | more, [*more, *(name for each in found for name in each.inputs)])


@pytest.fixture(scope="module")
def corpus() -> Iterator[tuple[list[str], dict[int, dict[str, bytes]]]]:
    """The inputs and, by Zarr format, the dataset of one worker."""
    with workplace() as root:
        drawn = mixed_corpus()
        drawn.write()
        inputs = [str(root / name) for name in drawn.inputs]  # a cluster runs elsewhere
        for zarr_format in (2, 3):
            convert(
                Inline(),
                workers=1,
                inputs=inputs,
                output=f"{zarr_format}",
                zarr_format=zarr_format,
                **OPTIONS,
            )
        yield inputs, {zarr_format: tree(f"{zarr_format}") for zarr_format in (2, 3)}


@pytest.mark.parametrize(
    ("engine", "workers"),
    [
        ("fork", 2),
        ("threads", 3),
        ("pool", 2),
        *(pytest.param(*one, marks=SLOW) for one in [("fork", 1), ("fork", 8), ("spawn", 2), ("inline", 8)]),
    ],
)
def test_engines_of_this_machine(engine: str, workers: int, corpus: Any, tmp_path: Path) -> None:
    inputs, expected = corpus
    convert_by(engine, workers, inputs=inputs, output=str(tmp_path / "out"), zarr_format=2, **OPTIONS)
    assert tree(tmp_path / "out") == expected[2]


@pytest.mark.parametrize("text_chunk_bytes", [pytest.param(97, marks=SLOW), 5000, None])
def test_text_chunks(text_chunk_bytes: int | None, corpus: Any, tmp_path: Path) -> None:
    inputs, expected = corpus
    more = OPTIONS | {"text_chunk_bytes": text_chunk_bytes}
    convert(Inline(), inputs=inputs, output=str(tmp_path / "out"), zarr_format=2, **more)
    assert tree(tmp_path / "out") == expected[2]


def test_the_command_and_other_environments(
    corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, expected = corpus
    for name, value in {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "TZ": "Asia/Kathmandu",
        "PYTHONHASHSEED": "7",
    }.items():
        monkeypatch.setitem(ENVIRONMENT, name, value)
    code, _, err = command(*inputs, output=str(tmp_path / "out"), zarr_format=3, progress="none", **OPTIONS)
    assert (code, err) == (0, "")
    assert tree(tmp_path / "out") == expected[3]


CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@contextmanager
def dask_cluster(folder: Path) -> Iterator[str]:
    """The address of a scheduler with two workers."""
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("distributed is not installed")
    (folder / "cluster.py").write_text(CLUSTER)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(
        [sys.executable, "cluster.py"], cwd=folder, env=ENVIRONMENT, text=True, **pipes
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate(timeout=60)


@SLOW
def test_a_dask_cluster(corpus: Any, tmp_path: Path) -> None:
    inputs, expected = corpus
    with dask_cluster(tmp_path) as scheduler:
        code, _, err = command(
            *inputs, output=str(tmp_path / "out"), scheduler=scheduler, progress="none", **OPTIONS
        )
    assert (code, err) == (0, "")
    assert tree(tmp_path / "out") == expected[2]


# -- object stores


class Bucket:
    """An empty bucket of an S3 server; its objects are read by boto3."""

    def __init__(self, endpoint: str) -> None:
        import boto3

        keys = {"access_key_id": "testing-key", "secret_access_key": "testing-secret"}
        self.options = {"endpoint": endpoint, "region": "us-east-1", **keys}
        named = {f"aws_{name}": value for name, value in keys.items()}
        self.client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **named)
        self.name = uuid4().hex
        self.client.create_bucket(Bucket=self.name)

    def objects(self) -> dict[str, bytes]:
        """Key -> bytes."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        return {key: self.client.get_object(Bucket=self.name, Key=key)["Body"].read() for key in keys}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    server_module = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str) -> Bucket:
    return Bucket(endpoint)


@pytest.mark.parametrize(
    "engine", [pytest.param("inline", marks=SLOW), "threads", pytest.param("command", marks=SLOW)]
)
def test_an_object_store(engine: str, corpus: Any, bucket: Bucket) -> None:
    inputs, expected = corpus
    url = f"s3://{bucket.name}/deep/out"
    if engine == "command":
        arguments = [f"--storage-option={name}={value}" for name, value in bucket.options.items()]
        code, _, err = command(*inputs, *arguments, output=url, workers=2, progress="none", **OPTIONS)
        assert (code, err) == (0, "")
    else:
        convert_by(engine, inputs=inputs, output=url, storage_options=bucket.options, **OPTIONS)
    assert bucket.objects() == {f"deep/out/{name}": data for name, data in expected[3].items()}


@pytest.mark.usefixtures("corpus")
def test_foreign_objects_next_to_an_output_stay(bucket: Bucket) -> None:
    foreign = {
        f"out.partial{name}": b"mine" for name in ("/notes.txt", "/jobs.txt", "/log/readme", "-1", ".txt")
    }
    for key, data in foreign.items():
        bucket.client.put_object(Bucket=bucket.name, Key=key, Body=data)
    options = {"output": f"s3://{bucket.name}/out", "storage_options": bucket.options, **OPTIONS}
    convert(Inline(), inputs=["long.txt"], **options)
    found = bucket.objects()
    assert {key: found.get(key) for key in foreign} == foreign
    assert all(key.startswith("out/") for key in found.keys() - foreign.keys())
