"""JSON lines in pieces give what whole lines give, whatever the blocks: documents, faults, places and counts."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from input_kinds import compressed, json_lines
from naive_conversion import END, Naive, make_documents, tree
from test_bad_records import BAD_LINES, good
from test_input_kinds import check, run

from convert.errors import BadInput
from tokenmill.inputs.documents import Buffers

BLOCKS = [1, 3, 16, 64, 257]


@pytest.fixture(params=BLOCKS)
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("convert.encode.encode_task._memory.buffers", Buffers(request.param))
    return int(request.param)


def converted(tmp_path: Path, name: str, data: bytes, tokenizer: Path, **options: Any) -> tuple[Path, Any]:
    path = tmp_path / "in.jsonl"
    path.write_bytes(data)
    output = tmp_path / name
    return output, run(path, tokenizer, output, **options)


@pytest.mark.parametrize("compression", ["none", "gz"])
def test_documents_are_those_of_whole_lines(
    blocks: int, compression: str, tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    documents = [*make_documents(15, seed=blocks), "", "a" * (2 * blocks), 'é\n\\"🙂' * (blocks // 3 + 1)]
    path = tmp_path / ("in.jsonl" if compression == "none" else "in.jsonl.gz")
    path.write_bytes(compressed(b"\xef\xbb\xbf" + json_lines(documents, seed=blocks), compression))
    expected = naive.convert_documents([d.encode() for d in documents], fraction=0.3)
    for chunk_bytes in (200, None):
        output = tmp_path / f"out-{chunk_bytes}"
        summary = run(path, tokenizer_path, output, text_chunk_bytes=chunk_bytes)
        check(output, expected, summary)
        assert summary.intake.records == len(documents)


@pytest.mark.parametrize("invalid", ["error", "replace"])
def test_bad_lines_are_the_same_bad_lines(
    blocks: int, invalid: str, tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(blocks)
    lines = [good(text) for text in make_documents(10, seed=9)]
    more = [
        rb'{"text":"\ud83dx","n":[' + b"1," * 40 + b"2]}",
        b'{"text":"\xf0\x9f\x99","x":nul}',
        b" " * 300,
        b"",
    ]
    for line in [*(line for line, _, _ in BAD_LINES.values()), *more]:
        lines.insert(rng.randrange(len(lines) + 1), line)
    data = b"\n".join(lines)
    options: dict[str, Any] = {"on_error": "quarantine", "max_record_bytes": 5000, "invalid": invalid}
    output, summary = converted(tmp_path, "pieces", data, tokenizer_path, **options)
    monkeypatch.setattr("convert.encode.encode_task._memory.buffers", Buffers())
    whole, expected = converted(tmp_path, "whole", data, tokenizer_path, **options)
    assert (summary.intake, summary.replaced) == (expected.intake, expected.replaced)
    for split in ("train", "validation"):
        assert tree(output / split) == tree(whole / split)
    for kept, all_of_it in zip(entries(output), entries(whole), strict=True):
        record = kept.pop("record", None), kept.pop("record_base64", None)
        if record != (all_of_it.pop("record", None), all_of_it.pop("record_base64", None)):
            assert kept["bytes"] > min(2 * blocks, 256)  # of a long one the beginning is kept
        assert kept == all_of_it


def entries(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "quarantine.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", BAD_LINES)
def test_the_error_is_the_same(
    name: str, tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"\n".join([good("a"), b"", good("b" * 50), BAD_LINES[name][0], good("c")])
    messages = set()
    for block_bytes in (1, 4, 21, 4 << 20):
        monkeypatch.setattr("convert.encode.encode_task._memory.buffers", Buffers(block_bytes))
        with pytest.raises(BadInput) as caught:
            converted(tmp_path, f"out-{block_bytes}", data, tokenizer_path, max_record_bytes=5000)
        message = str(caught.value)
        assert message.startswith(
            f"{tmp_path / 'in.jsonl'}: line 4 (byte {data.index(BAD_LINES[name][0])}): "
        )
        messages.add(message.split(": ", 2)[2].split(";")[0][:60])
    assert len(messages) == 1


@pytest.mark.parametrize("mode", ["text", "encode", "error"])
def test_special_tokens_in_long_lines(
    blocks: int, mode: str, tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"a{END}b" * 20, "x" * 100 + END, "y" * 600, END * 30, "<|im_start|" * 20]
    data = b"\n".join(map(good, texts))
    options: dict[str, Any] = {"special_in_text": mode, "on_error": "skip"}
    output, summary = converted(tmp_path, "pieces", data, tokenizer_path, **options)
    monkeypatch.setattr("convert.encode.encode_task._memory.buffers", Buffers())
    whole, expected = converted(tmp_path, "whole", data, tokenizer_path, **options)
    assert tree(output) == tree(whole)
    assert summary.intake == expected.intake


def test_documents_held_out_by_number_are_the_same(
    blocks: int, tokenizer_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json_lines(make_documents(20, seed=2))
    options: dict[str, Any] = {"validation_docs": 5, "validation_fraction": None}
    output, _ = converted(tmp_path, "pieces", data, tokenizer_path, **options)
    monkeypatch.setattr("convert.encode.encode_task._memory.buffers", Buffers())
    whole, _ = converted(tmp_path, "whole", data, tokenizer_path, **options)
    assert tree(output) == tree(whole)
