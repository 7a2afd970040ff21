"""`-` among the inputs is standard input: any format, any compression, resumed if the same bytes come again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from runs import (
    ENVIRONMENT,
    Inline,
    arrays,
    convert,
    error_of,
    options_of,
    sample_documents,
    sample_text,
    sources_of,
    stopping_at,
    tree,
    without_names,
    words,
)
from strategies import compressed

from tokenmill.inputs import standard_input
from tokenmill.stores import open_store


def piped_command(data: bytes, *more: str, output: str = "out") -> subprocess.CompletedProcess[bytes]:
    line = [
        sys.executable,
        "-m",
        "convert",
        *words("-", output=output, workers=1, text_chunk_bytes=300),
        *more,
    ]
    return subprocess.run(line, input=data, capture_output=True, check=False, env=ENVIRONMENT)


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["none", "gz", "zst"])
@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_piped_text_gives_the_dataset_of_a_file(form: str, compression: str, folder: Path) -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in sample_documents(20)).encode()
    data = sample_text(20) if form == "text" else lines
    (folder / f"in.{form}").write_bytes(data)
    done = piped_command(compressed(data, compression), "--input-format", form)
    assert done.returncode == 0, done.stderr
    convert(Inline(), inputs=[f"in.{form}"], output="file")
    assert arrays("out") == arrays("file")
    assert sources_of("out")[0]["path"] == "-"
    assert options_of("out")["documents"] == options_of("file")["documents"]
    assert not Path("out.partial").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_an_interrupted_run_resumes_with_the_same_bytes_only() -> None:
    lines = [json.dumps({"text": f"document {number}"}) for number in range(50)]
    data = "\n".join([*lines[:40], "bad", *lines[40:]]).encode()
    form = ["--input-format", "jsonl"]
    assert piped_command(data, *form).returncode == 3
    other = piped_command(data + b"\n", *form)
    assert other.returncode == 6
    assert b"size of - " in other.stderr
    done = piped_command(data, *form, "--on-error", "skip")
    assert done.returncode == 0, done.stderr
    assert b"resuming from" in done.stderr
    assert b"reused" in done.stdout
    assert piped_command(data, *form, "--on-error", "skip", output="whole").returncode == 0
    assert tree("out") == tree("whole")
    assert piped_command(b"a", "--validation", "-", output="held").returncode == 2
    assert not Path("held.partial").exists()


@pytest.fixture
def pipe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Make bytes the standard input of this process."""

    def make(data: bytes) -> None:
        (folder / "piped").write_bytes(data)
        monkeypatch.setattr(standard_input, "_descriptor", lambda: os.open("piped", os.O_RDONLY))

    return make


def test_on_a_store_every_worker_can_read_it(pipe: Callable[[bytes], None]) -> None:
    """It was copied to the temporary folder of the driver's machine."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    url, data = f"memory://{uuid4().hex}/out", sample_text(60)
    options = {"inputs": ["-"], "zarr_format": 3, "text_chunk_bytes": 300, "validation_fraction": 0.2}
    pipe(data)
    convert(Inline(), output="local", **options)
    with pytest.raises(KeyboardInterrupt):
        convert(stopping_at(12), output=url, **options)
    assert bytes(open_store(f"{url}.partial").read("stdin")) == data
    pipe(data[:-1])
    assert "size of - " in str(error_of(Inline(), output=url, **options))
    pipe(data)
    assert convert(Inline(), output=url, **options).reused_shards > 0
    assert list(open_store(f"{url}.partial").list()) == []
    store = open_store(url)
    made = {entry.key: bytes(store.read(entry.key)) for entry in store.list()}
    assert without_names(made) == arrays("local")
