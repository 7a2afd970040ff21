"""Bad records stop the work, are left out or are set aside, as --on-error says; none is lost in silence."""

from __future__ import annotations

import base64
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from input_kinds import compressed
from naive_conversion import END, Naive, make_documents, tree
from test_input_kinds import check, run

from bpe.errors import InvalidText
from convert.__main__ import main
from convert.errors import BadInput
from flat_tokens.verify import verify_dataset

BAD_LINES: dict[str, tuple[bytes, str, str]] = {
    "cut": (b'{"text": "abc', "malformed", ""),
    "nan": (b'{"text": "a", "x": nan}', "malformed", "byte"),
    "control": (b'{"text": "a\tb"}', "malformed", "byte"),
    "escape": (rb'{"text": "\x41"}', "malformed", "byte"),
    "number": (b'{"text": "a", "x": 01}', "malformed", "byte"),
    "trailing": (b'{"text": "a"} {}', "malformed", "byte"),
    "list": (b'["text"]', "not an object", ""),
    "missing": (b'{"body": "a"}', "field missing", "'text'"),
    "twice": (b'{"text": "a", "text": "b"}', "field twice", "'text'"),
    "null": (b'{"text": null}', "not a text", "'text'"),
    "number-text": (b'{"text": 1}', "not a text", "'text'"),
    "surrogate": (rb'{"text": "\ud800"}', "invalid UTF-8", "byte"),
    "utf8": (b'{"text": "a\xff"}', "invalid UTF-8", "0xff"),
    "long": (
        b'{"text": "' + b"a" * 5000 + b'"}',
        "too long",
        "5000 bytes (--max-record-bytes)",
    ),
}


def good(text: str) -> bytes:
    return json.dumps({"text": text}).encode()


@pytest.mark.parametrize("name", BAD_LINES)
@pytest.mark.parametrize("compression", ["none", "gz"])
def test_a_bad_line_is_named_with_its_place(
    name: str, compression: str, tokenizer_path: Path, tmp_path: Path
) -> None:
    line, _, detail = BAD_LINES[name]
    lines = b"\n".join([good("a"), b"", good("b"), line, good("c")])
    path = tmp_path / ("in.jsonl" if compression == "none" else "in.jsonl.gz")
    path.write_bytes(compressed(lines, compression))
    place = lines.index(line)
    for chunk_bytes in (1, 40, None):
        with pytest.raises(BadInput) as caught:
            run(
                path,
                tokenizer_path,
                tmp_path / f"out-{chunk_bytes}",
                text_chunk_bytes=chunk_bytes,
                max_record_bytes=5000,
            )
        message = str(caught.value)
        assert message.startswith(f"{path}: line 4 (byte {place}): ")
        assert detail in message
        assert "--on-error skip" in message
        assert message.isprintable()


def test_all_before_a_bad_line_was_read_again_for_its_number(tokenizer_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    blank = 20 << 20
    with path.open("wb") as file:
        file.write(b"\n" * blank + b'{"text": 1}\n')
    with pytest.raises(BadInput, match=f"in.jsonl.*{blank}"):
        run(path, tokenizer_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("data", "way_out"),
    [
        (
            '{"id": 1, "body": "a"}\n',
            r"'text'.*{\"id\": 1, \"body\": \"a\"}.*--text-field.*id, body.*--on-error skip",
        ),
        ("{}\n", "--text-field.*--on-error skip"),
        (
            json.dumps([{"text": "a"}]),
            r"\.json\b.*jq -c '\.\[\]'",
        ),
        (json.dumps({"text": "a"}, indent=1), "jq -c '.'"),
        ('{"text": "a"}\n{"text": "a', "line 2 .*--on-error skip"),
    ],
)
def test_the_way_out_fits_what_is_wrong(
    data: str, way_out: str, tokenizer_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    for mark in ("", "\ufeff"):
        path.write_text(mark + data, encoding="utf-8")
        with pytest.raises(BadInput, match=way_out):
            run(path, tokenizer_path, tmp_path / "out")


@pytest.mark.parametrize("compression", ["none", "xz"])
def test_bad_lines_are_left_out_or_set_aside(
    compression: str, tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    rng = random.Random(6)
    documents = make_documents(30, seed=9)
    bad = [line for line, _, _ in BAD_LINES.values()]
    lines = [good(text) for text in documents]
    for line in bad:
        lines.insert(rng.randrange(len(lines) + 1), line)
    lines.insert(7, b"")
    data = b"\n".join(lines) + b"\n"
    path = tmp_path / ("in.jsonl" if compression == "none" else "in.jsonl.xz")
    path.write_bytes(compressed(data, compression))
    expected = naive.convert_documents([d.encode() for d in documents], fraction=0.3)
    reasons: dict[str, int] = {}
    for _, reason, _ in BAD_LINES.values():
        reasons[reason] = reasons.get(reason, 0) + 1
    trees: dict[str, dict[str, bytes]] = {}
    for processes, chunk_bytes, on_error in [
        (0, 30, "skip"),
        (0, 13, "quarantine"),
        (2, 100, "quarantine"),
        (3, 400, "skip"),
        (0, None, "quarantine"),
    ]:
        output = tmp_path / f"{processes}-{chunk_bytes}-{on_error}"
        summary = run(
            path,
            tokenizer_path,
            output,
            processes,
            text_chunk_bytes=chunk_bytes,
            on_error=on_error,
            max_record_bytes=5000,
        )
        check(output, expected, summary)
        assert summary.intake.skipped == dict(sorted(reasons.items()))
        assert summary.intake.records == len(documents) + len(bad)
        assert summary.intake.blank == 1
        assert tree(output) == trees.setdefault(on_error, tree(output))
        text = "\n".join(summary.lines())
        assert f"{len(bad)} skipped" in text
        assert "not a text" in text
    entries = [
        json.loads(line)
        for line in (tmp_path / "None")
        .with_name("0-None-quarantine")
        .joinpath("quarantine.jsonl")
        .read_text()
        .splitlines()
    ]
    assert len(entries) == len(bad)
    for entry in entries:
        assert entry["source"] == str(path)
        record = lines[entry["line"] - 1]
        assert data.startswith(record, entry["byte"])
        assert entry["bytes"] == len(record)
        kept = entry["record"].encode() if "record" in entry else base64.b64decode(entry["record_base64"])
        assert kept == (record[:256] if entry["reason"] == "too long" else record)
    assert "quarantine.jsonl" not in trees["skip"]
    assert not verify_dataset(tmp_path / "0-None-quarantine").problems


def test_a_limit_of_bad_records(tokenizer_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join([b"bad"] * 5 + [good("a")]))
    for chunk_bytes in (4, None):
        with pytest.raises(BadInput):
            run(
                path,
                tokenizer_path,
                tmp_path / f"out-{chunk_bytes}",
                on_error="skip",
                max_errors=4,
                text_chunk_bytes=chunk_bytes,
            )
    for limit in (5, None):
        summary = run(path, tokenizer_path, tmp_path / f"{limit}", on_error="skip", max_errors=limit)
        assert (summary.intake.skipped, summary.documents) == ({"malformed": 5}, 1)


BAD_TEXT = [b"good", b"\xff", b"also good", b"a\xe6\x9d", b"", b"end \xed\xa0\x80", b"last"]


@pytest.mark.parametrize("compression", ["none", "zst"])
@pytest.mark.parametrize("options", [{"on_error": "skip"}, {"on_error": "quarantine"}], ids=str)
def test_documents_of_text_that_are_not_utf8(
    compression: str, options: dict[str, Any], tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    data = END.encode().join(BAD_TEXT)
    path = tmp_path / ("in.txt" if compression == "none" else "in.txt.zst")
    path.write_bytes(compressed(data, compression))
    expected = naive.convert_documents([b"good", b"also good", b"", b"last"], special=True, fraction=0.3)
    for chunk_bytes in (1, 20, None):
        output = tmp_path / f"{chunk_bytes}"
        summary = run(path, tokenizer_path, output, text_chunk_bytes=chunk_bytes, **options)
        check(output, expected, summary)
        assert summary.intake.skipped == {"invalid UTF-8": 3}
        if options.get("on_error") == "quarantine":
            entries = [json.loads(line) for line in tree(output)["quarantine.jsonl"].splitlines()]
            kept = [base64.b64decode(entry["record_base64"]) for entry in entries]
            assert kept == [BAD_TEXT[1], BAD_TEXT[3], BAD_TEXT[5]]
            assert all(data.startswith(record, e["byte"]) for record, e in zip(kept, entries, strict=True))


@pytest.mark.parametrize("compression", ["none", "gz"])
@pytest.mark.parametrize("place", [0, 70, 499])
def test_a_long_document_that_is_not_utf8(
    compression: str,
    place: int,
    tokenizer_path: Path,
    naive: Naive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 50)
    monkeypatch.setattr("convert.encode.document_encoder.PIECE_BYTES", 50)
    monkeypatch.setattr("convert.shards.shard_writer.BUFFER_BYTES", 40)
    monkeypatch.setattr("tokenmill.inputs.blocks.record_blocks.__defaults__", (0, 50))
    long_text = b"some words " * 50
    bad = long_text[:place] + b"\xff" + long_text[place:]
    data = END.encode().join([b"before", bad, b"after", long_text])
    path = tmp_path / ("in.txt" if compression == "none" else "in.txt.gz")
    path.write_bytes(compressed(data, compression))
    with pytest.raises(InvalidText, match=f"byte .*{data.index(255)}"):
        run(path, tokenizer_path, tmp_path / "out")
    summary = run(path, tokenizer_path, tmp_path / "skip", on_error="quarantine")
    expected = naive.convert_documents([b"before", b"after", long_text], special=True, fraction=0.3)
    check(tmp_path / "skip", expected, summary)
    entry = json.loads(tree(tmp_path / "skip")["quarantine.jsonl"])
    assert (entry["byte"], entry["bytes"]) == (data.index(bad), len(bad))


def test_invalid_bytes_in_json_lines_can_be_replaced(
    tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(
        b'{"text":"a\xffb"}\n{"text":"\\udc00c\\ud800"}\n{"x":"\xe6\x9d","text":"d"}\n' + good("e")
    )
    documents = ["a\ufffdb", "\ufffdc\ufffd", "d", "e"]
    expected = naive.convert_documents([d.encode() for d in documents], fraction=0.3)
    for chunk_bytes in (1, None):
        output = tmp_path / f"{chunk_bytes}"
        summary = run(path, tokenizer_path, output, replace_invalid=True, text_chunk_bytes=chunk_bytes)
        check(output, expected, summary)
        assert summary.intake.replaced == 4


def test_bad_rows_of_parquet(tokenizer_path: Path, naive: Naive, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = [b"a", None, b"b\xff", b"", b"c", None, "é".encode()[:1], "é".encode()[1:], b"end"]
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": pa.array(values, "binary")}), path, row_group_size=3)
    with pytest.raises(BadInput, match=r"in\.parquet.*row 1"):
        run(path, tokenizer_path, tmp_path / "out")
    expected = naive.convert_documents([b"a", b"", b"c", b"end"], fraction=0.3)
    for processes, chunk_bytes in ((0, 20), (2, 50), (0, None)):
        output = tmp_path / f"{chunk_bytes}"
        summary = run(
            path, tokenizer_path, output, processes, on_error="quarantine", text_chunk_bytes=chunk_bytes
        )
        check(output, expected, summary)
        assert summary.intake.skipped == {"invalid UTF-8": 3, "not a text": 2}
        entries = [json.loads(line) for line in tree(output)["quarantine.jsonl"].splitlines()]
        assert [entry["row"] for entry in entries] == [1, 2, 5, 6, 7]
        assert re.search(r"byte 1\b.*\(0xff\)", entries[1]["detail"])  # 0x-1, of signed bytes
    replaced = naive.convert_documents(
        [value.decode(errors="replace").encode() for value in values if value is not None], fraction=0.3
    )
    summary = run(path, tokenizer_path, tmp_path / "r", on_error="skip", replace_invalid=True)
    check(tmp_path / "r", replaced, summary)
    assert summary.intake.replaced == 3


def test_the_command_line_says_what_was_left_out(
    tokenizer_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join([good("a"), b'{"text": "\x1b[31m\\u001b"', b"", good("")]))
    words = [
        str(path),
        "--tokenizer",
        str(tokenizer_path),
        "--output",
        str(tmp_path / "out"),
        "--workers",
        "1",
    ]
    words += ["--start-method", "spawn"]
    assert main(words) == 3
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert "line 2 (byte 14)" in error
    assert main([*words, "--on-error", "quarantine"]) == 0
    out = capsys.readouterr().out
    assert "documents  3 = 1 written + 1 empty + 1 skipped" in out
    assert "skipped    1 record: malformed" in out
    assert "quarantine.jsonl has the bad records" in out
    assert "blank      1 line" in out


def test_skipped_documents_are_counted_up_to_max_errors(tokenizer_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(END.encode().join([b"a\xff", b"b"] * 1500))
    summary = run(path, tokenizer_path, tmp_path / "out", on_error="skip")
    assert (summary.intake.skipped, summary.documents) == ({"invalid UTF-8": 1500}, 1500)
    with pytest.raises(BadInput):
        run(path, tokenizer_path, tmp_path / "few", on_error="skip", max_errors=1499)


def test_the_field_that_an_error_proposes_can_be_named_though_empty_shards_are_there(
    tokenizer_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.jsonl.gz"
    data = b"\n".join(json.dumps({"content": f"document {number} " * 9}).encode() for number in range(500))
    path.write_bytes(compressed(data, "gz"))
    # All text chunks of a compressed file but the first are empty, and encoded at once.
    words = [
        str(path),
        "--tokenizer",
        str(tokenizer_path),
        "--output",
        str(tmp_path / "out"),
        "--workers",
        "1",
    ]
    words += ["--text-chunk-bytes", "100", "--progress", "none"]
    assert main(words) == 3
    assert re.search("--text-field.*content", capsys.readouterr().err)
    assert main([*words, "--text-field", "content"]) == 0
