"""What is left when a worker, a stage or a file fails, and that the next run makes the same dataset of it."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from input_kinds import write_kind
from naive_conversion import END, make_documents, tree

import convert.conversion
import convert.document_encoder
import convert.worker
from convert import ConvertOptions
from convert import convert as run_conversion
from convert.errors import BadInput, BrokenInvariant, Refused, StorageError, UsageError, WorkerLost
from convert.journal import Journal
from convert.plan import TextChunk
from convert.processes.executors import InlineExecutor
from convert.shards.assembly import recorded_assembly
from convert.summary import check_conservation
from convert.worker import ChunkResult, encode_chunk, merge_run
from convert.workspace import Workspace
from flat_tokens.storage.layout import ArrayLayout


def options(**more: Any) -> ConvertOptions:
    base: dict[str, Any] = {
        "inputs": ["en.txt"],
        "tokenizer": "tok.json",
        "output": "out",
        "progress": "none",
    }
    return ConvertOptions(**{**base, "text_chunk_bytes": 200, "workers": 2, **more})


def encode_or_die(chunk: TextChunk, *more: Any) -> ChunkResult:
    if chunk.index == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return encode_chunk(chunk, *more)


def encode_or_fail(chunk: TextChunk, *more: Any) -> ChunkResult:
    if chunk.index == 5:
        raise BadInput("no more")
    return encode_chunk(chunk, *more)


def merge_fails(run: object) -> None:
    raise BadInput("no merge")


def interrupt(chunk: TextChunk, *more: Any) -> ChunkResult:
    if chunk.index == 5:
        raise KeyboardInterrupt
    return encode_chunk(chunk, *more)


@pytest.fixture
def clean(here: Path) -> dict[str, bytes]:
    run_conversion(options(output="clean"), InlineExecutor)
    return tree(here / "clean")


def test_a_killed_worker_is_named_with_its_text_chunk_and_the_next_run_goes_on(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert.worker, "encode_chunk", encode_or_die)
    with pytest.raises(
        WorkerLost, match=r"SIGKILL.*text chunk 5 \(en\.txt, bytes 1000 to 1200\).*same command again"
    ):
        run_conversion(options(start_method="fork"))
    assert not (here / "out").exists()
    monkeypatch.undo()
    monkeypatch.chdir(here)
    summary = run_conversion(options(), InlineExecutor)
    assert summary.reused_chunks > 0
    assert tree(here / "out") == clean
    assert not (here / "out.partial").exists()


def crash_at(poison: bytes, signal_number: int, chunk: TextChunk, *more: Any) -> ChunkResult:
    """As a fault of the core would: the process dies in the middle of the stretch that holds the poison."""
    encode = convert.document_encoder.DocumentEncoder.stretch

    def stretch(self: Any, index: int, source: Any, text: memoryview, start: int) -> None:
        if poison in bytes(text):
            os.kill(os.getpid(), signal_number)
        encode(self, index, source, text, start)

    convert.document_encoder.DocumentEncoder.stretch = stretch  # type: ignore[method-assign]
    try:
        return encode_chunk(chunk, *more)
    finally:
        convert.document_encoder.DocumentEncoder.stretch = encode  # type: ignore[method-assign]


def encode_or_crash(chunk: TextChunk, *more: Any) -> ChunkResult:
    return crash_at(b"poison", signal.SIGSEGV, chunk, *more)


def encode_or_be_killed(chunk: TextChunk, *more: Any) -> ChunkResult:
    return crash_at(b"poison", signal.SIGKILL, chunk, *more)


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_a_crash_names_its_text_and_keeps_it(
    start_method: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        END.join(f"document {number}, " * 3 for number in range(80))
        + END
        + "the poison is here"
        + END
        + "end"
    )
    (here / "en.txt").write_text(text)
    monkeypatch.setattr(convert.worker, "encode_chunk", encode_or_crash)
    more: dict[str, Any] = {"start_method": start_method, "text_chunk_bytes": 1500}
    with pytest.raises(WorkerLost) as lost:
        run_conversion(options(**more))
    found = re.search(
        r"SIGSEGV, a bug of ours.*it was at bytes (\d+) to (\d+) of en\.txt, which (\S+) holds",
        str(lost.value),
    )
    assert found, str(lost.value)
    start, stop = int(found[1]), int(found[2])
    kept = text.encode()[start:stop]
    assert b"poison" in kept
    assert Path(found[3]).read_bytes() == kept
    monkeypatch.setattr(convert.worker, "encode_chunk", encode_or_be_killed)
    with pytest.raises(WorkerLost, match=r"SIGKILL, likely .*it was at bytes \d+ to \d+ of en\.txt$"):
        run_conversion(options(**more))
    monkeypatch.undo()
    monkeypatch.chdir(here)
    run_conversion(options(**more), InlineExecutor)
    assert not (here / "out.partial").exists()


def test_the_standard_pool_can_stand_in_and_its_losses_are_told_too(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def pool(initializer: Any, arguments: Any) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(2, get_context("fork"), initializer, arguments)

    run_conversion(options(), pool)
    assert tree(here / "out") == clean
    monkeypatch.setattr(convert.worker, "encode_chunk", encode_or_die)
    with pytest.raises(WorkerLost, match="text chunk"):
        run_conversion(options(output="other"), pool)


@pytest.mark.parametrize("kind", ["encode", "merge", "interrupt"])
def test_after_any_stage_fails_the_same_call_goes_on(
    kind: str, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, broken, error = {
        "encode": ("encode_chunk", encode_or_fail, BadInput),
        "merge": ("merge_run", merge_fails, BadInput),
        "interrupt": ("encode_chunk", interrupt, KeyboardInterrupt),
    }[kind]
    with monkeypatch.context() as patch:
        patch.setattr(convert.worker, name, broken)
        for _ in range(2):  # twice: failing again loses nothing
            with pytest.raises(error):
                run_conversion(options(), InlineExecutor)
    assert sorted(path.name for path in here.glob("out*")) == ["out.partial"]
    summary = run_conversion(options(workers=1), InlineExecutor)
    # The chunks before the broken one are done, and some behind it, which were already on their way.
    lowest, highest = {"merge": (summary.text_chunks,) * 2, "interrupt": (5, 5)}.get(
        kind, (5, summary.text_chunks - 1)
    )
    assert lowest <= summary.reused_chunks <= highest
    assert tree(here / "out") == clean


def test_what_is_merged_is_taken_over_and_what_is_damaged_of_it_made_again(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    small: dict[str, Any] = {"chunk_tokens": 64}
    run_conversion(options(output="clean2", **small), InlineExecutor)
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", 64)
    monkeypatch.setattr("convert.shards.shard_writer.FLUSH_BYTES", 1)
    written: list[str] = []

    def merge_a_few(run: Any) -> Any:
        if len(written) == 12:
            raise BadInput("no more")
        written.append(run.describe())
        return merge_run(run)

    with monkeypatch.context() as patch:
        patch.setattr(convert.worker, "merge_run", merge_a_few)
        with pytest.raises(BadInput, match="no more"):
            run_conversion(options(**small), InlineExecutor)
    partial = here / "out.partial"
    # Ids that are merged do not lie there twice.
    recorded = Journal(partial / "shards").recorded()
    assert 0 < len(list(partial.glob("shards/train-[0-9]*"))) < len(recorded.shards)
    files = sorted(partial.glob("dataset/train/encoded_tokens/*"))
    files[0].write_bytes(files[0].read_bytes()[:-1])
    files[1].unlink()
    (partial / "dataset/train/encoded_tokens/.99.1.partial").touch()

    def count(run: Any) -> Any:
        written.append(run.describe())
        return merge_run(run)

    first = list(written)
    monkeypatch.setattr(convert.worker, "merge_run", count)
    summary = run_conversion(options(**small), InlineExecutor)
    assert 0 < summary.reused_chunks < summary.text_chunks
    assert set(written[12:]).intersection(first) == {"train tokens from 0", "train tokens from 64"}
    assert tree(here / "out") == tree(here / "clean2")


def forget(shards: Path, chunk_index: int) -> None:
    """Damage the journal's line about a shard."""
    path = Journal(shards).path
    begin = f'"chunk_index": {chunk_index},'.encode()
    assert begin in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(begin, begin.upper()))


def leave_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(convert.worker, "merge_run", merge_fails)
        with pytest.raises(BadInput, match="no merge"):
            run_conversion(options(), InlineExecutor)


@pytest.mark.parametrize("damage", ["flip", "cut", "delete", "zeros", "record"])
def test_damaged_shards_are_made_again(
    damage: str, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.shards.shard_writer.FLUSH_BYTES", 1)
    leave_partial(monkeypatch)
    shards = here / "out.partial/shards"
    path = shards / Journal(shards).recorded().shards[3].shape.place("train")[0]
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
        forget(shards, 3)
    summary = run_conversion(options(), InlineExecutor)
    assert summary.reused_chunks == summary.text_chunks - 1
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
    run_conversion(options(output="clean2", **small), InlineExecutor)
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", 64)
    monkeypatch.setattr("convert.shards.shard_writer.FLUSH_BYTES", 100)
    written: list[object] = []

    def merge_a_few(run: Any) -> Any:
        if len(written) == 8:
            raise BadInput("no more")
        written.append(run)
        return merge_run(run)

    with monkeypatch.context() as patch:
        patch.setattr(convert.worker, "merge_run", merge_a_few)
        with pytest.raises(BadInput, match="no more"):
            run_conversion(options(**small), InlineExecutor)
    shutil.copytree(here / "out.partial", here / "kept")
    needed = needed_files(here / "kept")
    assert {name.partition("-")[0] for name in needed if "shards" in name} == {"shards/train"}
    names = sorted(
        path.relative_to(here / "kept").as_posix()
        for path in (here / "kept").rglob("*")
        if path.is_file() and path.name not in ("plan.json", "lock")  # the plan is synced at once
    )
    assert len(names) > 20
    kinds = {"shards", "dataset"}
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
    run_conversion(options(**small), InlineExecutor)
    assert tree(here / "out") == tree(here / "clean2")
    told = "damaged or gone and is made again" in capsys.readouterr().err
    if len(damaged) == 1 and damaged[0] in needed_files(here / "kept"):
        assert told


def needed_files(partial: Path) -> set[str]:
    """What would be missed if it were gone; of a file of small parts, a half may not be."""
    recorded = Journal(partial / "shards").recorded()
    earlier, runs = recorded_assembly(10, ArrayLayout.create(chunk_tokens=64), recorded)
    files = set()
    for run, written in runs:
        earlier.written(run, written)
        files.update(f"dataset/{file.path}" for file in written)
    return files | {f"shards/{name}" for name in earlier.held_files(recorded.shards) if "small" not in name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, r"options\.seed was 0 when out\.partial was begun and is 1 now"),
        ({"separator": "x"}, r"options\.separator was '<\|endoftext\|>'"),
        ({"text_chunk_bytes": 300}, "text_chunk_bytes was 200 .* is 300 now"),
        ({"validation": ["more.txt"]}, r"options\.validation_fraction was 0\.005"),
        ({"inputs": ["en.txt", "more.txt"]}, "number of sources was 1 .* is 2 now"),
        ({"inputs": ["more.txt"]}, r"sources\[0\]\.path was 'en\.txt'"),
        ({"tokenizer": "tok2.json"}, "tokenizer_sha256 was"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_going_on_with_another_plan_is_refused(
    change: dict[str, Any], message: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "more.txt").write_text("more")
    (here / "tok2.json").write_text((here / "tok.json").read_text() + " ")
    leave_partial(monkeypatch)
    before = tree(here / "out.partial/shards")
    with pytest.raises(Refused, match=message + ".*--overwrite"):
        run_conversion(options(**change), InlineExecutor)
    assert tree(here / "out.partial/shards") == before
    summary = run_conversion(options(**change, overwrite=True), InlineExecutor)
    assert summary.reused_chunks == 0
    assert not (here / "out.partial").exists()


def test_a_changed_source_is_refused_but_not_when_nothing_was_done(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_partial(monkeypatch)
    os.utime("en.txt", ns=(1, 1))
    with pytest.raises(
        Refused, match=r"^en\.txt was written to, .* since out\.partial was begun: .*--overwrite"
    ):
        run_conversion(options(), InlineExecutor)
    size = (here / "en.txt").stat().st_size
    os.truncate("en.txt", size - 1)
    with pytest.raises(Refused, match=rf"^en\.txt had {size} bytes and has {size - 1} now, .*--overwrite"):
        run_conversion(options(), InlineExecutor)
    Journal(here / "out.partial/shards").path.unlink()
    run_conversion(options(), InlineExecutor)
    assert (here / "out").exists()


def edit_and_set_back(path: Path, place: int, byte: bytes) -> None:
    """What an editor, a checkout or rsync -t can do: other text of the same size under the former time."""
    status = path.stat()
    data = path.read_bytes()
    assert data[place : place + 1] != byte
    path.write_bytes(data[:place] + byte + data[place + 1 :])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("place", [0, 199, 200, 1199, 3732])
def test_an_edit_under_the_former_size_and_time_is_refused(
    place: int, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = (here / "en.txt").read_bytes()
    leave_partial(monkeypatch)
    edit_and_set_back(here / "en.txt", place, b"#")
    for _ in range(2):  # a refusal leaves all as it is
        with pytest.raises(
            Refused, match=r"^en\.txt has its former size and time, but other bytes .*--overwr"
        ):
            run_conversion(options(), InlineExecutor)
    edit_and_set_back(here / "en.txt", place, original[place : place + 1])
    run_conversion(options(), InlineExecutor)
    assert tree(here / "out") == clean


def test_an_edit_behind_the_blocks_of_finished_shards_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks end at 200, 400 and so on, blocks in the middle of the corpus: the rest of a document is an edge."""
    monkeypatch.setattr(convert.worker, "encode_chunk", encode_or_fail)
    with pytest.raises(BadInput):
        run_conversion(options(), InlineExecutor)
    monkeypatch.undo()
    monkeypatch.chdir(here)
    shards = here / "out.partial/shards"
    record = Journal(shards).recorded().shards[4]
    assert record.digests == ()
    assert record.edges[0][2] > 1000  # its last document goes on into chunk 5, which is not done
    forget(shards, 0)  # whose block is the whole file
    edit_and_set_back(here / "en.txt", record.edges[0][2] - 1, b"#")
    with pytest.raises(Refused, match="former size and time"):
        run_conversion(options(), InlineExecutor)


@pytest.mark.parametrize("change", ["touch", "rights", "copy"])
def test_a_source_that_was_touched_but_not_edited_goes_on(
    change: str, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_partial(monkeypatch)
    path = here / "en.txt"
    status = path.stat()
    if change == "touch":
        os.utime(path, ns=(status.st_atime_ns, 1))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "rights":
        path.chmod(0o400)
    else:
        path.rename(here / "other")
        shutil.copy2(here / "other", path)
    summary = run_conversion(options(), InlineExecutor)
    assert summary.reused_chunks == summary.text_chunks
    assert tree(here / "out") == clean


@pytest.mark.parametrize("kind", ["jsonl.none", "jsonl.gz", "parquet.none"])
def test_an_edit_of_other_kinds_of_inputs_is_refused(
    kind: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_kind(here / "more", make_documents(60, seed=6), kind)
    inputs = {"inputs": [path.name]}
    with monkeypatch.context() as patch:
        patch.setattr(convert.worker, "merge_run", merge_fails)
        with pytest.raises(BadInput, match="no merge"):
            run_conversion(options(**inputs), InlineExecutor)
    data = path.read_bytes()
    for place in (len(data) // 2, len(data) - 1):
        edit_and_set_back(path, place, bytes([data[place] ^ 1]))
        with pytest.raises(Refused, match=r"more.*former size and time"):
            run_conversion(options(**inputs), InlineExecutor)
        edit_and_set_back(path, place, data[place : place + 1])
    run_conversion(options(**inputs), InlineExecutor)


def test_held_out_documents_are_chosen_anew_from_a_source_that_was_edited(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(convert.worker, "encode_chunk", encode_or_fail)
        with pytest.raises(BadInput):
            run_conversion(options(validation_docs=20), InlineExecutor)
    text = (here / "en.txt").read_bytes()
    for place in [place for place in range(len(text) - 400, len(text)) if text[place : place + 1].isalpha()]:
        edit_and_set_back(here / "en.txt", place, b"#")
    with pytest.raises(Refused, match=r"former size and time"):
        run_conversion(options(validation_docs=20), InlineExecutor)


def test_an_unreadable_plan_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_partial(monkeypatch)
    plan = here / "out.partial/plan.json"
    plan.write_text(plan.read_text()[:50])
    with pytest.raises(Refused, match=r"plan\.json cannot be read .* --overwrite"):
        run_conversion(options(), InlineExecutor)
    run_conversion(options(overwrite=True), InlineExecutor)
    assert (here / "out").exists()


def test_two_runs_on_one_output(here: Path) -> None:
    first = Workspace("out")
    assert first.open({"a": 1}) is False
    with pytest.raises(
        Refused, match=rf"another run \(process {os.getpid()} on .*, begun 2.*\) is writing out"
    ):
        run_conversion(options(), InlineExecutor)
    first.close()
    run_conversion(options(), InlineExecutor)
    assert (here / "out").exists()


def append_while_encoding(chunk: TextChunk, *more: Any) -> ChunkResult:
    result = encode_chunk(chunk, *more)
    if chunk.index == 3:
        with Path("en.txt").open("a") as file:
            file.write("more")
    return result


def test_a_source_that_changes_meanwhile(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert.worker, "encode_chunk", append_while_encoding)
    with pytest.raises(BadInput, match=r"en\.txt changed"):
        run_conversion(options(), InlineExecutor)
    assert not (here / "out").exists()


@pytest.mark.parametrize("place", [10, 700, 3700])
def test_an_edit_meanwhile_is_found_though_its_time_is_set_back(
    place: int, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit_while_encoding(chunk: TextChunk, *more: Any) -> ChunkResult:
        result = encode_chunk(chunk, *more)
        if chunk.index == 18:  # the last one; all of it was read before
            edit_and_set_back(Path("en.txt"), place, b"#")
        return result

    original = (here / "en.txt").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(convert.worker, "encode_chunk", edit_while_encoding)
        with pytest.raises(BadInput, match=r"^en\.txt was edited while it was read, .*--overwrite"):
            run_conversion(options(), InlineExecutor)
    assert not (here / "out").exists()
    edit_and_set_back(here / "en.txt", place, original[place : place + 1])
    run_conversion(options(), InlineExecutor)
    assert tree(here / "out") == clean


def test_a_source_whose_rights_change_meanwhile_is_no_other(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_rights(chunk: TextChunk, *more: Any) -> ChunkResult:
        Path("en.txt").chmod(0o400 + chunk.index % 2)
        return encode_chunk(chunk, *more)

    monkeypatch.setattr(convert.worker, "encode_chunk", change_rights)
    run_conversion(options(), InlineExecutor)
    assert tree(here / "out") == clean


def test_a_source_that_is_gone_at_the_end(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*arguments: Any) -> None:
        Path("en.txt").unlink()
        check_conservation(*arguments)

    monkeypatch.setattr(convert.conversion, "check_conservation", gone)
    run_conversion(options(), InlineExecutor)  # it was read and checked before: nothing is wrong
    with pytest.raises(UsageError, match=r"en\.txt does not exist"):
        run_conversion(options(output="again"), InlineExecutor)


def lose_a_document(chunk: TextChunk, *more: Any) -> ChunkResult:
    result = encode_chunk(chunk, *more)
    if chunk.index != 4:
        return result
    train = replace(result.record.train, documents=result.record.train.documents + 1)
    return replace(result, record=replace(result.record, train=train))


def test_a_lost_document_is_never_published(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert.worker, "encode_chunk", lose_a_document)
    with pytest.raises(BrokenInvariant, match=r"text chunk 4, train: .* documents are not"):
        run_conversion(options(), InlineExecutor)
    assert not (here / "out").exists()


def merge_and_spoil(run: Any) -> Any:
    written = merge_run(run)
    if run.split == "train" and run.array == "tokens":
        path = Path("out.partial/dataset") / written[0].path
        data = path.read_bytes()
        path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    return written


def test_a_byte_that_the_disk_changed_is_found_before_publishing(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(convert.worker, "merge_run", merge_and_spoil)
        with pytest.raises(
            StorageError, match=r"not what was written: train/encoded_tokens/0.*check the disk"
        ):
            run_conversion(options(), InlineExecutor)
    assert not (here / "out").exists()
    run_conversion(options(), InlineExecutor)
    assert tree(here / "out") == clean
