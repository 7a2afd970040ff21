"""What an input was meant to be that is no text or is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenmill.inputs.hints import what_no_text_is, why_missing


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt", "the mill.txt"):
        (tmp_path / name).write_text("the mill")
    return tmp_path


def test_why_a_path_is_missing(here: Path) -> None:
    assert why_missing("a.tx") == ". Did you mean a.txt?"
    assert why_missing(str(here / "the_mill.txt")) == f". Did you mean {here}/the mill.txt?"
    assert why_missing("a.txt/") == ". Did you mean a.txt?"
    for path in ("zzz", "none/a.txt", "x" * 5000, ""):
        assert why_missing(path) == ""


def test_what_is_no_text(here: Path) -> None:
    (here / "tokenizer.json").write_text(
        '{\n  "version": "1.0",\n  "truncation": null,\n  "added_tokens": []}'
    )
    (here / "records.json").write_text('{"version": "1.0", "text": "the mill"}')
    (here / "d").mkdir()
    (here / "d" / "zarr.json").touch()
    assert what_no_text_is("tokenizer.json").startswith("a tokenizer")
    assert what_no_text_is("tokenizer.json", "text") == ""
    assert what_no_text_is("d").startswith("a Zarr dataset")
    for other in (
        "records.json",
        "a.txt",
        "missing.json",
        "s3://bucket/tokenizer.json",
        "y" * 5000 + ".json",
        ".",
    ):
        assert what_no_text_is(other) == ""
