"""docs/first-mistakes.md tells the line that each mistake of a new user gets: each is made here, and compared."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tokenmill.__main__ import main

PAGE = Path(__file__).resolve().parent.parent / "docs" / "first-mistakes.md"
END = "<|endoftext|>"
ROW = re.compile(r"^\| (?P<what>[^|]+) \| `tokenmill (?P<command>.+?)` \| `(?P<line>.+)` \|$", re.MULTILINE)


def rows() -> Iterator[tuple[str, str, str]]:
    """(what happened, the command, the line that it gets) of the page."""
    for found in ROW.finditer(PAGE.read_text(encoding="utf-8").replace("\\|", "\0")):
        what, command, line = (text.replace("\0", "|") for text in found.groups())
        yield what, command, line


ROWS = list(rows())


def make_files(folder: Path) -> None:
    """What the commands of the page name, in the current folder."""
    files: dict[str, str | bytes] = {
        "text.txt": f"the mill by the river{END}" * 20,
        "empty.txt": "",
        "latin1.txt": "le café au bord".encode("latin-1") * 3,
        "utf16.txt": "the mill".encode("utf-16"),
        "bodies.jsonl": '{"body": "the mill"}\n',
        "cut.jsonl": '{"text": "the mill"}\n{"text": "the\n',
        "text.gz": "the mill by the river",
        "packed.txt": tarfile.TarInfo("a.txt").tobuf() + bytes(1024),
        "zipped.txt": gzip.compress(b"the mill by the river" * 99, mtime=0),
        "table.parquet": "the mill",
        "ranks.tiktoken": "dGhl 0\nbWlsbA== 1\n",
        "wordpiece.json": json.dumps({"version": "1.0", "model": {"type": "WordPiece", "vocab": {"a": 0}}}),
        "cut.json": '{"version": "1.0", "model": {"ty',
        "words.ids": "1 2 three",
        "list.ids": "[1, 2]",
        "ids.bin": bytes(range(200)),
        "the mill.txt": "the mill",
        "table.csv": "id;text\n1;the mill\n",
        "good.jsonl": '{"text": "the mill"}\n{"text": "the river"}\n',
        "chats.jsonl": '{"messages": []}\n',
        "array.jsonl": '[{"text": "the mill"}]\n',
        "config.json": '{"model_type": "gpt2"}',
        "vocab.json": '{"a": 0}',
        "high.ids": "1 2 99999",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "folder").mkdir()
    train = [
        "train",
        "text.txt",
        "--vocab-size",
        "260",
        "--special-token",
        END,
        "--output",
        "tok.json",
        "--quiet",
    ]
    assert main(train) == 0
    convert = ["convert", "text.txt", "--tokenizer", "tok.json", "--output", "text.zarr", "--quiet"]
    assert main([*convert, "--workers", "1"]) == 0
    shutil.copytree("text.zarr", "damaged.zarr")
    damaged = folder / "damaged.zarr" / "train" / "encoded_tokens" / "0"
    damaged.write_bytes(damaged.read_bytes()[:-1])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_files(folder)
    return folder


def test_there_are_fifty() -> None:
    assert len(ROWS) >= 50
    assert len({command for _, command, _ in ROWS}) == len(ROWS)
    assert sum(
        line.startswith("| ") and "`tokenmill " in line for line in PAGE.read_text().splitlines()
    ) == len(ROWS)


@pytest.mark.parametrize(("what", "command", "line"), ROWS, ids=[command for _, command, _ in ROWS])
def test_a_mistake_gets_its_line(
    what: str,
    command: str,
    line: str,
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(made)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/you")
    if "s3://" in command:
        pytest.importorskip("obstore")
    if "parquet" in command:
        pytest.importorskip("pyarrow")
    assert main(shlex.split(command)) not in (0, 1), what
    err = capfd.readouterr().err
    assert err == f"tokenmill: error: {line}\n"
    for left in made.glob("new*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
