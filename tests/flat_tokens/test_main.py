"""The command line: output and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_datasets import EXAMPLE, write_dataset

from flat_tokens.__main__ import main
from flat_tokens.storage.layout import ArrayLayout

ROOT = Path(__file__).parents[2]


def test_info(make_dataset: Any, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_dataset()
    assert main(["info", str(root)]) == 0
    text = capsys.readouterr().out
    assert "train: 8 tokens in 3 sequences, IDs up to 8" in text
    assert "median 3, mean 2.67, 2 to 3" in text
    assert "validation: 0 tokens in 0 sequences" in text
    assert "zstd 1, Zarr chunks of 65,536 tokens" in text
    assert "tokenizer: tokenizer.json, sha256 " in text
    assert "sources: 1\n  a.txt: 3 bytes\n" in text
    assert "options: seed 0\n" in text
    assert main(["info", "--json", str(root)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["splits"]["train"]["seq_tokens"] == {"min": 2, "median": 3.0, "mean": 2.67, "max": 3}
    assert facts["splits"]["validation"]["seq_tokens"] is None
    assert facts["options"] == {"seed": 0}


@pytest.mark.parametrize("count", [20, 21, 70])
def test_info_and_report_list_the_first_of_many_sources(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "d"
    sources = [{"path": f"{index}.txt", "bytes": index} for index in range(count)]
    write_dataset(root, EXAMPLE, [], ArrayLayout(), sources=sources)
    assert main(["info", str(root)]) == 0
    text = capsys.readouterr().out
    assert f"sources: {count}\n  0.txt: 0 bytes\n" in text
    assert "\n  19.txt: 19 bytes\n" in text
    assert ("20.txt" in text, f"... and {count - 20} more" in text) == (False, count > 20)
    assert main(["info", "--json", str(root)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["source_count"], facts["sources"]) == (count, sources)
    page = tmp_path / "page.html"
    assert main(["report", str(root), "--output", str(page)]) == 0
    text = page.read_text()
    assert ("49.txt" in text, "and 20 more" in text, "50.txt" in text) == (count > 49, count == 70, False)


def test_info_of_a_foreign_dataset(make_dataset: Any, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_dataset(layout=ArrayLayout.create(compression="none"))
    (root / "manifest.json").unlink()
    assert main(["info", str(root)]) == 0
    printed = capsys.readouterr().out
    assert "manifest: none" in printed
    assert "verify checks" not in printed  # there is nothing to compare with
    assert main(["verify", "--workers", "1", str(root)]) == 0
    assert "no manifest, so only the format" in capsys.readouterr().out


def test_verify(make_dataset: Any, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_dataset()
    assert main(["verify", "--workers", "2", str(root)]) == 0
    assert "sound, 8 tokens, 3 sequences, 16 files" in capsys.readouterr().out
    (root / "train/encoded_tokens/0").unlink()
    assert main(["verify", "--workers", "1", str(root)]) == 3
    out, err = capsys.readouterr()
    assert "DAMAGED, 1 problem, listed above" in out
    assert "tokenmill: error: train/encoded_tokens/0: " in err
    (root / "train/.zgroup").unlink()
    assert main(["verify", "--workers", "1", str(root)]) == 3
    assert "tokenmill: error: train/.zgroup: " in capsys.readouterr().err


def test_head(make_dataset: Any, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_dataset([[7, 4, 26, 28], [27, 0, 99], [1] * 100])
    assert main(["head", "-n", "3", "--tokens", "5", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:6] == [
        "train[0]: 4 tokens",
        "  ids: 7 4 26 28",
        "  text: he <|end|>",
        "train[1]: 3 tokens",
        "  ids: 27 0 99",
        "  text: \\na<99>",
    ]
    assert lines[7:] == ["  ids: 1 1 1 1 1 ...", "  text: bbbbb ..."]
    assert main(["head", "--split", "validation", str(root)]) == 0
    assert capsys.readouterr().out == "validation: no sequences\n"


def test_json_for_programs(make_dataset: Any, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_dataset([[7, 8], [26]])
    assert main(["verify", "--workers", "1", "--json", str(root)]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["ok"], verdict["path"], verdict["token_count"], verdict["problems"]) == (
        True,
        str(root),
        3,
        [],
    )
    assert main(["head", "--json", "--tokens", "1", str(root)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {"split": "train", "index": 0, "tokens": 2, "ids": [7], "text": "h"},
        {"split": "train", "index": 1, "tokens": 1, "ids": [26], "text": " "},
    ]
    assert main(["head", "--json", "--split", "validation", str(root)]) == 0
    assert capsys.readouterr().out == ""
    (root / "train" / "seq_starts" / "0").unlink()
    assert main(["verify", "--workers", "1", "--json", str(root)]) == 3
    assert len(json.loads(capsys.readouterr().out)["problems"]) == 1


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OSError(5, "Input/output error", "a\nb"), 4, r"a\\nb: .*"),
        (MemoryError(), 5, "out of memory.*--workers 1.*"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=repr,
)
def test_errors_of_the_machine(
    error: BaseException,
    code: int,
    line: str,
    make_dataset: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*arguments: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr("flat_tokens.opening.open", broken)
    assert main(["info", str(make_dataset())]) == code
    assert re.fullmatch(f"tokenmill: error: {line}\n", capsys.readouterr().err)
    if code == 4:
        assert main(["info", "--debug", str(make_dataset())]) == 4
        assert capsys.readouterr().err.startswith("Traceback")


def test_a_closed_pipe_is_quiet(make_dataset: Any) -> None:
    root = make_dataset([[1] * 60] * 4000)
    command = [sys.executable, "-m", "flat_tokens", "head", "-n", "4000", str(root)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 128 + signal.SIGPIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is missing")
def test_full_streams_keep_the_exit_code(make_dataset: Any) -> None:
    """The exit code was 1 for every error."""
    root = make_dataset()

    def done(words: str, stream: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "flat_tokens", *words.split()]
        with Path("/dev/full").open("wb") as full:
            given: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
            return subprocess.run(command, cwd=ROOT, check=False, **given)

    for words, code in (("info nothing", 2), ("info --nix", 2), (f"verify {root}/train", 3)):
        assert done(words, "stderr").returncode == code, words
    full_stdout = done(f"info {root}", "stdout")
    assert full_stdout.returncode == 4
    assert os.strerror(28).encode() in full_stdout.stderr
    assert b"Traceback" not in full_stdout.stderr


@pytest.mark.parametrize("command", ["info", "verify --workers 1", "head"])
def test_a_closed_stdout_gave_a_traceback(command: str, make_dataset: Any) -> None:
    line = f'"{sys.executable}" -m flat_tokens {command} "{make_dataset()}" >&-'
    result = subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (0, b"")


def test_text_the_locale_lacks_gave_a_traceback(make_dataset: Any) -> None:
    root = make_dataset()
    (root / "manifest.json").unlink()
    root.rename(root.with_name("naïve.zarr"))
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "flat_tokens", "info", str(root.with_name("naïve.zarr"))]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("compression", ["zstd", "lz4", "lz4-bitshuffle", "none"])
def test_info_says_whether_reading_compares_checksums(
    zarr_format: int, compression: str, make_dataset: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """contract/test_open.py flips bits in datasets of all these layouts."""
    root = make_dataset(
        [list(range(1, 61))], layout=ArrayLayout.create(zarr_format, 64, compression=compression)
    )
    checksum = "crc32c" if zarr_format == 3 else "zstd" if compression == "zstd" else None
    assert main(["info", "--json", str(root)]) == 0
    assert json.loads(capsys.readouterr().out)["splits"]["train"]["checksum"] == checksum
    assert main(["info", str(root)]) == 0
    stated = checksum or "none that reading checks; verify checks the files"
    assert f"  checksums: {stated}\n" in capsys.readouterr().out
