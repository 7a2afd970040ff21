"""Parts of a partial folder that a run reuses, rebuilds or refuses: damaged files, another plan."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from naive_conversion import tree
from stopped_runs import flip_bit, forget, leave_partial, options, records_of

import convert.encode.encode_task
import convert.shards.merge_task
from convert import convert as run_conversion
from convert.encode.encode_task import ChunkResult, encode_chunk
from convert.errors import BadInput, DataLost, Refused, StorageError
from convert.planning.plan import ShardId, TextChunk
from convert.shards.merge_task import merge
from convert.shards.write_units import MergeTask
from tokenmill.engines.inline_engine import InlineEngine

SMALL: dict[str, Any] = {"chunk_tokens": 64, "text_chunk_bytes": 400, "progress": "auto"}


def test_finished_merge_tasks_are_reused_unless_their_files_are_damaged(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_conversion(options(output="clean2", **SMALL), InlineEngine())
    monkeypatch.setattr("convert.shards.write_units.MERGE_TOKENS", (64, 64))
    first = [task.describe() for task in leave_partial(monkeypatch, 12, **SMALL)]
    partial = here / "out.partial"
    # Merged tokens are deleted.
    assert 0 < len(list(partial.glob("shards/*.train"))) < len(records_of(partial))
    files = sorted(partial.glob("dataset/train/encoded_tokens/*"))
    files[0].write_bytes(files[0].read_bytes()[:-1])
    files[1].unlink()
    (partial / "dataset/train/encoded_tokens/.99.1.partial").touch()
    written: list[str] = []

    def count(task: MergeTask, *more: Any) -> Any:
        written.append(task.describe())
        return merge(task, *more)

    monkeypatch.setattr(convert.shards.merge_task, "merge", count)
    summary = run_conversion(options(**SMALL), InlineEngine())
    assert 0 < summary.reused_shards < summary.text_chunks
    assert set(written).intersection(first) == {"train tokens from 0", "train tokens from 64"}
    assert tree(here / "out") == tree(here / "clean2")


@pytest.mark.parametrize("verify", ["sample", "full"])
def test_a_changed_byte_outside_of_the_sample_is_found_by_verify_full_or_at_the_end(
    verify: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_conversion(options(output="clean2", **SMALL), InlineEngine())
    monkeypatch.setattr("convert.shards.write_units.MERGE_TOKENS", (64, 64))
    monkeypatch.setattr("convert.driver.resume.LAST_TASKS", 1)
    leave_partial(monkeypatch, 12, **SMALL)
    flip_bit(here / "out.partial/dataset/train/encoded_tokens/1", 20)
    if verify == "sample":
        with pytest.raises(StorageError, match="train/encoded_tokens/1"):
            run_conversion(options(**SMALL), InlineEngine())
    run_conversion(options(**SMALL, verify="full"), InlineEngine())
    assert tree(here / "out") == tree(here / "clean2")


@pytest.mark.parametrize("damage", ["flip", "cut", "delete", "zeros", "record"])
def test_damaged_shards_are_encoded_again(
    damage: str,
    here: Path,
    clean: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    leave_partial(monkeypatch)
    shards = here / "out.partial/shards"
    path = shards / (records_of(shards.parent)[ShardId(3)].name + ".train")
    size = path.stat().st_size
    if damage == "flip":
        flip_bit(path, 9)
    elif damage == "cut":
        os.truncate(path, size - 1)
    elif damage == "zeros":
        path.write_bytes(bytes(size))
    elif damage == "delete":
        path.unlink()
    else:
        forget(shards.parent, 3)
    summary = run_conversion(options(progress="auto"), InlineEngine())
    assert summary.reused_shards == summary.text_chunks - 1
    assert tree(here / "out") == clean
    assert ("rebuilt 1 temporary shard of out.partial" in capsys.readouterr().err) == (damage != "record")


@pytest.mark.parametrize("suffix", [".train", ".rest"])
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_shard_that_is_damaged_before_it_is_merged_ends_the_run(
    suffix: str, is_gone: bool, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(chunk: TextChunk, *more: Any, **named: Any) -> ChunkResult:
        result = encode_chunk(chunk, *more, **named)
        if chunk.index == 4:
            path = here / f"out.partial/shards/{result.records[0].name}{suffix}"
            path.unlink() if is_gone else flip_bit(path, 3)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.encode_task, "encode_chunk", encode)
        patch.setattr("convert.driver.resume.LAST_SHARDS", 0)  # so that only the merge task finds out
        with pytest.raises(
            DataLost, match=rf"shards/4\.0-\w+{suffix}: .*Run the same command again"
        ) as caught:
            run_conversion(options(), InlineEngine())
        assert caught.value.exit_code == 1
        assert not (here / "out").exists()
    run_conversion(options(), InlineEngine())
    assert tree(here / "out") == clean


def test_a_shard_that_was_encoded_again_from_other_text_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_partial(monkeypatch)
    shards = here / "out.partial/shards"
    (shards / (records_of(shards.parent)[ShardId(4)].name + ".train")).unlink()
    source, status = here / "en.txt", (here / "en.txt").stat()
    data = source.read_bytes()
    source.write_bytes(data[:800] + data[800:1000].replace(b"e", b"#") + data[1000:])
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))  # which no other check notices
    with pytest.raises(BadInput, match=r"chunk 4.*en\.txt"):
        run_conversion(options(), InlineEngine())


@pytest.mark.parametrize("loss", ["empty", "cut", "zeros", "gone"])
def test_a_power_failure_loses_the_bytes_of_shards(
    loss: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of the dataset are on disk before the journal lists them; shards are not."""
    run_conversion(options(output="clean2", **SMALL), InlineEngine())
    monkeypatch.setattr("convert.shards.write_units.MERGE_TOKENS", (64, 64))
    leave_partial(monkeypatch, 8, **SMALL)
    paths = [path for path in (here / "out.partial/shards").iterdir() if path.name != "journal"]
    assert len(paths) > 10
    for path in random.Random(loss).sample(paths, 8):
        data = path.read_bytes()
        path.write_bytes({"empty": b"", "cut": data[: len(data) // 2]}.get(loss, bytes(len(data))))
        if loss == "gone":
            path.unlink()
    run_conversion(options(**SMALL), InlineEngine())
    assert tree(here / "out") == tree(here / "clean2")


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        ({"seed": 1}, r"--seed 0 \(now 1\)"),
        ({"separator": "x"}, r"--separator '<\|endoftext\|>' \(now 'x'\)"),
        ({"text_chunk_bytes": 300}, r"--text-chunk-bytes 200 \(now 300\)"),
        (
            {"validation_docs": 2},
            r"--validation-docs not given \(now 2\), --validation-fraction 0\.005 ",
        ),
        ({"validation": ["more.txt"]}, r"input.* 1 \(now 2\)"),
        ({"inputs": ["en.txt", "more.txt"]}, r"input.* 1 \(now 2\)"),
        ({"inputs": ["more.txt"]}, r"input 1 'en\.txt' \(now 'more\.txt'\)"),
        ({"tokenizer": "tok2.json"}, "tokenizer SHA-256 '"),
        (
            {"seed": 1, "compression": "none"},
            r"--seed 0 \(now 1\), --compression 'zstd' \(now 'none'\)",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_going_on_with_another_plan_is_refused(
    change: dict[str, Any], differences: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "more.txt").write_text("more")
    (here / "tok2.json").write_text((here / "tok.json").read_text() + " ")
    leave_partial(monkeypatch)
    before = tree(here / "out.partial/shards")
    with pytest.raises(Refused, match=rf"^out\.partial: .*{differences}.*--restart"):
        run_conversion(options(**change), InlineEngine())
    assert tree(here / "out.partial/shards") == before
    summary = run_conversion(options(**change, restart=True), InlineEngine())
    assert summary.reused_shards == 0
    assert not (here / "out.partial").exists()


def test_an_unreadable_plan_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_partial(monkeypatch)
    plan = here / "out.partial/plan.json"
    plan.write_text(plan.read_text()[:50])
    with pytest.raises(Refused, match=r"plan\.json.*--restart"):
        run_conversion(options(), InlineEngine())
    run_conversion(options(restart=True), InlineEngine())
    assert (here / "out").exists()
