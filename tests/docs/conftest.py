"""Servers for the pages, and import paths of shared test modules."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("docs", "stores", "flat_tokens")]

from hub_files import hub_server  # noqa: E402
from servers import KEY, SECRET, client_of_another_make, moto_server  # noqa: E402
from stand_ins import texts  # noqa: E402


@pytest.fixture
def hub() -> Iterator[str]:
    """Yield the address of a Hugging Face Hub with one Parquet file."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("huggingface_hub")
    table = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": texts(50, 5)}), table)
    with hub_server() as server:
        server.commit({"data/train-00000-of-00001.parquet": table.getvalue()})
        yield server.url


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the address of an S3 server with an empty bucket, `bucket`, also set in the environment."""
    pytest.importorskip("obstore")
    with moto_server() as address:
        client_of_another_make(address).create_bucket(Bucket="bucket")
        for name, value in (("ENDPOINT_URL", address), ("ACCESS_KEY_ID", KEY), ("SECRET_ACCESS_KEY", SECRET)):
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield address


@pytest.fixture
def scheduler() -> Iterator[str]:
    """Yield the address of a Dask cluster with one worker."""
    pytest.importorskip("distributed")
    command = [sys.executable, str(TESTS / "convert" / "dask_cluster.py"), "1", "2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdout is not None
        yield cluster.stdout.readline().strip()
        cluster.communicate(timeout=60)
