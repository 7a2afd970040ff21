"""The command `tokenmill` and `import tokenmill`: all commands and public names of the packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

import bpe
import convert
import flat_tokens
import tokenmill
from bpe.__main__ import build_parser as bpe_parser
from flat_tokens.__main__ import build_parser as dataset_parser
from tokenmill.__main__ import COMMANDS, are_of_dataset, main

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("the mill by the river<|endoftext|>" * 20)
    return tmp_path


def test_from_text_to_a_verified_dataset(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--vocab-size", "260", "a.txt", "--output", "t.json", "--quiet"]) == 0
    (here / "-b.txt").write_text("another")
    hidden = "--executor process --compression none --seed 1 --column text --stall-timeout 60".split()
    words = ["convert", "--tokenizer", "t.json", "a.txt", "-o", "a.zarr", *hidden, "--quiet", "--", "-b.txt"]
    assert main(words) == 0
    assert capfd.readouterr().out.startswith("a.zarr: ")
    assert main(["info", "t.json"]) == 0
    assert capfd.readouterr().out.startswith("entries")
    assert main(["info", "--json", "a.zarr"]) == 0
    assert '"splits"' in capfd.readouterr().out
    assert main(["verify", "a.zarr"]) == 0
    assert "21 sequences" in capfd.readouterr().out
    assert main(["report", "t.json", "--json", "a.txt"]) == 0
    assert main(["report", "a.zarr"]) == 0
    assert (here / "a.report.html").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    out = capfd.readouterr().out
    assert out.startswith(f"usage: tokenmill {command} ")
    assert "python -m" not in out
    assert max(one.count("\n  -") for one in out.split("usage: ")) <= 30, "hide rare options"


def test_every_command_is_listed(capfd: pytest.CaptureFixture[str]) -> None:
    own = {"compare", "convert", "retokenize"}
    assert set(COMMANDS) == own | set(bpe_parser().commands()) | set(dataset_parser().commands())
    assert main(["--help"]) == 0
    out = capfd.readouterr().out
    assert [command for command in COMMANDS if f"\n  {command} " not in out] == []
    assert main(["--version"]) == 0
    assert capfd.readouterr().out == f"{version('tokenmill')}\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python with the packages as a wheel installs them. Run it with -S, which leaves out the
    finder of an editable install."""
    site = tmp_path_factory.mktemp("site")
    dependencies = Path(sysconfig.get_path("purelib"))
    for package in ("bpe", "convert", "flat_tokens", "tokenmill"):
        ignored = shutil.ignore_patterns("native", "__pycache__")
        shutil.copytree(ROOT / package, site / package, ignore=ignored)
        for core in (dependencies / package).rglob("_core*.so"):
            shutil.copy(core, site / core.relative_to(dependencies))
    return os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{dependencies}"}


@pytest.fixture
def crowded(here: Path) -> Path:
    """A folder with modules that have names of tokenmill's packages and fail when they are imported."""
    for name in ("convert", "bpe"):
        (here / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    for name in ("stores", "engines", "inputs", "html"):
        (here / name).mkdir()
        (here / name / "__init__.py").write_text("raise SystemExit('the wrong package')")
    return here


def run_installed(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_modules_of_users_with_the_same_names_do_no_harm(crowded: Path, installed: dict[str, str]) -> None:
    commands = ["train a.txt --vocab-size=260 -o t.json"] + [
        f"convert a.txt --tokenizer=t.json -o a.zarr --overwrite --workers={workers} --start-method={method}"
        for workers, method in ((1, "fork"), (2, "fork"), (2, "spawn"))
    ]
    for command in commands:
        done = run_installed(installed, "-P", "-m", "tokenmill", *command.split())
        assert done.returncode == 0, done.stderr
    loaded = run_installed(
        installed,
        "-c",
        "import flat_tokens, tokenmill\n"
        "train = tokenmill.open('a.zarr').train\n"
        "print(tokenmill.Loader(train, seq_len=8, batch_size=2).batch(0).inputs.shape)",
    )
    assert loaded.stdout == "(2, 8)\n", loaded.stderr


def test_a_shadowed_package_is_one_clear_error(crowded: Path, installed: dict[str, str]) -> None:
    used = run_installed(installed, "-c", "import tokenmill\ntokenmill.convert")
    assert used.stderr.splitlines()[-1] == (
        f"ImportError: {crowded}/convert.py: shadows tokenmill's package 'convert'. "
        "Rename or move it, or run Python with -P."
    )
    assert "wrong" not in used.stderr
    done = run_installed(installed, "-m", "tokenmill", "convert", "a.txt")
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert f"{crowded}/convert.py: shadows" in done.stderr


def test_public_names() -> None:
    names = {"__version__", *bpe.__all__, *convert.__all__, *flat_tokens.__all__}
    assert set(tokenmill.__all__) == names
    assert len(tokenmill.__all__) == len(names), "two packages have a public name in common"
    assert tokenmill.__version__ == version("tokenmill")
    for name in names:
        assert getattr(tokenmill, name) is not None
        assert name in dir(tokenmill)
    assert set(convert.__all__) <= set(dir(convert))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tokenmill.nothing  # noqa: B018


def test_which_words_name_datasets(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "tokenizer.json").write_text("{}")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / ".zgroup").write_text("{}")
    for name in ("a.zarr", "a.zarr/", "s3://bucket/a", str(tmp_path / "set")):
        assert are_of_dataset(["--json", name, "-n", "5", "--tokenizer", "a.json"])
        assert are_of_dataset(["--tokens", "5", "--tokenizer=a.json", name])
        assert are_of_dataset(
            ["--json", "--dataset", name]
        )  # no such option, as the command of datasets says
    for name in ("a.json", "org/model", str(tmp_path / "folder"), "x" * 5000, "s3://bucket/a.json"):
        # A text may be anywhere; a report was sought of the dataset s3://bucket/a.
        assert not are_of_dataset(["--json", name, "s3://bucket/a", "a.zarr"])
        assert not are_of_dataset([name, "--counts", "s3://bucket/a"])
