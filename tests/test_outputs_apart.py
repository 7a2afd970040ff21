"""No command replaces one of its inputs, nor one of its outputs by another."""

from __future__ import annotations

import os
import subprocess
import sys
from array import array
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

import bpe
from bpe.__main__ import main as run_bpe
from convert.__main__ import main as run_convert
from convert.retokenize.__main__ import main as run_retokenize
from flat_tokens.__main__ import main as run_flat_tokens
from tokenmill.compare.__main__ import main as run_compare

END = "<|endoftext|>"
MAINS: dict[str, Callable[[list[str]], int]] = {
    "bpe": run_bpe,
    "compare": run_compare,
    "convert": run_convert,
    "retokenize": run_retokenize,
    "flat_tokens": run_flat_tokens,
}
# Commands that work. <: an input, >: an output file, /: an output folder.
TRAIN = "bpe train <en.txt --vocab-size=300 --quiet --output >t.json --keep-counts >k.counts --report >r.txt"
COMMANDS = [
    f"{TRAIN} --counts <en.counts --held-out <other.txt",
    f"{TRAIN} --like <tok.json",
    f"{TRAIN} --continue-from <tok.json",
    "bpe count <en.txt --quiet --output >c.counts --counts <en.counts",
    "bpe count <en.txt --quiet --output >c.counts --like <tok.json",
    "bpe report <tok.json <en.txt --output >r.txt",
    "bpe report <tok.json --output >r.txt --counts <tok.counts",
    "compare <tok.json <other.json --output >c.html",
    "bpe encode <en.txt --output >ids --tokenizer <tok.json",
    "bpe decode <en.ids --output >text --tokenizer <tok.json",
    "flat_tokens report <own.zarr --overwrite --output >r.html --tokenizer <tok.json",
    "convert <en.txt --quiet --workers=1 --overwrite --output /d.zarr --tokenizer <tok.json --validation <other.txt",
    "retokenize <own.zarr --overwrite --output /d.zarr --tokenizer <tok.json --from-tokenizer <tok.json",
    "flat_tokens export <own.zarr --to=jsonl --text --overwrite --output /d.zarr --tokenizer <tok.json",
    "flat_tokens import <ids.bin --from=nanogpt --separator-token=none --overwrite --output /d.zarr "
    "--validation <more.bin --tokenizer <tok.json",
]


def marked(command: str, mark: str) -> list[int]:
    """The positions of the words with a mark."""
    return [at for at, word in enumerate(command.split()) if word.startswith(mark)]


def run(command: str, changed: dict[int, str]) -> int:
    """Run a command with other words at some positions."""
    package, *words = (changed.get(at, word.lstrip("<>/")) for at, word in enumerate(command.split()))
    return MAINS[package](words)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an input of each kind."""
    folder = tmp_path_factory.mktemp("inputs")
    text = f"the mill by the river{END}" * 20
    for name in ("en.txt", "other.txt"):
        (folder / name).write_text(name + text)
    tokenizer = bpe.train([folder / "en.txt"], 270, [END])
    for name in ("tok.json", "other.json"):
        tokenizer.save(folder / name)
    for name, more in ("en.counts", []), ("tok.counts", ["--special-token", END]):
        assert (
            run_bpe(["count", str(folder / "en.txt"), "--output", str(folder / name), "--quiet", *more]) == 0
        )
    (folder / "en.ids").write_text(" ".join(map(str, tokenizer.encode("the mill"))))
    for name in ("ids.bin", "more.bin"):
        (folder / name).write_bytes(array("H", tokenizer.encode("the mill")).tobytes())
    words = ["--tokenizer", str(folder / "tok.json"), "--output", str(folder / "own.zarr"), "--quiet"]
    assert run_convert([str(folder / "en.txt"), *words]) == 0
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, a copy of it, with a second name of each input by each kind of link."""
    subprocess.run(["cp", "-r", f"{made}/.", str(tmp_path)], check=True)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    for path in [path for path in tmp_path.iterdir() if path.is_file()]:
        Path(f"hard-{path.name}").hardlink_to(path)
        Path(f"soft-{path.name}").symlink_to(path.name)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def rejected(command: str, changed: dict[int, str], capfd: pytest.CaptureFixture[str], here: Path) -> str:
    """The error of a command that ends with exit code 2 and changes nothing."""
    before = contents(here)
    assert run(command, changed) == 2, (command, changed)
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1), err
    assert contents(here) == before, (command, changed)
    return err


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_work(command: str, here: Path) -> None:
    before = contents(here)
    assert run(command, {}) == 0
    assert before.items() <= contents(here).items()
    assert all(
        Path(command.split()[at][1:]).exists() for at in (*marked(command, ">"), *marked(command, "/"))
    )


FILES = [(line, out, at) for line in COMMANDS for out in marked(line, ">") for at in marked(line, "<")]


@pytest.mark.slow
@pytest.mark.promise("foreign-files")
@pytest.mark.parametrize(("command", "output", "source"), FILES)
def test_an_output_file_that_is_an_input(
    command: str, output: int, source: int, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    value = command.split()[source][1:]
    if Path(value).is_dir():  # a dataset
        Path("into").symlink_to(f"{value}/manifest.json")
        names = [f"{value}/manifest.json", f"{value}/new", "into"]
    else:
        names = [f"folder/../{value}", f"hard-{value}", f"soft-{value}"]
        for link in names[1:]:
            rejected(command, {output: value, source: link}, capfd, here)
    for name in names:
        assert Path(name).name in rejected(command, {output: name}, capfd, here)


@pytest.mark.parametrize("command", [line for line in COMMANDS if len(marked(line, ">")) > 1])
def test_outputs_of_one_name(command: str, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("old").write_text("old")
    Path("hard-old").hardlink_to("old")
    Path("soft-new").symlink_to("new")
    names = [("new", "folder/../new"), ("new", "soft-new"), ("old", "hard-old")]
    for first, second in combinations(marked(command, ">"), 2):
        for name, other in names:
            error = rejected(command, {first: name, second: other}, capfd, here)
            assert all(command.split()[at - 1] in error for at in (first, second))
    if "--output" in command:  # a size may make the name of another output
        first, *others = marked(command, ">")
        for other_at in others:
            rejected(command, {first: "t-{vocab_size}.json", other_at: "t-300.json"}, capfd, here)


@pytest.mark.parametrize("command", [line for line in COMMANDS if marked(line, "/")])
def test_an_output_folder_that_contains_an_input(
    command: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An output that exists is one of ours: --overwrite would remove it with the input."""
    (output,) = marked(command, "/")
    Path("d.zarr.partial").mkdir()
    Path("d.zarr.partial/stdin").write_text("text")
    own = "own.zarr/tokenizer.json"
    Path("into").symlink_to(own)
    Path("into-partial").symlink_to("d.zarr.partial/stdin")
    for source in marked(command, "<"):
        value, before = command.split()[source][1:], contents(here)
        for name in (value, f"./{value}", str(here / value)):
            assert run(command, {output: name}) in (2, 6)  # 6: it exists and is no dataset
        assert contents(here) == before
        capfd.readouterr()
        for link in (own, "into"):
            rejected(command, {output: "own.zarr", source: link}, capfd, here)
        if command.split()[source - 1] != "--tokenizer":
            for link in ("d.zarr.partial/stdin", "into-partial"):
                rejected(command, {source: link}, capfd, here)


# -- standard streams


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("bpe train - --vocab-size 300 --output t.json --keep-counts hard-en.txt < en.txt", "stdin"),
        ("bpe encode --tokenizer tok.json --output hard-en.txt < en.txt", "stdin"),
        ("convert - --tokenizer tok.json --output d.zarr < d.zarr.partial/stdin", "standard input"),
        ("bpe encode --tokenizer tok.json < en.txt >> en.txt", "tokenmill: error: stdout"),
        ("bpe report tok.json --counts tok.counts >> tok.counts", "tokenmill: error: stdout"),
        ("bpe info tok.json >> hard-tok.json", "tokenmill: error: stdout"),
        ("flat_tokens verify --workers=1 soft.zarr >> own.zarr/new.txt", "tokenmill: error: stdout"),
        ("flat_tokens report own.zarr --output - >> own.zarr/manifest.json", "tokenmill: error: stdout"),
    ],
)
def test_standard_streams_that_are_an_input_and_the_output(line: str, text: str, here: Path) -> None:
    """An input was truncated before it was read, or a command that writes more than it reads never ended."""
    Path("soft.zarr").symlink_to("own.zarr")
    Path("d.zarr.partial").mkdir()
    Path("d.zarr.partial/stdin").write_text("text")
    before = contents(here)
    environment = os.environ | {"PYTHONPATH": str(Path(bpe.__file__).parents[1])}
    line = f"ulimit -f 1000; '{sys.executable}' -m {line}"
    ended = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, env=environment)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert text in ended.stderr
    Path("own.zarr/new.txt").unlink(missing_ok=True)  # the shell makes it
    assert contents(here) == before


def test_devices_are_not_replaced(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(COMMANDS[0], dict.fromkeys(marked(COMMANDS[0], ">"), "/dev/null")) == 0
    assert Path("/dev/null").is_char_device()
    assert "note: training: " in capfd.readouterr().err.splitlines()[-1]
