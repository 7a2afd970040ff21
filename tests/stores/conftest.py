"""Servers that are started once, and an empty store of each kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules that the tests share

from servers import BUCKET, WRITABLE, moto_server, rclone_server, s3_options

from tokenmill.stores import Store, open_store


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The address of moto's S3 server."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    with moto_server() as address:
        yield address


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of rclone's S3 server."""
    with rclone_server(tmp_path_factory.mktemp("rclone") / "buckets") as address:
        yield address


@pytest.fixture
def open_empty(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Store]:
    """open_empty(kind): an empty container that can be written."""

    def opened(kind: str) -> Store:
        name = uuid4().hex
        if kind == "local":
            return open_store(tmp_path / name)
        pytest.importorskip("obstore", reason="obstore is not installed")
        if kind == "memory":
            return open_store(f"memory://{name}/a/b")
        return open_store(f"s3://{BUCKET}/{name}", s3_options(request.getfixturevalue(kind)))

    return opened


@pytest.fixture(params=WRITABLE)
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of `store`."""
    return str(request.param)


@pytest.fixture
def store(kind: str, open_empty: Callable[[str], Store]) -> Store:
    """An empty container of each kind that can be written."""
    return open_empty(kind)
