"""`python -m convert` as a user meets it: a line and an exit code for each mistake, a summary when all is well."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from command_runs import command, fails
from naive_conversion import END, tree

import convert.driver.conversion
import convert.driver.tokenizers
import flat_tokens
from bpe.tokenizer import Tokenizer
from convert.__main__ import main
from tokenmill.engines.inline_engine import InlineEngine


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run in this process: the command line is what is tested."""
    monkeypatch.setattr(convert.driver.conversion, "open_engine", lambda *_: InlineEngine())


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["--workers", "0"], 2, ["--workers: "]),
        (["--validation-fraction", "2"], 2, ["--validation-fraction: "]),
        (["missing.txt", "gone"], 2, ["missing.txt", "gone"]),
        (["--validation", "no.txt"], 2, ["no.txt"]),
        (["--nonsense"], 2, ["--nonsense"]),
        (["--chunk-tokens", "0"], 2, ["--chunk-tokens: "]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_arguments(
    arguments: list[str], code: int, parts: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(here)
    fails(capsys, command(*arguments), code, *parts)
    assert tree(here) == before


def test_bad_tokenizers(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails(capsys, command(tokenizer="none.json"), 2, "none.json")
    (here / "cut.json").write_bytes((here / "tok.json").read_bytes()[:1000])
    fails(capsys, command(tokenizer="cut.json"), 2, "cut.json")
    content = json.loads((here / "tok.json").read_text())
    content["normalizer"] = {"type": "Uppercase"}
    (here / "upper.json").write_text(json.dumps(content))
    fails(capsys, command(tokenizer="upper.json"), 2, "Uppercase")
    content["normalizer"] = None
    content["added_tokens"][0]["id"] = 2**31
    (here / "large.json").write_text(json.dumps(content))
    fails(capsys, command(tokenizer="large.json"), 2, str(2**31))
    fails(capsys, command(tokenizer="en.txt"), 2, "en.txt: ")
    (here / "folder").mkdir()
    fails(
        capsys,
        command(tokenizer="folder"),
        2,
        "folder: ",
    )
    (here / "t.tiktoken").write_text("IQ== 0\n")
    fails(capsys, command(tokenizer="t.tiktoken"), 2, "t.tiktoken: ", "tokenizer.json")
    assert not (here / "out.zarr.partial").exists()


@pytest.mark.usefixtures("inline")
def test_invalid_utf8_names_the_file_and_the_byte(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = b"fine" + END.encode() + "é".encode() * 500 + b"\xffrest"
    (here / "bad.txt").write_bytes(data)
    for chunk_bytes in ("1", "100", "4k"):
        arguments = command("en.txt", "bad.txt", "--text-chunk-bytes", chunk_bytes, "--restart")
        fails(
            capsys,
            arguments,
            3,
            f"bad.txt: byte {data.index(255)}: ",
            "--replace-invalid",
        )
    (here / "wide.txt").write_bytes("text".encode("utf-16"))
    fails(capsys, command("wide.txt", "--restart"), 3, "wide.txt: ")
    assert not (here / "out.zarr").exists()


@pytest.mark.usefixtures("inline")
def test_an_output_that_exists(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("file", "folder", "link"):
        path = here / name
        if name == "file":
            path.write_text("mine")
        elif name == "folder":
            path.mkdir()
            (path / "mine").write_text("mine")
        else:
            path.symlink_to("folder")
        fails(capsys, command(output=name), 6, f"{name}: ", "--output")
        fails(capsys, command("--overwrite", output=name), 6, f"{name}: ", "--output")
    assert (here / "folder/mine").read_text() == "mine"

    assert main(command("--seed", "1")) == 0
    capsys.readouterr()
    fails(capsys, command(), 6, "out.zarr: ", "--overwrite", "--output")
    first = tree(here / "out.zarr")
    assert main(command("--seed", "2", "--overwrite", "--validation-fraction", "0.5")) == 0
    assert tree(here / "out.zarr") != first
    (here / "out.zarr/notes.txt").write_text("mine")
    capsys.readouterr()
    fails(capsys, command("--overwrite"), 6, "out.zarr: ", "notes.txt")
    assert (here / "out.zarr/notes.txt").read_text() == "mine"


@pytest.mark.usefixtures("inline")
def test_an_empty_folder_was_an_output_that_exists(here: Path) -> None:
    for more in ([], ["--overwrite"]):
        assert main(command("--quiet", output="plain" + "".join(more))) == 0
        (here / "made").mkdir()
        assert main(command("--quiet", *more, output="made")) == 0
        assert tree(here / "made") == tree(here / "plain")
        assert not (here / "made.partial").exists()
        shutil.rmtree(here / "made")


def test_places_where_nothing_can_be_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails(capsys, command(output="no/such/out"), 4, "no/such: ", "--output")
    (here / "out.zarr.partial").write_text("mine")
    fails(capsys, command(), 6, "out.zarr.partial: ")
    (here / "out.zarr.partial").unlink()
    (here / "out.zarr.partial").mkdir()
    (here / "out.zarr.partial/mine").touch()
    fails(capsys, command(), 6, "out.zarr.partial/mine: ")
    fails(capsys, command("--overwrite"), 6, "out.zarr.partial/mine: ")
    assert (here / "out.zarr.partial/mine").exists()


@pytest.mark.usefixtures("inline")
def test_a_folder_with_a_tokenizer_json_was_refused(here: Path) -> None:
    (here / "folder").mkdir()
    (here / "tok.json").rename(here / "folder/tokenizer.json")
    assert main(command("--quiet", tokenizer="folder")) == 0


def test_a_dataset_is_opened_with_the_tokenizer_it_was_made_with(here: Path, inline: None) -> None:
    """In another form than ours, it was refused as another tokenizer."""
    (here / "tok.json").write_text(json.dumps(json.loads((here / "tok.json").read_text()), indent=3))
    Tokenizer.load(here / "tok.json").export_gpt2(here / "folder")
    for name in ("tok.json", "folder"):
        assert main(command("--quiet", "--overwrite", tokenizer=name)) == 0
        for same in (name, "out.zarr/tokenizer.json", Tokenizer.load(name)):
            flat_tokens.open("out.zarr", tokenizer=same)


def test_a_name_that_begins_with_a_dash(here: Path, inline: None, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "-a.txt").write_text("text")
    (here / "--").write_text("more")
    fails(capsys, command("en.txt", "-a.txt"), 2, ": -a.txt. Write -- ")
    assert main([*command("en.txt"), "--quiet", "--", "-a.txt", "--"]) == 0
    sources = flat_tokens.open("out.zarr").sources()
    assert [source["path"] for source in sources] == ["en.txt", "-a.txt", "--"]


def test_inputs_may_stand_between_flags(here: Path, inline: None) -> None:
    (here / "more.txt").write_text("more")
    assert main(["en.txt", "--quiet", "more.txt", "--tokenizer", "tok.json", "--output=out", "en.txt"]) == 2
    assert main(["en.txt", "--quiet", "more.txt", "--tokenizer", "tok.json", "--output=out"]) == 0
    sources = flat_tokens.open("out").sources()
    assert [source["path"] for source in sources] == ["en.txt", "more.txt"]


@pytest.mark.parametrize("length", [252, 300])
def test_a_name_too_long_was_a_traceback(length: int, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """252: the name fits the file system, but not with .partial."""
    fails(capsys, command(output="x" * length), 4, "File name too long")


def test_an_output_that_would_replace_the_tokenizer(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "out.partial").mkdir()
    (here / "tok.json").rename(here / "out.partial/tok.json")
    arguments = command("--overwrite", tokenizer="out.partial/tok.json", output="out")
    fails(capsys, arguments, 2, "out.partial: ", "out.partial/tok.json")
    assert (here / "out.partial/tok.json").exists()


def test_a_tokenizer_that_can_be_read_but_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was read twice, and the second time waited for."""
    os.mkfifo(here / "pipe")
    fails(capsys, command(tokenizer="pipe"), 2, "pipe: ")


def test_merges_with_a_prefix_did_not_count_in_a_resume(here: Path) -> None:
    """gpt2-merges.txt is read with gpt2-vocab.json, so it belongs to what a resume compares."""
    Tokenizer.load(here / "tok.json").export_gpt2(here)
    for name in ("vocab.json", "merges.txt"):
        (here / name).rename(here / f"gpt2-{name}")
    _, before = convert.driver.tokenizers.load_tokenizer(str(here / "gpt2-vocab.json"))
    merges = (here / "gpt2-merges.txt").read_text(encoding="utf-8")
    (here / "gpt2-merges.txt").write_text(merges + "\n", encoding="utf-8")
    _, after = convert.driver.tokenizers.load_tokenizer(str(here / "gpt2-vocab.json"))
    assert before != after


@pytest.mark.parametrize("output", [".", "/", ".."])
def test_an_output_without_a_name_gave_a_traceback(
    output: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fails(capsys, command(output=output), 2, f"error: {output}: ", "--output")


@pytest.mark.usefixtures("inline")
def test_a_failure_left_an_empty_partial_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "bad.txt").write_bytes(b"a\xff")
    before = tree(here)
    error = fails(capsys, command("bad.txt"), 3, "bad.txt: byte 1")
    assert "partial" not in error
    assert tree(here) == before
    (here / "good.txt").write_bytes(b"a")
    error = fails(capsys, command("good.txt", "bad.txt", "--text-chunk-bytes", "1"), 3, "bad.txt: byte 1")
    _, advice = error.split("out.zarr.partial")
    assert all(flag in advice for flag in ("--on-error skip", "--exclude", "--restart"))
    more = ["good.txt", "bad.txt", "--text-chunk-bytes", "1"]
    assert main(command(*more, "--replace-invalid")) == 6
    assert main(command(*more, "--on-error", "skip")) == 0
    shutil.rmtree(here / "out.zarr")
    assert main(command(*more)) == 3
    assert main(command(*more, "--replace-invalid", "--restart")) == 0


@pytest.mark.usefixtures("inline")
def test_a_corpus_without_separators_was_one_document_in_silence(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "long.txt").write_text("a line\n" * 200_000)
    assert main(command("long.txt", "--progress", "json")) == 0
    assert "warning: --separator: " in capsys.readouterr().err
    assert main(command("--progress", "json", "--validation-docs", "5", output="short.zarr")) == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "more", "note"),
    [
        ("", [], "out.zarr: "),
        (END * 3, [], "3 documents"),
        ("a" + END + "b", [], "--validation-fraction: "),
        ("a" + END + "b", ["--validation-docs", "9"], "--validation-docs: "),
        ("a" + END + "b", ["--validation-docs", "1"], ""),
        ("a" + END + "b", ["--validation", "en.txt"], ""),
        ("a" + END + "b", ["--validation-fraction", "0"], ""),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.usefixtures("inline")
def test_an_empty_split_was_passed_over_in_silence(
    text: str, more: list[str], note: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "small.txt").write_text(text)
    assert main(command("small.txt", *more)) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert len(warnings) == bool(note)
    assert note in "".join(warnings)


@pytest.mark.usefixtures("inline")
def test_an_input_behind_validation_was_held_out_in_silence(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "held.txt").write_text("a")
    assert main(["--tokenizer", "tok.json", "--output", "out", "--validation", "held.txt", "en.txt"]) == 0
    assert "warning: --validation: " in capsys.readouterr().err


@pytest.mark.usefixtures("inline")
def test_one_of_a_kind_was_several_and_the_tokenizer_counted_as_tokens(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "one.txt").write_text("a")
    assert main(command("one.txt", "--validation-fraction", "0", "--compression", "none")) == 0
    shown = capsys.readouterr().out
    assert "out.zarr: 1 token from 1 byte in 1 file, " in shown
    assert "1 document = 1 written + 0 empty; 1 token\n" in shown
    assert "longest    1 token\n" in shown
    arrays = (here / "out.zarr").glob("*/*/*")  # a token, where it starts, where it ends
    size = sum(path.stat().st_size for path in arrays if path.name.isdigit())
    assert f"on disk; per token, {size}.00 bytes in the arrays and 1.00 bytes of text" in shown


def test_a_folder_without_files_made_an_empty_dataset(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "folder").mkdir()
    (here / "folder/.hidden").write_text("a")
    fails(capsys, command("folder"), 2, "folder: ")
