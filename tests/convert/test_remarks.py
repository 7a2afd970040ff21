"""What a person should know of a conversion that went well: each remark where it belongs, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from naive_conversion import END, make_documents

import bpe
from convert.__main__ import main


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenmill.engines.inline_engine import InlineEngine

    monkeypatch.setattr("convert.driver.conversion.open_engine", lambda *_: InlineEngine())


@pytest.fixture
def without_end(here: Path) -> Path:
    """A tokenizer without an entry for the end of a document."""
    bpe.train(["en.txt"], vocab_size=300).save(here / "no-end.json")
    return here


def warnings_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    base = ["--output", "out", "--overwrite", "--validation-fraction", "0"]
    assert main([*words, *base]) == 0
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]


def test_documents_cut_at_what_the_tokenizer_does_not_know(
    without_end: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (without_end / "a.txt").write_text(END.join(["a", "b", "c"]))
    (without_end / "b.txt").write_text(END.join(["d", "e"]))
    (found,) = warnings_of(capsys, "a.txt", "b.txt", "--tokenizer", "no-end.json")
    assert found.startswith("warning: no-end.json: ")
    assert "<|endoftext|>" in found
    assert "3 times" in found
    assert warnings_of(capsys, "a.txt", "--tokenizer", "tok.json") == []
    assert warnings_of(capsys, "a.txt", "--tokenizer", "no-end.json", "--separator", "b") != []
    (without_end / "c.txt").write_text("one document")
    assert warnings_of(capsys, "c.txt", "--tokenizer", "no-end.json") == []


@pytest.mark.parametrize("stretch_bytes", [50, 1 << 20])
@pytest.mark.parametrize("name", ["in.txt", "in.jsonl"])
def test_documents_that_hold_the_end_of_a_document_as_text(
    name: str,
    stretch_bytes: int,
    without_end: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tokenmill.inputs.read_text.STRETCH_BYTES", stretch_bytes)
    documents = [
        text.replace(END, "") + (END * (number % 3)) for number, text in enumerate(make_documents(90, 3))
    ]
    held = sum(END in document for document in documents)
    assert held > 30
    if name == "in.txt":
        text, more = "\0".join(documents), ["--separator", "\0"]
    else:
        text, more = "\n".join(json.dumps({"text": document}) for document in documents), []
    (without_end / name).write_text(text, newline="")
    (found,) = warnings_of(capsys, name, "--tokenizer", "no-end.json", *more)
    assert found.startswith("warning: no-end.json: ")
    assert "<|endoftext|>" in found
    assert f"{held} documents" in found
    assert warnings_of(capsys, name, "--tokenizer", "tok.json", *more) == []


@pytest.mark.parametrize("name", ["c.html", "d.htm.gz", "e.HTML"])
def test_tables_and_pages_are_read_as_text_not_in_silence(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import gzip

    (here / name).write_bytes(gzip.compress(b"a,b") if name.endswith(".gz") else b"a,b")
    (found,) = warnings_of(capsys, name, "en.txt", "--tokenizer", "tok.json")
    assert found.startswith(f"warning: {name}: ")
    assert warnings_of(capsys, f"{name[:3]}*", "--tokenizer", "tok.json") == [found]
    assert warnings_of(capsys, name, "--tokenizer", "tok.json", "--input-format", "text") == []
    assert warnings_of(capsys, "en.txt", "--tokenizer", "tok.json") == []
