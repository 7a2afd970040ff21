"""Files of shards, over all orders of events: no two attempts have one in common, and what is needed stays as it is."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from input_kinds import write_kind
from naive_conversion import make_documents, tree
from shards import add_rows, change_part, record_of, writer_of

import convert.worker
from convert import ConvertOptions
from convert import convert as run_conversion
from convert.engine.inline_engine import InlineEngine
from convert.plan import ShardId, TextChunk
from convert.shards import part_writer
from convert.shards import shard as shard_module
from convert.shards.shard import PARTS, ShardRecord
from convert.shards.shard_files import ShardFiles
from convert.shards.shard_reader import is_intact
from convert.shards.shard_writer import ShardWriter
from convert.worker import ChunkResult, encode_chunk

SHARDS = 4
MOST_SPARES = 2
NUMBERS = st.integers(0, 1000)


class Attempt:
    """One at work, or lost: nobody hears of a lost one any more, but it goes on writing."""

    def __init__(self, folder: Path, shard: int, spare: str | None) -> None:
        self.shard, self.spare = shard, spare
        self.is_lost = False
        # What a shard holds follows from its text alone.
        rng = random.Random(shard)
        self.rows = [
            (rng.randrange(2), [[rng.randrange(999) for _ in range(rng.randrange(12))] for _ in range(3)])
            for _ in range(4)
        ]
        self.writer: ShardWriter = writer_of(folder, shard, spare=spare)


class ShardFilesMachine(RuleBasedStateMachine):
    """The parent's account, attempts that write in turns, losses, twins, merges, damage, and runs that are killed."""

    def __init__(self) -> None:
        super().__init__()
        # 0 to 4 large parts in a shard, the others small; some blocks a part.
        self.former = part_writer.FLUSH_BYTES, shard_module.DIGEST_BLOCK_BYTES
        part_writer.FLUSH_BYTES, shard_module.DIGEST_BLOCK_BYTES = 24, 16
        self.folder = Path(tempfile.mkdtemp())
        self.files = ShardFiles(self.folder, most_spares=MOST_SPARES)
        self.attempts: list[Attempt] = []
        self.taken: dict[int, ShardRecord] = {}
        self.needed: dict[int, set[str]] = {}
        self.names: set[str] = set()
        self.left_by_lost: set[str] = set()

    def teardown(self) -> None:
        for attempt in self.attempts:
            attempt.writer.__exit__(None, None, None)
        shutil.rmtree(self.folder)
        part_writer.FLUSH_BYTES, shard_module.DIGEST_BLOCK_BYTES = self.former

    def pick(self, number: int, *, lost: bool | None = False) -> Attempt | None:
        fit = [attempt for attempt in self.attempts if lost is None or attempt.is_lost == lost]
        return fit[number % len(fit)] if fit else None

    @rule(shard=st.integers(0, SHARDS - 1))
    def begin(self, shard: int) -> None:
        if shard not in self.taken and not any(a.shard == shard and not a.is_lost for a in self.attempts):
            self.attempts.append(Attempt(self.folder, shard, self.files.take_spare()))

    @rule(number=NUMBERS)
    def write(self, number: int) -> None:
        attempt = self.pick(number, lost=None)
        if attempt is not None and attempt.rows:
            split, rows = attempt.rows.pop()
            try:
                add_rows(attempt.writer, split, rows)
            except FileNotFoundError:
                assert attempt.is_lost

    @rule(number=NUMBERS)
    def lose_and_retry(self, number: int) -> None:
        """Its worker is given up: the same task, with the same spare, is begun again beside it."""
        attempt = self.pick(number)
        if attempt is not None:
            attempt.is_lost = True
            self.attempts.append(Attempt(self.folder, attempt.shard, attempt.spare))

    @rule(number=NUMBERS)
    def fail(self, number: int) -> None:
        attempt = self.pick(number, lost=None)
        if attempt is not None:
            self.attempts.remove(attempt)
            attempt.writer.__exit__(None, None, None)
            if not attempt.is_lost:
                self.files.return_spare(attempt.spare)

    @rule(number=NUMBERS)
    def finish(self, number: int) -> None:
        attempt = self.pick(number, lost=None)
        if attempt is None:
            return
        while attempt.rows:
            add_rows(attempt.writer, *attempt.rows.pop())
        record = record_of(attempt.writer, attempt.shard)
        self.attempts.remove(attempt)
        own = {name for name, _ in record.places if name}
        assert not own & self.names
        self.names |= own
        if not attempt.is_lost:
            self.files.return_spare(attempt.spare)
            self.take(record)
        else:
            self.left_by_lost |= own

    def take(self, record: ShardRecord) -> None:
        shard = record.id.chunk_index
        former = self.taken.get(shard)
        if former is None:
            self.needed[shard] = {part for part in PARTS if record.shape.part_bytes(part)}
        else:
            assert record == former
            self.files.discard(former)
        self.taken[shard] = record
        self.files.add(record, self.needed[shard])

    @precondition(lambda self: any(self.needed.values()))
    @rule(number=NUMBERS)
    def merge(self, number: int) -> None:
        left = sorted((shard, part) for shard, parts in self.needed.items() for part in parts)
        shard, part = left[number % len(left)]
        self.needed[shard].remove(part)
        self.files.release(self.taken[shard].shape.place(part)[0])
        if not self.needed[shard]:
            del self.taken[shard], self.needed[shard]  # it may come again: there are few shards

    @precondition(lambda self: any(self.needed.values()))
    @rule(number=NUMBERS)
    def damage_and_make_again(self, number: int) -> None:
        left = sorted((shard, part) for shard, parts in self.needed.items() for part in parts)
        shard, part = left[number % len(left)]
        change_part(self.folder, self.taken[shard], part, number % self.taken[shard].shape.part_bytes(part))
        assert not is_intact(self.folder, self.taken[shard], [part])
        again = Attempt(self.folder, shard, self.files.take_spare())
        while again.rows:
            add_rows(again.writer, *again.rows.pop())
        self.files.return_spare(again.spare)
        self.take(record_of(again.writer, shard))

    @rule()
    def end_spares(self) -> None:
        self.files.end_spares()

    @rule()
    def be_killed_and_go_on(self) -> None:
        for attempt in self.attempts:
            attempt.is_lost = True
        kept = {
            record.shape.place(part)[0] for shard, record in self.taken.items() for part in self.needed[shard]
        }
        self.files = ShardFiles(self.folder, kept, most_spares=MOST_SPARES)
        for shard, record in self.taken.items():
            self.files.add(record, self.needed[shard])

    @invariant()
    def what_is_needed_is_intact(self) -> None:
        for shard, record in self.taken.items():
            assert is_intact(self.folder, record, sorted(self.needed[shard]))

    @invariant()
    def what_nobody_needs_does_not_pile_up(self) -> None:
        needed = {self.taken[s].shape.place(part)[0] for s, parts in self.needed.items() for part in parts}
        others = {path.name for path in self.folder.iterdir()} - needed - self.left_by_lost
        assert len(others) <= MOST_SPARES + len(PARTS) * len(self.attempts)


TestShardFiles = ShardFilesMachine.TestCase
TestShardFiles.settings = settings(max_examples=150, stateful_step_count=60, deadline=None, derandomize=True)


def test_of_an_earlier_run_only_what_is_needed_stays(tmp_path: Path) -> None:
    names = [
        "3.0-00aa.train",
        "3.0-00aa.small",
        "7.12-0b.validation-starts",
        "journal",
        "00000001-0.quarantine",
    ]
    for name in names:
        (tmp_path / name).touch()
    ShardFiles(tmp_path, {"3.0-00aa.small"})
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"3.0-00aa.small", "journal", "00000001-0.quarantine"}


@pytest.fixture
def packed_corpus(here: Path) -> Path:
    """Compressed files, each of which gives many shards."""
    folder = here / "in"
    folder.mkdir()
    for number in range(6):
        write_kind(folder / f"{number}", make_documents(150, seed=number), "txt.gz")
    return folder


def convert_packed(output: str, **more: Any) -> None:
    base: dict[str, Any] = {"inputs": ["in"], "tokenizer": "tok.json", "progress": "none"}
    options = ConvertOptions(**base, output=output, text_chunk_bytes=600, chunk_tokens=64, **more)
    run_conversion(options, InlineEngine())


@pytest.mark.parametrize("flush_bytes", [1, 200, 1 << 20])
def test_a_file_has_one_writer_until_its_text_chunk_has_ended(
    flush_bytes: int, packed_corpus: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of small parts was given to another text chunk as soon as one part in it was merged."""
    monkeypatch.setattr("convert.plan.LEAST_SHARD_BYTES", 500)
    monkeypatch.setattr("corpus.blocks.BLOCK_BYTES", 300)
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", 64)
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", flush_bytes)
    writers: dict[str, int] = {}
    ended: set[int] = set()
    shards = set[ShardId]()

    def encode(chunk: TextChunk, *more: Any) -> ChunkResult:
        result = encode_chunk(chunk, *more)
        for record in result.records:
            shards.add(record.id)
            for name in {name for name, _ in record.places if name}:
                writer = writers.setdefault(name, chunk.index)
                assert writer == chunk.index or writer in ended, f"{name} of {writer} and {chunk.index}"
                writers[name] = chunk.index
            if record.is_last:
                ended.add(chunk.index)
        return result

    monkeypatch.setattr(convert.worker, "encode_chunk", encode)
    convert_packed("out", workers=3)
    assert len(shards) > 30
    monkeypatch.undo()
    monkeypatch.chdir(here)
    convert_packed("clean", workers=1)
    assert tree(here / "out") == tree(here / "clean")
