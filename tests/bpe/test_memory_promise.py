"""--max-memory limits the whole process, interpreter included: measured as the peak of real processes."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.promise("max-memory"),
    pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc"),
]

# A fork would start with the peak of the parent, so measure the process itself.
SCRIPT = """
import atexit, sys
@atexit.register
def tell():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            print("peak", int(line.split()[1]) * 1024, file=sys.stderr)
from bpe.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def words(rng: random.Random) -> bytes:
    """Return words that are nearly all different."""
    letters = bytearray(rng.randbytes(12_000_000).translate(bytes(97 + byte % 16 for byte in range(256))))
    letters[::12] = b" " * len(letters[::12])
    return bytes(letters)


def cjk(rng: random.Random) -> bytes:
    """Return lines of 40 characters, drawn from 3,000."""
    letters = [chr(0x4E00 + place) for place in range(3000)]
    line = "".join(rng.choices(letters, [1 / (rank + 1) for rank in range(3000)], k=600_000))
    return "\n".join(line[at : at + 40] for at in range(0, len(line), 40)).encode()


def long_lines(rng: random.Random) -> bytes:
    """Return pretokens of a megabyte."""
    letters = rng.randbytes(12_000_000).translate(bytes(97 + byte % 8 for byte in range(256)))
    return b"\n".join(letters[at : at + 1_000_000] for at in range(0, len(letters), 1_000_000))


def one_letter(rng: random.Random) -> bytes:
    return b"a" * 12_000_000


def one_document(rng: random.Random) -> bytes:
    """Return text with entries as long as the limit, one per merge."""
    return rng.randbytes(1_000_000).translate(bytes(b"acgt"[byte % 4] for byte in range(256)))


def long_words(rng: random.Random, number: int = 2, each: int = 2_500_000) -> bytes:
    """Return pretokens of megabytes; memory holds only some of them at a time."""
    letters = rng.randbytes(number * each)
    letters = letters.translate(bytes(97 + byte % 26 for byte in range(256)))
    return b" ".join(letters[at : at + each] for at in range(0, len(letters), each))


def run(*arguments: object) -> tuple[int, int, str]:
    """Return (exit code, peak in bytes, the error line or "")."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert ended.stdout == ""
    *errors, peak = ended.stderr.splitlines()
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode, int(peak.removeprefix("peak ")), " ".join(errors)


@pytest.fixture(scope="module")
def least_mb(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return the minimum limit, as named by the error for a smaller one. Training needs more than counting."""
    folder = tmp_path_factory.mktemp("least")
    (folder / "text").write_bytes(b"ab")
    command = ["train", folder / "text", "--vocab-size", "300", "--output", folder / "t.json"]
    code, _, error = run(*command, "--max-memory", "10MB")
    assert code == 2
    named = re.search(r"must be at least ([\d.]+) MB", error)
    assert named, error
    return int(float(named[1])) + 1


COUNT, TRAIN = "count {text} --output {out}", "train {text} --vocab-size 40000 --output {out}"
SHORT = TRAIN.replace("40000", "2000")
CASES = [
    *((COUNT, text) for text in (words, cjk, long_lines, one_letter)),
    *((TRAIN, text) for text in (words, one_letter, one_document)),
    *((f"{TRAIN} --max-token-bytes 0", text) for text in (one_letter, one_document)),
    (f"{SHORT} --continue-from {{old}}", words),
    (f"{SHORT} --limit-alphabet 5", one_letter),
    (f"{SHORT} --like pythia", words),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "text"), CASES, ids=lambda each: getattr(each, "__name__", each))
@pytest.mark.parametrize("more_mb", [0, 120])
def test_commands_keep_to_the_memory(
    command: str, text: Callable[[random.Random], bytes], more_mb: int, least_mb: int, tmp_path: Path
) -> None:
    names = {name: str(tmp_path / name) for name in ("text", "out", "old")}
    made = text(random.Random(1))[: 4_000_000 if command.startswith(SHORT) else None]
    (tmp_path / "text").write_bytes(made)
    if "{old}" in command:
        (tmp_path / "small").write_bytes(made[:20_000])
        small = ("train", tmp_path / "small", "--vocab-size", 300, "--quiet", "--output", names["old"])
        assert run(*small)[0] == 0
    limit_mb = least_mb + more_mb + 20 * command.startswith(SHORT)  # more than the least of a plain training
    code, peak, error = run(*command.format(**names).split(), "--quiet", "--max-memory", f"{limit_mb}MB")
    assert peak <= limit_mb * 10**6, error
    if command == COUNT:  # only text without an offset to cut at may be too large to count
        assert code == 0 or (code == 5 and "/text: byte " in error), error
    else:  # entries of any length may need more
        assert code == 0 if more_mb and "--max-token-bytes" not in command else code in (0, 5), error
    assert (tmp_path / "out").exists() == (code == 0)


@pytest.mark.long
def test_a_report_that_does_not_fit_leaves_the_tokenizer(tmp_path: Path, least_mb: int) -> None:
    (tmp_path / "text").write_bytes(words(random.Random(5))[: 1 << 20])
    limit_mb = least_mb + 10
    command = ["train", tmp_path / "text", "--vocab-size", "1000", "--quiet", "--output", tmp_path / "t.json"]
    code, peak, error = run(*command, "--max-memory", f"{limit_mb}MB", "--report", tmp_path / "report")
    assert (code, peak <= limit_mb * 10**6) == (5, True), (peak, error)
    assert ": report " in error
    assert (tmp_path / "t.json").exists()
    assert not (tmp_path / "report").exists()
    limit = named_limit(error)
    code, peak, error = run(*command, "--max-memory", limit, "--report", tmp_path / "report")
    assert (code, peak <= int(limit[:-2]) * 10**6) == (0, True), (peak, error)


def named_limit(error: str) -> str:
    named = re.search(r"(\d+)MB or more", error)
    assert named, error
    return f"{named[1]}MB"


@pytest.mark.slow
@pytest.mark.parametrize("make", [one_letter, long_words], ids=lambda make: make.__name__)
@pytest.mark.parametrize("fit", [False, True])
def test_a_limit_that_is_named_for_long_pretokens_is_enough(
    make: Callable[[random.Random], bytes], fit: bool, least_mb: int, tmp_path: Path
) -> None:
    text = make(random.Random(2))
    (tmp_path / "text").write_bytes(text)
    command = ["train", tmp_path / "text", "--vocab-size", 3000, "--quiet", "--threads", 2]
    command += ["--output", tmp_path / "t.json", *(["--min-pretoken-count", "fit"] if fit else [])]
    limit, refused = f"{least_mb + 20}MB", ""
    for _ in range(3):  # for lack of an offset to cut at, in merging counts files, in merging
        code, peak, error = run(*command, "--max-memory", limit)
        assert peak <= int(limit[:-2]) * 10**6, error
        if code == 0:
            break
        stage = re.sub(r"\d+", "", error.split(",")[0])[:30]
        assert (code, stage != refused) == (5, True), error
        assert "--min-pretoken-count" not in error or b" " in text, error
        assert "could not be saved" not in error
        limit, refused = named_limit(error), stage
    assert code == 0, error
