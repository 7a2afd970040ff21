"""A dry run estimates the result and writes nothing. Too little space is an error before the work starts."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from input_kinds import KINDS, PACKED, write_kind
from runs import Inline, convert, error_of, rejected, run_here, sample_documents
from strategies import END, START, compressed

UNITS = {"": 1, "byte": 1, "bytes": 1, "token": 1, "tokens": 1, "k": 1e3, "kB": 1e3, "M": 1e6, "MB": 1e6}


class Estimate(NamedTuple):
    """The numbers of a dry run."""

    documents: float
    text_bytes: float
    tokens: float


def estimated(*inputs: str, **flags: Any) -> Estimate:
    code, out, err = run_here(*inputs, dry_run=True, **flags)
    assert (code, err) == (0, "")
    assert not list(Path().glob("out*"))
    documents = re.search(r"documents  about ([\d,]+) with ([\d,.]+) (\w+) of text", out)
    tokens = re.search(r"tokens     about ([\d,.]+) (\w+)", out)
    assert documents is not None
    assert tokens is not None
    numbers = [documents[1], "", documents[2], documents[3], tokens[1], tokens[2]]
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return Estimate(*(float(number.replace(",", "")) * UNITS[unit] for number, unit in pairs))


def hex_text(size: int) -> bytes:
    """Random documents that compress alike everywhere."""
    rng = random.Random(3)
    return END.encode().join(rng.randbytes(200).hex().encode() for _ in range(size // 413))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_is_about_right(kind: str, folder: Path) -> None:
    name = write_kind(folder / "in", [f"{text}." for text in sample_documents(2000)], kind).name
    found, summary = estimated(name, workers=2), convert(Inline(), inputs=[name])
    result = Estimate(summary.documents, summary.intake.text_bytes, summary.tokens)
    assert tuple(found) == pytest.approx(tuple(result), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("compression", PACKED)
def test_decoders_that_read_ahead(compression: str, folder: Path) -> None:
    """A third of the text was estimated for bz2: bytes that were read from the file counted as used."""
    text = hex_text(4 << 20)
    (folder / f"in.txt.{compression}").write_bytes(compressed(text, compression))
    assert estimated(f"in.txt.{compression}").text_bytes == pytest.approx(len(text), rel=0.05)


@pytest.mark.long
def test_kinds_of_few_bytes_count(folder: Path) -> None:
    """Files between two samples were left out: here a 26th of the bytes on disk and a fifth of the text."""
    text = bytes(random.Random(4).choices(b"ab", k=400_000))
    files = {"a.txt": hex_text(800_000), "b.txt.gz": compressed(text, "gz"), "c.txt": hex_text(800_000)}
    files |= {"c.txt.xz": compressed(text, "xz"), "d.txt": hex_text(1_500_000), "d.txt.xz": b""}
    (folder / "in").mkdir()
    for name, data in files.items():
        (folder / "in" / name).write_bytes(data)
    assert estimated("in").text_bytes == pytest.approx(3_100_000 + 2 * len(text), rel=0.03)


@pytest.mark.parametrize("kind", ["txt.none", "jsonl.none"])
def test_each_sample_of_one_long_document_was_a_document(kind: str, folder: Path) -> None:
    documents = ["a", "".join(sample_documents(4000)) * 20, "b"]
    found = estimated(write_kind(folder / "in", documents, kind).name)
    assert found.text_bytes > 4 << 20
    assert found.documents <= 6


@pytest.mark.parametrize(
    ("name", "data", "warning"),
    [
        ("in.jsonl", b'{"text": "a"}\n{"body": "b"}\n[]\n', "2 of 3 records "),
        ("in.jsonl.gz", compressed(b'{"body": "b"}\n', "gz"), "1 of 1 record "),
        ("in.jsonl.gz", compressed(b'{"text": "some text"}\n' * 60_000, "gz"), ""),
        ("in.txt", compressed(b"a", "gz"), "in.txt: "),
        ("in.txt.gz", b"no gzip", "in.txt.gz: "),
        ("in.parquet", b"no Parquet", "in.parquet: "),
        ("in.csv", b"id\n1\n", "in.csv: "),
        ("in.json", b'[{"text": "a"}, }', "in.json: byte 16: "),
        ("in.txt", b"text", ""),
    ],
    ids=str,
)
def test_a_dry_run_warns_of_unreadable_files(name: str, data: bytes, warning: str, folder: Path) -> None:
    (folder / name).write_bytes(data)
    code, out, _ = run_here(name, dry_run=True)
    assert code == 0
    warnings = [line for line in out.splitlines() if line.startswith("  warning ")]
    assert len(warnings) == bool(warning)
    assert warning in "".join(warnings)


def test_tokens_around_documents_count(folder: Path) -> None:
    (folder / "in.txt").write_text(END.join(["a"] * 300))
    assert estimated("in.txt").tokens == 300
    assert estimated("in.txt", append_token=END, prepend_token=START).tokens == 900
    (folder / "empty.txt").touch()
    assert estimated("empty.txt")[::2] == (0, 0)


def test_a_dry_run_deleted_the_remains_of_a_killed_run(here: Path) -> None:
    convert(Inline())
    left = here / "out.partial/shards"
    left.mkdir(parents=True)  # killed between publishing and cleaning up
    rejected(6, dry_run=True)
    assert left.exists()
    rejected(6)
    assert not left.parent.exists()


# -- space


def give_space(monkeypatch: pytest.MonkeyPatch, free: dict[str, int] | int) -> None:
    """Make `shutil.disk_usage` return the free bytes of a folder, or of all."""

    def usage(path: object) -> Any:
        return type("Usage", (), {"free": free if isinstance(free, int) else free[str(path)]})

    monkeypatch.setattr("shutil.disk_usage", usage)


@pytest.mark.parametrize("kind", ["txt.none", "jsonl.gz"])
def test_too_little_space(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = write_kind(folder / "in", sample_documents(300), kind).name
    give_space(monkeypatch, 4000)
    error = error_of(Inline(), inputs=[name])
    assert error.exit_code == 4
    assert "4.0 kB are free" in str(error)
    assert not Path("out.partial").exists()
    give_space(monkeypatch, 10**7)
    assert convert(Inline(), inputs=[name]).tokens > 0


def test_standard_input_that_was_copied_is_not_finished_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "out.partial").mkdir()
    (folder / "out.partial/stdin").write_bytes(bytes(100 << 20))
    (folder / "in.txt").write_bytes(hex_text(100_000))
    give_space(monkeypatch, 4000)
    assert error_of(Inline(), inputs=["in.txt"]).exit_code == 4


def test_shards_need_space_in_scratch(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were charged to the disk of the output."""
    scratch = Path("/dev/shm")
    if not scratch.is_dir() or scratch.stat().st_dev == here.stat().st_dev:
        pytest.skip("needs a second file system")
    free = {str(scratch): 0, str(here.resolve()): 10**9}
    give_space(monkeypatch, free)
    error = error_of(Inline(), scratch=str(scratch))
    assert error.exit_code == 4
    assert str(error).startswith(f"{scratch}: ")
    free |= {str(scratch): 10**6, str(here.resolve()): 0}
    assert str(error_of(Inline(), scratch=str(scratch))).startswith(f"{here.resolve()}: ")
    free[str(here.resolve())] = 10**8
    assert convert(Inline(), scratch=str(scratch)).tokens > 0


@pytest.mark.parametrize("name", ["in.txt", "in.txt.gz"])
def test_a_very_large_corpus_needs_format_3(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Format 2 failed at the end, because the manifest has no space for so many files."""
    monkeypatch.setattr("convert.driver.conversion.MAX_CHUNK_FILES", 10)
    (folder / name).write_bytes(bytes(3000))  # no gzip, so that the dry run counts each byte
    for tokens, formats in ((300, (2, 2, 3)), (50, (3, None, 3))):
        for given, expected in zip((False, 2, 3), formats, strict=True):
            flags = {"chunk_tokens": tokens, "dry_run": True} | ({"zarr_format": given} if given else {})
            code, out, err = run_here(name, **flags)
            assert f"Zarr format {expected}, " in out if expected else "--zarr-format: " in err
            assert code == (0 if expected else 2)
