"""No command of any package replaces what it reads, nor one of its outputs by another: one table of all of them.

Each option of each command that takes text is in the table, as an output, an input or neither: a new one fails
`test_the_table_has_every_option` until it is there, and an output that is there is tried against every input.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bpe
from bpe.__main__ import main as run_bpe
from bpe.pretoken_counts.counting import count_pretokens
from convert.__main__ import main as run_convert
from convert.retokenize.__main__ import main as run_retokenize
from flat_tokens.__main__ import main as run_flat_tokens

END = "<|endoftext|>"
MAINS: dict[str, Callable[[list[str]], int]] = {
    "bpe": run_bpe,
    "convert": run_convert,
    "convert.retokenize": run_retokenize,
    "flat_tokens": run_flat_tokens,
}


@dataclass(frozen=True)
class Command:
    """A command that works as it stands here. Options: name -> a value of the folder that `here` makes.

    outputs that are files; folders that are outputs; inputs; what is neither, though it takes text.
    """

    package: str
    name: str
    words: tuple[str, ...]
    outputs: dict[str, str]
    inputs: dict[str, str]
    neither: frozenset[str] = frozenset()
    folders: dict[str, str] | None = None


COUNTED = frozenset(
    {"--special-token", "--pattern", "--temp-dir", "--text-field", "--separator", "--exclude"}
)
RANKS = frozenset({"--pattern", "--special-token"})
FIELD = frozenset({"--text-field"})
MARKED = frozenset(
    {"--prompt-field", "--completion-field", "--messages-field", "--chat-template", "--chat-date"}
)  # a template needs a field
CLUSTER = frozenset({"--scheduler", "--address", "--scratch"})
ENDS = frozenset({"--prepend-token", "--append-token"})
COMMANDS = [
    Command(
        "bpe",
        "train",
        ("--vocab-size=300", "--quiet"),
        {"--output": "t.json", "--keep-counts": "k.counts", "--report": "r.txt"},
        {"inputs": "en.txt", "--counts": "en.counts", "--held-out": "other.txt"},
        COUNTED | {"--initial-alphabet"},
    ),
    Command(
        "bpe",
        "train",
        ("--vocab-size=300", "--quiet"),
        {"--output": "t.json", "--keep-counts": "k.counts", "--report": "r.txt"},
        {"inputs": "en.txt", "--like": "tok.json"},
    ),
    Command(
        "bpe",
        "train",
        ("--vocab-size=300", "--quiet"),
        {"--output": "t.json", "--keep-counts": "k.counts", "--report": "r.txt"},
        {"inputs": "en.txt", "--continue-from": "tok.json"},
    ),
    Command(
        "bpe",
        "count",
        ("--quiet",),
        {"--output": "c.counts"},
        {"inputs": "en.txt", "--counts": "en.counts"},
        COUNTED | CLUSTER,
    ),
    Command(
        "bpe", "count", ("--quiet",), {"--output": "c.counts"}, {"inputs": "en.txt", "--like": "tok.json"}
    ),
    Command(
        "bpe",
        "report",
        (),
        {"--output": "r.txt"},
        {"tokenizer": "tok.json", "inputs": "en.txt"},
        RANKS | FIELD,
    ),
    Command(
        "bpe",
        "report",
        (),
        {"--output": "r.txt"},
        {"tokenizer": "tok.json", "--counts": "tok.counts"},
        RANKS | FIELD,
    ),
    Command(
        "bpe",
        "compare",
        (),
        {"--output": "c.html"},
        {"first": "tok.json", "second": "other.json"},
        RANKS | {"--text"},
    ),
    Command(
        "bpe",
        "encode",
        (),
        {"--output": "ids"},
        {"--tokenizer": "tok.json", "input": "en.txt"},
        RANKS | ENDS | FIELD,
    ),
    Command("bpe", "decode", (), {"--output": "text"}, {"--tokenizer": "tok.json", "input": "en.ids"}, RANKS),
    Command("bpe", "info", (), {}, {"tokenizer": "tok.json"}, RANKS),
    Command(
        "convert",
        "",
        ("--quiet", "--workers=1", "--overwrite"),
        {},
        {"inputs": "en.txt", "--tokenizer": "tok.json", "--validation": "other.txt"},
        FIELD | MARKED | CLUSTER | ENDS | {"--separator", "--exclude"},
        folders={"--output": "d.zarr"},
    ),
    Command(
        "convert.retokenize",
        "",
        ("--overwrite",),
        {},
        {"dataset": "own.zarr", "--tokenizer": "tok.json", "--from-tokenizer": "tok.json"},
        ENDS | {"--scheduler", "--address"},
        folders={"--output": "d.zarr"},
    ),
    Command(
        "flat_tokens",
        "export",
        ("--to=jsonl", "--text", "--overwrite"),
        {},
        {"dataset": "own.zarr", "--tokenizer": "tok.json"},
        frozenset({"--dtype", "--source"}),
        folders={"--output": "d.zarr"},
    ),
    Command(
        "flat_tokens",
        "import",
        ("--from=nanogpt", "--separator-token=none", "--overwrite"),
        {},
        {"inputs": "ids.bin", "--validation": "more.bin", "--tokenizer": "tok.json"},
        frozenset({"--dtype", "--column"}),
        folders={"--output": "d.zarr"},
    ),
    Command(
        "flat_tokens",
        "compact",
        ("--overwrite",),
        {},
        {"dataset": "own.zarr"},
        folders={"--output": "d.zarr"},
    ),
    Command("flat_tokens", "info", (), {}, {"dataset": "own.zarr"}, frozenset({"--source"})),
    Command("flat_tokens", "verify", ("--workers=1",), {}, {"dataset": "own.zarr"}),
    Command(
        "flat_tokens",
        "head",
        (),
        {},
        {"dataset": "own.zarr", "--tokenizer": "tok.json"},
        frozenset({"--source"}),
    ),
    Command(
        "flat_tokens",
        "report",
        ("--overwrite",),
        {"--output": "r.html"},
        {"dataset": "own.zarr", "--tokenizer": "tok.json"},
    ),
]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an input of each kind."""
    folder = tmp_path_factory.mktemp("inputs")
    text = f"the mill by the river{END}" * 20
    for name in ("en.txt", "other.txt"):
        (folder / name).write_text(name + text)
    count_pretokens([folder / "en.txt"]).save(folder / "en.counts")
    tokenizer = bpe.train([folder / "en.txt"], 270, [END])
    tokenizer.save(folder / "tok.json")
    tokenizer.save(folder / "other.json")
    count_pretokens([folder / "en.txt"], [END]).save(folder / "tok.counts")
    (folder / "en.ids").write_text(" ".join(map(str, tokenizer.encode("the mill"))))
    for name in ("ids.bin", "more.bin"):
        (folder / name).write_bytes(array("H", tokenizer.encode("the mill")).tobytes())
    made_dataset = ["--tokenizer", str(folder / "tok.json"), "--output", str(folder / "own.zarr"), "--quiet"]
    assert run_convert([str(folder / "en.txt"), *made_dataset]) == 0
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, a copy of it, and a second name of each input by each kind of link."""
    subprocess.run(["cp", "-r", f"{made}/.", str(tmp_path)], check=True)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    for path in [path for path in tmp_path.iterdir() if path.is_file()]:
        Path(f"hard-{path.name}").hardlink_to(path)
        Path(f"soft-{path.name}").symlink_to(path.name)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def words_of(command: Command, changed: dict[str, str]) -> list[str]:
    """The command line, with other values for some options."""
    values = command.inputs | command.outputs | (command.folders or {}) | changed
    options = [word for name, value in values.items() if name[0] == "-" for word in (name, value)]
    words = [value for name, value in values.items() if name[0] != "-"]
    return [*filter(None, [command.name]), *words, *command.words, *options]


def refused(command: Command, changed: dict[str, str], capfd: pytest.CaptureFixture[str], here: Path) -> str:
    """What a command says that is refused with exit code 2 and changes nothing."""
    before = contents(here)
    words = words_of(command, changed)
    assert MAINS[command.package](words) == 2, words
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1), err
    assert contents(here) == before, words
    return err


def parsers() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """(package, command, its parser) of all there are."""
    for package in MAINS:
        parser = importlib.import_module(f"{package}.__main__").build_parser()
        for name, own in parser.commands().items() or [("", parser)]:
            yield package, name, own


def takes_text(action: argparse.Action) -> bool:
    """Whether an option takes a name or a text: no number, no choice, no flag."""
    kind: Any = action.type
    is_text = (
        kind is None or kind is str or getattr(kind, "__name__", "") in ("path_word", "unescaped", "_dataset")
    )
    return is_text and action.choices is None and action.nargs != 0


def test_the_table_has_every_option() -> None:
    found = {
        (package, name): {
            f"--{action.dest.replace('_', '-')}" if action.option_strings else action.dest
            for action in parser._actions
            if takes_text(action)
        }
        for package, name, parser in parsers()
    }
    table: dict[tuple[str, str], set[str]] = {}
    for command in COMMANDS:
        known = {*command.outputs, *command.inputs, *command.neither, *(command.folders or {})}
        table.setdefault((command.package, command.name), set()).update(known)
    assert found == table, "a new option: say above whether it is an output, an input or neither"


ROWS = [
    pytest.param(command, output, source, id=f"{command.package}-{command.name}-{output}-{source}")
    for command in COMMANDS
    for output in command.outputs
    for source in command.inputs
]


@pytest.mark.parametrize(("command", "output", "source"), ROWS)
def test_an_output_that_is_an_input_replaced_it(
    command: Command, output: str, source: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    value = command.inputs[source]
    if Path(value).is_dir():  # a dataset: what lies in it
        names = [f"{value}/manifest.json", f"{value}/new"]
        Path("into").symlink_to(f"{value}/manifest.json")
        names.append("into")
    else:
        names = [
            value,
            f"./{value}",
            f"folder/../{value}",
            str(here / value),
            f"hard-{value}",
            f"soft-{value}",
        ]
    for name in names:
        message = refused(command, {output: name}, capfd, here)
        assert Path(name).name in message, message
    if not Path(value).is_dir():  # the input is the other name
        for link in (f"hard-{value}", f"soft-{value}"):
            refused(command, {output: value, source: link}, capfd, here)


@pytest.mark.parametrize(
    "command", [row for row in COMMANDS if len(row.outputs) > 1], ids=lambda row: row.name
)
def test_outputs_of_one_name_replaced_each_other(
    command: Command, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("old").write_text("old")
    Path("hard-old").hardlink_to("old")
    Path("soft-old").symlink_to("old")
    Path("soft-new").symlink_to("new")
    flags = list(command.outputs)
    for place, flag in enumerate(flags):
        for other in flags[:place]:
            pairs = [("new", "new"), ("new", "folder/../new"), ("new", "soft-new")]
            pairs += [("old", "old"), ("old", "hard-old"), ("soft-old", "old")]
            for name, second in pairs:
                message = refused(command, {flag: name, other: second}, capfd, here)
                assert flag in message
                assert other in message


def test_a_size_that_makes_the_name_of_another_output(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS[0]
    for flag in ("--keep-counts", "--report"):
        refused(command, {"--output": "t-{vocab_size}.json", flag: "t-300.json"}, capfd, here)


@pytest.mark.parametrize("command", [row for row in COMMANDS if row.folders], ids=lambda row: row.package)
def test_a_dataset_that_is_an_input_or_has_it(
    command: Command, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An output that exists is one of ours: `--overwrite` would remove it with what lies in it."""
    assert command.folders is not None
    (output,) = command.folders
    Path("d.zarr.partial").mkdir()
    Path("d.zarr.partial/stdin").write_text("text")
    own = "own.zarr/tokenizer.json"
    Path("into").symlink_to(own)
    Path("into-partial").symlink_to("d.zarr.partial/stdin")
    for source, value in command.inputs.items():
        before = contents(here)
        for name in (value, f"./{value}", str(here / value)):
            code = MAINS[command.package](words_of(command, {output: name}))
            assert code in (2, 6)  # 6: it exists, and is no dataset of ours
        assert contents(here) == before
        capfd.readouterr()
        refused(command, {output: "own.zarr", source: own}, capfd, here)
        refused(command, {output: "own.zarr", source: "into"}, capfd, here)
        if source != "--tokenizer":
            refused(command, {source: "d.zarr.partial/stdin"}, capfd, here)
            refused(command, {source: "into-partial"}, capfd, here)


STREAMS = [
    ("train -", "--vocab-size 300 --output {}"),
    ("train -", "--vocab-size 300 --output t.json --keep-counts {}"),
    ("train -", "--vocab-size 300 --output t.json --report {}"),
    ("count -", "--output {}"),
    ("report tok.json -", "--output {}"),
    ("encode --tokenizer tok.json", "--output {}"),
    ("decode --tokenizer tok.json", "--output {}"),
]


def by_shell(line: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(bpe.__file__).parents[1])}
    line = line.replace("python", f"'{sys.executable}'")
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize(("begin", "end"), STREAMS, ids=lambda text: text)
def test_standard_input_is_the_output(begin: str, end: str, here: Path) -> None:
    text = "en.ids" if begin.startswith("decode") else "en.txt"
    before = contents(here)
    ended = by_shell(f"python -m bpe {begin} {end.format(f'hard-{text}')} < {text}")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert "stdin" in ended.stderr
    assert contents(here) == before


@pytest.mark.parametrize(
    "line",
    [
        "python -m bpe encode --tokenizer tok.json en.txt >> en.txt",
        "python -m bpe encode --tokenizer tok.json < en.txt >> en.txt",
        "python -m bpe decode --tokenizer tok.json en.ids >> en.ids",
        "python -m bpe report tok.json en.txt >> en.txt",
        "python -m bpe report tok.json --counts tok.counts >> tok.counts",
        "python -m bpe info tok.json >> hard-tok.json",
    ],
)
def test_what_goes_to_stdout_came_back_as_input(line: str, here: Path) -> None:
    """It went on for ever where more was written than read."""
    before = contents(here)
    ended = by_shell(f"ulimit -f 1000; {line}")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert ended.stderr.startswith("tokenmill: error: stdout")
    assert contents(here) == before


@pytest.mark.parametrize(
    "command",
    ["info own.zarr", "head own.zarr", "verify --workers=1 linked.zarr", "report own.zarr --output -"],
)
@pytest.mark.parametrize("name", ["manifest.json", "train/seq_starts/0", "new.txt"])
def test_what_is_told_of_a_dataset_does_not_go_into_it(command: str, name: str, here: Path) -> None:
    Path("linked.zarr").symlink_to("own.zarr")
    before = contents(here)
    ended = by_shell(f"python -m flat_tokens {command} >> own.zarr/{name}")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert ended.stderr.startswith("tokenmill: error: stdout: ")
    Path("own.zarr/new.txt").unlink(missing_ok=True)  # the shell had made it
    assert contents(here) == before


def test_standard_input_out_of_the_folder_it_is_put_into(here: Path) -> None:
    """It was cut to nothing before it was read."""
    Path("d.zarr.partial").mkdir()
    Path("d.zarr.partial/stdin").write_text("text")
    line = "python -m convert - --tokenizer tok.json --output d.zarr < d.zarr.partial/stdin"
    ended = by_shell(line)
    assert ended.returncode == 2
    assert "standard input" in ended.stderr
    assert Path("d.zarr.partial/stdin").read_text() == "text"


def test_devices_and_pipes_are_no_files_that_are_replaced(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nothing = dict.fromkeys(COMMANDS[0].outputs, "/dev/null")
    assert run_bpe(words_of(COMMANDS[0], nothing)) == 0
    assert Path("/dev/null").is_char_device()
    assert "note: training: " in capfd.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda row: f"{row.package}-{row.name}")
def test_the_commands_of_the_table_work(command: Command, here: Path) -> None:
    """Else they would be refused for another reason."""
    before = contents(here)
    assert MAINS[command.package](words_of(command, {})) == 0
    after = contents(here)
    assert before.items() <= after.items()
    assert all(Path(value).exists() for value in (command.outputs | (command.folders or {})).values())
