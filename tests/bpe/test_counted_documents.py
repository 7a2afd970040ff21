"""Files of records, and text with a separator, count like their documents one by one: the documents of `convert`."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inline_engine import InlineEngine
from input_kinds import KINDS, json_lines, write_kind
from notes import Notes
from web_server import WebServer, web_server

from bpe import PretokenCounts, count_files, count_pretokens, train
from bpe.__main__ import main
from bpe.errors import BadArgument, InvalidText, MissingInput
from bpe.tokenizer import Tokenizer
from convert import ConvertOptions, convert
from flat_tokens import open as open_dataset
from tokenmill.inputs.documents import Buffers
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.sizes import bytes_text

END = "<|endoftext|>"
SEPARATORS = [END, "\n\n", "aa", "\0"]
BAD = [b"\xff", b"\xe4\xb8", b"\x80\x80"]
PATTERNS = ["gpt2", r"\w+|\W+"]  # run by the core, and by the regex package


def documents_of(seed: int, count: int = 40) -> list[str]:
    rng = random.Random(seed)
    words = ["the", " the", "the\nend", " größer", "字字", "🙂", " 123", "\r\n\r\n", '"quoted", and', "a\tb"]
    return ["".join(rng.choices(words, k=rng.randrange(1, 30))) for _ in range(count)] + ["x" * 60, "", "end"]


def one_by_one(documents: list[str], pattern: str = "gpt2") -> Any:
    return count_pretokens([d.encode() for d in documents], pattern=pattern).as_dict()


# -- records


@pytest.mark.parametrize("kind", KINDS)
def test_counts_equal_the_documents(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = documents_of(1)
    path = write_kind(tmp_path / "in", documents, kind, members=2)
    size = path.stat().st_size
    for pattern in PATTERNS:
        found = count_pretokens([path], [END], pattern, 2)
        assert found.as_dict() == one_by_one(documents, pattern)
        assert found.facts.documents == sum(map(bool, documents))
        assert [(s.size_bytes, s.counted_bytes) for s in found.facts.sources] == [(size, size)]
    assert main(["count", str(path), "--output", str(tmp_path / "out")]) == 0
    assert f"counting: {bytes_text(size)}, " in capsys.readouterr().err  # was 0 bytes for one row group


def test_a_folder_of_all_kinds_and_a_glob(tmp_path: Path) -> None:
    documents: list[str] = []
    records: list[str] = []
    for number, kind in enumerate(KINDS):
        own = documents_of(number, 5)
        write_kind(tmp_path / f"{number:02}", own, kind)
        documents += own
        records += [] if kind.startswith("txt") else own
    assert count_pretokens([tmp_path], [END]).as_dict() == one_by_one(records)
    assert count_pretokens([str(tmp_path / "*")], [END]).as_dict() == one_by_one(documents)
    with pytest.raises(MissingInput):
        count_pretokens([str(tmp_path / "no*.txt")])


def test_special_tokens_in_records_are_text(tmp_path: Path) -> None:
    path = write_kind(tmp_path / "in", [f"a{END}b", "a"], "jsonl.none")
    assert count_pretokens([path], [END]).as_dict() == one_by_one([f"a{END}b", "a"])


def test_bad_records_stop_it_or_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text": "a b"}\n{"body": "c"}\n\n{"text": "\xff"}\n{"text": "a"}')
    with pytest.raises(BadInput, match="line 2"):
        count_pretokens([path])
    assert count_pretokens([path], on_error="skip").as_dict() == {b"a": 2, b" b": 1}
    found = count_pretokens([path], on_error="skip", invalid="replace")
    assert (found.as_dict()["\ufffd".encode()], found.facts.replaced) == (1, 1)
    assert count_pretokens([path], text_field="body", on_error="skip").as_dict() == {b"c": 1}
    assert b"text" in count_pretokens([path], input_format="text", invalid="replace").as_dict()


def test_a_sample_has_whole_lines_and_reports_its_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(json_lines(documents_of(3, count=400)))
    assert main(["count", str(path), "--sample-bytes", "9k", "--output", str(tmp_path / "out")]) == 0
    stderr = capsys.readouterr().err
    assert stderr.split("sampled ")[1].split(" of ")[0] == stderr.split("counting: ")[1].split(",")[0]
    (tmp_path / "in.txt").write_text("\n\n".join(f"doc{number}" for number in range(4000)))
    command = ["count", str(tmp_path / "in.txt"), "--separator", r"\n\n", "--sample-bytes", "8000", "--quiet"]
    assert main([*command, "--output", str(tmp_path / "sample")]) == 0
    counts = PretokenCounts.load(tmp_path / "sample").as_dict()
    assert 100 < counts[b"doc"] == sum(counts.values()) // 2 < 2000


def test_the_commands_read_records(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = documents_of(6, 200)
    path = write_kind(tmp_path / "in", documents, "jsonl.gz")
    text, packed = tmp_path / "in.txt", tmp_path / "in.txt.gz"
    text.write_text(END.join(documents), newline="")
    packed.write_bytes(gzip.compress(text.read_bytes()))
    made, reports = [], []
    for number, name in enumerate((text, path)):
        output = tmp_path / f"{number}.json"
        command = ["train", str(name), "--vocab-size", "320", "--special-token", END, "--output", str(output)]
        assert main([*command, "--quiet"]) == 0
        made.append(output.read_bytes())
        assert main(["report", str(tmp_path / "0.json"), str(name), "--json"]) == 0
        reports.append(json.loads(capfd.readouterr().out)["text"]["bytes_per_token"])
    assert (made[0], reports[0]) == (made[1], reports[1])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json_lines(documents))))
    counts = tmp_path / "stdin.counts"
    assert main(["count", "-", "--input-format", "jsonl", "--output", str(counts), "--quiet"]) == 0
    assert PretokenCounts.load(counts).as_dict() == one_by_one(documents)
    tokenizer = Tokenizer.load(tmp_path / "0.json")
    encode = ["encode", "--tokenizer", str(tmp_path / "0.json"), "--output"]
    assert main([*encode, str(tmp_path / "ids.txt"), str(path)]) == 0
    lines = [[int(word) for word in line.split()] for line in (tmp_path / "ids.txt").read_text().splitlines()]
    assert lines == [tokenizer.encode(d, allowed_special=()) for d in documents]
    for name, output in ((text, tmp_path / "plain.npy"), (packed, tmp_path / "packed.npy")):
        assert main([*encode, str(output), str(name)]) == 0
    assert (tmp_path / "plain.npy").read_bytes() == (tmp_path / "packed.npy").read_bytes()
    assert main(["train", str(path), "--text-field", "nope", "--vocab-size", "300", "--output", "x"]) == 3
    assert "field 'nope'" in capfd.readouterr().err


@pytest.mark.parametrize("wrong", [None, 5, ["a.txt"], {"text": 1}])
def test_invalid_inputs_are_reported(wrong: Any) -> None:
    with pytest.raises(BadArgument, match="inputs"):
        train([b"the mill", wrong], 257)


# -- text with a separator


def random_documents(rng: random.Random, separator: str, bad: bool) -> list[bytes]:
    """Return documents without the separator: some empty, long, invalid UTF-8 or with special tokens."""
    alphabet = ["a", "b ", " ", "é", "字", "\n", "<s>"]
    found = []
    for _ in range(rng.randrange(1, 30)):
        text = "".join(rng.choices(alphabet, k=rng.choice([0, 1, 7, 60, 900]))).replace(separator, "")
        while separator in text or (text and separator in text + separator[:-1]):
            text = text[:-1].replace(separator, "")
        place = rng.randrange(len(text) + 1)
        fault = rng.choice(BAD) if bad and rng.random() < 0.3 else b""
        found.append(text[:place].encode() + fault + text[place:].encode())
    return found


@pytest.mark.parametrize("seed", range(16))
def test_documents_between_separators(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 300)
    monkeypatch.setattr("bpe.pretoken_counts.reading.Buffers", lambda: Buffers(300))
    rng = random.Random(seed)
    separator = rng.choice(SEPARATORS)
    documents = random_documents(rng, separator, bad=seed % 2 == 1)
    good = [text for text in documents if text.decode(errors="replace").encode() == text]
    data = separator.encode().join(documents)
    path = tmp_path / rng.choice(["in.txt", "in.txt.gz"])
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    tokens = rng.choice([(), ("<s>",), ("<s>", END)])
    more: dict[str, Any] = {"pattern": rng.choice(["gpt2", "o200k", r"(?<!x)\w+|\W"])}
    expected = count_pretokens(good, tokens, **more)
    more |= {"separator": separator, "on_error": "skip"}
    notes = Notes()
    found = count_pretokens([path], tokens, progress=notes, **more)
    assert found.as_dict() == expected.as_dict()
    assert found.facts.documents == expected.facts.documents
    assert count_pretokens([data], tokens, **more).as_dict() == expected.as_dict()
    skipped = f"skipped {len(documents) - len(good)} bad record"
    assert any(note.startswith(skipped) for note in notes.notes) == (len(good) < len(documents))
    found.save(tmp_path / "one")
    count_files([path], tmp_path / "out", tokens, executor=InlineEngine(), text_chunk_bytes=200, **more)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "one").read_bytes()
    if len(good) < len(documents):
        with pytest.raises(InvalidText):
            count_pretokens([path], tokens, separator=separator)


def test_a_conversion_makes_the_same_documents(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    documents = random_documents(random.Random(6), "\n\n", bad=True)
    good = [document for document in documents if document.decode(errors="replace").encode() == document]
    (tmp_path / "in.txt").write_bytes(b"\n\n".join(documents))
    train([b"a b a b aa"], 259).save(tmp_path / "tokenizer.json")
    more: dict[str, Any] = {"separator": "\n\n", "on_error": "skip", "progress": "none", "workers": 1}
    names = str(tmp_path / "tokenizer.json"), str(tmp_path / "out.zarr")
    convert(ConvertOptions([str(tmp_path / "in.txt")], *names, **more))
    dataset = open_dataset(tmp_path / "out.zarr")
    converted = sum(len(np.asarray(split.seq_starts)) - 1 for split in (dataset.train, dataset.validation))
    options = [str(tmp_path / "in.txt"), "--separator", r"\n\n", "--on-error", "skip"]
    assert main(["count", *options, "--output", str(tmp_path / "out.counts")]) == 0
    assert f"skipped {len(documents) - len(good)} bad records" in capfd.readouterr().err
    assert converted == sum(map(bool, good)) > 1
    size = ["--vocab-size", "258", "--output"]
    assert main(["train", *options, *size, str(tmp_path / "a.json")]) == 0
    assert main(["train", "--counts", str(tmp_path / "out.counts"), *size, str(tmp_path / "b.json")]) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize("separator", ["", "x" * 4097, "\ufffd"], ids=["empty", "long", "U+FFFD"])
def test_separators_that_cannot_be(separator: str) -> None:
    with pytest.raises(BadArgument, match="--separator: "):
        count_pretokens([b"a"], separator=separator, invalid="replace")


# -- URLs


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with web_server() as running:
        yield running


def put(server: WebServer, path: Path) -> str:
    server.files[f"/{path.name}"] = path.read_bytes()
    return f"{server.url}/{path.name}"


@pytest.mark.parametrize(
    "kind", ["txt.none", "txt.gz", "jsonl.none", "jsonl.zst", "parquet.none", "csv.none"]
)
def test_objects_count_like_files(kind: str, server: WebServer, tmp_path: Path) -> None:
    path = write_kind(tmp_path / "in", documents_of(7, 2000), kind)
    url = put(server, path)
    expected, found = count_pretokens([path], [END]), count_pretokens([url], [END])
    assert found.as_dict() == expected.as_dict()
    assert (found.facts.documents, found.text_bytes) == (expected.facts.documents, expected.text_bytes)
    assert [(s.name, s.size_bytes) for s in found.facts.sources] == [(url, path.stat().st_size)]


def test_the_commands_take_urls(server: WebServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    url = put(server, write_kind(tmp_path / "in", documents_of(9, 50), "txt.gz"))
    output, counts = tmp_path / "tok.json", tmp_path / "in.counts"
    assert main(["count", url, "--special-token", END, "--output", str(counts), "--quiet"]) == 0
    command = ["train", "--vocab-size", "300", "--special-token", END, "--output", str(output), "--quiet"]
    assert main([*command, url]) == 0
    made = output.read_bytes()
    assert main(["report", str(output), url, "--json"]) == 0
    settings = {"aws_endpoint": server.url, "aws_skip_signature": "true", "aws_region": "us-east-1"}
    bucket = [f"--storage-option={name}={value}" for name, value in settings.items()]
    server.files["/bucket/in.counts"] = counts.read_bytes()
    for place in (put(server, counts), "s3://bucket/in.counts"):  # its settings were not passed on
        assert main([*command, "--counts", place, *bucket]) == 0
        assert output.read_bytes() == made
        assert main(["report", str(output), "--counts", place, "--json", *bucket]) == 0
        assert main(["count", "--counts", place, "--output", str(tmp_path / "sum"), "--quiet", *bucket]) == 0
    ids = []
    for name in (url, str(tmp_path / "in.txt.gz")):
        assert main(["encode", name, "--tokenizer", str(output), "--output", str(tmp_path / "ids")]) == 0
        ids.append((tmp_path / "ids").read_bytes())
    assert ids[0] == ids[1]
    capfd.readouterr()
    assert main(["count", f"{server.url}/none.jsonl", "--output", str(tmp_path / "c"), "--quiet"]) in (2, 4)
    assert capfd.readouterr().err.count("\n") == 1
