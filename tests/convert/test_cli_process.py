"""`python -m convert` as a process: what a shell, a locale, limits and signals do to it, and what is printed where."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_runs import command, fails
from naive_conversion import END, make_documents, tree
from stopped_runs import journal_of

import convert.driver.conversion
import convert.driver.tokenizers
from convert.__main__ import main
from tokenmill.engines.inline_engine import InlineEngine


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run in this process: the command line is what is tested."""
    monkeypatch.setattr(convert.driver.conversion, "open_engine", lambda *_: InlineEngine())


def cli(*arguments: str, **more: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(convert.driver.conversion.__file__).parents[2])}
    return subprocess.Popen(
        [sys.executable, "-m", "convert", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **more,  # type: ignore[call-overload]
    )


def test_the_whole_command(here: Path) -> None:
    process = cli(
        *command("--workers", "2", "--text-chunk-bytes", "500", "--debug", "--validation-fraction", "0.3")
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.startswith("out.zarr: ")
    assert "30 documents" in out or "documents" in out
    assert "workers" in out
    assert [line.split(":")[0] for line in err.splitlines()] == ["encode", "merge", "verify"]
    process = cli(*command("--quiet", "--validation-fraction", "0.3", output="quiet.zarr"))
    out, err = process.communicate(timeout=60)
    assert (out.startswith("quiet.zarr: "), err) == (True, "")
    assert tree(here / "quiet.zarr") == tree(here / "out.zarr")


def test_a_file_size_limit_is_an_error_with_the_path(here: Path) -> None:
    (here / "en.txt").write_text(END.join(make_documents(3000, seed=6)), newline="")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    process = cli(*command("--workers", "1"), preexec_fn=limit)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "out.zarr.partial/" in err
    assert "File too large (errno 27)" in err
    assert len(err.splitlines()) == 1
    assert not (here / "out.zarr.partial").exists()  # no text chunk was finished
    assert not (here / "out.zarr").exists()


def test_a_tokenizer_that_does_not_fit_the_disk_says_what_to_do(here: Path) -> None:
    (here / "short.txt").write_text("text")
    size = (here / "tok.json").stat().st_size

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    _, err = cli(*command("short.txt"), preexec_fn=limit).communicate(timeout=60)
    assert "tokenizer.json" in err
    assert "File too large (errno 27)" in err
    assert "ulimit -f" in err
    assert err.count("\n") == 1


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(here: Path) -> None:
    (here / "en.txt").write_text(END.join(make_documents(12_000, seed=7)), newline="")
    arguments = command("--workers", "2", "--text-chunk-bytes", "500", "--progress", "json")
    process = cli(*arguments, start_new_session=True)
    deadline = time.monotonic() + 30
    partial = here / "out.zarr.partial"
    while not journal_of(partial).holds_work and time.monotonic() < deadline:
        time.sleep(0.002)
    assert process.poll() is None, "the run ended before it could be interrupted"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    plain = [line for line in err.splitlines() if not line.startswith("{")]
    (line,) = plain
    assert line.startswith("tokenmill: error: interrupted. ")
    assert "out.zarr.partial" in line
    assert not (here / "out.zarr").exists()
    assert (here / "out.zarr.partial/lock").read_bytes() == b""  # another host may resume
    done = len(journal_of(partial).recorded().shards)
    assert done
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # no worker is left

    process = cli(*arguments)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert f"reused     {done:,} of" in out
    assert any('"note": ' in line and "out.zarr.partial" in line for line in err.splitlines())
    process = cli(*command("--quiet", "--workers", "1", output="clean.zarr"))
    assert process.communicate(timeout=60)[1] == ""
    assert tree(here / "out.zarr") == tree(here / "clean.zarr")


def test_a_closed_stdout_does_not_spoil_the_result(here: Path) -> None:
    process = cli(*command(), preexec_fn=lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert (here / "out.zarr/manifest.json").exists()


def test_names_the_locale_lacks_lost_the_summary(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(name, value)
    process = cli(*command(output="naïve.zarr"))
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith("na")
    assert "documents" in out


def test_the_locale_got_into_the_manifest(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "en.txt").rename(here / "naïve.txt")
    cli(*command("naïve.txt", output="utf8.zarr")).communicate(timeout=60)
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(name, value)
    cli(*command("naïve.txt", output="c.zarr")).communicate(timeout=60)
    assert (here / "c.zarr/manifest.json").exists()
    assert tree(here / "c.zarr") == tree(here / "utf8.zarr")


def run_with(here: Path, beginning: str, *more: str) -> subprocess.CompletedProcess[str]:
    """The command where Python runs `beginning` first."""
    (here / "sitecustomize.py").write_text("import os, signal, sys\n" + beginning)
    search_path = f"{here}:{Path(convert.driver.conversion.__file__).parents[2]}"
    return subprocess.run(
        [sys.executable, "-m", "convert", *command(), *more],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": search_path},
        check=False,
    )


@pytest.mark.parametrize("module", ["numpy", "bpe.vocabulary"])
def test_ctrl_c_while_it_is_imported_gave_a_traceback(module: str, here: Path) -> None:
    done = run_with(
        here,
        "class Interrupts:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n",
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_a_signal_while_workers_were_forked_was_lost(name: str, code: int, here: Path) -> None:
    beginning = f"os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.{name}))\n"
    done = run_with(here, beginning, "--start-method", "fork", "--workers", "1")
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("tokenmill: error: ")


def test_a_core_that_is_not_built_gave_a_traceback(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ImportError("cannot import name '_core' from 'bpe'")

    monkeypatch.setattr(convert.driver.conversion, "convert", missing)
    fails(capsys, command(), 2, "core")


def test_a_closed_stderr_mixed_its_lines_into_stdout(here: Path) -> None:
    process = cli(*command("--workers", "0"), preexec_fn=lambda: os.close(2))
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")


def test_debug_shows_the_traceback(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command("missing", "--debug")) == 2
    assert "Traceback" in capsys.readouterr().err


def test_help_needs_nothing_heavy() -> None:
    code = "import sys, convert.cli.arguments as a; a.build_parser().format_help(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
