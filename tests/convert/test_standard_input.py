"""`-` among the inputs is standard input: any format, any compression, resumed if the same bytes come again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from input_kinds import compressed, json_lines
from naive_conversion import END, Naive, expected_dataset, make_documents, read_dataset, tree
from stopped_runs import encode_or_fail, options
from store_runs import MORE, Place

import convert.encode.encode_task
import flat_tokens
from convert import convert as run_conversion
from convert.errors import BadInput, Refused
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.inputs import standard_input
from tokenmill.stores import StoreError


def convert_piped(
    tokenizer: Path, output: Path, data: bytes, *words: str
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "convert", "-", "--tokenizer", str(tokenizer), "--output", str(output)]
    command += ["--workers", "1", "--validation-fraction", "0.3", "--chunk-tokens", "64", *words]
    return subprocess.run(command, input=data, capture_output=True, check=False)


@pytest.mark.parametrize(("form", "compression"), [("text", "none"), ("text", "gz"), ("jsonl", "zst")])
def test_equal_to_the_naive_conversion(
    form: str, compression: str, tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    documents = [*make_documents(20, seed=4), "end"]
    data = END.join(documents).encode() if form == "text" else json_lines(documents)
    words = [] if form == "text" else ["--input-format", "jsonl"]
    output = tmp_path / "out"
    done = convert_piped(tokenizer_path, output, compressed(data, compression), *words)
    assert done.returncode == 0, done.stderr
    expected = naive.convert_documents([d.encode() for d in documents], form == "text", fraction=0.3)
    assert read_dataset(output) == expected_dataset(expected)
    assert not (tmp_path / "out.partial").exists()
    source = flat_tokens.open(output).sources()[0]
    assert source["path"] == "-"


def test_an_interrupted_run_goes_on_with_the_same_bytes_only(tokenizer_path: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"document {index}"}) for index in range(50)]
    bad = "\n".join([*lines[:40], "bad", *lines[40:]]).encode()
    words = ["--input-format", "jsonl", "--text-chunk-bytes", "100"]
    output = tmp_path / "out"
    assert convert_piped(tokenizer_path, output, bad, *words).returncode == 3
    assert (tmp_path / "out.partial").exists()
    other = convert_piped(tokenizer_path, output, bad + b"\n", *words)
    assert other.returncode == 6
    assert b"size of - " in other.stderr
    done = convert_piped(tokenizer_path, output, bad, *words, "--on-error", "skip")
    assert done.returncode == 0, done.stderr
    assert b"resuming from" in done.stderr
    assert b"reused" in done.stdout
    assert (
        convert_piped(tokenizer_path, tmp_path / "at-once", bad, *words, "--on-error", "skip").returncode == 0
    )
    assert tree(output) == tree(tmp_path / "at-once")


def test_what_standard_input_cannot_be(tokenizer_path: Path, tmp_path: Path) -> None:
    held_out = convert_piped(tokenizer_path, tmp_path / "out", b"a", "--validation", "-")
    assert held_out.returncode == 2
    assert not (tmp_path / "out.partial").exists()


@pytest.fixture
def piped(here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Make bytes the standard input."""

    def pipe(data: bytes) -> None:
        (here / "piped").write_bytes(data)
        monkeypatch.setattr(standard_input, "_descriptor", lambda: os.open("piped", os.O_RDONLY))

    return pipe


def test_on_a_store_every_worker_can_read_it(
    here: Path,
    place: Place,
    piped: Callable[[bytes], None],
    at_once: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It went to the temporary folder of the driver's machine, which no other machine can read."""
    text = (here / "en.txt").read_bytes()
    piped(text)
    more: dict[str, Any] = {"inputs": ("-",), **MORE}
    run_conversion(options(output="expected", **more), InlineEngine())
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.encode_task, "encode_chunk", encode_or_fail)
        with pytest.raises(BadInput):
            place.run(**more)
    assert place.partial.read("stdin") == text
    piped(text[:-1])
    with pytest.raises(Refused, match="size of - "):
        place.run(**more)
    piped(text)
    assert place.run(**more).reused_shards > 0
    assert place.debris() == []
    made, expected = place.dataset(), tree(here / "expected")
    assert json.loads(made["sources.jsonl"])["path"] == "-"
    own = {"manifest.json", "sources.jsonl", "files.jsonl"}
    assert made.keys() == expected.keys()
    assert all(made[name] == data for name, data in expected.items() if name not in own)


def test_a_file_that_the_disk_has_no_room_for_is_refused(
    here: Path, piped: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    piped(b"text" * 1000)
    full = shutil.disk_usage(here)._replace(free=3999)
    monkeypatch.setattr(standard_input.shutil, "disk_usage", lambda _: full)
    with pytest.raises(StoreError, match="standard input has 4.0 kB"):
        run_conversion(options(inputs=["-"]), InlineEngine())
    assert not (here / "out.partial").exists()
