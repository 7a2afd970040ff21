"""The summary, the warnings and the manifest of a conversion."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from limits import small
from runs import Inline, convert, rejected, run_here, sample_documents, sources_of, tree
from strategies import END

import bpe
from bpe import Tokenizer


def warnings_of(*inputs: str, **flags: Any) -> list[str]:
    """The warnings of a run, without the beginning "warning: "."""
    usual = {"validation_fraction": 0} if not flags.keys() & {"validation_docs", "validation"} else {}
    code, _, err = run_here(*inputs, **usual | flags, overwrite=True)
    assert code == 0, err
    return [line.partition(" ")[2] for line in err.splitlines() if line.startswith("warning: ")]


def test_the_manifest_describes_the_run(here: Path) -> None:
    summary = convert(Inline(), inputs=["en.txt"], validation_fraction=0.3)
    manifest = json.loads((here / "out/manifest.json").read_bytes())
    assert manifest["tokenizer"]["fingerprint"] == Tokenizer.load("out/tokenizer.json").fingerprint()
    (source,) = sources_of("out")
    assert (source["path"], source["bytes"]) == ("en.txt", (here / "en.txt").stat().st_size)
    assert manifest["options"]["separator"] == END
    assert sum(manifest["options"]["documents"].values()) == summary.documents


def test_a_token_by_id_is_the_token_by_text(here: Path) -> None:
    id_ = Tokenizer.load("tok.json").special_tokens[END]
    convert(Inline(), output="by-text", append_token=END)
    convert(Inline(), output="by-id", append_token=id_)
    assert tree("by-text") == tree("by-id")
    options = json.loads((here / "by-id/manifest.json").read_bytes())["options"]
    assert (options["append_token"], options["prepend_token"]) == ({"id": id_, "text": END}, None)
    assert "error: --append-token: " in rejected(2, append_token="</s>", output="new")
    assert "error: --append-token: " in rejected(2, append_token="</s>", output="new", dry_run=True)


# -- warnings


@pytest.mark.parametrize(
    ("text", "more", "note"),
    [
        ("", {}, "out: "),
        (END * 3, {}, "3 documents"),
        (f"a{END}b", {"validation_fraction": 0.005}, "--validation-fraction: "),
        (f"a{END}b", {"validation_docs": 9}, "--validation-docs: "),
        (f"a{END}b", {"validation_docs": 1}, ""),
        (f"a{END}b", {"validation": "en.txt"}, ""),
        (f"a{END}b", {}, ""),
        ("a line\n" * 200_000, {}, "--separator: "),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_empty_split_or_a_missing_separator(text: str, more: Any, note: str, here: Path) -> None:
    (here / "in.txt").write_text(text)
    found = warnings_of("in.txt", **more)
    assert len(found) == bool(note)
    assert note in "".join(found)


@pytest.fixture
def no_end(here: Path) -> Path:
    """A tokenizer without an entry for the end of a document."""
    bpe.train(["en.txt"], vocab_size=300).save(here / "no-end.json")
    return here


def test_a_separator_that_the_tokenizer_lacks(no_end: Path) -> None:
    (no_end / "a.txt").write_text(END.join(["a", "b", "c"]))
    (no_end / "b.txt").write_text(END.join(["d", "e"]))
    (no_end / "c.txt").write_text("one document")
    (found,) = warnings_of("a.txt", "b.txt", tok="no-end.json")
    assert found.startswith("no-end.json: ")
    assert END in found
    assert "3 times" in found
    assert warnings_of("a.txt") == []
    assert warnings_of("a.txt", tok="no-end.json", separator="b") != []
    assert warnings_of("c.txt", tok="no-end.json") == []


@pytest.mark.parametrize("is_small", [False, True])
@pytest.mark.parametrize("name", ["in.txt", "in.jsonl"])
def test_the_end_of_a_document_as_text(name: str, is_small: bool, no_end: Path) -> None:
    texts = [text + END * (at % 3) for at, text in enumerate(sample_documents(90))]
    held = sum(END in text for text in texts)
    lines = "\n".join(json.dumps({"text": text}) for text in texts)
    (no_end / name).write_text("\0".join(texts) if name == "in.txt" else lines, newline="")
    more = {"separator": r"\0"} if name == "in.txt" else {}
    with small() if is_small else small({}):
        (found,) = warnings_of(name, tok="no-end.json", **more)
    assert found.startswith("no-end.json: ")
    assert f"{held} documents" in found
    assert warnings_of(name, **more) == []


@pytest.mark.parametrize("name", ["c.html", "d.htm.gz", "e.HTML"])
def test_a_web_page_is_read_as_text(name: str, here: Path) -> None:
    (here / name).write_bytes(gzip.compress(b"a,b") if name.endswith(".gz") else b"a,b")
    (found,) = warnings_of(name, "en.txt")
    assert found.startswith(f"{name}: ")
    assert warnings_of(f"{name[:3]}*") == [found]
    assert warnings_of(name, input_format="text") == []
    assert warnings_of("en.txt") == []
