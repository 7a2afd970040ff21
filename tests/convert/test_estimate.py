"""A dry run estimates the result and writes nothing. Too little space is an error before the work starts."""

from __future__ import annotations

import gzip
import random
import tempfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from input_kinds import KINDS, PACKED, compressed, write_kind
from naive_conversion import END, make_documents
from readings import find_sources
from test_input_kinds import run

from bpe.tokenizer import Tokenizer
from convert import ConvertOptions
from convert.__main__ import main
from convert.document_ends import document_ends
from convert.driver import conversion
from convert.driver.conversion import layout_of
from convert.driver.estimate import Estimate, estimate
from convert.errors import StorageError, UsageError
from convert.planning.plan import make_plan
from flat_tokens.storage.layout import ArrayLayout

DiskUsage = namedtuple("DiskUsage", "total used free")


@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_is_about_right(kind: str, tokenizer_path: Path, tmp_path: Path) -> None:
    documents = [document + "." for document in make_documents(2000, seed=2)]
    path = write_kind(tmp_path / "input", documents, kind)
    found = estimate_of(path, tokenizer_path, tmp_path, workers=2)
    summary = run(path, tokenizer_path, tmp_path / "out")
    assert found.tokens == pytest.approx(summary.tokens, rel=0.2)
    assert found.documents == pytest.approx(summary.documents, rel=0.2)
    assert found.text_bytes == pytest.approx(summary.text_bytes, rel=0.2)
    assert found.cpu_seconds > 0


@pytest.mark.parametrize("compression", PACKED)
def test_decoders_that_read_ahead_are_not_counted_for_it(
    compression: str, tokenizer_path: Path, tmp_path: Path
) -> None:
    """Of bz2 and xz a third and a half of the text were seen: what was read from the file was taken for used."""
    text = hex_text(4 << 20)
    path = tmp_path / f"input.txt.{compression}"
    path.write_bytes(compressed(text, compression))
    found = estimate_of(path, tokenizer_path, tmp_path)
    assert found.text_bytes == pytest.approx(len(text), rel=0.05)


def test_kinds_of_few_bytes_are_not_left_out(tokenizer_path: Path, tmp_path: Path) -> None:
    """What lay between the places of samples was taken for nothing: here a 26th of the bytes on the disk and a fifth of
    the text."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    text = bytes(random.Random(4).choices(b"ab", k=400_000))
    (folder / "a.txt").write_bytes(hex_text(800_000))
    (folder / "b.txt.gz").write_bytes(compressed(text, "gz"))
    (folder / "c.txt").write_bytes(hex_text(800_000))
    (folder / "c.txt.xz").write_bytes(compressed(text, "xz"))
    (folder / "d.txt").write_bytes(hex_text(1_500_000))
    (folder / "d.txt.xz").write_bytes(b"")
    found = estimate_of(folder, tokenizer_path, tmp_path)
    assert found.text_bytes == pytest.approx(3_100_000 + 2 * len(text), rel=0.03)
    assert not found.faults


def hex_text(size: int) -> bytes:
    """Random documents that compress alike everywhere."""
    rng = random.Random(3)
    return END.encode().join(rng.randbytes(200).hex().encode() for _ in range(size // (400 + len(END))))


def estimate_of(path: Path, tokenizer_path: Path, tmp_path: Path, **more: Any) -> Estimate:
    options = ConvertOptions((str(path),), str(tokenizer_path), str(tmp_path / "out"), **more)
    plan = make_plan(find_sources(options.inputs), options.text_chunk_bytes)
    tokenizer = Tokenizer.load(tokenizer_path)
    ends = document_ends(options, tokenizer)
    return estimate(tokenizer, plan, ArrayLayout.create(), options, ends, options.intake_rules)


@pytest.mark.parametrize("kind", ["txt.none", "jsonl.none"])
def test_each_sample_of_one_long_document_was_a_document(
    kind: str, tokenizer_path: Path, tmp_path: Path
) -> None:
    """Three documents of 300 MB were said to be about 1,144."""
    documents = ["a", "".join(make_documents(4000, seed=2)) * 36, "b"]
    path = write_kind(tmp_path / "input", documents, kind)
    found = estimate_of(path, tokenizer_path, tmp_path)
    assert found.text_bytes > 4 << 20
    assert found.documents <= 6


@pytest.mark.parametrize(
    ("name", "data", "warning"),
    [
        ("in.jsonl", b'{"text": "a"}\n{"body": "b"}\n[]\n', "2 of 3 records "),
        (
            "in.jsonl.gz",
            gzip.compress(b'{"body": "b"}\n', mtime=0),
            "1 of 1 record ",
        ),
        ("in.jsonl.gz", gzip.compress(b'{"text": "some text"}\n' * 60_000, mtime=0), ""),
        ("in.txt", gzip.compress(b"a", mtime=0), "in.txt: "),
        ("in.txt.gz", b"no gzip", "in.txt.gz: "),
        ("in.parquet", b"no Parquet", "in.parquet: "),
        ("in.csv", b"id\n1\n", "in.csv: "),
        ("in.json", b'[{"text": "a"}, }', "in.json: byte 16: "),
        ("in.txt", b"text", ""),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value[:40],
)
def test_a_dry_run_said_nothing_of_what_cannot_be_read(
    name: str,
    data: bytes,
    warning: str,
    tokenizer_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    words = [str(path), "--tokenizer", str(tokenizer_path), "--output", str(tmp_path / "out"), "--dry-run"]
    assert main(words) == 0
    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  warning ")]
    assert len(warnings) == bool(warning)
    assert warning in "".join(warnings)


def test_a_dry_run_prints_and_writes_nothing(
    tokenizer_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_kind(tmp_path / "input", make_documents(50, seed=2), "jsonl.gz")
    words = [str(path), "--tokenizer", str(tokenizer_path), "--output", str(tmp_path / "out"), "--dry-run"]
    assert main(words) == 0
    out = capsys.readouterr().out
    for expected in (
        "nothing written",
        "1 file: 1 jsonl.gz",
        "text chunk",
        "documents  about",
        "tokens",
        "time",
    ):
        assert expected in out
    assert sorted(item.name for item in tmp_path.iterdir()) == [path.name]
    assert main([*words, "--validation-docs", "3"]) == 0
    assert "validation 3 documents" in capsys.readouterr().out
    assert main(["-", *words[1:]]) == 2
    assert "error: -: " in capsys.readouterr().err


def test_a_dry_run_deleted_what_a_killed_run_had_left(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["en.txt", "--tokenizer", "tok.json", "--output", "out", "--quiet"]
    assert main(words) == 0
    left = here / "out.partial/shards"
    left.mkdir(parents=True)  # killed between publishing and cleaning up
    assert main([*words, "--dry-run"]) == 6
    assert left.exists()
    assert main(words) == 6
    assert not left.parent.exists()


@pytest.mark.parametrize("kind", ["txt.none", "jsonl.gz"])
def test_too_little_space_is_told_before_anything_is_written(
    kind: str, tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_kind(tmp_path / "input", make_documents(300, seed=2), kind)
    monkeypatch.setattr("shutil.disk_usage", lambda _: DiskUsage(10**9, 10**9, 4000))
    with pytest.raises(StorageError, match=r"4\.0"):
        run(path, tokenizer_path, tmp_path / "out")
    assert not (tmp_path / "out.partial").exists()
    monkeypatch.setattr("shutil.disk_usage", lambda _: DiskUsage(10**9, 0, 10**7))
    assert run(path, tokenizer_path, tmp_path / "out").tokens > 0


def test_shards_were_charged_to_the_disk_of_the_output_and_never_to_that_of_scratch(
    tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_memory = Path("/dev/shm")
    if not shared_memory.is_dir() or shared_memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system")
    path = write_kind(tmp_path / "input", make_documents(300, seed=2), "txt.none")
    found = estimate_of(path, tokenizer_path, tmp_path, validation_fraction=0.3)
    with tempfile.TemporaryDirectory(dir=shared_memory) as scratch:
        free = {
            scratch: int(1.1 * found.working_bytes) + 100,
            str(tmp_path): int(1.1 * found.dataset_bytes) + 100,
        }
        monkeypatch.setattr("shutil.disk_usage", lambda folder: DiskUsage(10**9, 0, free[str(folder)]))
        free[scratch] -= 200
        with pytest.raises(StorageError, match=f"^.*{scratch}"):
            run(path, tokenizer_path, tmp_path / "out", scratch=scratch)
        free[scratch] += 200
        assert run(path, tokenizer_path, tmp_path / "out", scratch=scratch).tokens > 0
        free[str(tmp_path)] -= 200
        with pytest.raises(StorageError, match=f"^.*{tmp_path}"):
            run(path, tokenizer_path, tmp_path / "more", scratch=scratch)


def test_spooled_standard_input_counted_as_work_that_is_done(
    tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_kind(tmp_path / "input", make_documents(300, seed=2), "txt.none")
    (tmp_path / "out.partial").mkdir()
    with (tmp_path / "out.partial/stdin").open("wb") as spooled:
        spooled.truncate(100 << 20)
    monkeypatch.setattr("shutil.disk_usage", lambda _: DiskUsage(10**9, 10**9, 4000))
    with pytest.raises(StorageError, match=r"4\.0"):
        run(path, tokenizer_path, tmp_path / "out")


def test_an_empty_corpus_is_estimated_too(tokenizer_path: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").touch()
    found = estimate_of(tmp_path / "in.txt", tokenizer_path, tmp_path)
    assert (found.tokens, found.documents) == (0, 0)


def test_a_dry_run_for_a_cluster_showed_local_cores(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["en.txt", "--tokenizer", "tok.json", "--dry-run", "--output", "out"]
    assert main([*command, "--workers", "3"]) == 0
    assert "3 workers" in capsys.readouterr().out
    assert main([*command, "--scheduler", "tcp://host:1"]) == 0
    out = capsys.readouterr().out
    assert "the workers of dask" in out
    assert "of CPU time, divided among the workers" in out


@pytest.mark.parametrize("name", ["in.txt", "in.txt.gz"])
def test_format_2_failed_at_the_end_of_a_very_large_corpus(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest has no space for so many files."""
    monkeypatch.setattr(conversion, "MAX_CHUNK_FILES", 10)
    (tmp_path / name).write_bytes(b"x" * 3000)
    plan = make_plan(find_sources([str(tmp_path / name)]))
    for tokens, formats in ((300, (2, 2, 3)), (50, (3, None, 3))):
        for given, expected in zip((None, 2, 3), formats, strict=True):
            options = ConvertOptions(["a"], "t", "o", zarr_format=given, chunk_tokens=tokens)
            if expected is None:
                with pytest.raises(UsageError, match="^--zarr-format: .*files"):
                    layout_of(options, plan)
            else:
                assert layout_of(options, plan).zarr_format == expected
