"""What the machine does to a conversion: little memory, few open files, a stop, odd environments, odd errors."""

from __future__ import annotations

import errno
import gzip
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from naive_conversion import END, make_documents, tree
from stopped_runs import journal_of

import flat_tokens.writer
from bpe import _core
from convert import ConvertOptions, convert
from convert.__main__ import main
from tokenmill.engines.inline_engine import InlineEngine


def arguments(*more: str, inputs: tuple[str, ...] = ("en.txt",), output: str = "out") -> list[str]:
    return [
        *inputs,
        *("--tokenizer", "tok.json", "--output", output, "--progress", "none", "--text-chunk-bytes", "500"),
        *more,
    ]


def started(*more: str, environment: dict[str, str] | None = None, **how: Any) -> subprocess.Popen[str]:
    path = os.pathsep.join(part for part in sys.path if part)
    return subprocess.Popen(
        [sys.executable, "-m", "convert", *more],
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=120)
    return process.returncode, err


@pytest.fixture
def clean(here: Path) -> dict[str, bytes]:
    assert ended(started(*arguments("--workers", "1", output="clean"))) == (0, "")
    return tree(here / "clean")


WITH_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from convert.__main__ import main
import convert.driver.conversion, tokenmill.engines.ending, flat_tokens.storage.zstd_frames
flat_tokens.storage.zstd_frames.library()
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("mebibytes", [1, 4, 10, 20, 40, 1000])
def test_too_little_memory_is_one_line_and_the_next_run_goes_on(
    mebibytes: int, here: Path, clean: dict[str, bytes]
) -> None:
    script = [sys.executable, "-c", WITH_LITTLE_MEMORY, str(mebibytes << 20)]
    path = os.pathsep.join(part for part in sys.path if part)
    found = subprocess.run(
        [*script, *arguments("--workers", "1")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.returncode in (0, 2, 4, 5), found.stderr
    assert "Traceback" not in found.stderr
    if found.returncode:
        lines = [line for line in found.stderr.splitlines() if "tokenmill: error: " in line]
        assert len(lines) == 1
        assert not (here / "out").exists()
        assert ended(started(*arguments("--workers", "2"))) == (0, "")
    else:
        assert mebibytes > 1
    assert tree(here / "out") == clean


def test_a_stop_of_all_processes_is_no_hang(here: Path) -> None:
    (here / "long.txt").write_text(END.join(make_documents(20_000, seed=1)), newline="")
    inputs = {"inputs": ("long.txt",)}
    more = ("--workers", "2", "--stall-timeout", "1", "--text-chunk-bytes", "20000")
    process = started(*arguments(*more, **inputs), start_new_session=True)
    while process.poll() is None and not journal_of(here / "out.partial").holds_work:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(3)  # three times what a worker may do nothing
    os.killpg(process.pid, signal.SIGCONT)
    assert ended(process) == (0, "")
    assert ended(started(*arguments("--workers", "1", output="clean", **inputs))) == (0, "")
    assert tree(here / "out") == tree(here / "clean")


def test_many_files_and_few_may_be_open(here: Path) -> None:
    folder = here / "many"
    for number, text in enumerate(make_documents(2_000, seed=2)):
        place = folder.joinpath(str(number % 7), *["deep"] * (number % 5), str(number % 11))
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.txt").write_text(text, newline="")
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))}
    more = arguments("--workers", "2", "--text-chunk-bytes", "30000", inputs=("many",))
    assert ended(started(*more, **limited)) == (0, "")
    assert ended(started(*arguments("--workers", "1", inputs=("many",), output="free"))) == (0, "")
    assert tree(here / "out") == tree(here / "free")


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7", "PYTHONUTF8": "0"},
        {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "COLUMNS": "20"},
        {"TMPDIR": "/nowhere", "HOME": "/nowhere"},
        {"OMP_NUM_THREADS": "7", "OPENBLAS_NUM_THREADS": "7"},
    ],
    ids=lambda environment: next(iter(environment)) + "=" + next(iter(environment.values())),
)
def test_the_environment_is_not_in_the_bytes(
    environment: dict[str, str], here: Path, clean: dict[str, bytes]
) -> None:
    assert ended(started(*arguments("--workers", "2"), environment=environment)) == (0, "")
    assert tree(here / "out") == clean


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_a_temporary_folder_that_is_not_there(start_method: str, here: Path, clean: dict[str, bytes]) -> None:
    """What a fork server needs of it is its own affair, but there is one line and no traceback."""
    more = arguments("--workers", "2", "--start-method", start_method)
    code, err = ended(started(*more, environment={"TMPDIR": str(here / "nowhere")}))
    assert (code, err) == (0, "")
    assert tree(here / "out") == clean


def test_a_clock_that_goes_wrong(here: Path, clean: dict[str, bytes]) -> None:
    os.utime(here / "en.txt", (2**33, 2**33))  # the year 2242
    assert ended(started(*arguments("--workers", "2"))) == (0, "")
    assert tree(here / "out") == clean


@pytest.mark.parametrize("variant", _core.simd_variants())
def test_every_instruction_set_gives_the_same_bytes(
    variant: str, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.driver.conversion.open_engine", lambda *_: InlineEngine())
    usual = _core.simd_variants()[0]
    _core.set_simd_variant(variant)
    try:
        assert main(arguments("--quiet")) == 0
    finally:
        _core.set_simd_variant(usual)
    assert tree(here / "out") == clean


@pytest.mark.parametrize("number", [errno.EXDEV, errno.ESTALE, errno.EBUSY, errno.EROFS, errno.ENOLCK])
def test_errors_of_network_file_systems(
    number: int,
    here: Path,
    clean: dict[str, bytes],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("convert.driver.conversion.open_engine", lambda *_: InlineEngine())
    rename, calls = os.replace, []

    def fail_at_the_third_chunk(source: Any, path: Any) -> None:
        if "encoded_tokens/" in str(path):
            calls.append(path)
            if len(calls) == 3:
                raise OSError(number, os.strerror(number), source, None, path)
        rename(source, path)

    monkeypatch.setattr(flat_tokens.writer.os, "replace", fail_at_the_third_chunk)
    more = arguments("--quiet", "--chunk-tokens", "64")
    assert main(more) == 4
    error = capsys.readouterr().err
    assert error.startswith("tokenmill: error: ")
    assert f"errno {number}" in error
    assert "encoded_tokens" in error
    assert main(more) == 0
    assert main(arguments("--quiet", "--chunk-tokens", "64", output="free")) == 0
    assert tree(here / "out") == tree(here / "free")


def test_a_signal_each_millisecond_interrupts_no_call(here: Path, clean: dict[str, bytes]) -> None:
    """Reads and writes that are interrupted are taken up again."""
    came = 0

    def count(*_: object) -> None:
        nonlocal came
        came += 1

    before = signal.signal(signal.SIGALRM, count)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        convert(
            ConvertOptions(["en.txt"], "tok.json", "out", text_chunk_bytes=500, progress="none"),
            InlineEngine(),
        )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert came > 5
    assert tree(here / "out") == clean


def test_too_few_open_files_are_one_line_that_names_the_limit(here: Path) -> None:
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))}
    code, err = ended(started(*arguments("--workers", "2"), **limited))
    assert (code, err.count("\n")) == (4, 1), err
    assert "ulimit -n" in err
    assert not (here / "out").exists()


unless_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may do all")


@unless_root
def test_no_further_process_is_one_line_that_names_the_limit(here: Path) -> None:
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))}
    alone = {"OPENBLAS_NUM_THREADS": "1"}  # else numpy has its own lines to say
    code, err = ended(started(*arguments("--workers", "2"), environment=alone, **limited))
    assert (code, err.count("\n")) == (4, 1), err
    assert "ulimit -u" in err
    assert not (here / "out").exists()


@unless_root
@pytest.mark.parametrize("name", ["secret.txt", "secret"])
def test_an_input_without_the_right_to_read_is_told_before_the_work(name: str, here: Path) -> None:
    (here / "secret.txt").write_text("text")
    (here / "secret").mkdir()
    (here / name).chmod(0)
    code, err = ended(started(*arguments(inputs=("en.txt", name))))
    (here / name).chmod(0o700)
    assert (code, err.count("\n")) == (2, 1), err
    assert name in err
    assert "permission denied" in err.lower()
    assert not list(here.glob("out*"))


@unless_root
def test_a_folder_without_the_right_to_write_is_told_before_the_work(here: Path) -> None:
    (here / "locked").mkdir(mode=0o555)
    code, err = ended(started(*arguments(output="locked/out")))
    assert (code, err.count("\n")) == (4, 1), err
    assert "Permission denied" in err
    assert not list((here / "locked").iterdir())


@pytest.mark.parametrize(
    ("name", "chunk_bytes", "workers"),
    [
        ("en.txt", None, 1),
        ("en.txt", 2000, 3),
        ("en.txt", 1, 9),
        ("empty.txt", None, 1),
        ("en.txt.gz", None, 9),
    ],
)
def test_no_more_workers_than_there_is_work_for(
    name: str, chunk_bytes: int | None, workers: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "en.txt").write_bytes(((here / "en.txt").read_bytes() * 5)[:5_000])
    (here / "empty.txt").touch()
    (here / "en.txt.gz").write_bytes(gzip.compress((here / "en.txt").read_bytes()))
    asked: list[int] = []

    class Counting(InlineEngine):
        def start(self, most_tasks: int, prepare: Any, *arguments: Any) -> None:
            asked.append(min(most_tasks, 9))
            super().start(most_tasks, prepare, *arguments)

    monkeypatch.setattr("convert.driver.conversion.open_engine", lambda *_: Counting())
    convert(
        ConvertOptions([name], "tok.json", "out", workers=9, text_chunk_bytes=chunk_bytes, progress="none")
    )
    assert asked == [workers]


@pytest.mark.parametrize("nth", [0, 3, -1])
def test_a_file_that_the_disk_does_not_take_was_told_as_not_there(
    nth: int,
    here: Path,
    clean: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Such a file is deleted, to be written anew; what is told is why."""
    small = arguments("--chunk-tokens", "64")
    monkeypatch.setattr("convert.driver.conversion.open_engine", lambda *_: InlineEngine())
    assert main(arguments("--chunk-tokens", "64", output="clean64")) == 0
    path = sorted(name for name in tree(here / "clean64") if "/encoded_tokens/" in name and "/." not in name)[
        nth
    ]

    def sync_or_fail(file: str | Path) -> None:
        if str(file).endswith(f"dataset/{path}"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(file))

    with monkeypatch.context() as patch:
        patch.setattr("tokenmill.stores.durability.sync", sync_or_fail)
        assert main(small) == 4
    error = capsys.readouterr().err
    assert f"out.partial/dataset/{path}: Input/output error (errno 5)" in error
    assert main(small) == 0
    assert tree(here / "out") == tree(here / "clean64")
