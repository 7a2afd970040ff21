"""Conversions by the public interface alone: `convert(ConvertOptions(...))` and the command `python -m convert`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
from inline_engine import InlineEngine, run_now
from strategies import END, SPECIAL_TOKENS

import bpe
import flat_tokens
from convert import ConvertOptions, Summary
from convert import convert as run_conversion
from convert.__main__ import main

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
TRAINING_TEXT = (
    "the quick brown fox and the lazy dog; it's of the naïve façade, привет 東京都 aa ab aba " * 20
)


@cache
def tokenizer_bytes() -> bytes:
    """A tokenizer.json with 340 entries and strategies.SPECIAL_TOKENS."""
    with tempfile.TemporaryDirectory() as folder:
        text, path = Path(folder) / "text.txt", Path(folder) / "tok.json"
        text.write_text(TRAINING_TEXT, encoding="utf-8")
        bpe.train([text], 340, SPECIAL_TOKENS, threads=1).save(path)
        return path.read_bytes()


@cache
def tokenizer() -> bpe.Tokenizer:
    """The same, loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tok.json"
        path.write_bytes(tokenizer_bytes())
        return bpe.Tokenizer.load(path)


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A new current folder that holds tok.json."""
    with tempfile.TemporaryDirectory(prefix="contract-") as name, contextlib.chdir(name):
        Path("tok.json").write_bytes(tokenizer_bytes())
        yield Path(name)


# -- executors


class Inline(Executor):
    """Runs each task when it is submitted. before: called with the number of the task, from 0."""

    def __init__(self, before: Callable[[int], None] = lambda number: None) -> None:
        self._before, self._count = before, 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._before(self._count)
        self._count += 1
        return run_now(fn, *args, **kwargs)


def stopping_at(task: int) -> Inline:
    """Raises KeyboardInterrupt, as Ctrl-C does, instead of taking this task."""

    def before(number: int) -> None:
        if number >= task:
            raise KeyboardInterrupt

    return Inline(before)


@contextlib.contextmanager
def executor_named(name: str) -> Iterator[Executor | None]:
    """inline, threads, pool (of concurrent.futures), or fork and spawn: None, the engine of convert itself."""
    if name == "threads":
        with ThreadPoolExecutor(3) as threads:
            yield threads
    elif name == "pool":
        with ProcessPoolExecutor(2, get_context("fork")) as pool:
            yield pool
    else:
        yield Inline() if name == "inline" else None


def convert(executor: Executor | None = None, **more: Any) -> Summary:
    """Convert en.txt to out with tok.json, unless `more` says otherwise."""
    usual = {"inputs": ["en.txt"], "tokenizer": "tok.json", "output": "out", "progress": "none", "workers": 2}
    return run_conversion(ConvertOptions(**usual | more), executor)


def convert_by(engine: str, workers: int = 2, **more: Any) -> Summary:
    """Convert with the executor of that name."""
    if engine in ("fork", "spawn"):
        more["start_method"] = engine
    with executor_named(engine) as executor:
        return convert(executor, workers=workers, **more)


def error_of(executor: Executor | None = None, **more: Any) -> Any:
    """Convert and return the error, which must be one line and have an exit code."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any that has an exit code
        convert(executor, **more)
    assert isinstance(getattr(caught.value, "exit_code", None), int), caught.value
    assert "\n" not in str(caught.value)
    return caught.value


def exit_code(executor: Executor | None = None, **more: Any) -> int:
    """Convert; 0, or the exit code of the error."""
    try:
        convert(executor, **more)
    except Exception as error:
        if not isinstance(code := getattr(error, "exit_code", None), int) or "\n" in str(error):
            raise
        return code
    return 0


# -- results


def tree(path: str | Path) -> dict[str, bytes]:
    """Relative path -> bytes of each file below `path`."""
    files = [entry for entry in sorted(Path(path).rglob("*")) if entry.is_file()]
    return {str(entry.relative_to(path)): entry.read_bytes() for entry in files}


def arrays(path: str | Path) -> dict[str, bytes]:
    """The same for a dataset, without the files that name the inputs."""
    return without_names(tree(path))


def without_names(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a dataset that do not name its inputs."""
    return {name: data for name, data in files.items() if name not in ("manifest.json", "sources.jsonl")}


def sequences(path: str | Path) -> list[list[int]]:
    """The token IDs of each document, first of train and then of validation."""
    return [ids.tolist() for split in _splits(path) for ids in split]


def masked_sequences(path: str | Path) -> list[tuple[list[int], list[bool]]]:
    """The same with the loss mask of each document."""
    return [
        (split.sequence(at).tolist(), split.trained_of(at).tolist())
        for split in _splits(path)
        for at in range(len(split))
    ]


def _splits(path: str | Path) -> list[Any]:
    dataset = flat_tokens.open(path)
    return [dataset.train, dataset.validation]


def options_of(path: str | Path) -> dict[str, Any]:
    """The options in the manifest of a dataset."""
    found: dict[str, Any] = json.loads(Path(path, "manifest.json").read_bytes())["options"]
    return found


def sources_of(path: str | Path) -> list[dict[str, Any]]:
    """The facts about each input of a dataset."""
    return [json.loads(line) for line in Path(path, "sources.jsonl").read_bytes().splitlines()]


@dataclass(frozen=True)
class Counts:
    """The counts of a summary. splits: (documents, written, empty, tokens)."""

    documents: int
    written: int
    empty: int
    skipped: int
    replaced: int
    unreadable: int
    special: int
    splits: Mapping[str, tuple[int, int, int, int]]

    @classmethod
    def of(cls, lines: Sequence[str]) -> Counts:
        text = "\n".join(lines).replace(",", "")

        def numbers(pattern: str) -> tuple[int, ...]:
            found = re.search(pattern, text, re.MULTILINE)
            return tuple(map(int, found.groups())) if found else ()

        split = r"(\d+) documents? = (\d+) written \+ (\d+) empty; (\d+) tokens?$"
        return cls(
            *numbers(r"^  documents +(\d+) = (\d+) written \+ (\d+) empty \+ (\d+) skipped$"),
            *(numbers(r"^  replaced +(\d+) ") or (0,)),
            *(numbers(r"^  unreadable +(\d+) file") or (0,)),
            *(numbers(r"^  special +(\d+) document") or (0,)),
            {name: numbers(rf"^  {name} +{split}") for name in ("train", "validation")},  # type: ignore[misc]
        )

    def check(self) -> None:
        """Documents in are documents out and skipped ones, in all and in the splits."""
        assert self.documents == self.written + self.empty + self.skipped
        assert self.documents - self.skipped == sum(counts[0] for counts in self.splits.values())
        assert self.written == sum(counts[1] for counts in self.splits.values())


# -- the command


def words(*inputs: str, output: str = "out", tok: str = "tok.json", **flags: Any) -> list[str]:
    """The arguments of the command: words("a.txt", seed=1) -> a.txt --tokenizer tok.json --output out --seed 1."""
    found = [*inputs, "--tokenizer", tok, "--output", output]
    for name, value in flags.items():
        values = value if isinstance(value, list) else [value]
        for each in values:
            found += [f"--{name.replace('_', '-')}", *([] if each is True else [str(each)])]
    return found


def start(arguments: Sequence[str], **more: Any) -> subprocess.Popen[str]:
    """Start the command as the leader of a new process group."""
    return subprocess.Popen(
        [sys.executable, "-m", "convert", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
        **more,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the exit code, stdout and stderr, which must not hold a traceback."""
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def command(*inputs: str, **flags: Any) -> tuple[int, str, str]:
    """Run the command to its end."""
    return finish(start(words(*inputs, **flags)))


def run_here(*inputs: str, **flags: Any) -> tuple[int, str, str]:
    """Run the command and its tasks in this process; its exit code, stdout and stderr. inputs: en.txt if none."""
    inline = mock.patch("convert.driver.conversion.open_engine", return_value=InlineEngine())
    with inline, redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(words(*(inputs or ["en.txt"]), **flags))
    return code, out.getvalue(), err.getvalue()


def rejected(code: int, *inputs: str, **flags: Any) -> str:
    """The line on stderr of a command that ends with this exit code."""
    found, out, err = run_here(*inputs, **{"progress": "none", **flags})
    assert (found, out, err.count("\n")) == (code, "", 1), err
    assert err.startswith("tokenmill: error: ")
    assert err[:-1].isprintable()
    return err


def sample_documents(count: int, seed: int = 0) -> list[str]:
    """Documents of about 100 bytes with special tokens in some of them; some are empty, some equal."""
    random, words = Random(seed), TRAINING_TEXT.split()
    glue = [" ", " ", " ", "  ", "\n", "<|im_start|>", "<|endoftext"]
    lengths = [random.choice([0, 1, 3, 20, 40]) for _ in range(count)]
    return ["".join(random.choice(words) + random.choice(glue) for _ in range(length)) for length in lengths]


def sample_text(count: int, seed: int = 0) -> bytes:
    """The same as the bytes of a text file."""
    return END.join(sample_documents(count, seed)).encode()
