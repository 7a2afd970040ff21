"""--address without a Ray cluster. tests/stress/test_clusters.py starts one, which takes long."""

from __future__ import annotations

import importlib.util
import signal
import socket
from pathlib import Path

import pytest
from runs import error_of

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs the extra cluster (ray)"
)


@pytest.mark.parametrize("form", ["{}", "ray://{}", "nonsense"])
@pytest.mark.usefixtures("here")
def test_a_cluster_that_does_not_answer(form: str) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = form.format(f"127.0.0.1:{silent.getsockname()[1]}")
        error = error_of(workers=None, address=address)
    assert (error.exit_code, address in str(error)) == (5, True)
    assert signal.getsignal(signal.SIGTERM) == before  # Ray's handler stayed installed
    assert not Path("out.partial").exists()
