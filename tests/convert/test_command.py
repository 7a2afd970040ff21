"""`python -m convert` as a process: streams, locales, signals and limits of the machine."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from runs import (
    ENVIRONMENT,
    Inline,
    command,
    convert,
    finish,
    run_here,
    sample_documents,
    sample_text,
    start,
    tree,
    words,
)

import flat_tokens
from bpe import Tokenizer

SMALL: dict[str, Any] = {"text_chunk_bytes": 500, "progress": "none"}


@pytest.fixture
def clean(here: Path) -> dict[str, bytes]:
    """The dataset of en.txt."""
    convert(Inline(), output="clean", text_chunk_bytes=500)
    return tree(here / "clean")


# -- streams and locale


def test_a_full_disk_behind_stdout_does_not_fail_the_run(here: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    process = start(words("en.txt"), preexec_fn=lambda: os.dup2(full, 1))
    assert finish(process)[0] == 0
    assert (here / "out/manifest.json").exists()


@pytest.mark.usefixtures("here")
def test_with_a_closed_stderr_errors_do_not_go_to_stdout() -> None:
    process = start(words("en.txt", workers=0), preexec_fn=lambda: os.close(2))
    assert finish(process)[:2] == (2, "")


def test_names_that_the_locale_lacks(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "en.txt").rename(here / "naïve.txt")
    convert(Inline(), inputs=["naïve.txt"], output="clean")
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setitem(ENVIRONMENT, name, value)
    code, out, _ = command("naïve.txt", output="naïve.zarr")
    assert code == 0
    assert out.startswith("na")
    assert "documents" in out
    assert tree("naïve.zarr") == tree("clean")


# -- signals


def run_after(beginning: str, here: Path, *more: str) -> tuple[int, str]:
    """The exit code and stderr of the command where Python runs `beginning` first."""
    (here / "sitecustomize.py").write_text(f"import os, signal, sys\n{beginning}\n")
    line = [sys.executable, "-m", "convert", *words("en.txt"), *more]
    environment = ENVIRONMENT | {"PYTHONPATH": f"{here}:{ENVIRONMENT['PYTHONPATH']}"}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("module", ["numpy", "bpe.vocabulary"])
def test_ctrl_c_during_imports_gave_a_traceback(module: str, here: Path) -> None:
    finder = f"""
class Interrupts:
    def find_spec(self, name, *_):
        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())"""
    assert run_after(finder, here) == (-signal.SIGINT, "")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_a_signal_during_a_fork_was_lost(name: str, code: int, here: Path) -> None:
    beginning = f"os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.{name}))"
    found, err = run_after(beginning, here, "--start-method", "fork", "--workers", "1")
    assert found == code
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("tokenmill: error: ")


@pytest.mark.slow
def test_stopped_processes_continue(here: Path) -> None:
    (here / "en.txt").write_bytes(sample_text(20_000))
    more = SMALL | {"text_chunk_bytes": 20_000}
    process = start(words("en.txt", workers=2, stall_timeout=1, **more))
    while process.poll() is None and not list(Path("out.partial").glob("shards/*")):
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(3)  # three times the limit for workers without progress
    os.killpg(process.pid, signal.SIGCONT)
    assert finish(process)[::2] == (0, "")
    convert(Inline(), output="clean", text_chunk_bytes=20_000)
    assert tree("out") == tree("clean")


# -- limits


WITH_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from convert.__main__ import main
import convert.driver.conversion, flat_tokens.storage.zstd_frames
flat_tokens.storage.zstd_frames.library()
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("mebibytes", [1, 10, 40])
def test_a_run_with_too_little_memory_resumes(mebibytes: int, clean: dict[str, bytes]) -> None:
    line = [
        sys.executable,
        "-c",
        WITH_LITTLE_MEMORY,
        str(mebibytes << 20),
        *words("en.txt", workers=1, **SMALL),
    ]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 2, 4, 5), done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert done.stderr.count("tokenmill: error: ") == 1
        assert not Path("out").exists()
        convert(Inline(), text_chunk_bytes=500)
    assert tree("out") == clean


def limited(kind: int, value: int, *inputs: str, **flags: Any) -> tuple[int, str]:
    """The exit code and stderr of the command under a limit of the system."""
    process = start(
        words(*inputs, **SMALL | flags), preexec_fn=lambda: resource.setrlimit(kind, (value, value))
    )
    code, _, err = finish(process)
    return code, err


@pytest.mark.long
def test_many_files_with_a_low_limit_of_open_files(here: Path) -> None:
    for number, text in enumerate(sample_documents(2000)):
        path = here.joinpath("in", str(number % 7), *["deep"] * (number % 5), f"{number}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert limited(resource.RLIMIT_NOFILE, 64, "in", workers=2, text_chunk_bytes=30_000) == (0, "")
    convert(Inline(), inputs=["in"], output="clean")
    assert tree("out") == tree("clean")


@pytest.mark.parametrize(
    ("kind", "value", "advice"),
    [(resource.RLIMIT_NOFILE, 12, "ulimit -n"), (resource.RLIMIT_NPROC, 1, "ulimit -u")],
)
@pytest.mark.usefixtures("here")
def test_an_error_names_the_limit(
    kind: int, value: int, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == resource.RLIMIT_NPROC and os.geteuid() == 0:
        pytest.skip("root may start any number of processes")
    monkeypatch.setitem(ENVIRONMENT, "OPENBLAS_NUM_THREADS", "1")  # without messages of numpy
    code, err = limited(kind, value, "en.txt", workers=2)
    assert (code, err.count("\n")) == (4, 1), err
    assert advice in err
    assert not Path("out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_a_missing_temporary_folder(
    start_method: str, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "TMPDIR", "/nowhere")
    assert command("en.txt", workers=2, start_method=start_method, **SMALL)[::2] == (0, "")
    assert tree("out") == clean


# -- tokenizers and outputs


def test_a_dataset_opens_with_the_tokenizer_it_was_made_with(here: Path) -> None:
    """A tokenizer file in another form was refused as another tokenizer."""
    (here / "tok.json").write_text(json.dumps(json.loads((here / "tok.json").read_text()), indent=3))
    Tokenizer.load(here / "tok.json").export_gpt2(here / "folder")
    for name in ("tok.json", "folder"):
        assert run_here(tok=name, overwrite=True)[0] == 0
        for same in (name, "out/tokenizer.json", Tokenizer.load(name)):
            flat_tokens.open("out", tokenizer=same)


@pytest.mark.promise("status")
@pytest.mark.usefixtures("here")
def test_other_programs_can_watch_a_run() -> None:
    found: list[dict[str, Any]] = []

    def read(number: int) -> None:
        if (path := Path("out.partial/status.json")).exists():
            found.append(json.loads(path.read_bytes()))

    convert(Inline(read), text_chunk_bytes=200)
    assert found
    for status in found:
        assert status["stage"] == "encode"
        assert 0 <= status["done_bytes"] <= status["total_bytes"] == Path("en.txt").stat().st_size
        assert min(status["bytes_per_second"], status["tokens"], status["skipped"]) >= 0
        assert status["errors"] == []
    assert not Path("out.partial").exists()
