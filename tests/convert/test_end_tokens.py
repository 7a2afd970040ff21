"""Tokens in front of and behind each document: in the dataset, and in all that tells of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from input_kinds import KINDS, write_kind
from naive_conversion import END, Naive, Split, expected_dataset, make_documents, read_dataset, tree

from bpe.errors import BadArgument
from bpe.tokenizer import Tokenizer
from convert import ConvertOptions, Summary, convert
from convert.__main__ import main
from convert.driver.conversion import dry_run
from convert.errors import BadInput, Refused, UsageError
from flat_tokens.__main__ import main as flat_tokens_main
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.process_engine import ProcessEngine

START = "<|im_start|>"
ENDS: list[dict[str, Any]] = [
    {"append_token": END},
    {"prepend_token": START},
    {"prepend_token": START, "append_token": END},
]


def run(inputs: Any, output: Path | str, processes: int = 0, **more: Any) -> Summary:
    more = {"chunk_tokens": 64, "progress": "none", "validation_fraction": 0.3, **more}
    options = ConvertOptions(inputs, "tok.json", str(output), workers=max(processes, 1), **more)
    if processes:
        return convert(options, ProcessEngine(processes, "fork"))
    return convert(options, InlineEngine())


def with_ends(splits: dict[str, Split], ends: dict[str, Any], tokenizer: Tokenizer) -> dict[str, Split]:
    special = tokenizer.special_tokens
    front, back = (
        [special[ends[name]]] if name in ends else [] for name in ("prepend_token", "append_token")
    )
    return {
        name: Split([[*front, *ids, *back] for ids in split.sequences], split.documents)
        for name, split in splits.items()
    }


@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_each_document_with_ids_has_them(kind: str, ends: dict[str, Any], naive: Naive, here: Path) -> None:
    documents = [*make_documents(20, seed=8), "", "the end", "", "z"]
    path = write_kind(here / "input", documents, kind, members=2)
    plain = naive.convert_documents([d.encode() for d in documents], kind.startswith("txt"), fraction=0.3)
    expected = with_ends(plain, ends, Tokenizer.load("tok.json"))
    size = path.stat().st_size
    rows = [(0, None), (0, size // 3 + 1), (0, max(1, size // 200)), (2, 97)]
    trees = []
    for processes, chunk_bytes in rows:
        output = here / f"{processes}-{chunk_bytes}"
        summary = run(path, output, processes, text_chunk_bytes=chunk_bytes, **ends)
        assert read_dataset(output) == expected_dataset(expected)
        counts = {name: (found.documents, found.sequences) for name, found in summary.splits.items()}
        assert counts == {name: (each.documents, len(each.sequences)) for name, each in expected.items()}
        lengths = sorted((len(ids) for split in expected.values() for ids in split.sequences), reverse=True)
        assert list(summary.intake.longest) == lengths[:3]
        trees.append(tree(output))
    assert all(found == trees[0] for found in trees)


@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize("stretch_bytes", [1, 7, 64])
def test_a_document_in_pieces_has_them_once(
    stretch_bytes: int, ends: dict[str, Any], naive: Naive, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", stretch_bytes)
    monkeypatch.setattr("convert.shards.shard_writer.BUFFER_BYTES", 100)
    monkeypatch.setattr("convert.shards.shard_writer.MOVED_BYTES", 64)
    documents = make_documents(60, seed=8)
    documents[7] = " ".join(make_documents(40, seed=9)).replace(END, "")
    documents[30] = "x" * 700
    (here / "text").write_text(END.join(documents), newline="")
    summary = run("text", "out", text_chunk_bytes=900, validation_fraction=0.5, **ends)
    expected = with_ends(naive.convert([here / "text"], fraction=0.5), ends, Tokenizer.load("tok.json"))
    assert read_dataset(here / "out") == expected_dataset(expected)
    first = expected["train"].sequences[0]
    assert list(summary.intake.first_ids) == first[: len(summary.intake.first_ids)]


def test_a_document_that_is_left_out_leaves_no_end(here: Path) -> None:
    good = json.dumps({"text": "good"})
    special = json.dumps({"text": f"a {START} b"})
    long = json.dumps({"text": "y " * 3_000_000})  # in pieces
    (here / "in.jsonl").write_text("\n".join([good, special, "{", long[:-1], good]) + "\n")
    run(
        "in.jsonl", "out", on_error="skip", special_in_text="error", append_token=END, validation_fraction=0.0
    )
    tokenizer = Tokenizer.load("tok.json")
    ids = [*tokenizer.encode("good"), tokenizer.special_tokens[END]]
    assert read_dataset(here / "out")["train"][1] == [0, len(ids), 2 * len(ids)]


def test_a_tokenizer_without_such_an_entry_is_refused(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["en.txt", "--tokenizer", "tok.json", "--output", "out", "--append-token", "</s>"]
    assert main(command) == 2
    told = capfd.readouterr().err
    assert told.startswith("tokenmill: error: --append-token: ")
    assert told.count("\n") == 1
    assert not list(here.glob("out*"))
    assert main([*command, "--dry-run"]) == 2
    for value in ("", True, 1.5):
        with pytest.raises(UsageError, match="--prepend-token"):
            ConvertOptions(["en.txt"], "tok.json", "out", prepend_token=value)  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="--append-token"):
        run("en.txt", "out", append_token=319)


def test_an_id_is_as_good_as_the_text_and_both_are_kept(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    id_ = Tokenizer.load("tok.json").special_tokens[END]
    run("en.txt", "by-text", append_token=END)
    run("en.txt", "by-id", append_token=id_)
    assert tree(here / "by-text") == tree(here / "by-id")
    manifest = json.loads((here / "by-id/manifest.json").read_text())
    assert manifest["options"]["append_token"] == {"id": id_, "text": END}
    assert manifest["options"]["prepend_token"] is None
    assert flat_tokens_main(["info", "by-id"]) == 0
    told = capfd.readouterr().out
    assert "prepend token none" in told
    assert f"append token (id {id_}, text {END})" in told
    assert flat_tokens_main(["report", "by-id", "--output", "page.html"]) == 0
    assert "append_token" in (here / "page.html").read_text()


def test_other_ends_do_not_go_on_with_the_work(here: Path) -> None:
    (here / "bad.jsonl").write_text('{"text": "x"}\n{\n')
    with pytest.raises(BadInput):
        run(["en.txt", "bad.jsonl"], "out", append_token=END, text_chunk_bytes=500)
    with pytest.raises(Refused, match="--append-token"):
        run(["en.txt", "bad.jsonl"], "out", on_error="skip", text_chunk_bytes=500)
    run(["en.txt", "bad.jsonl"], "out", on_error="skip", append_token=END, text_chunk_bytes=500)


def test_the_summary_says_what_ends_a_document_or_what_could(here: Path) -> None:
    def ends_line(**ends: Any) -> list[str]:
        return [line for line in run("en.txt", "out", overwrite=True, **ends).lines() if "  ends " in line]

    special = Tokenizer.load("tok.json").special_tokens
    assert ends_line(append_token=END, prepend_token=START) == [
        f"  ends       each document begins with {START} ({special[START]}) and ends with {END} ({special[END]})"
    ]
    (line,) = ends_line()
    assert "no token ends a document" in line
    assert f"--append-token '{END}'" in line
    tokenizer = Tokenizer.load("tok.json")
    ordinary = {id_: tokenizer.vocab[id_] for id_ in tokenizer.ordinary_entries}
    Tokenizer(ordinary, tokenizer.merges, ["<s>"]).save("tok.json")
    assert ends_line() == []


def test_the_estimate_counts_them(here: Path) -> None:
    (here / "many.txt").write_text(END.join(["a"] * 300))
    for tokens, ends in ((300, {}), (900, ENDS[2])):
        lines = dry_run(ConvertOptions(["many.txt"], "tok.json", "out", progress="none", **ends))
        assert any(f"  tokens     about {tokens} tokens," in line for line in lines), lines
