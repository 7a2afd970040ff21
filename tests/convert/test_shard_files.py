"""Files of shards, over all orders of events: no two attempts have one in common, and what is needed stays as it is."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from input_kinds import write_kind
from naive_conversion import make_documents, tree
from shards import add_rows, change_part, ledger_of, record_of
from state_machines import finds_fault

import convert.encode.worker
from convert import ConvertOptions
from convert import convert as run_conversion
from convert.driver.ledger import Ledger
from convert.encode.worker import ChunkResult, encode_chunk
from convert.planning.plan import ShardId, TextChunk
from convert.shards import part_writer, shard_files, shard_writer
from convert.shards import runs as runs_module
from convert.shards import shard as shard_module
from convert.shards.runs import Run
from convert.shards.shard import PARTS, ShardRecord
from convert.shards.shard_reader import DamagedShard
from convert.shards.shard_store import shards_at
from convert.shards.shard_writer import ShardWriter
from convert.shards.write_run import encoded_units, sequences_run
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.engines.inline_engine import InlineEngine

CHUNKS = 4
UNIT = 8  # tokens in a zarr chunk, starts in four
NUMBERS = st.integers(0, 1000)


class Attempt:
    """One at work, or lost: nobody hears of a lost one any more, but it goes on writing."""

    def __init__(self, folder: Path, chunk: int, spares: tuple[str, ...]) -> None:
        self.chunk, self.spares = chunk, spares
        self.is_lost = False
        self.unused = list(spares)
        self.rows = rows_of(chunk)
        self.writer = ShardWriter(
            folder, ShardId(chunk), np.dtype("u2"), 999, spares=self.unused, has_places=True
        )


def rows_of(chunk: int) -> list[tuple[int, list[list[int]]]]:
    """(split, rows) that a text chunk holds, the last first: they follow from its text alone."""
    rng = random.Random(chunk)
    return [
        (rng.randrange(2), [[rng.randrange(999) for _ in range(rng.randrange(12))] for _ in range(3)])
        for _ in range(4)
    ]


def expected_tokens(split: int) -> list[int]:
    """encoded_tokens of a split."""
    rows = [
        row
        for chunk in range(CHUNKS)
        for own, some in reversed(rows_of(chunk))
        for row in some
        if own == split
    ]
    return [id_ * 2 + (place == 0) for row in rows for place, id_ in enumerate(row)]


class ShardFilesMachine(RuleBasedStateMachine):
    """The driver's account, attempts that write in turns, losses, twins, runs, damage, and drivers that are killed."""

    def __init__(self) -> None:
        super().__init__()
        # 0 to 4 large parts in a shard, the others small; some blocks a part; runs of two units.
        self.former = part_writer.FLUSH_BYTES, shard_module.DIGEST_BLOCK_BYTES, runs_module.RUN_TOKENS
        self.former_inline, shard_writer.INLINE_BYTES = shard_writer.INLINE_BYTES, 24
        part_writer.FLUSH_BYTES, shard_module.DIGEST_BLOCK_BYTES = 24, 16
        runs_module.RUN_TOKENS = 2 * UNIT, 2 * UNIT
        self.folder = Path(tempfile.mkdtemp())
        self.expected = {split: expected_tokens(place) for place, split in enumerate(("train", "validation"))}
        self.ledger = ledger_of(CHUNKS, ArrayLayout.create(chunk_tokens=UNIT))
        self.attempts: list[Attempt] = []
        self.log: dict[int, ShardRecord] = {}
        self.runs: list[Run] = []
        self.written: set[tuple[str, str, int]] = set()
        self.spares: list[str] = []
        self.names: set[str] = set()
        self.left_by_lost: set[str] = set()

    def teardown(self) -> None:
        for attempt in self.attempts:
            attempt.writer.__exit__(None, None, None)
        shutil.rmtree(self.folder)
        part_writer.FLUSH_BYTES, shard_module.DIGEST_BLOCK_BYTES, runs_module.RUN_TOKENS = self.former
        shard_writer.INLINE_BYTES = self.former_inline

    def pick(self, number: int, *, lost: bool | None = False) -> Attempt | None:
        fit = [attempt for attempt in self.attempts if lost is None or attempt.is_lost == lost]
        return fit[number % len(fit)] if fit else None

    def take_spares(self, number: int) -> tuple[str, ...]:
        count = number % 3
        taken = tuple(self.spares[:count])
        del self.spares[:count]
        return taken

    @rule(chunk=st.integers(0, CHUNKS - 1), number=NUMBERS)
    def begin(self, chunk: int, number: int) -> None:
        if chunk not in self.log and not any(a.chunk == chunk and not a.is_lost for a in self.attempts):
            self.attempts.append(Attempt(self.folder, chunk, self.take_spares(number)))

    @rule(number=NUMBERS, count=st.integers(1, 6))
    def go_on(self, number: int, count: int) -> None:
        """Work gets ahead for a while, so that runs are written and files are given away."""
        for step in range(number, number + count):
            self.begin(step % CHUNKS, step)
            if step % 2:
                self.finish(step)
            if self.runs:
                self.write_run(step)

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
        """Its worker is given up: the same task, with the same spares, is begun again beside it."""
        attempt = self.pick(number)
        if attempt is not None:
            attempt.is_lost = True
            self.attempts.append(Attempt(self.folder, attempt.chunk, attempt.spares))

    @rule(number=NUMBERS)
    def fail(self, number: int) -> None:
        attempt = self.pick(number, lost=None)
        if attempt is not None:
            self.attempts.remove(attempt)
            attempt.writer.__exit__(None, None, None)
            self.left_by_lost |= set(attempt.spares)

    @rule(number=NUMBERS)
    def finish(self, number: int) -> None:
        attempt = self.pick(number, lost=None)
        if attempt is None:
            return
        record = self.finished(attempt)
        self.attempts.remove(attempt)
        if attempt.is_lost:
            self.left_by_lost |= {name for name, _ in record.places if name}
        else:
            self.log[attempt.chunk] = record
            self.ledger.add(record)
            self.runs += self.ledger.ready()

    def finished(self, attempt: Attempt) -> ShardRecord:
        while attempt.rows:
            add_rows(attempt.writer, *attempt.rows.pop())
        record = record_of(attempt.writer, attempt.chunk)
        shards_at(self.folder).delete(attempt.unused)
        own = {name for name, _ in record.places if name}
        assert not own & self.names
        self.names |= own
        return record

    def read(self, run: Run) -> None:
        """What a run reads is what belongs there; DamagedShard else."""
        if run.array == "starts":
            flags = [place for place, token in enumerate(self.expected[run.split]) if token % 2]
            starts = [*flags, len(self.expected[run.split])]
            assert (
                sequences_run(shards_at(self.folder), run).tolist()
                == starts[run.first : run.first + run.item_count]
            )
        elif run.array == "places":
            assert len(sequences_run(shards_at(self.folder), run)) == run.item_count
        else:
            tokens = [
                token for unit in encoded_units(shards_at(self.folder), run, UNIT) for token in unit.tolist()
            ]
            assert tokens == self.expected[run.split][run.first : run.first + run.item_count]

    @precondition(lambda self: self.runs)
    @rule(number=NUMBERS)
    def write_run(self, number: int) -> None:
        run = self.ledger.current(self.runs.pop(number % len(self.runs)))
        shards_at(self.folder).delete(self.take_spares(number))
        self.read(run)
        self.written.add(run.key)
        self.spares += self.ledger.written(run, [])

    @precondition(lambda self: self.runs)
    @rule(number=NUMBERS)
    def damage_and_make_again(self, number: int) -> None:
        run = self.ledger.current(self.runs[number % len(self.runs)])
        if not run.slices:
            return
        own = run.slices[number % len(run.slices)]
        place = number % len(own.parts)
        part = own.parts[place]
        if part.inline:
            return
        former = self.ledger.record(part.shard)
        assert former is not None
        change_part(self.folder, former, part.name, 0 if place else own.start * part.item_bytes)
        with suppress(DamagedShard):
            self.read(run)
            assert place  # of the starts a run of tokens may read others
        again = Attempt(self.folder, part.shard.chunk_index, self.take_spares(number))
        record = self.finished(again)
        assert record == former
        self.log[again.chunk] = record
        self.spares += self.ledger.replace(record)

    @rule()
    def be_killed_and_go_on(self) -> None:
        for attempt in self.attempts:
            attempt.is_lost = True
        self.ledger, self.runs = ledger_of(CHUNKS, ArrayLayout.create(chunk_tokens=UNIT)), []
        for _, record in sorted(self.log.items()):
            self.ledger.add(record)
            for run in self.ledger.ready():
                if run.key in self.written:
                    self.ledger.written(run, [])
                else:
                    self.runs.append(run)
        self.spares = []
        shards_at(self.folder).delete_others(self.ledger.needed_files())

    @invariant()
    def what_is_needed_is_intact(self) -> None:
        for run in self.runs:
            self.read(self.ledger.current(run))

    @invariant()
    def what_nobody_needs_does_not_pile_up(self) -> None:
        there = {path.name for path in self.folder.iterdir()}
        assert self.ledger.needed_files() <= there
        others = there - self.ledger.needed_files() - set(self.spares) - self.left_by_lost
        held = {name for attempt in self.attempts for name in attempt.spares}
        assert len(others - held) <= len(PARTS) * len(self.attempts)


TestShardFiles = ShardFilesMachine.TestCase
TestShardFiles.settings = settings(max_examples=150, stateful_step_count=60, deadline=None, derandomize=True)


@pytest.mark.parametrize("fault", ["one name for all attempts", "a file is given away while it is needed"])
def test_the_model_finds_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "one name for all attempts":
        monkeypatch.setattr(shard_files, "os", SimpleNamespace(urandom=bytes))
    else:
        written = Ledger.written

        def too_early(ledger: Ledger, run: Run, files: Any) -> Any:
            free = written(ledger, run, files)
            return [*free, *sorted(ledger.needed_files())[:1]]

        monkeypatch.setattr(Ledger, "written", too_early)
    finds_fault(ShardFilesMachine, 40, 60, DamagedShard, FileExistsError)


def test_of_an_earlier_run_only_what_is_needed_stays(tmp_path: Path) -> None:
    names = [
        "3.0-00aa.train",
        "3.0-00aa.small",
        "7.12-0b.validation-starts",
        "notes",
        "00000001-0.quarantine",
    ]
    for name in names:
        (tmp_path / name).touch()
    shards_at(tmp_path).delete_others({"3.0-00aa.small"})
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"3.0-00aa.small", "notes", "00000001-0.quarantine"}


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
    monkeypatch.setattr("convert.planning.plan.LEAST_SHARD_BYTES", 500)
    monkeypatch.setattr("tokenmill.inputs.blocks.BLOCK_BYTES", 300)
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", (64, 64))
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

    monkeypatch.setattr(convert.encode.worker, "encode_chunk", encode)
    convert_packed("out", workers=3)
    assert len(shards) > 30
    monkeypatch.undo()
    monkeypatch.chdir(here)
    convert_packed("clean", workers=1)
    assert tree(here / "out") == tree(here / "clean")
