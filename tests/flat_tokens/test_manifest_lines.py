"""A manifest that is read line by line is what parsing the whole gives, or is left to that; memory has a bound."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flat_tokens import writer
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import (
    LARGEST_MANIFEST_BYTES,
    FileRecord,
    Manifest,
    SplitRecord,
    read_manifest,
)
from flat_tokens.storage.manifest_head import read_head
from flat_tokens.storage.manifest_lines import read_lines

SPLITS = {name: SplitRecord(0, 0, 0) for name in ("train", "validation")}


def a_source(index: int) -> dict[str, Any]:
    return {
        "path": f"folder/{index}\n\u00e9.txt",
        "bytes": index,
        "digest": f"{index:016x}",
        "split": "by hash",
    }


def write(path: Path, count: int) -> dict[str, Any]:
    manifest = Manifest(SPLITS, (FileRecord("a", 1, "0" * 64),), options={"],\n": [1]})
    path.write_bytes(b"".join(manifest.blocks(map(a_source, range(count)))))
    value: dict[str, Any] = json.loads(path.read_bytes())
    return value


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2000, 2001])
def test_it_is_what_parsing_the_whole_gives(count: int, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    value = write(path, count)
    assert value["sources"] == [a_source(index) for index in range(count)]
    assert read_lines(path, 10**9, None) == (value, 0, value["manifest_sha256"])
    for most in (0, 1, 999, 1000, 1001, 3000):
        first = value | {"sources": value["sources"][:most]}
        assert read_lines(path, 10**9, most) == (first, max(0, count - most), value["manifest_sha256"])


OTHER_FORMS: dict[str, Callable[[bytes], bytes]] = {
    "indented": lambda data: json.dumps(json.loads(data), indent=1).encode(),
    "empty": lambda data: b"",
    "cut": lambda data: data[:-1],
    "more": lambda data: data + b"\n",
    "order": lambda data: data.replace(b'"layout"', b'"Layout"'),
    "comma": lambda data: data.replace(b"}\n],", b"},\n],"),
    "no comma": lambda data: data.replace(b"},\n{", b"}\n{", 1),
    "no JSON": lambda data: data.replace(b'"bytes"', b"bytes", 1),
    "deep": lambda data: data.replace(b'"bytes": 3', b'"bytes": ' + b"[" * 10**5 + b"]" * 10**5),
    "nested": lambda data: data.replace(b'"bytes": 3', b'"bytes": [3]', 1),
    "no object": lambda data: data.replace(b'"sources": [\n', b'"sources": [\n7,\n'),
    "blank lines": lambda data: data.replace(b'"files": [\n', b'"files": [\n' + b"\n" * 3000),
    "short hash": lambda data: data.replace(b'"\n}\n', b"")[:-1] + b'"\n}\n',
}


@pytest.mark.parametrize("count", [5, 1000])
@pytest.mark.parametrize("form", OTHER_FORMS)
def test_another_form_is_left_to_who_parses_the_whole(form: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    write(path, count)
    path.write_bytes(OTHER_FORMS[form](path.read_bytes()))
    assert read_lines(path, 10**9, None) is None


@pytest.mark.parametrize("form", ["no JSON", "nested", "no object"])
def test_sources_that_nobody_asks_for_are_hashed_and_not_parsed(form: str, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    value = write(path, 5)
    path.write_bytes(OTHER_FORMS[form](path.read_bytes()))
    found = read_lines(path, 10**9, 0)
    assert found is not None
    assert found.digest != value["manifest_sha256"]  # so it is refused as changed


def test_a_line_below_64_kib_is_read_and_a_longer_one_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    write(path, 3)
    data = path.read_bytes()
    line = next(line for line in data.splitlines(keepends=True) if b'"bytes": 1' in line)
    for size, is_read in ((2**16 - 1, True), (2**16, False)):
        longer = line.replace(b'"path": "', b'"path": "' + b"x" * (size - len(line)))
        assert len(longer) == size
        path.write_bytes(data.replace(line, longer))
        assert (read_lines(path, 10**9, None) is not None) == is_read


def test_a_source_that_was_edited_changes_the_hash(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    value = write(path, 5)
    path.write_bytes(path.read_bytes().replace(b'"bytes": 3', b'"bytes": 4'))
    found = read_lines(path, 10**9, 0)
    assert found is not None
    assert found.digest != value["manifest_sha256"]


def test_lines_that_hold_many_values_take_no_more_memory_than_short_ones(tmp_path: Path) -> None:
    """Lists within lists take 60 times their text; 36 MB of such lines took 1.5 GB."""
    path = tmp_path / "manifest.json"
    write(path, 1)
    line = b'{"path": ' + b"[" * 900 + b"]" * 900 + b"},\n"
    path.write_bytes(path.read_bytes().replace(b'"sources": [\n', b'"sources": [\n' + 5000 * line))
    assert path.stat().st_size > 9e6
    tracemalloc.start()
    try:
        assert read_lines(path, 10**9, None) is None
        assert tracemalloc.get_traced_memory()[1] < 80e6
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_sources_where_nobody_asks_for_them(tmp_path: Path) -> None:
    """Writing took 1.3 kB a source, reading as much."""
    tracemalloc.start()
    try:
        peaks = []
        for count in (4_000, 40_000):
            tracemalloc.reset_peak()
            sources = map(a_source, range(count))
            writer.write_root(tmp_path, SPLITS, [], ArrayLayout(), sources=sources)
            manifest = read_manifest(tmp_path, most_sources=3)
            assert manifest is not None
            assert manifest.sources == tuple(map(a_source, range(3)))
            assert manifest.sources_left_out == count - 3
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000
    assert (tmp_path / "manifest.json").stat().st_size < LARGEST_MANIFEST_BYTES
    whole = read_manifest(tmp_path)
    assert whole is not None
    assert whole.sources == tuple(map(a_source, range(40_000)))


def test_a_head_that_is_longer_is_read_with_the_whole(
    make_dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_dataset()
    own = read_head(root)
    monkeypatch.setattr("flat_tokens.storage.manifest_head.HEAD_BYTES", 60)
    other = read_head(root)
    assert {name: dict(split) for name, split in other.counts.items()} == dict(own.counts)
    assert other.layout == own.layout
