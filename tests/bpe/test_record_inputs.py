"""Counts of record files equal counts of their documents one by one, for every kind of file."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from input_kinds import KINDS, json_lines, write_kind

from bpe import count_pretokens, train
from bpe.__main__ import main
from bpe.errors import BadArgument, MissingInput
from bpe.pretoken_counts.count_set import CountSet
from bpe.pretoken_counts.memory import MemoryBudget
from bpe.pretoken_counts.workspace import Workspace
from bpe.tokenizer import Tokenizer
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.sizes import bytes_text

END = "<|endoftext|>"
PATTERNS = ["gpt2", r"\w+|\W+"]  # run by the core, and by the regex package


def documents_of(seed: int, count: int = 40) -> list[str]:
    rng = random.Random(seed)
    words = [
        "the",
        " the",
        "the\nend",
        " größer",
        "字字",
        "🙂",
        " 123",
        "\r\n\r\n",
        '"quoted", and',
        "a\tb",
        "x" * 60,
    ]
    return ["".join(rng.choices(words, k=rng.randrange(1, 30))) for _ in range(count)] + ["", "end"]


def counted_one_by_one(documents: list[str], pattern: str = "gpt2") -> Any:
    return count_pretokens([d.encode() for d in documents], pattern=pattern).as_dict()


@pytest.mark.parametrize("kind", KINDS)
def test_progress_reports_the_whole_file(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Parquet file with one row group was reported as 0 bytes."""
    path = write_kind(tmp_path / "in", documents_of(2, count=3), kind)
    assert main(["count", str(path), "--output", str(tmp_path / "out")]) == 0
    assert f"counting: {bytes_text(path.stat().st_size)}, " in capsys.readouterr().err


def test_a_sample_reports_its_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(json_lines(documents_of(3, count=400)))
    assert main(["count", str(path), "--sample-bytes", "9k", "--output", str(tmp_path / "out")]) == 0
    stderr = capsys.readouterr().err
    assert stderr.split("sampled ")[1].split(" of ")[0] == stderr.split("counting: ")[1].split(",")[0]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("kind", KINDS)
def test_counts_equal_the_documents(kind: str, pattern: str, tmp_path: Path) -> None:
    documents = documents_of(1)
    path = write_kind(tmp_path / "in", documents, kind, members=2)
    expected = counted_one_by_one(documents, pattern)
    for threads in (1, 3):
        found = count_pretokens([path], [END], pattern, threads)
        assert found.as_dict() == expected
        assert found.facts.documents == sum(map(bool, documents))
        size = path.stat().st_size
        assert [(s.size_bytes, s.counted_bytes) for s in found.facts.sources] == [(size, size)]


def test_a_folder_of_all_kinds_and_a_glob(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    documents: list[str] = []
    records: list[str] = []
    for number, kind in enumerate(KINDS):
        own = documents_of(number, 5)
        write_kind(folder / f"{number:02}", own, kind)
        documents += own
        if not kind.startswith("txt"):
            records += own
    assert count_pretokens([folder], [END]).as_dict() == counted_one_by_one(records)
    assert count_pretokens([str(folder / "*")], [END]).as_dict() == counted_one_by_one(documents)
    with pytest.raises(MissingInput):
        count_pretokens([str(folder / "no*.txt")])


def test_special_tokens_in_records_are_text(tmp_path: Path) -> None:
    path = write_kind(tmp_path / "in", [f"a{END}b", "a"], "jsonl.none")
    assert count_pretokens([path], [END]).as_dict() == counted_one_by_one([f"a{END}b", "a"])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_long_line_is_counted(pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenmill.inputs.blocks.record_blocks.__defaults__", (0, 64))
    monkeypatch.setattr("tokenmill.inputs.documents.Buffers.__init__.__defaults__", (64,))
    documents = documents_of(2)
    path = write_kind(tmp_path / "in", documents, "jsonl.none")
    with path.open("a") as file:
        file.write('\n{"text": "' + "never counted " * 50 + '", oops}\n')
    for block_bytes in (1, 50, None):
        found = count_pretokens([path], pattern=pattern, on_error="skip", block_bytes=block_bytes)
        assert found.as_dict() == counted_one_by_one(documents, pattern)


def test_bad_records_stop_it_or_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text": "a b"}\n{"body": "c"}\n\n{"text": "\xff"}\n{"text": "a"}')
    with pytest.raises(BadInput, match="line 2"):
        count_pretokens([path])
    assert count_pretokens([path], on_error="skip").as_dict() == {b"a": 2, b" b": 1}
    found = count_pretokens([path], on_error="skip", invalid="replace")
    assert (found.as_dict()["\ufffd".encode()], found.facts.replaced) == (1, 1)
    assert count_pretokens([path], text_field="body", on_error="skip").as_dict() == {b"c": 1}
    with pytest.raises(BadArgument, match="on_error"):
        count_pretokens([path], on_error="quarantine")
    plain = count_pretokens([path], input_format="text", invalid="replace")
    assert b"text" in plain.as_dict()


def _as_dict(counted: CountSet) -> Any:
    with Workspace() as workspace:
        return counted.load(MemoryBudget.of(None), workspace, 1, None, 300, 1).as_dict()


def test_a_sample_of_json_lines_has_whole_lines(tmp_path: Path) -> None:
    path = write_kind(tmp_path / "in", documents_of(5, 2000), "jsonl.none")
    tokens = train([path], 300, sample_bytes=30_000)
    assert tokens.vocab_size == 300
    packed = write_kind(tmp_path / "packed", documents_of(5, 2000), "jsonl.gz")
    with pytest.raises(BadArgument, match="sample_bytes"):
        train([packed], 300, sample_bytes=1000)


def test_the_commands_read_records(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = documents_of(6, 200)
    path = write_kind(tmp_path / "in", documents, "jsonl.gz")
    text = tmp_path / "in.txt"
    text.write_text(END.join(documents), newline="")
    made = []
    for number, name in enumerate((text, path)):
        output = tmp_path / f"{number}.json"
        command = ["train", str(name), "--vocab-size", "320", "--special-token", END, "--output", str(output)]
        assert main([*command, "--quiet"]) == 0
        made.append(output.read_bytes())
    assert made[0] == made[1]
    reports = []
    for name in (text, path):
        assert main(["report", str(tmp_path / "0.json"), str(name), "--json"]) == 0
        report = json.loads(capfd.readouterr().out)
        reports.append(report["text"]["bytes_per_token"])
    assert reports[0] == reports[1]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json_lines(documents))))
    counts = tmp_path / "stdin.counts"
    assert main(["count", "-", "--input-format", "jsonl", "--output", str(counts), "--quiet"]) == 0
    assert _as_dict(CountSet.of_files([counts])) == counted_one_by_one(documents)
    tokenizer = Tokenizer.load(tmp_path / "0.json")
    ids = tmp_path / "ids.txt"
    command = ["encode", str(path), "--tokenizer", str(tmp_path / "0.json"), "--output", str(ids)]
    assert main(command) == 0
    lines = [[int(word) for word in line.split()] for line in ids.read_text().splitlines()]
    assert lines == [tokenizer.encode(d, allowed_special=()) for d in documents]
    compressed_text = tmp_path / "in.txt.gz"
    compressed_text.write_bytes(gzip.compress(text.read_bytes()))
    for name, output in ((text, "plain.npy"), (compressed_text, "packed.npy")):
        command = [
            "encode",
            str(name),
            "--tokenizer",
            str(tmp_path / "0.json"),
            "--output",
            str(tmp_path / output),
        ]
        assert main(command) == 0
    assert (tmp_path / "plain.npy").read_bytes() == (tmp_path / "packed.npy").read_bytes()
    assert main(["train", str(path), "--text-field", "nope", "--vocab-size", "300", "--output", "x"]) == 3
    assert "field 'nope'" in capfd.readouterr().err


@pytest.mark.parametrize("wrong", [None, 5, ["a.txt"], {"text": 1}])
def test_invalid_inputs_are_reported(wrong: Any) -> None:
    with pytest.raises(BadArgument):
        train([b"the mill", wrong], 257)
    if not isinstance(wrong, (list, dict)):
        with pytest.raises(BadArgument, match="inputs"):
            train(wrong, 257)
