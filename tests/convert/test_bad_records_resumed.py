"""A run with bad records that failed, lost shards or met changed inputs goes on; no two ways to treat them mix."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from input_kinds import compressed
from naive_conversion import Naive, tree
from stopped_runs import journal_of
from test_bad_records import good
from test_input_kinds import check, run

import convert.shards.merge_task
from convert.errors import BadInput, DataLost, Refused


def test_a_run_that_failed_goes_on_with_another_way_to_treat_bad_records(
    tokenizer_path: Path, naive: Naive, tmp_path: Path
) -> None:
    documents = [f"document {index}" for index in range(30)]
    lines = [good(text) for text in documents]
    lines.insert(20, b"bad")
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(lines))
    output = tmp_path / "out"
    with pytest.raises(BadInput):
        run(path, tokenizer_path, output, text_chunk_bytes=50)
    finished = len(journal_of(tmp_path / "out.partial").recorded().shards)
    assert finished > 5
    with pytest.raises(BadInput):
        run(path, tokenizer_path, output, text_chunk_bytes=50, on_error="skip", max_errors=0)
    summary = run(path, tokenizer_path, output, text_chunk_bytes=50, on_error="quarantine")
    assert summary.reused_shards >= finished
    expected = naive.convert_documents([d.encode() for d in documents], fraction=0.3)
    check(output, expected, summary)
    run(path, tokenizer_path, tmp_path / "at-once", on_error="quarantine")
    assert tree(output)["quarantine.jsonl"] == tree(tmp_path / "at-once")["quarantine.jsonl"]
    assert json.loads(tree(output)["quarantine.jsonl"])["line"] == 21


def test_finished_shards_with_bad_records_are_not_mixed_with_another_way_to_treat_them(
    tokenizer_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join([good("a"), b"bad", good("b"), b"bad too", good("c")]))
    output = tmp_path / "out"
    options: dict[str, Any] = {"text_chunk_bytes": 12}
    with pytest.raises(BadInput):
        run(path, tokenizer_path, output, on_error="skip", max_errors=1, **options)
    with pytest.raises(Refused, match="--on-error"):
        run(path, tokenizer_path, output, on_error="fail", **options)
    assert run(path, tokenizer_path, output, on_error="skip", **options).reused_shards > 0
    for first in ("quarantine", "skip"):  # what was only left out is read again, to be kept
        shutil.rmtree(tmp_path / "q", ignore_errors=True)
        with pytest.raises(BadInput):
            run(path, tokenizer_path, tmp_path / "q", on_error=first, max_errors=1, **options)
        assert run(path, tokenizer_path, tmp_path / "q", on_error="quarantine", **options).reused_shards > 0
    assert [json.loads(line)["line"] for line in tree(tmp_path / "q")["quarantine.jsonl"].splitlines()] == [
        2,
        4,
    ]


@pytest.mark.parametrize("compression", ["none", "gz"])
@pytest.mark.parametrize("lost", ["shards", "quarantine", "both"])
@pytest.mark.parametrize("then", ["quarantine", "skip"])
def test_lost_shards_of_a_run_with_quarantine_are_made_again(
    then: str,
    lost: str,
    compression: str,
    tokenizer_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("convert.planning.plan.MIN_GIVEN_SHARD_BYTES", 300)
    monkeypatch.setattr("tokenmill.inputs.blocks.BLOCK_BYTES", 100)
    monkeypatch.setattr("convert.shards.write_units.MERGE_TOKENS", (64, 64))
    lines = [b"bad %d" % number if number % 5 == 2 else good(f"document {number}") for number in range(200)]
    path = tmp_path / ("in.jsonl.gz" if compression == "gz" else "in.jsonl")
    path.write_bytes(compressed(b"\n".join(lines), compression))
    options: dict[str, Any] = {"text_chunk_bytes": 300, "chunk_tokens": 64}
    run(path, tokenizer_path, tmp_path / "clean", on_error=then, **options)
    with pytest.raises(BadInput):
        run(path, tokenizer_path, tmp_path / "out", on_error="quarantine", max_errors=20, **options)
    files = list((tmp_path / "out.partial/shards").iterdir())
    for file in files:
        is_quarantine = file.suffix == ".quarantine"
        if lost in ("both", "quarantine" if is_quarantine else "shards"):
            file.unlink()
    run(path, tokenizer_path, tmp_path / "out", on_error=then, **options)
    assert tree(tmp_path / "out") == tree(tmp_path / "clean")


def changed(data: bytes) -> bytes:
    return data.replace(b"bad 2", b"bad 7", 1)


@pytest.mark.parametrize(
    "damage",
    [
        changed,
        lambda data: data.partition(b"\n")[2],
        lambda data: data[: len(data) // 2],
        lambda data: b"\xff" + data[1:],
        None,
    ],
    ids=["changed", "first line", "half", "no text", "gone"],
)
def test_quarantined_records_that_change_before_the_end_are_noticed_and_made_again(
    damage: Callable[[bytes], bytes] | None,
    tokenizer_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [b"bad %d" % number if number % 5 == 2 else good(f"document {number}") for number in range(200)]
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(lines))
    run(path, tokenizer_path, tmp_path / "clean", on_error="quarantine", text_chunk_bytes=600)
    write_run = convert.shards.merge_task.merge

    def merge_after_damage(*arguments: Any) -> Any:
        for file in sorted((tmp_path / "out.partial/shards").glob("*.quarantine"))[:1]:
            if damage is None:
                file.unlink()
            else:
                file.write_bytes(damage(file.read_bytes()))
        return write_run(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("convert.shards.merge_task.merge", merge_after_damage)
        with pytest.raises(DataLost, match=r"0\.0-\w+\.quarantine"):
            run(path, tokenizer_path, tmp_path / "out", on_error="quarantine", text_chunk_bytes=600)
    run(path, tokenizer_path, tmp_path / "out", on_error="quarantine", text_chunk_bytes=600)
    assert tree(tmp_path / "out") == tree(tmp_path / "clean")
