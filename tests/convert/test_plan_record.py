"""plan.json tells what changed since it was written, in memory that does not grow with the sources."""

from __future__ import annotations

import copy
import json
import tracemalloc
from array import array
from pathlib import Path
from typing import Any

import pytest

from convert.planning.plan import make_plan
from convert.planning.plan_record import (
    PLAN_VERSION,
    PlanRecord,
    RecordFile,
    changed_source,
    compare,
    differences,
    plan_record,
    told,
)
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.source_list import Source, SourceList

SOURCES = [
    Source('a "quoted"\n\udcff.txt', 3, 10, None, Kind(), None),
    Source("b.jsonl.gz", 4, -20, "validation", Kind("jsonl", "gz"), None),
    Source("out.partial/stdin", 5, 30, None, Kind(), "0123456789abcdef"),
    Source("é/c.txt", 0, 2**62, None, Kind(), None),
]


def record_of(sources: list[Source], **head: Any) -> PlanRecord:
    record = plan_record(make_plan(SourceList(sources), 10), "abc", {"seed": 0, "separator": "x"})
    return PlanRecord({**record.head, **head}, record.sources)


def write(path: Path, record: PlanRecord) -> RecordFile:
    path.write_bytes(b"".join(record.lines()))
    return RecordFile(path)


@pytest.fixture
def old(tmp_path: Path) -> RecordFile:
    return write(tmp_path / "plan.json", record_of(SOURCES))


def test_it_is_json(tmp_path: Path) -> None:
    for count in range(len(SOURCES) + 1):
        record = record_of(SOURCES[:count])
        write(tmp_path / "plan.json", record)
        value = json.loads((tmp_path / "plan.json").read_bytes())
        sources = value.pop("sources")
        assert value == record.head
        assert (
            sources
            == [
                ['a "quoted"\n\udcff.txt', 3, 10, None, None, "text"],
                ["b.jsonl.gz", 4, -20, None, "validation", "jsonl.gz"],
                ["-", 5, None, "0123456789abcdef", None, "text"],
                ["é/c.txt", 0, 2**62, None, None, "text"],
            ][:count]
        )


def test_equal_records_do_not_differ(old: RecordFile) -> None:
    maybe_modified = array("q")
    assert list(compare(old, record_of(SOURCES), maybe_modified)) == []
    assert not maybe_modified


DIFFERENT: list[tuple[list[Source], dict[str, Any], tuple[str, Any, Any], str | None]] = [
    (SOURCES, {"tokenizer_sha256": "abd"}, ("tokenizer_sha256", "abc", "abd"), None),
    (SOURCES, {"tokenmill_plan": 1}, ("tokenmill_plan", PLAN_VERSION, 1), None),
    (SOURCES, {"options": {"seed": 0}}, ("options.separator", "x", None), None),
    (SOURCES[:3], {}, ("number of sources", 4, 3), None),
    ([], {}, ("number of sources", 4, 0), None),
    (
        [*SOURCES[:3], SOURCES[3]._replace(mtime_ns=5)],
        {},
        ("sources[3].mtime_ns", 2**62, 5),
        "é/c.txt: its modification time changed",
    ),
    (
        [SOURCES[0]._replace(path="new"), *SOURCES[1:]],
        {},
        ("sources[0].path", SOURCES[0].path, "new"),
        None,
    ),
    (
        [SOURCES[0], SOURCES[1]._replace(split=None), *SOURCES[2:]],
        {},
        ("sources[1].split", "validation", None),
        None,
    ),
    (
        [*SOURCES[:2], SOURCES[2]._replace(digest="0" * 16), SOURCES[3]],
        {},
        ("sources[2].digest", "0123456789abcdef", "0" * 16),
        "-: its content changed",
    ),
    # What changed is told though others came or went, or the order is another.
    (
        [Source("new", 1, 1), *SOURCES[:3], SOURCES[3]._replace(size_bytes=9)],
        {},
        ("number of sources", 4, 5),
        "é/c.txt: its size changed from 0 to 9 bytes",
    ),
    (
        [SOURCES[3]._replace(size_bytes=9), *SOURCES[:3]],
        {},
        ("sources[0].path", SOURCES[0].path, "é/c.txt"),
        "é/c.txt: its size changed from 0 to 9 bytes",
    ),
    ([*SOURCES[1:], SOURCES[0]], {}, ("sources[0].path", SOURCES[0].path, "b.jsonl.gz"), None),
]


@pytest.mark.parametrize(("sources", "head", "difference", "changed"), DIFFERENT, ids=str)
def test_the_differences_are_named(
    sources: list[Source],
    head: dict[str, Any],
    difference: tuple[str, Any, Any],
    changed: str | None,
    old: RecordFile,
) -> None:
    new = record_of(sources, **head)
    assert next(compare(old, new, array("q"))) == difference
    assert changed_source(old, new) == changed


HEAD: dict[str, Any] = {"a": {"seed": 0, "token": {"id": 2}}, "c": 3}


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (("a", "seed"), 1, "a.seed"),
        (("a", "seed"), False, "a.seed"),
        (("a", "new"), 1, "a.new"),
        (("a", "token", "id"), 3, "a.token.id"),
        (("a", "token"), [], "a.token"),
        (("c",), None, "c"),
    ],
    ids=str,
)
def test_the_differences_of_values(path: tuple[Any, ...], value: object, name: str) -> None:
    changed = copy.deepcopy(HEAD)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert [field for field, _, _ in differences(HEAD, changed)] == [name]
    assert list(differences(HEAD, copy.deepcopy(HEAD))) == []
    assert next(differences(changed, HEAD), None) is not None


def test_all_differences_are_told(old: RecordFile) -> None:
    sources = [SOURCES[0]._replace(path="new", size_bytes=1), *SOURCES[1:3], SOURCES[3]._replace(mtime_ns=5)]
    new = record_of(sources, text_chunk_bytes=11, options={"seed": 1, "separator": "x"})
    assert [name for name, _, _ in compare(old, new, array("q"))] == [
        "text_chunk_bytes",
        "options.seed",
        "sources[0].path",
        "sources[3].mtime_ns",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("options.validation_docs", "--validation-docs"),
        ("text_chunk_bytes", "--text-chunk-bytes"),
        ("tokenizer_sha256", "tokenizer SHA-256"),
        ("number of sources", "input file count"),
        ("sources[2].path", "input 3"),
        ("sources[0].kind", "kind of input 1"),
        ("tokenmill_plan", "plan version"),
    ],
)
def test_differences_are_told_as_the_command_line_calls_them(name: str, words: str) -> None:
    assert told(name) == words


def test_every_truncation_is_noticed(old: RecordFile, tmp_path: Path) -> None:
    data = (tmp_path / "plan.json").read_bytes()
    for length in range(len(data)):
        (tmp_path / "plan.json").write_bytes(data[:length])
        with pytest.raises(ValueError, match="."):
            list(compare(RecordFile(tmp_path / "plan.json"), record_of(SOURCES), array("q")))


@pytest.mark.parametrize("line", [b"5", b"[]", b"[1, 2, 3, 4, 5, 6, 7, 8]", b"{}", b"no JSON"])
def test_what_is_no_source_is_noticed(line: bytes, old: RecordFile, tmp_path: Path) -> None:
    lines = (tmp_path / "plan.json").read_bytes().split(b"\n")
    (tmp_path / "plan.json").write_bytes(b"\n".join([lines[0], line + b",", *lines[2:]]))
    with pytest.raises(ValueError, match="."):
        list(compare(RecordFile(tmp_path / "plan.json"), record_of(SOURCES), array("q")))


@pytest.mark.parametrize("where", ["head", "source"])
def test_nesting_without_end_was_a_traceback(where: str, tmp_path: Path) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    lines = list(record_of(SOURCES).lines())
    if where == "head":
        lines[0] = lines[0].replace(b'"options": {', b'"options": {"deep": ' + deep + b", ")
    else:
        lines[1] = deep + b",\n"
    (tmp_path / "deep.json").write_bytes(b"".join(lines))
    with pytest.raises(ValueError, match="nested"):
        list(compare(RecordFile(tmp_path / "deep.json"), record_of(SOURCES), array("q")))


def test_the_record_of_a_former_version_differs_by_its_version(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"tokenmill_plan": 4, "sources": [{"path": "a"}]}')
    former, new = RecordFile(tmp_path / "plan.json"), record_of(SOURCES)
    assert list(compare(former, new, array("q"))) == [("tokenmill_plan", 4, PLAN_VERSION)]
    assert changed_source(former, new) is None
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(ValueError, match="object"):
        RecordFile(tmp_path / "plan.json")


def test_memory_does_not_grow_with_the_sources(tmp_path: Path) -> None:
    """As records and a text a source took 2 kB."""
    peaks = []
    for count in (2_000, 20_000):
        record = record_of([Source(f"folder/{number}.txt", number, number) for number in range(count)])
        added = record_of([Source("new.txt", 1, 1), *record.sources])
        tracemalloc.start()
        try:
            with (tmp_path / "plan.json").open("wb") as file:
                file.writelines(record.lines())
            old = RecordFile(tmp_path / "plan.json")
            assert list(compare(old, record, array("q"))) == []
            assert changed_source(old, added) is None
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 20_000
