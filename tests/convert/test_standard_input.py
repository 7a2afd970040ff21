"""`-` among the inputs is standard input: any format, any compression, resumed if the same bytes come again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from input_kinds import compressed, json_lines
from naive_conversion import END, Naive, expected_dataset, make_documents, read_dataset, tree


def convert(tokenizer: Path, output: Path, data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
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
    done = convert(tokenizer_path, output, compressed(data, compression), *words)
    assert done.returncode == 0, done.stderr
    expected = naive.convert_documents([d.encode() for d in documents], form == "text", fraction=0.3)
    assert read_dataset(output) == expected_dataset(expected)
    assert not (tmp_path / "out.partial").exists()
    source = json.loads((output / "manifest.json").read_text())["sources"][0]
    assert source["path"] == "-"


def test_an_interrupted_run_goes_on_with_the_same_bytes_only(tokenizer_path: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"document {index}"}) for index in range(50)]
    bad = "\n".join([*lines[:40], "bad", *lines[40:]]).encode()
    words = ["--input-format", "jsonl", "--text-chunk-bytes", "100"]
    output = tmp_path / "out"
    assert convert(tokenizer_path, output, bad, *words).returncode == 3
    assert (tmp_path / "out.partial").exists()
    other = convert(tokenizer_path, output, bad + b"\n", *words)
    assert other.returncode == 6
    assert b"error: -: " in other.stderr
    done = convert(tokenizer_path, output, bad, *words, "--on-error", "skip")
    assert done.returncode == 0, done.stderr
    assert b"resuming from" in done.stderr
    assert b"reused" in done.stdout
    assert convert(tokenizer_path, tmp_path / "at-once", bad, *words, "--on-error", "skip").returncode == 0
    assert tree(output) == tree(tmp_path / "at-once")


def test_what_standard_input_cannot_be(tokenizer_path: Path, tmp_path: Path) -> None:
    held_out = convert(tokenizer_path, tmp_path / "out", b"a", "--validation", "-")
    assert held_out.returncode == 2
    assert not (tmp_path / "out.partial").exists()
