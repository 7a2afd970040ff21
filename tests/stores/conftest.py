"""Servers that are started once, and a store of every kind, empty."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules that the tests share

from google_server import google_options, google_server
from servers import BUCKET, moto_server, rclone_server, s3_options

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
    pytest.importorskip("obstore", reason="obstore is not installed")
    with rclone_server(tmp_path_factory.mktemp("rclone") / "buckets") as address:
        yield address


@pytest.fixture(scope="session")
def google() -> Iterator[str]:
    """The address of a server that answers as Google's."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    with google_server() as address:
        yield address


@pytest.fixture(params=["local", "memory", "moto", "rclone", "google"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty container of each kind."""
    if request.param == "local":
        return open_store(tmp_path / "store")
    pytest.importorskip("obstore", reason="obstore is not installed")
    if request.param == "memory":
        return open_store(f"memory://{uuid4().hex}/a/b")
    address = request.getfixturevalue(request.param)
    if request.param == "google":
        return open_store(f"gs://{BUCKET}/{uuid4().hex}", google_options(address))
    return open_store(f"s3://{BUCKET}/{uuid4().hex}", s3_options(address))
