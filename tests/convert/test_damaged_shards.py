"""Temporary shards that change between their writing and their merging are found, and made again from their sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from input_kinds import write_kind
from naive_conversion import make_documents, tree
from shards import change_part

import convert.encode.worker
from convert import ConvertOptions, Summary
from convert import convert as run_conversion
from convert.__main__ import main
from convert.encode.worker import ChunkResult, encode_chunk
from convert.errors import DataLost
from convert.planning.plan import ShardId, TextChunk
from convert.shards.shard import PARTS, ShardRecord
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.inputs.sources import check_unchanged

Damage = Callable[[Path, ShardRecord, str], None]


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several shards a chunk, several runs a shard, and parts of both kinds."""
    monkeypatch.setattr("convert.planning.plan.LEAST_SHARD_BYTES", 500)
    monkeypatch.setattr("tokenmill.inputs.blocks.BLOCK_BYTES", 300)
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", (64, 64))
    monkeypatch.setattr("convert.shards.shard.DIGEST_BLOCK_BYTES", 64)
    monkeypatch.setattr("convert.shards.shard_writer.INLINE_BYTES", 0)
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", 64)


@pytest.fixture
def corpus(here: Path) -> Path:
    (here / "in").mkdir()
    for number, kind in enumerate(("txt.gz", "txt.none", "jsonl.gz")):
        write_kind(here / "in" / f"{number}", make_documents(60, seed=number), kind)
    return here


def run(output: str, **more: Any) -> Summary:
    base: dict[str, Any] = {"inputs": ["in/*"], "tokenizer": "tok.json", "output": output, "progress": "auto"}
    more = {"workers": 2, "validation_fraction": 0.3, **more}
    return run_conversion(
        ConvertOptions(**base, text_chunk_bytes=600, chunk_tokens=64, **more), InlineEngine()
    )


def flip(folder: Path, record: ShardRecord, part: str) -> None:
    change_part(folder, record, part, record.part(part).size // 2)


def cut(folder: Path, record: ShardRecord, part: str) -> None:
    path = folder / record.part(part).file
    path.write_bytes(path.read_bytes()[:1])


def remove(folder: Path, record: ShardRecord, part: str) -> None:
    (folder / record.part(part).file).unlink()


class Damaging:
    """encode_chunk, which damages a part of every second shard it writes; once, or whenever the shard is encoded."""

    def __init__(self, damage: Damage, part: str, *, parity: int = 1, always: bool = False) -> None:
        self.damage, self.part, self.parity, self.always = damage, part, parity, always
        self.seen: dict[ShardId, int] = {}
        self.damaged: set[ShardId] = set()

    def __call__(self, chunk: TextChunk, *more: Any, **named: Any) -> ChunkResult:
        result = encode_chunk(chunk, *more, **named)
        for record in result.records:
            is_first = record.id not in self.seen
            number = self.seen.setdefault(record.id, len(self.seen))
            if number % 2 == self.parity and record.part(self.part).size and (is_first or self.always):
                self.damage(Path("out.partial/shards"), record, self.part)
                self.damaged.add(record.id)
        return result


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("damage", [flip, cut, remove])
def test_damaged_shards_are_made_again(
    damage: Damage,
    part: str,
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run("clean")
    encode = Damaging(damage, part)
    monkeypatch.setattr(convert.encode.worker, "encode_chunk", encode)
    capsys.readouterr()
    run("out")
    assert len(encode.damaged) > 5
    assert tree(corpus / "out") == tree(corpus / "clean")
    assert f"rebuilt {len(encode.damaged)} temporary shards of out.partial" in capsys.readouterr().err


def test_a_shard_that_is_damaged_again_ends_the_run_with_its_place(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("clean")
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", Damaging(flip, "train", always=True))
        with pytest.raises(
            DataLost,
        ):
            run("out")
    assert not (corpus / "out").exists()
    run("out")
    assert tree(corpus / "out") == tree(corpus / "clean")


@pytest.mark.parametrize("what", ["changed", "gone"])
def test_a_damaged_shard_without_its_source_ends_the_run_with_exit_1(
    what: str, corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (source,) = Path("in").glob("0*")

    def lose_the_source(sources: Any) -> Any:
        found = check_unchanged(sources)
        if what == "gone":
            source.unlink()
        else:
            source.write_bytes(source.read_bytes() + b" ")
        return found

    # Runs are longer than all shards: the text is encoded before one is found damaged.
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", (1 << 20, 1 << 20))
    monkeypatch.setattr("convert.driver.conversion.check_unchanged", lose_the_source)
    monkeypatch.setattr(convert.encode.worker, "encode_chunk", Damaging(flip, "train", parity=0))
    monkeypatch.setattr("convert.driver.conversion.open_engine", lambda *_: InlineEngine())
    words = [str(source), "--tokenizer", "tok.json", "--output", "out", "--text-chunk-bytes", "1Mi"]
    assert main([*words, "--progress", "none", "--chunk-tokens", "64"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tokenmill: error: out.partial/shards/0.")
    assert f": {source}" in error
    assert error.count("\n") == 1
    assert not (corpus / "out").exists()
