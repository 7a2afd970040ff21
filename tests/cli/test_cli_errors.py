"""tests/data/cli_errors.toml: mistakes on the command line, with the exit code and the message of each.

`pytest --update-snapshots tests/cli/test_cli_errors.py` writes today's messages and exit codes to the file.
"""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import tarfile
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tokenmill.__main__ import main

SNAPSHOTS = Path(__file__).resolve().parents[1] / "data" / "cli_errors.toml"
PREFIX = "tokenmill: error: "
NEEDS = {"s3://": "obstore", "--output https://": "obstore", "parquet": "pyarrow"}


def make_files() -> None:
    """The files that the commands name."""
    files: dict[str, str | bytes] = tomllib.loads(SNAPSHOTS.read_text("utf-8"))["files"]
    files |= {
        "text.txt": "the mill by the river<|endoftext|>" * 20,
        "latin1.txt": "le café au bord".encode("latin-1") * 3,
        "utf16.txt": "the mill".encode("utf-16"),
        "packed.txt": tarfile.TarInfo("a.txt").tobuf() + bytes(1024),
        "zipped.txt": gzip.compress(b"the mill by the river" * 99, mtime=0),
        "ids.bin": bytes(range(200)),
    }
    for name, content in files.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    Path("folder").mkdir()
    for command in (
        "train text.txt --vocab-size 260 --special-token '<|endoftext|>' --output tok.json --quiet",
        "convert text.txt --tokenizer tok.json --output text.zarr --workers 1 --quiet",
    ):
        assert main(shlex.split(command)) == 0
    shutil.copytree("text.zarr", "damaged.zarr")
    damaged = Path("damaged.zarr/train/encoded_tokens/0")
    damaged.write_bytes(damaged.read_bytes()[:-1])


def written(snapshots: dict[str, Any], cases: list[dict[str, Any]]) -> str:
    """The text of the file. A string of JSON is also a string of TOML."""
    tables = [("[files]", snapshots["files"]), *(("[[case]]", case) for case in cases)]
    lines: list[str] = []
    for head, table in tables:
        lines += [
            head,
            *(f"{quoted(key)} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()),
            "",
        ]
    return "\n".join(lines)


def quoted(key: str) -> str:
    return key if key.isidentifier() else json.dumps(key)


@pytest.mark.long
@pytest.mark.promise("errors")
def test_mistakes_get_their_messages(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/you")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    make_files()
    capfd.readouterr()
    snapshots = tomllib.loads(SNAPSHOTS.read_text("utf-8"))
    cases, now = snapshots["case"], []
    for case in cases:
        if any(word in case["command"] and not find_spec(module) for word, module in NEEDS.items()):
            now.append(case)
            continue
        code = main(shlex.split(case["command"]))
        error = capfd.readouterr().err
        assert error.startswith(PREFIX), case
        now.append(case | {"exit": code, "message": error.removeprefix(PREFIX).removesuffix("\n")})
        for left in Path().glob("new*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    if request.config.getoption("--update-snapshots"):
        SNAPSHOTS.write_text(written(snapshots, now), encoding="utf-8")
    else:
        assert [case for case, old in zip(now, cases, strict=True) if case != old] == []
