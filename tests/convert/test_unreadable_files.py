"""Files that cannot be read, or not to their end: --on-error skip and quarantine leave them out from the damage on."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from input_kinds import END, PACKED, write_kind
from naive_conversion import make_documents, tree

import flat_tokens
import tokenmill.inputs.source_list
from bpe.tokenizer import Tokenizer
from convert import ConvertOptions, Summary
from convert import convert as run_conversion
from convert.__main__ import main
from convert.errors import BadInput
from flat_tokens.verify import verify_dataset
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.process_engine import ProcessEngine

DAMAGED = [*(f"txt.{c}" for c in PACKED), "jsonl.gz", "jsonl.xz", "csv.gz", "tsv.xz", "tar.gz", "tar.none"]
CHECKED = ("gz", "bz2", "xz")  # formats with check sums in these files
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"


def run(*inputs: object, output: str = "out", processes: int = 0, **more: Any) -> Summary:
    base = {"validation_fraction": 0.0, "progress": "none", "on_error": "skip", "chunk_tokens": 64}
    options = ConvertOptions(list(map(str, inputs)), "tok.json", output, **{**base, **more})
    return run_conversion(options, ProcessEngine(processes, "fork") if processes else InlineEngine())


def texts(output: str = "out") -> list[str]:
    tokenizer = Tokenizer.load("tok.json")
    assert verify_dataset(Path(output)).ok
    return [tokenizer.decode(ids.tolist()) for ids in flat_tokens.open(output).train]


def random_documents(count: int, seed: int) -> list[str]:
    """Documents that compress badly, so that a cut file has lost text."""
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefghij klmnop", k=rng.randrange(1, 400))) for _ in range(count)]


def spoil(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[2 * len(data) // 3 :]
    else:
        for place in range(len(data) // 2, len(data) // 2 + 40):
            data[place] ^= 0xFF
    path.write_bytes(data)


@pytest.fixture
def folder(here: Path) -> Path:
    """Good files, and files with every kind of damage."""
    folder = here / "in"
    folder.mkdir()
    kinds = ["txt.gz", "txt.xz", "jsonl.gz", "csv.bz2", "tar.none", "parquet.none", "arrow.none"]
    for number, kind in enumerate(kinds):
        documents = random_documents(100, number)
        write_kind(folder / f"good-{number:02}", documents, kind)
        spoil(write_kind(folder / f"cut-{number:02}", documents, kind), "cut")
        if kind.endswith(CHECKED):
            spoil(write_kind(folder / f"damaged-{number:02}", documents, kind), "damaged")
    text = END.join(random_documents(50, 99))
    (folder / "archive.txt").write_bytes(gzip.compress(text.encode()))
    (folder / "plain.txt.gz").write_text(text)
    (folder / "utf-16.txt").write_bytes(text.encode("utf-16"))
    (folder / "pointer.parquet").write_bytes(LFS_POINTER)
    (folder / "empty.parquet").touch()
    return folder


@pytest.mark.parametrize("how", ["cut", "damaged"])
@pytest.mark.parametrize("kind", DAMAGED)
def test_documents_before_the_damage_stay(kind: str, how: str, here: Path) -> None:
    documents = random_documents(300, seed=3)
    path = write_kind(here / "a", documents, kind)
    if how == "damaged" and not kind.endswith(CHECKED):
        return
    spoil(path, how)
    summary = run(path)
    found = texts()
    assert found == documents[: len(found)]
    assert len(found) < len(documents)
    if how == "cut" and not kind.endswith(("bz2", "zst")):  # long blocks
        assert found
    assert summary.intake.records == len(found)
    (error,) = summary.unreadable
    assert error.startswith(f"{path}: ")
    with pytest.raises(BadInput, match="--on-error"):
        run(path, output="fails", on_error="fail")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_only_the_damaged_part_of_a_table_is_left_out(kind: str, here: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("pyarrow.feather")
    documents = random_documents(600, seed=4)
    table, path = pyarrow.table({"text": documents}), here / f"a.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(
            table, path, row_group_size=100, write_page_checksum=True, use_dictionary=False
        )
    else:
        pyarrow.feather.write_feather(table, path, chunksize=100, compression="lz4")
    spoil(path, "damaged")
    expected = None
    for chunk_bytes in (None, 5000, 20_000):
        summary = run(path, output=f"out-{chunk_bytes}", text_chunk_bytes=chunk_bytes)
        assert len(summary.unreadable) == 1
        found = texts(f"out-{chunk_bytes}")
        assert found[:100] == documents[:100]
        assert found[-100:] == documents[-100:]
        assert len(found) < 600
        expected = expected or tree(here / f"out-{chunk_bytes}")
        assert tree(here / f"out-{chunk_bytes}") == expected


@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
def test_one_unreadable_file_ended_a_run_of_many(on_error: str, folder: Path, here: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    unreadable = {name for name in names if not name.startswith("good")}
    summary = run("in/*", on_error=on_error)
    assert {error.partition(": ")[0] for error in summary.unreadable} == {f"in/{name}" for name in unreadable}
    assert any(f"{len(unreadable)} files, " in line for line in summary.lines())
    assert summary.intake.records == summary.documents + summary.intake.skipped_count
    manifest = json.loads((here / "out/manifest.json").read_text())
    assert manifest["options"]["unreadable_files"] == len(unreadable)
    listed = {
        Path(source["path"]).name for source in flat_tokens.open("out").sources() if "unreadable" in source
    }
    assert listed == unreadable
    if on_error == "quarantine":
        lines = map(json.loads, (here / "out/quarantine.jsonl").read_text().splitlines())
        left_out = [Path(line["source"]).name for line in lines if line["reason"] == "unreadable file"]
        assert sorted(left_out) == sorted(unreadable - {"empty.parquet"})
    # Neither the cut of the work nor the number of workers, nor a stop in between changes a byte.
    run("in/*", output="small", on_error=on_error, text_chunk_bytes=3000)
    run("in/*", output="lanes", on_error=on_error, processes=3)
    stopped = [folder / "good-00.txt.gz", folder / "cut-00.txt.gz", *sorted(folder.glob("good-0[2-5]*"))]
    with pytest.raises(BadInput):
        run(*stopped, output="stopped", on_error="fail", text_chunk_bytes=3000)
    assert (here / "stopped.partial").exists()
    run(*stopped, output="stopped", on_error=on_error, text_chunk_bytes=3000)
    run(*stopped, output="whole", on_error=on_error)
    assert tree(here / "small") == tree(here / "lanes") == tree(here / "out")
    assert tree(here / "stopped") == tree(here / "whole")


@pytest.mark.parametrize("form", ["txt", "jsonl"])
def test_a_long_document_that_the_damage_cuts_is_left_out(form: str, here: Path) -> None:
    documents = ["first", "x" * 200_000, "last"]
    path = write_kind(
        here / "a", [*documents[:1], "".join(random_documents(900, seed=1)), "last"], f"{form}.gz"
    )
    spoil(path, "cut")
    for chunk_bytes in (None, 70_000):  # blocks of 4 MiB, and of 70 kB, in which it does not fit
        summary = run(path, output=f"out-{chunk_bytes}", text_chunk_bytes=chunk_bytes)
        assert texts(f"out-{chunk_bytes}") == ["first"]
        assert (summary.intake.records, len(summary.unreadable)) == (1, 1)
    run(path, output="held", validation_fraction=None, validation_docs=1)
    assert len(flat_tokens.open("held").validation) == 1


def test_a_file_without_permission(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "no.txt").write_text("secret" * 10_000)  # so large that it is sampled
    open_file = tokenmill.inputs.source_list.open_file

    def refuse(path: str, *more: Any) -> Any:
        if path.endswith("no.txt"):
            raise PermissionError(13, "Permission denied", path)
        return open_file(path, *more)

    monkeypatch.setattr(tokenmill.inputs.source_list, "open_file", refuse)
    monkeypatch.setattr("os.access", lambda path, _: not str(path).endswith("no.txt"))
    assert main(["no.txt", "en.txt", "--tokenizer", "tok.json", "--output", "out", "--quiet"]) == 2
    summary = run("no.txt", "en.txt")
    assert summary.unreadable == ("no.txt: Permission denied",)
    assert texts() == [document for document in make_documents(60, seed=5) if document]


def test_bad_files_count_for_max_errors(folder: Path) -> None:
    with pytest.raises(BadInput):
        run("in/*", max_errors=3)


def test_the_advice_was_to_give_what_was_given(
    folder: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["in/*", "--tokenizer", "tok.json", "--output", "out", "--quiet", "--text-chunk-bytes", "3000"]
    assert main([*words, "--on-error", "skip", "--max-errors", "3", "--workers", "1"]) == 3
    error = capsys.readouterr().err
    assert "--on-error skip" not in error
    assert "To resume, raise --max-errors" in error
    assert main([*words, "--on-error", "skip"]) == 0
    assert main(["in/cut-00.txt.gz", *words[1:3], "--output", "more", "--quiet", "--workers", "1"]) == 3
    assert "--on-error skip" in capsys.readouterr().err


def test_all_inputs_unreadable(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.txt.gz").write_text("no archive")
    assert run("a.txt.gz").tokens == 0
    assert main(["a.txt.gz", "--tokenizer", "tok.json", "--output", "b", "--on-error", "skip"]) == 0
    assert "no input could be read" in capsys.readouterr().err


@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
def test_a_folder_with_pointers_copies_and_damage(
    on_error: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = here / "cloned"
    folder.mkdir()
    (folder / "README.md").write_text("about the data")
    documents = random_documents(300, seed=6)
    write_kind(folder / "a", documents, "jsonl.none")
    spoil(write_kind(folder / "b", documents, "jsonl.gz"), "cut")
    for name in ("c.parquet", "d.parquet", "e.jsonl"):
        (folder / name).write_bytes(LFS_POINTER)
    (folder / "f.json").write_text('[{"text": "first"}, {"text": "second"}, }')
    words = ["cloned", "--tokenizer", "tok.json", "--workers", "1", "--validation-fraction", "0"]
    assert main([*words, "--output", "out"]) == 3
    capsys.readouterr()
    assert main([*words, "--output", "out", "--overwrite", "--on-error", on_error]) == 0
    shown = capsys.readouterr().err
    assert "README.md" in shown
    assert "(copy of " not in shown  # two pointers with the same bytes
    left_out = {
        Path(source["path"]).name: source["unreadable"]
        for source in flat_tokens.open("out").sources()
        if "unreadable" in source
    }
    assert sorted(left_out) == ["b.jsonl.gz", "c.parquet", "d.parquet", "e.jsonl", "f.json"]
    assert all("git lfs pull" in left_out[name] for name in ("c.parquet", "d.parquet", "e.jsonl"))
    found = texts()
    assert found[:300] == documents
    assert found[300:-2] == documents[: len(found) - 302]
    assert 302 < len(found) < 602
    assert found[-2:] == ["first", "second"]
    small = ["--output", "small", "--text-chunk-bytes", "100", "--on-error", on_error]
    assert main([*words, *small]) == 0  # which cuts the pointers, too
    assert tree(here / "small") == tree(here / "out")
    exclude = ["--exclude", "[b-f].*", "--on-error", on_error]
    assert main([*words, "--output", "alone", *exclude]) == 0
    assert texts("alone") == documents
