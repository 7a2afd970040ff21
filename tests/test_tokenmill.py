"""The command `tokenmill` and `import tokenmill`: every command and public name of the packages, under one roof."""

from __future__ import annotations

import os
import pydoc
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
from tokenmill.__main__ import COMMANDS, main
from tokenmill.completion import whole_parser
from tokenmill.kinds import are_of_dataset, names_dataset

ROOT = Path(__file__).resolve().parent.parent
END = "<|endoftext|>"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(f"the mill by the river{END}" * 20)
    return tmp_path


def test_from_text_to_a_sound_dataset(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--vocab-size", "260", "a.txt", "--output", "t.json", "--quiet"]) == 0
    (here / "-b.txt").write_text("behind")
    assert main(["convert", "--tokenizer", "t.json", "a.txt", "-o", "a.zarr", "--quiet", "--", "-b.txt"]) == 0
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


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["trian"], "'trian'. Did you mean train?"),
        (["train", "--vocb-size=3"], "--vocb-size=3. Did you mean --vocab-size?"),
        (
            ["export", "x", "--to", "megatrn", "-o", "y"],
            "(got 'megatrn'). Did you mean megatron?",
        ),
        (
            ["convert", "a.txt", "--progres=bar"],
            ": --tokenizer, --output",
        ),
        (
            ["retokenize", "a.zarr", "--workers=x"],
            "--workers: ",
        ),
        (["head", "a.zarr", "--storage-option", "x"], "--storage-option: "),
        (["verify", "no.zarr"], "no.zarr: does not exist"),
        (["info"], ": TOKENIZER. "),
        *(
            (
                [*command.split(), "s3://bucket/x"],
                "'s3://bucket/x'",
            )
            for command in (
                "encode a.txt --tokenizer t --output",
                "train a.txt --vocab-size 300 --output",
                "train a.txt --vocab-size 300 --output t --keep-counts",
                "retokenize a.zarr --tokenizer t --output",
                "report a.zarr --output",
            )
        ),
        (["completion", "csh"], "(got 'csh')"),
        (["train", "a.txt", "--vocab-size", "300", "--output", "t", "--", "--no"], "--no: "),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_error_is_one_line_of_one_form(
    words: list[str], line: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1), err
    assert err.startswith("tokenmill: error: ")
    assert line in err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_helps_by_its_own_name(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    out = capfd.readouterr().out
    assert out.startswith(f"usage: tokenmill {command} ")
    assert "python -m" not in out
    assert max(one.count("\n  -") for one in out.split("usage: ")) <= 30, "hide rare options"


def test_hidden_options_are_accepted(here: Path) -> None:
    assert main(["train", "a.txt", "--vocab-size=260", "-o", "t.json", "--seed=1", "--quiet"]) == 0
    convert = "convert a.txt --tokenizer t.json -o a.zarr --executor process --compression none --seed 1"
    assert main([*convert.split(), "--column", "text", "--stall-timeout", "60", "--quiet"]) == 0
    assert main(["convert", "a.txt", "--tokenizer=t.json", "-o", "b", "--compression=lz4"]) == 2


def test_every_command_is_there(capfd: pytest.CaptureFixture[str]) -> None:
    own = {"convert", "retokenize", "completion"}
    assert set(COMMANDS) == own | set(bpe_parser().commands()) | set(dataset_parser().commands())
    assert main(["--help"]) == 0
    out = capfd.readouterr().out
    assert [command for command in COMMANDS if f"\n  {command} " not in out] == []
    assert main(["--version"]) == 0
    assert capfd.readouterr().out == f"{version('tokenmill')}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    out = capfd.readouterr().out
    assert "retokenize" in out
    assert "vocab-size" in out
    assert "stall-timeout" not in out
    actions = whole_parser()._subparsers._group_actions[0].choices["verify"]._actions  # type: ignore[union-attr, index]
    assert [hasattr(action, "complete") for action in actions if action.dest == "dataset"] == [True]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python that has the packages as a wheel installs them, without the finder of an editable
    install: run it with -S."""
    site = tmp_path_factory.mktemp("site")
    dependencies = Path(sysconfig.get_path("purelib"))
    for package in ("bpe", "convert", "flat_tokens", "tokenmill"):
        shutil.copytree(
            ROOT / package, site / package, ignore=shutil.ignore_patterns("native", "__pycache__")
        )
        for core in (dependencies / package).rglob("_core*.so"):
            shutil.copy(core, site / core.relative_to(dependencies))
    (site / "bin").mkdir()
    (site / "bin" / "tokenmill").write_text("from tokenmill.__main__ import run\nrun()\n")
    return os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{dependencies}", "SITE": str(site)}


@pytest.fixture
def crowded(here: Path) -> Path:
    """A folder whose own modules have names that tokenmill uses, or once used; importing one of them fails."""
    for name in ("convert", "bpe"):
        (here / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    for name in ("corpus", "stores", "reports", "engines", "inputs", "html"):
        (here / name).mkdir()
        (here / name / "__init__.py").write_text("raise SystemExit('the wrong package')")
    return here


def run_installed(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", *words], env=environment, capture_output=True, text=True, check=False
    )


def test_a_users_modules_of_the_same_names_do_no_harm(crowded: Path, installed: dict[str, str]) -> None:
    command = f"{installed['SITE']}/bin/tokenmill"
    trained = run_installed(installed, command, "train", "a.txt", "--vocab-size=260", "-o", "t.json")
    assert trained.returncode == 0, trained.stderr
    for workers in ("1", "2"):
        words = ["convert", "a.txt", "--tokenizer=t.json", "-o", f"{workers}.zarr", f"--workers={workers}"]
        for method in ("fork", "spawn"):
            done = run_installed(installed, command, *words, "--overwrite", f"--start-method={method}")
            assert done.returncode == 0, done.stderr
    loaded = run_installed(
        installed,
        "-c",
        "import flat_tokens, tokenmill\n"
        "train = tokenmill.open('2.zarr').train\n"
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
    assert sorted(convert.__all__) == ["ConvertOptions", "Summary", "convert", "encode_share"]
    assert set(convert.__all__) <= set(dir(convert))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tokenmill.nothing  # noqa: B018


def test_which_words_name_datasets(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "tokenizer.json").write_text("{}")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / ".zgroup").write_text("{}")
    datasets = ["a.zarr", "a.zarr/", "s3://bucket/a", str(tmp_path / "set")]
    assert all(map(names_dataset, datasets))
    tokenizers = ["a.json", "org/model", str(tmp_path / "folder"), "x" * 5000, "s3://bucket/a.json"]
    assert not any(map(names_dataset, [*tokenizers, "--json"]))
    for name in datasets:
        assert are_of_dataset(["--json", name, "-n", "5", "--tokenizer", "a.json"])
        assert are_of_dataset(["--tokens", "5", "--tokenizer=a.json", name])
        assert are_of_dataset(
            ["--json", "--dataset", name]
        )  # no such option, as the command of datasets says
    for name in tokenizers:
        # A text may be anywhere; a report was sought of the dataset s3://bucket/a.
        assert not are_of_dataset(["--json", name, "s3://bucket/a", "a.zarr"])
        assert not are_of_dataset([name, "--counts", "s3://bucket/a"])


@pytest.mark.parametrize("error", [bpe.BadTokenizer, bpe.EnvironmentFailure, flat_tokens.errors.DatasetError])
def test_help_on_an_error_is_short(error: type[Exception]) -> None:
    text = pydoc.plain(pydoc.render_doc(error))
    assert "exit_code" in text
    assert "with_traceback" not in text
    assert text.count("\n") < 60
