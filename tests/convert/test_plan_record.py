"""plan.json says what changed since it was written, in memory that does not grow with the sources."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from convert.planning.plan import make_plan
from convert.planning.plan_record import (
    PLAN_VERSION,
    PlanRecord,
    RecordFile,
    differences,
    plan_record,
    with_left_out,
)
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.source_list import Source, SourceList

SOURCES = [
    Source('a "quoted"\n\udcff.txt', 3, 10),
    Source("b.jsonl.gz", 4, -20, "validation", Kind("jsonl", "gz")),
    Source("out.partial/stdin", 5, 30, None, Kind(), "0123456789abcdef"),
    Source("s3://bucket/c.txt", 0, 0, version='"tag"'),
]


def record_of(sources: list[Source], **head: Any) -> PlanRecord:
    record = plan_record(make_plan(SourceList(sources), 10), "abc", {"seed": 0, "separator": "x"})
    return PlanRecord({**record.head, **head}, record.sources)


def write(path: Path, record: PlanRecord) -> RecordFile:
    path.write_bytes(b"".join(record.lines("beef", "/scratch/x.shards")))
    return RecordFile(path)


@pytest.fixture
def old(tmp_path: Path) -> RecordFile:
    return write(tmp_path / "plan.json", record_of(SOURCES))


@pytest.mark.parametrize(
    ("sources", "head", "expected"),
    [
        (SOURCES, {"tokenizer_sha256": "abd"}, ["tokenizer SHA-256 'abc' (now 'abd')"]),
        (SOURCES, {"tokenmill_plan": 1}, [f"plan version {PLAN_VERSION} (now 1)"]),
        (SOURCES, {"options": {"seed": 1, "separator": "x"}}, ["--seed 0 (now 1)"]),
        (SOURCES, {"options": {"seed": False, "separator": "x"}}, ["--seed 0 (now False)"]),
        (SOURCES, {"options": {"seed": 0}}, ["--separator 'x' (now not given)"]),
        (
            SOURCES,
            {"options": {"seed": 0, "separator": "x", "append_token": {"id": 1, "text": "<s>"}}},
            ["--append-token not given (now '<s>')"],
        ),
        (SOURCES, {"text_chunk_bytes": 11}, ["--text-chunk-bytes 10 (now 11)"]),
        (SOURCES[:3], {}, ["input file count 4 (now 3)"]),
        ([SOURCES[0]._replace(size_bytes=9), *SOURCES[1:]], {}, [f"size of {SOURCES[0].path} 3 (now 9)"]),
        (
            [SOURCES[0], SOURCES[1]._replace(mtime_ns=5, split=None), *SOURCES[2:]],
            {},
            [
                "modification time of b.jsonl.gz -20 (now 5)",
                "split of b.jsonl.gz 'validation' (now not given)",
            ],
        ),
        (
            [*SOURCES[:2], SOURCES[2]._replace(digest="0" * 16), SOURCES[3]._replace(version='"new"')],
            {"text_chunk_bytes": 11},
            [
                "--text-chunk-bytes 10 (now 11)",
                f"content of - '0123456789abcdef' (now '{'0' * 16}')",
                """content of s3://bucket/c.txt '"tag"' (now '"new"')""",
            ],
        ),
        (
            [SOURCES[1], SOURCES[0], *SOURCES[2:]],
            {},
            [
                f"input 1 {SOURCES[0].path!r} (now 'b.jsonl.gz')",
                f"input 2 'b.jsonl.gz' (now {SOURCES[0].path!r})",
            ],
        ),
    ],
    ids=str,
)
def test_differences_are_named(
    sources: list[Source], head: dict[str, Any], expected: list[str], old: RecordFile
) -> None:
    assert list(differences(old, record_of(sources, **head))) == expected


def test_sources_that_are_left_out_stay_in_the_plan(old: RecordFile, tmp_path: Path) -> None:
    for remaining in (SOURCES[:1], SOURCES[1:3], [SOURCES[0], *SOURCES[2:]]):
        given = SourceList(remaining)
        if SOURCES[2] not in remaining:  # standard input cannot be left out
            assert list(with_left_out(old, given)) == list(given)
            continue
        found = with_left_out(old, given)
        assert [source.name for source in found] == [source.name for source in SOURCES]
        assert [source for source in found if not source.is_left_out] == remaining
        resumed = record_of(list(found))
        assert list(differences(old, resumed)) == []
        assert list(differences(write(tmp_path / "again.json", resumed), resumed)) == []
    assert list(with_left_out(old, SourceList(SOURCES[::-1][:2]))) == SOURCES[::-1][:2]  # another order


def test_every_truncation_is_noticed(old: RecordFile, tmp_path: Path) -> None:
    data = (tmp_path / "plan.json").read_bytes()
    for length in range(len(data)):
        with pytest.raises(ValueError, match="."):
            list(differences(RecordFile(data[:length]), record_of(SOURCES)))


@pytest.mark.parametrize("line", [b"5", b"[]", b"[1, 2, 3, 4, 5, 6]", b"{}", b"no JSON"])
def test_invalid_sources_are_noticed(line: bytes, old: RecordFile, tmp_path: Path) -> None:
    lines = (tmp_path / "plan.json").read_bytes().split(b"\n")
    with pytest.raises(ValueError, match="."):
        list(differences(RecordFile(b"\n".join([lines[0], line + b",", *lines[2:]])), record_of(SOURCES)))


def test_another_version_differs_by_its_version() -> None:
    former, new = RecordFile(b'{"tokenmill_plan": 4, "sources": [{"path": "a"}]}'), record_of(SOURCES)
    assert list(differences(former, new)) == [f"plan version 4 (now {PLAN_VERSION})"]
    with pytest.raises(ValueError, match="."):
        RecordFile(b"[]")


def test_memory_does_not_grow_with_the_sources(tmp_path: Path) -> None:
    peaks = []
    for count in (2_000, 20_000):
        record = record_of([Source(f"folder/{number}.txt", number, number) for number in range(count)])
        tracemalloc.start()
        try:
            with (tmp_path / "plan.json").open("wb") as file:
                file.writelines(record.lines())
            assert list(differences(RecordFile(tmp_path / "plan.json"), record)) == []
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 20_000
