"""Mistakes: one line on stderr that names the culprit, the documented exit code, and no file is written.

tests/data/cli_errors.toml has more of them.
"""

from __future__ import annotations

import gzip
import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from runs import finish, rejected, run_here, sample_text, start, tree, words, workplace


@dataclass(frozen=True)
class Mistake:
    """code: exit code. names: text that the line must contain. inputs, flags: the arguments."""

    code: int
    names: str
    inputs: tuple[str, ...] = ("in.txt",)
    flags: dict[str, Any] = field(default_factory=dict)


MISTAKES = {
    "missing-one-of-two": Mistake(2, "gone.jsonl", ("in.txt", "gone.jsonl")),
    "folder-of-hidden-files": Mistake(2, "hidden", ("hidden",)),
    "zip-archive": Mistake(2, "in.zip", ("in.zip",)),
    "a-pipe": Mistake(2, "pipe", ("pipe",)),
    "missing-validation-file": Mistake(2, "no.txt", flags={"validation": "no.txt"}),
    "pipe-as-tokenizer": Mistake(2, "pipe", flags={"tok": "pipe"}),
    "unknown-scheme": Mistake(2, "gopher", flags={"output": "gopher://a/b"}),
    "output-without-a-name": Mistake(2, "--output", flags={"output": "."}),
    "output-at-the-root": Mistake(2, "--output", flags={"output": "/"}),
    "output-inside-an-input": Mistake(2, "folder", ("folder",), {"output": "folder/out"}),
    "truncated-gzip-file": Mistake(3, "cut.txt.gz", ("cut.txt.gz",)),
    "no-text-in-a-record": Mistake(3, "number.jsonl", ("number.jsonl",)),
    "git-lfs-pointer": Mistake(3, "git lfs pull", ("pointer.jsonl",)),
    "missing-output-folder": Mistake(4, "no/such", flags={"output": "no/such/out"}),
    "long-name": Mistake(4, "too long", flags={"output": "x" * 300}),
    "long-name-with-partial": Mistake(4, "too long", flags={"output": "x" * 252}),
    "folder-without-permission": Mistake(4, "locked", flags={"output": "locked/out"}),
    "output-is-a-file": Mistake(6, "in.csv", flags={"output": "in.csv"}),
    "output-is-a-link": Mistake(6, "link", flags={"output": "link"}),
    "output-is-a-folder": Mistake(6, "folder", flags={"output": "folder"}),
    "overwriting-a-folder": Mistake(6, "folder", flags={"output": "folder", "overwrite": True}),
    "partial-is-a-file": Mistake(6, "taken.partial", flags={"output": "taken"}),
}


@pytest.fixture(scope="module")
def files() -> Iterator[None]:
    """The files that the mistakes name, in the current folder."""
    data_of = {
        "in.txt": sample_text(9),
        "folder/in.txt": sample_text(9),
        "hidden/.in.txt": b"a",
        "in.zip": b"PK\x03\x04",
        "cut.txt.gz": gzip.compress(os.urandom(999))[:-99],
        "number.jsonl": b'{"text": 5}\n',
        "in.csv": b"id;text\n1;a\n",
        "pointer.jsonl": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n",
        "taken.partial": b"mine",
    }
    with workplace() as root:
        for name, data in data_of.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(data)
        (root / "empty").mkdir()
        (root / "locked").mkdir(mode=0o555)
        os.mkfifo(root / "pipe")
        (root / "link").symlink_to("folder")
        yield


@pytest.mark.promise("errors")
@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.usefixtures("files")
def test_a_mistake_is_one_line(name: str) -> None:
    mistake = MISTAKES[name]
    if name == "folder-without-permission" and os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    before = tree("."), sorted(path.name for path in Path().iterdir())
    assert mistake.names in rejected(mistake.code, *mistake.inputs, **mistake.flags)
    assert (tree("."), sorted(path.name for path in Path().iterdir())) == before


@pytest.mark.slow
@pytest.mark.parametrize("limit", [3000, 20_000])
def test_a_disk_that_takes_no_more_is_one_line(limit: int, folder: Path) -> None:
    (folder / "in.txt").write_bytes(sample_text(3000))

    def few_bytes() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    arguments = words("in.txt", workers=1, compression="none", progress="none")
    code, out, err = finish(start(arguments, preexec_fn=few_bytes))
    assert (code, out, err.count("\n")) == (4, "", 1), err
    assert "out.partial" in err
    assert not Path("out").exists()
    assert finish(start(arguments))[0] == 0


@pytest.mark.promise("foreign-files")
@pytest.mark.parametrize("output", ["out/new", "out/train/new", "link/new"])
def test_an_output_inside_a_dataset_made_the_dataset_unsound(output: str, folder: Path) -> None:
    (folder / "in.txt").write_bytes(sample_text(9))
    assert run_here("in.txt")[0] == 0
    (folder / "link").symlink_to("out")
    before = tree(folder)
    assert "is inside the dataset" in rejected(6, "in.txt", output=output)
    assert tree(folder) == before
    (folder / "manifest.json").write_text("{}")  # of another program
    assert run_here("in.txt", output="other")[0] == 0


@pytest.mark.promise("errors")
@pytest.mark.usefixtures("folder")
def test_a_traceback_only_with_debug() -> None:
    code, _, err = run_here("missing.txt", debug=True)
    assert (code, "Traceback" in err) == (2, True)
