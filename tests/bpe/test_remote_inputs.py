"""Remote inputs are counted, trained on and encoded like local files, and interrupted runs resume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from input_kinds import write_kind
from test_record_inputs import documents_of
from web_server import WebServer, web_server

from bpe import count_pretokens, train
from bpe.__main__ import main
from bpe.errors import MissingInput

pytest.importorskip("obstore", reason="obstore is not installed")
END = "<|endoftext|>"


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    with web_server() as running:
        yield running


def put(server: WebServer, path: Path) -> str:
    server.files[f"/{path.name}"] = path.read_bytes()
    return f"{server.url}/{path.name}"


@pytest.mark.parametrize(
    "kind", ["txt.none", "txt.gz", "jsonl.none", "jsonl.zst", "parquet.none", "csv.none"]
)
def test_counts_equal_the_file(
    kind: str, server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_kind(tmp_path / "in", documents_of(7, 2000), kind)
    url = put(server, path)
    expected = count_pretokens([path], [END])
    found = count_pretokens([url], [END])
    assert found.as_dict() == expected.as_dict()
    assert (found.facts.documents, found.facts.text_bytes) == (
        expected.facts.documents,
        expected.facts.text_bytes,
    )
    assert [(s.name, s.size_bytes) for s in found.facts.sources] == [(url, path.stat().st_size)]
    assert train([url], 300, [END]).merges == train([path], 300, [END]).merges


def test_the_commands_take_urls(server: WebServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    documents = documents_of(9, 50)
    output = tmp_path / "tok.json"
    urls = [put(server, write_kind(tmp_path / "in", documents, kind)) for kind in ("txt.gz", "jsonl.none")]
    made = []
    for url in urls:
        options = ["--vocab-size", "300", "--special-token", END, "--output", str(output), "--quiet"]
        assert main(["train", url, *options]) == 0
        made.append(output.read_bytes())
    assert made[0] == made[1]
    assert main(["report", str(output), urls[0], "--json"]) == 0
    counts = tmp_path / "in.counts"
    assert main(["count", urls[0], "--special-token", END, "--output", str(counts), "--quiet"]) == 0
    put(server, counts)
    settings = {"aws_endpoint": server.url, "aws_skip_signature": "true", "aws_region": "us-east-1"}
    bucket = [f"--storage-option={name}={value}" for name, value in settings.items()]
    server.files["/bucket/in.counts"] = counts.read_bytes()
    for place in (put(server, counts), "s3://bucket/in.counts"):  # its settings were not passed on
        options = ["--vocab-size", "300", "--output", str(output), "--quiet", *bucket]
        assert main(["train", "--counts", place, *options]) == 0
        assert output.read_bytes() == made[0]
        assert main(["report", str(output), "--counts", place, "--json", *bucket]) == 0
        assert main(["count", "--counts", place, "--output", str(tmp_path / "sum"), "--quiet", *bucket]) == 0
    ids = []
    for url in (urls[0], str(tmp_path / "in.txt.gz")):
        assert main(["encode", url, "--tokenizer", str(output), "--output", str(tmp_path / "ids")]) == 0
        ids.append((tmp_path / "ids").read_bytes())
    assert ids[0] == ids[1]
    capfd.readouterr()
    assert main(["count", f"{server.url}/none.jsonl", "--output", str(tmp_path / "c"), "--quiet"]) in (2, 4)
    assert capfd.readouterr().err.count("\n") == 1
    with pytest.raises(MissingInput):
        count_pretokens([f"{server.url}/none.txt"])
