"""What finished shards depend on, in `plan.json`: the same record, the same shards.

    {"tokenmill_plan": 10, "tokenizer_sha256": "...", ..., "number of sources": 2, "sources": [
    ["en.txt", 12582912, 1699999999000000000, null, null, "text"],
    ["more.jsonl.gz", ...]
    ]}

The digest is that of standard input, or the version of an object in a store, which has no times here.
JSON, but written and compared line by line: a million sources took 2 kB each as records and texts. The members of a
source are FIELDS.
"""

from __future__ import annotations

import io
import json
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from convert.planning.plan import Plan
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.source_list import LEFT_OUT, Source, SourceList
from tokenmill.inputs.sources import recorded_path

PLAN_VERSION = 13
FIELDS = ("path", "bytes", "mtime_ns", "digest", "split", "kind")
_COUNT = "number of sources"
_TOLD = {
    "shard_text_bytes": "text bytes per shard (--text-chunk-bytes)",
    "tokenmill_plan": "plan version",
    "tokenizer_sha256": "tokenizer SHA-256",
    _COUNT: "input file count",
}
_SOURCES = b', "sources": [\n'
_END = b"]}\n"
Difference = tuple[str, Any, Any]  # what it is called, old value, new value


class PlanRecord(NamedTuple):
    """head: everything but the sources, as plain JSON values."""

    head: Mapping[str, Any]
    sources: Iterable[Source] = ()

    def lines(self) -> Iterator[bytes]:
        """Those of plan.json."""
        yield json.dumps(self.head)[:-1].encode("ascii") + _SOURCES
        line, end = b"", b",\n"
        for source in self.sources:
            if line:
                yield line + end
            line = _line(source)
        if line:
            yield line + b"\n"
        yield _END


def plan_record(plan: Plan, tokenizer_sha256: str, options: Mapping[str, Any]) -> PlanRecord:
    """The record of a plan for one tokenizer and options."""
    head = {
        "tokenmill_plan": PLAN_VERSION,
        "tokenizer_sha256": tokenizer_sha256,
        "text_chunk_bytes": plan.chunk_bytes,
        "shard_text_bytes": plan.shard_text_bytes,
        "options": dict(options),
        _COUNT: len(plan.sources),
    }
    return PlanRecord(head, plan.sources)


def _line(source: Source) -> bytes:
    """A source as JSON."""
    has_times = source.digest is None and not source.version
    mtime_ns = source.mtime_ns if has_times else None
    content = source.digest or source.version or None
    values = (
        recorded_path(source.name),
        source.size_bytes,
        mtime_ns,
        content,
        source.split,
        source.kind.name,
    )
    return json.dumps(values).encode("ascii")


class RecordFile:
    """The record of an earlier run, a file or its bytes. ValueError, now or when the sources are read, if damaged."""

    def __init__(self, content: Path | bytes) -> None:
        self._content = content
        with self._open() as file:
            line = file.readline()
            has_sources = line.endswith(_SOURCES)
            # Former versions have it all in one value.
            head = _parsed(line.removesuffix(_SOURCES) + b"}" if has_sources else line + file.read())
        if not isinstance(head, dict):
            raise ValueError("not a JSON object")
        head.pop("sources", None)
        self.head: dict[str, Any] = head

    def _open(self) -> BinaryIO:
        return io.BytesIO(self._content) if isinstance(self._content, bytes) else self._content.open("rb")

    def lines(self) -> Iterator[bytes]:
        """The sources, if any, each as `_line` gave it."""
        with self._open() as file:
            if not file.readline().endswith(_SOURCES):
                return
            for line in file:
                if line == _END:
                    return
                yield line.rstrip(b",\n")
        raise ValueError("truncated")


def compare(old: RecordFile, new: PlanRecord, maybe_modified: array[int]) -> Iterator[Difference]:
    """The fields in which two records differ, but for marks; `maybe_modified` gets the numbers of the sources whose
    marks, or other fields, differ."""
    former, version = old.head.get("tokenmill_plan"), new.head.get("tokenmill_plan")
    if former != version:
        yield "tokenmill_plan", former, version  # all else may have another form
        return
    # As JSON would give it back: tuples are lists there.
    yield from differences(old.head, json.loads(json.dumps(new.head)))
    if old.head.get(_COUNT) != new.head.get(_COUNT):
        return
    for number, (was, source) in enumerate(zip_longest(old.lines(), new.sources)):
        if was is None or source is None:
            raise ValueError(f"lists {'fewer' if was is None else 'more'} sources than it declares")
        line = _line(source)
        if was == line or source.is_left_out:
            continue
        for name, old_value, new_value in zip(FIELDS, _values(was), _values(line), strict=True):
            yield from differences(old_value, new_value, f"sources[{number}].{name}")
            if name == "path" and old_value != new_value:
                break  # what else differs is that file's
        maybe_modified.append(number)


def with_left_out(old: RecordFile, sources: SourceList) -> SourceList:
    """The sources with those that the earlier run has besides them, marked as left out, each in its place.

    Unchanged if the earlier run has no others, or if the two lists have another order.
    """
    if old.head.get("tokenmill_plan") != PLAN_VERSION or old.head.get(_COUNT, 0) <= len(sources):
        return sources
    found, remaining = SourceList(), iter(sources)
    following = next(remaining, None)
    for line in old.lines():
        path, size, mtime_ns, content, _, kind = _values(line)
        if following is not None and recorded_path(following.name) == path:
            found.append(following)
            following = next(remaining, None)
        elif path == "-":
            return sources
        else:
            name = os.fsdecode(path.encode("utf-8", "surrogateescape"))
            kept = Kind(*kind.split("."))
            found.append(Source(name, size, mtime_ns or 0, LEFT_OUT, kept, version=content or ""))
    return found if following is None else sources


def differences(old: Any, new: Any, name: str = "") -> Iterator[Difference]:
    """The fields in which two JSON values differ.

    {"options": {"seed": 0}}, {"options": {"seed": 1}} -> ("options.seed", 0, 1)
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(key for key in old if key not in new)]:
            yield from differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key))
    elif old != new or type(old) is not type(new):
        yield name, old, new


def told(name: str) -> str:
    """What a user calls a field of a plan record, before its value: "options.seed" -> "--seed", "sources[2].path" ->
    "input 3"."""
    if name == "text_chunk_bytes" or name.startswith("options."):
        return "--" + name.removeprefix("options.").replace("_", "-")
    found = re.fullmatch(r"sources\[([0-9]+)\]\.([a-z_]+)", name)
    if found:
        what = f"input {int(found[1]) + 1}"
        return what if found[2] == "path" else f"{found[2]} of {what}"
    return _TOLD.get(name, name)


def changed_source(old: RecordFile, new: PlanRecord) -> str | None:
    """What changed about a file that both records name but with another size or time; None if none did."""
    if old.head.get("tokenmill_plan") != new.head.get("tokenmill_plan"):
        return None  # what it says of sources may have another form
    # Side by side: what one names and the other has not yet is kept, which is little where a few were added.
    before: dict[str, list[Any]] = {}
    after: dict[str, list[Any]] = {}
    for was, source in zip_longest(old.lines(), new.sources):
        for line, own, others in (
            (was, before, after),
            (None if source is None else _line(source), after, before),
        ):
            if line is None:
                continue
            values = _values(line)
            path = values[0]
            own[path] = values
            if path in others:
                change = _change(path, before.pop(path), after.pop(path))
                if change is not None:
                    return change
    return None


def _change(path: str, old: list[Any], new: list[Any]) -> str | None:
    was, is_ = dict(zip(FIELDS, old, strict=True)), dict(zip(FIELDS, new, strict=True))
    if was["bytes"] != is_["bytes"]:
        return f"{path}: its size changed from {was['bytes']} to {is_['bytes']} bytes"
    if was["mtime_ns"] != is_["mtime_ns"]:
        return f"{path}: its modification time changed"
    if was["digest"] != is_["digest"]:
        return f"{path}: its content changed"
    return None


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _values(line: bytes) -> list[Any]:
    values = _parsed(line)
    if not isinstance(values, list) or len(values) != len(FIELDS) or not isinstance(values[0], str):
        raise ValueError("invalid source entry")
    return values
