"""The text of special and added tokens in documents is encoded, taken as text or refused, as --special-in-text says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from naive_conversion import END, Naive, read_dataset
from test_bad_records import good
from test_input_kinds import check, run

from convert.errors import BadInput


@pytest.mark.parametrize("kind", ["text", "jsonl", "parquet"])
def test_the_text_of_special_tokens(kind: str, tokenizer_path: Path, naive: Naive, tmp_path: Path) -> None:
    documents = [b"plain", b"holds <|im_start|> here", b"<|im_start|><|im_start|>", b"<|im_start", b"end"]
    path = tmp_path / {"text": "in.txt", "jsonl": "in.jsonl", "parquet": "in.parquet"}[kind]
    if kind == "text":
        path.write_bytes(END.encode().join(documents))
    elif kind == "jsonl":
        path.write_bytes(b"\n".join(good(document.decode()) for document in documents))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"text": [document.decode() for document in documents]}), path)
    default = run(path, tokenizer_path, tmp_path / "default")
    same = "encode" if kind == "text" else "text"
    for chunk_bytes in (9, None):
        for policy in ("encode", "text"):
            output = tmp_path / f"{policy}-{chunk_bytes}"
            summary = run(path, tokenizer_path, output, special_in_text=policy, text_chunk_bytes=chunk_bytes)
            check(output, naive.convert_documents(documents, policy == "encode", fraction=0.3), summary)
            assert summary.intake.with_special == (2 if policy == "text" else 0)
            if policy == same:
                assert read_dataset(output) == read_dataset(tmp_path / "default")
                assert default.intake.with_special == summary.intake.with_special
        with pytest.raises(BadInput):
            run(
                path,
                tokenizer_path,
                tmp_path / f"out-{chunk_bytes}",
                special_in_text="error",
                text_chunk_bytes=chunk_bytes,
            )
        output = tmp_path / f"error-{chunk_bytes}"
        summary = run(
            path,
            tokenizer_path,
            output,
            special_in_text="error",
            on_error="skip",
            text_chunk_bytes=chunk_bytes,
        )
        check(output, naive.convert_documents([documents[0], *documents[3:]], fraction=0.3), summary)
        assert summary.intake.skipped == {"special token": 2}


@pytest.mark.parametrize("policy", ["text", "error", "encode"])
def test_special_tokens_in_a_long_document(
    policy: str, tokenizer_path: Path, naive: Naive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokenmill.inputs.read_text.TEXT_BLOCK_BYTES", 50)
    monkeypatch.setattr("convert.encode.document_encoder.PIECE_BYTES", 50)
    documents = [b"a", b"word " * 30 + b"<|im_start|>" + b" word" * 30, b"<|im" + b"_st" * 90, b"b"]
    path = tmp_path / "in.txt"
    for shift in range(12):
        documents[0] = b"a" * shift
        path.write_bytes(END.encode().join(documents))
        output = tmp_path / f"{shift}"
        summary = run(path, tokenizer_path, output, special_in_text=policy, on_error="skip")
        kept = [documents[0], *documents[2:]] if policy == "error" else documents
        check(output, naive.convert_documents(kept, policy == "encode", fraction=0.3), summary)
        assert summary.intake.with_special == (policy == "text")
        assert summary.intake.skipped_count == (policy == "error")


@pytest.mark.parametrize("policy", [None, "text", "error", "encode"])
@pytest.mark.parametrize("name", ["in.jsonl", "in.txt"])
def test_added_tokens_that_are_not_special_are_tokens_everywhere(
    name: str, policy: str | None, tokenizer_path: Path, tmp_path: Path
) -> None:
    """They were ordinary text in records, where `tokenizers` has their ids: runs of spaces, <think>."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    content = json.loads(tokenizer_path.read_bytes())
    first = max(content["model"]["vocab"].values()) + 1
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    for number, text in enumerate(["  ", "<think>"]):
        content["added_tokens"].append({"id": first + number, "content": text, **flags})
    made = tmp_path / "made.json"
    made.write_text(json.dumps(content))
    documents = ["a  b", "<think> the end", "no", "x <|im_start|>  y", "the " * 40 + "<think>  "]
    if name.endswith("txt"):
        (tmp_path / name).write_text(END.join(documents))
    else:
        (tmp_path / name).write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    more: dict[str, Any] = {"special_in_text": policy, "on_error": "skip", "validation_fraction": 0.0}
    summary = run(tmp_path / name, made, tmp_path / "out", **more)
    is_text = policy == "text" or (policy is None and name == "in.jsonl")
    assert summary.intake.with_special == is_text
    theirs = tokenizers.Tokenizer.from_file(str(made))
    theirs.encode_special_tokens = is_text
    if policy == "error":
        del documents[3]
    found = read_dataset(tmp_path / "out")["train"]
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in documents]
    assert [id_ >> 1 for id_ in found[0]] == [id_ for ids in expected for id_ in ids]
    assert first + 1 in expected[1]


@pytest.mark.parametrize("chunk_bytes", [30, 70, None])
def test_a_special_token_in_json_lines_was_set_aside_without_its_line(
    chunk_bytes: int | None, tokenizer_path: Path, tmp_path: Path
) -> None:
    lines = [
        good("a"),
        b"",
        good("<|im_start|>"),
        b"broken",
        good("b"),
        b" ",
        good("c <|im_start|>"),
        good("d"),
    ]
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(lines))
    more = {"special_in_text": "error", "text_chunk_bytes": chunk_bytes}
    run(path, tokenizer_path, tmp_path / "out", on_error="quarantine", **more)
    entries = [json.loads(line) for line in (tmp_path / "out/quarantine.jsonl").read_bytes().splitlines()]
    assert sorted((entry["line"], entry["reason"]) for entry in entries) == [
        (3, "special token"),
        (4, "malformed"),
        (7, "special token"),
    ]
    path.write_bytes(b"\n".join([*lines[:3], *lines[4:]]))
    with pytest.raises(BadInput, match=r"in\.jsonl"):
        run(path, tokenizer_path, tmp_path / "fails", **more)
