"""S3 servers on loopback: moto's, which has conditional puts, and rclone's, which ignores conditions."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faulty_proxy import faulty_proxy

KEY, SECRET = "testing-key", "testing-secret"
BUCKET = "corpus"
WRITABLE = ["local", "memory", "moto", "rclone"]  # kinds of stores


def s3_options(endpoint: str) -> dict[str, str]:
    """The storage options for a server of this module."""
    return {
        "endpoint": endpoint,
        "access_key_id": KEY,
        "secret_access_key": SECRET,
        "region": "us-east-1",
    }


@contextmanager
def moto_server() -> Iterator[str]:
    """The address of a server with the empty bucket BUCKET."""
    server_module = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "20"  # per request of a listing
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        client_of_another_make(f"http://{host}:{port}").create_bucket(Bucket=BUCKET)
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def client_of_another_make(endpoint: str) -> Any:
    """A client of boto3, which shares nothing with the code under test."""
    import boto3

    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )


@contextmanager
def rclone_server(folder: Path) -> Iterator[str]:
    """The address of a server with the folders in `folder` as buckets. BUCKET is one of them."""
    installed = Path(sys.executable).parent / "rclone"
    rclone = str(installed) if installed.exists() else shutil.which("rclone")
    if rclone is None:
        pytest.skip("rclone is not installed")
    (folder / BUCKET).mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        rclone,
        "serve",
        "s3",
        str(folder),
        "--addr",
        f"127.0.0.1:{port}",
        "--auth-key",
        f"{KEY},{SECRET}",
    ]
    server = subprocess.Popen(
        [*command, "--config", os.devnull, "--vfs-cache-mode", "off", "--log-level", "ERROR"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, server)
        with faulty_proxy(f"http://127.0.0.1:{port}") as proxy:  # which corrects the status of ranges
            yield proxy.url
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        assert server.poll() is None, "the server has ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server does not listen")
