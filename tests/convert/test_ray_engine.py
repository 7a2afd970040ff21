"""`--executor ray` where there is none; where there is one, tools/check_engines.py tries it: its start takes long."""

from __future__ import annotations

import importlib.util
import signal
import socket
from pathlib import Path

import pytest

from convert import ConvertOptions
from convert import convert as run_conversion
from convert.errors import EngineFailure

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs the extra cluster (ray)"
)


@pytest.mark.parametrize("form", ["{}", "ray://{}", "nonsense"])
def test_a_cluster_that_is_not_there_is_one_line(form: str, here: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = form.format(f"127.0.0.1:{nobody.getsockname()[1]}")
        options = ConvertOptions(
            ["en.txt"], "tok.json", "out", executor="ray", address=address, progress="none"
        )
        with pytest.raises(EngineFailure, match=f"{address}"):
            run_conversion(options)
    assert signal.getsignal(signal.SIGTERM) == before  # Ray's own was left in its place
    assert not (here / "out.partial").exists()
