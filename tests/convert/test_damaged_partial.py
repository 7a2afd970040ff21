"""What of a partial folder the next run takes over, makes again or refuses: damaged files, another plan."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from naive_conversion import tree
from shards import journal_of, ledger_of, records_of
from stopped_runs import forget, leave_partial, options

import convert.encode.worker
from convert import convert as run_conversion
from convert.encode.worker import merge_run
from convert.errors import Refused
from convert.planning.plan import ShardId
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.engines.inline_engine import InlineEngine


def test_what_is_merged_is_taken_over_and_what_is_damaged_of_it_made_again(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    small: dict[str, Any] = {"chunk_tokens": 64}
    run_conversion(options(output="clean2", **small), InlineEngine())
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", (64, 64))
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", 1)
    first = [run.describe() for run in leave_partial(monkeypatch, 12, **small)]
    partial = here / "out.partial"
    # Ids that are merged do not lie there twice.
    recorded = journal_of(partial).recorded()
    assert 0 < len(list(partial.glob("shards/*.train"))) < len(recorded.shards)
    files = sorted(partial.glob("dataset/train/encoded_tokens/*"))
    files[0].write_bytes(files[0].read_bytes()[:-1])
    files[1].unlink()
    (partial / "dataset/train/encoded_tokens/.99.1.partial").touch()

    written: list[str] = []

    def count(run: Any, *more: Any) -> Any:
        written.append(run.describe())
        return merge_run(run, *more)

    monkeypatch.setattr(convert.encode.worker, "merge_run", count)
    summary = run_conversion(options(**small), InlineEngine())
    assert 0 < summary.reused_shards < summary.text_chunks
    assert set(written).intersection(first) == {"train tokens from 0", "train tokens from 64"}
    assert tree(here / "out") == tree(here / "clean2")


@pytest.mark.parametrize("damage", ["flip", "cut", "delete", "zeros", "record"])
def test_damaged_shards_are_made_again(
    damage: str, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", 1)
    leave_partial(monkeypatch)
    shards = here / "out.partial/shards"
    path = shards / records_of(journal_of(here / "out.partial").recorded())[ShardId(3)].part("train").file
    data = path.read_bytes()
    if damage == "flip":
        path.write_bytes(data[:9] + bytes([data[9] ^ 4]) + data[10:])
    elif damage == "cut":
        path.write_bytes(data[:-1])
    elif damage == "zeros":
        path.write_bytes(bytes(len(data)))
    elif damage == "delete":
        path.unlink()
    else:
        forget(here / "out.partial", 3)
    summary = run_conversion(options(), InlineEngine())
    assert summary.reused_shards == summary.text_chunks - 1
    assert tree(here / "out") == clean


AFTER_A_POWER_LOSS = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "gone": lambda data: None,
}


@pytest.mark.parametrize("loss", AFTER_A_POWER_LOSS)
def test_names_that_outlast_a_power_loss_without_their_bytes(
    loss: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small: dict[str, Any] = {"chunk_tokens": 64, "text_chunk_bytes": 400, "progress": "auto"}
    run_conversion(options(output="clean2", **small), InlineEngine())
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", (64, 64))
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", 100)
    monkeypatch.setattr("convert.shards.shard_writer.INLINE_BYTES", 0)
    leave_partial(monkeypatch, 8, **small)
    shutil.copytree(here / "out.partial", here / "kept")
    needed = needed_files(here / "kept")
    assert {name.rpartition(".")[2] for name in needed if "shards" in name} == {"train"}
    names = sorted(
        path.relative_to(here / "kept").as_posix()
        for path in (here / "kept").rglob("*")
        if path.is_file() and path.name not in ("plan.json", "lock")  # the plan is synced at once
    )
    assert len(names) > 20
    kinds = {"shards", "dataset", "journal"}
    assert {name.split("/")[0] for name in names} == kinds
    for damaged in ([name] for name in random.Random(loss).sample(names, 8)):
        check_after_loss(here, damaged, loss, small, capsys)
    check_after_loss(here, names, loss, small, capsys)


def check_after_loss(
    here: Path, damaged: list[str], loss: str, small: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("out", "out.partial"):
        shutil.rmtree(here / name, ignore_errors=True)
    shutil.copytree(here / "kept", here / "out.partial")
    for name in damaged:
        data = AFTER_A_POWER_LOSS[loss]((here / "kept" / name).read_bytes())
        if data is None:
            (here / "out.partial" / name).unlink()
        else:
            (here / "out.partial" / name).write_bytes(data)
    run_conversion(options(**small), InlineEngine())
    assert tree(here / "out") == tree(here / "clean2")
    told = "damaged or missing" in capsys.readouterr().err
    if len(damaged) == 1 and damaged[0] in needed_files(here / "kept"):
        assert told


def needed_files(partial: Path) -> set[str]:
    """What would be missed if it were gone; of a file of small parts, a half may not be."""
    recorded = journal_of(partial).recorded()
    ledger = ledger_of(10, ArrayLayout.create(chunk_tokens=64))
    for record in records_of(recorded).values():
        ledger.add(replace(record, text_bytes=0, digests=b"", edges=()))
    files = set()
    for run in ledger.ready():
        written = recorded.run(run)
        if written is not None:
            ledger.written(run, written)
            files.update(f"dataset/{file.record.path}" for file in written)
    return files | {f"shards/{name}" for name in ledger.needed_files() if "small" not in name}


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        ({"seed": 1}, r"--seed 0 \(now 1\)"),
        ({"separator": "x"}, r"--separator '<\|endoftext\|>' \(now 'x'\)"),
        ({"text_chunk_bytes": 300}, r"--text-chunk-bytes 200 \(now 300\)"),
        (
            {"validation_docs": 2},
            r"--validation-fraction 0\.005 .*, --validation-docs not given \(now 2\)",
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
