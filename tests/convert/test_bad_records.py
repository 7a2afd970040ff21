"""Bad records: their location in errors and in quarantine.jsonl, and the advice that fits them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from runs import Counts, Inline, convert, error_of, rejected, run_here, sample_documents
from strategies import END, compressed

# A bad line, the reason in the quarantine, and text of the error.
BAD_LINES: dict[str, tuple[bytes, str, str]] = {
    "cut": (b'{"text": "abc', "malformed", ""),
    "nan": (b'{"text": "a", "x": nan}', "malformed", "byte"),
    "trailing": (b'{"text": "a"} {}', "malformed", "byte"),
    "list": (b'["text"]', "not an object", ""),
    "missing": (b'{"body": "a"}', "field missing", "'text'"),
    "twice": (b'{"text": "a", "text": "b"}', "field twice", "'text'"),
    "null": (b'{"text": null}', "not a text", "'text'"),
    "surrogate": (rb'{"text": "\ud800"}', "invalid UTF-8", "byte"),
    "utf8": (b'{"text": "a\xff"}', "invalid UTF-8", "0xff"),
    "long": (b'{"text": "' + b"a" * 5000 + b'"}', "too long", "5000 bytes (--max-record-bytes)"),
    "escape": (b'{"text": "\x1b[31m"', "malformed", ""),
}
LIMIT = {"max_record_bytes": 5000}


def good(text: str) -> bytes:
    return json.dumps({"text": text}).encode()


def quarantine(output: str = "out") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(output, "quarantine.jsonl").read_bytes().splitlines()]


@pytest.mark.promise("bad-records")
@pytest.mark.parametrize("compression", ["none", "xz"])
def test_quarantined_lines_have_their_location(compression: str, folder: Path) -> None:
    lines = [good(text) for text in sample_documents(30)]
    for number, (line, _, _) in enumerate(BAD_LINES.values()):
        lines.insert(number * 7 % len(lines), line)
    lines.insert(7, b"")
    data = b"\n".join(lines) + b"\n"
    path = "in.jsonl" if compression == "none" else "in.jsonl.xz"
    (folder / path).write_bytes(compressed(data, compression))
    for size in (30, 400, None):
        options = {"inputs": [path], "output": f"out-{size}", "text_chunk_bytes": size, **LIMIT}
        summary = convert(Inline(), on_error="quarantine", **options)
        reasons = [reason for _, reason, _ in BAD_LINES.values()]
        assert summary.intake.skipped == {reason: reasons.count(reason) for reason in sorted(set(reasons))}
        assert summary.intake.blank == 1
        entries = quarantine(f"out-{size}")
        assert sorted(entry["reason"] for entry in entries) == sorted(reasons)
        for entry in entries:
            record = lines[entry["line"] - 1]
            assert entry["source"] == path
            assert data.startswith(record, entry["byte"])
            assert entry["bytes"] == len(record)
            kept = entry["record"].encode() if "record" in entry else base64.b64decode(entry["record_base64"])
            assert kept == (record[:256] if entry["reason"] == "too long" else record)


@pytest.mark.parametrize("size", [30, 70, None])
def test_a_special_token_was_quarantined_without_its_line(size: int | None, folder: Path) -> None:
    lines = [good("a"), b"", good("<|im_start|>"), b"broken", good("b"), b" ", good("c <|im_start|>")]
    (folder / "in.jsonl").write_bytes(b"\n".join(lines))
    options = {"inputs": ["in.jsonl"], "special_in_text": "error", "text_chunk_bytes": size}
    convert(Inline(), on_error="quarantine", **options)
    found = sorted((entry["line"], entry["reason"]) for entry in quarantine())
    assert found == [(3, "special token"), (4, "malformed"), (7, "special token")]


@pytest.mark.promise("bad-records")
@pytest.mark.parametrize("compression", ["none", "zst"])
@pytest.mark.parametrize("length", [1, 3_000_000])  # the second one is encoded in pieces
def test_quarantined_documents_of_text_have_their_location(
    length: int, compression: str, folder: Path
) -> None:
    texts = [b"good", b"a" * length + b"\xff", b"", b"end \xed\xa0\x80", b"last"]
    data = END.encode().join(texts)
    path = "in.txt" if compression == "none" else "in.txt.zst"
    (folder / path).write_bytes(compressed(data, compression))
    error = error_of(Inline(), inputs=[path], output="failed")
    assert f"byte {data.index(255)}" in str(error).replace("(", "").replace(",", "")
    convert(Inline(), inputs=[path], on_error="quarantine")
    assert [(entry["byte"], entry["bytes"]) for entry in quarantine()] == [
        (data.index(text), len(text)) for text in (texts[1], texts[3])
    ]


def test_the_same_run_resumes_with_the_proposed_field(folder: Path) -> None:
    lines = [json.dumps({"content": f"document {number} " * 9}) for number in range(500)]
    (folder / "in.jsonl.gz").write_bytes(compressed("\n".join(lines).encode(), "gz"))
    assert "content" in rejected(3, "in.jsonl.gz", text_chunk_bytes=100)
    assert run_here("in.jsonl.gz", text_chunk_bytes=100, text_field="content")[0] == 0


def test_a_failed_run_resumes_with_another_treatment_of_bad_records(folder: Path) -> None:
    lines = [good(f"document {number}") for number in range(30)]
    lines.insert(20, b"bad")
    lines.insert(25, b"bad too")
    (folder / "in.jsonl").write_bytes(b"\n".join(lines))
    options: dict[str, Any] = {"inputs": ["in.jsonl"], "text_chunk_bytes": 50}
    for more in ({}, {"on_error": "skip", "max_errors": 0}, {"on_error": "quarantine", "max_errors": 1}):
        assert error_of(Inline(), **options, **more).exit_code == 3
    assert error_of(Inline(), **options).exit_code == 6  # finished shards have skipped a record
    summary = convert(Inline(), **options, on_error="quarantine")
    assert any("reused " in line for line in summary.lines())
    assert Counts.of(summary.lines()).skipped == 2
    assert [entry["line"] for entry in quarantine()] == [21, 26]
