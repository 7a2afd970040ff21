"""Sources that are edited, touched or gone, while a run reads them or before the next one goes on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from input_kinds import write_kind
from naive_conversion import make_documents, tree
from shards import records_of
from stopped_runs import encode_or_fail, forget, leave_partial, options

import convert.encode.worker
import tokenmill.inputs.digest
from convert import convert as run_conversion
from convert.driver import provenance
from convert.driver.ledger import Ledger
from convert.encode.worker import ChunkResult, encode_chunk
from convert.errors import BadInput, Refused, UsageError
from convert.places.log import Log
from convert.planning import plan
from convert.planning.plan import ShardId, TextChunk
from tokenmill.engines.inline_engine import InlineEngine


def test_a_changed_source_is_refused_but_not_when_nothing_was_done(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_partial(monkeypatch)
    os.utime("en.txt", ns=(1, 1))
    with pytest.raises(Refused, match=r"en\.txt.*out\.partial"):
        run_conversion(options(), InlineEngine())
    size = (here / "en.txt").stat().st_size
    os.truncate("en.txt", size - 1)
    with pytest.raises(Refused, match=rf"en\.txt.*{size}.*{size - 1}"):
        run_conversion(options(), InlineEngine())
    Log(here / "out.partial/shards").path.unlink()
    run_conversion(options(), InlineEngine())
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
        with pytest.raises(Refused, match=r"en\.txt"):
            run_conversion(options(), InlineEngine())
    edit_and_set_back(here / "en.txt", place, original[place : place + 1])
    run_conversion(options(), InlineEngine())
    assert tree(here / "out") == clean


@pytest.mark.parametrize("kind", ["txt.none", "jsonl.none"])
@pytest.mark.parametrize("block_bytes", [4 << 20, 100])
def test_an_edit_behind_the_blocks_of_finished_shards_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, kind: str
) -> None:
    """Chunks end at 200, 400 and so on, blocks in the middle of the corpus: the rest of a document is an edge, in front
    of the first own block or behind the last."""
    for module in (tokenmill.inputs.digest, plan, provenance):
        monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    path = write_kind(here / "more", make_documents(60, seed=6), kind)
    inputs = {"inputs": [path.name]}
    with monkeypatch.context() as stopped:
        stopped.setattr(convert.encode.worker, "encode_chunk", encode_or_fail)
        with pytest.raises(BadInput):
            run_conversion(options(**inputs), InlineEngine())
    shards = here / "out.partial/shards"
    record = records_of(Log(shards).recorded())[ShardId(4)]
    assert len(record.digests) == (8 * 2 if block_bytes == 100 else 0)
    place = max(stop for _, _, stop, _ in record.edges) - 1
    assert place >= 1000  # its last document goes on into chunk 5, which is not done
    if block_bytes > place:
        forget(shards, 0)  # whose block is the whole file
    edit_and_set_back(path, place, b"#")
    with pytest.raises(Refused):
        run_conversion(options(**inputs), InlineEngine())


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
    summary = run_conversion(options(), InlineEngine())
    assert summary.reused_shards == summary.text_chunks
    assert tree(here / "out") == clean


@pytest.mark.parametrize("kind", ["jsonl.none", "jsonl.gz", "parquet.none"])
def test_an_edit_of_other_kinds_of_inputs_is_refused(
    kind: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_kind(here / "more", make_documents(60, seed=6), kind)
    inputs = {"inputs": [path.name]}
    leave_partial(monkeypatch, **inputs)
    data = path.read_bytes()
    for place in (len(data) // 2, len(data) - 1):
        edit_and_set_back(path, place, bytes([data[place] ^ 1]))
        with pytest.raises(Refused):
            run_conversion(options(**inputs), InlineEngine())
        edit_and_set_back(path, place, data[place : place + 1])
    run_conversion(options(**inputs), InlineEngine())


def test_held_out_documents_are_chosen_anew_from_a_source_that_was_edited(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", encode_or_fail)
        with pytest.raises(BadInput):
            run_conversion(options(validation_docs=20), InlineEngine())
    text = (here / "en.txt").read_bytes()
    for place in [place for place in range(len(text) - 400, len(text)) if text[place : place + 1].isalpha()]:
        edit_and_set_back(here / "en.txt", place, b"#")
    with pytest.raises(Refused):
        run_conversion(options(validation_docs=20), InlineEngine())


def append_while_encoding(chunk: TextChunk, *more: Any) -> ChunkResult:
    result = encode_chunk(chunk, *more)
    if chunk.index == 3:
        with Path("en.txt").open("a") as file:
            file.write("more")
    return result


def test_a_source_that_changes_meanwhile(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert.encode.worker, "encode_chunk", append_while_encoding)
    with pytest.raises(BadInput, match=r"en\.txt"):
        run_conversion(options(), InlineEngine())
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
        patch.setattr(convert.encode.worker, "encode_chunk", edit_while_encoding)
        with pytest.raises(BadInput, match=r"en\.txt"):
            run_conversion(options(), InlineEngine())
    assert not (here / "out").exists()
    edit_and_set_back(here / "en.txt", place, original[place : place + 1])
    run_conversion(options(), InlineEngine())
    assert tree(here / "out") == clean


def test_a_source_whose_rights_change_meanwhile_is_no_other(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_rights(chunk: TextChunk, *more: Any) -> ChunkResult:
        Path("en.txt").chmod(0o400 + chunk.index % 2)
        return encode_chunk(chunk, *more)

    monkeypatch.setattr(convert.encode.worker, "encode_chunk", change_rights)
    run_conversion(options(), InlineEngine())
    assert tree(here / "out") == clean


def test_a_source_that_is_gone_at_the_end(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_whole = Ledger.check_whole

    def gone(ledger: Ledger) -> None:
        Path("en.txt").unlink()
        check_whole(ledger)

    monkeypatch.setattr(Ledger, "check_whole", gone)
    run_conversion(options(), InlineEngine())  # it was read and checked before: nothing is wrong
    with pytest.raises(UsageError, match=r"en\.txt"):
        run_conversion(options(output="again"), InlineEngine())
