"""The inputs and options that finished shards depend on, in `plan.json`. Equal records mean equal shards.

    {"tokenmill_plan": 13, "tokenizer_sha256": "...", ..., "number of sources": 2, "run": "...", "sources": [
    ["en.txt", 12582912, 1699999999000000000, null, null, "text"],
    ["s3://bucket/more.jsonl.gz", 4, null, "\\"etag\\"", "validation", "jsonl.gz"]
    ]}

The file is JSON, but it is written and compared line by line, so that a million sources take no memory.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from convert.planning.plan import Plan
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.source_list import LEFT_OUT, Source, SourceList
from tokenmill.inputs.sources import recorded_path

PLAN_VERSION = 13
_VERSION, _COUNT = "tokenmill_plan", "number of sources"
_DISPLAYED = {
    _VERSION: "plan version",
    _COUNT: "input file count",
    "tokenizer_sha256": "tokenizer SHA-256",
    "text_chunk_bytes": "--text-chunk-bytes",
    "shard_text_bytes": "text bytes per shard (--text-chunk-bytes)",
}
_SOURCE_FIELDS = ("path", "size", "modification time", "content", "split", "format")
_SOURCES = b', "sources": [\n'
_END = b"]}\n"


class PlanRecord(NamedTuple):
    """A plan to write. head: everything except the sources, as plain JSON values."""

    head: Mapping[str, Any]
    sources: Iterable[Source] = ()

    def lines(self, run: str = "0", scratch: str = "") -> Iterator[bytes]:
        """Yield the lines of plan.json. run: the number of the run. scratch: where its shards are."""
        head = {**self.head, "run": run, "scratch": scratch}
        yield json.dumps(head)[:-1].encode("ascii") + _SOURCES
        separator = b""
        for source in self.sources:
            yield separator + _line(source)
            separator = b",\n"
        yield (b"\n" if separator else b"") + _END


def plan_record(plan: Plan, tokenizer_sha256: str, options: Mapping[str, Any]) -> PlanRecord:
    """Return the record of a plan for one tokenizer and options."""
    head = {
        _VERSION: PLAN_VERSION,
        "tokenizer_sha256": tokenizer_sha256,
        "text_chunk_bytes": plan.chunk_bytes,
        "shard_text_bytes": plan.shard_text_bytes,
        "options": dict(options),
        _COUNT: len(plan.sources),
    }
    return PlanRecord(head, plan.sources)


class RecordFile:
    """A plan.json, given as a file or its bytes. ValueError, now or when the sources are read, if it is damaged.

    run, scratch: as for PlanRecord.lines.
    """

    def __init__(self, content: Path | bytes) -> None:
        self._content = content
        with self._open() as file:
            line = file.readline()
            # Other versions may hold everything in one value.
            head = _parsed(
                line.removesuffix(_SOURCES) + b"}" if line.endswith(_SOURCES) else line + file.read()
            )
        if not isinstance(head, dict):
            raise ValueError("not a JSON object")
        self.version, self.run = head.get(_VERSION), str(head.pop("run", "0"))
        self.scratch = str(head.pop("scratch", ""))
        head.pop("sources", None)
        self.head: dict[str, Any] = head

    def _open(self) -> BinaryIO:
        return io.BytesIO(self._content) if isinstance(self._content, bytes) else self._content.open("rb")

    def lines(self) -> Iterator[bytes]:
        """Yield the line of each source, without the separator."""
        with self._open() as file:
            file.readline()
            for line in file:
                if line == _END:
                    return
                yield line.rstrip(b",\n")
        raise ValueError("truncated")


def differences(old: RecordFile, new: PlanRecord) -> Iterator[str]:
    """Yield how a new plan differs from the recorded one: "--seed 0 (now 1)", "size of en.txt 3 (now 4)"."""
    if old.version != new.head.get(_VERSION):  # the rest may have another form
        yield _difference(_VERSION, old.version, new.head.get(_VERSION))
        return
    given_head = json.loads(json.dumps(new.head))  # tuples become lists, as in the file
    former, now = ({**head, **head.get("options", {})} for head in (old.head, given_head))
    for name in (name for name in {**now, **former} if name != "options"):
        if former.get(name) != now.get(name) or type(former.get(name)) is not type(now.get(name)):
            yield _difference(name, former.get(name), now.get(name))
    if former.get(_COUNT) != now.get(_COUNT):
        return
    for number, (line, source) in enumerate(zip_longest(old.lines(), new.sources), 1):
        if line is None or source is None:
            raise ValueError("lists another number of sources than it declares")
        if line == _line(source) or source.is_left_out:
            continue
        values, given = _source_values(line), _source_values(_line(source))
        if values[0] != given[0]:
            yield _difference(f"input {number}", values[0], given[0])
            continue
        for name, value, other in zip(_SOURCE_FIELDS, values, given, strict=True):
            if value != other:
                yield _difference(f"{name} of {values[0]}", value, other)


def with_left_out(old: RecordFile, sources: SourceList) -> SourceList:
    """Return the sources with those that only the recorded run has, marked as left out, each at its position.

    Unchanged if the recorded run has no others, or has them in another order.
    """
    if old.version != PLAN_VERSION or old.head.get(_COUNT, 0) <= len(sources):
        return sources
    found, remaining = SourceList(), iter(sources)
    following = next(remaining, None)
    for path, size, mtime_ns, version, _, kind in map(_source_values, old.lines()):
        if following is not None and recorded_path(following.name) == path:
            found.append(following)
            following = next(remaining, None)
        elif path == "-":
            return sources
        else:
            name = os.fsdecode(path.encode("utf-8", "surrogateescape"))
            kind = Kind(*kind.split("."))
            found.append(Source(name, size, mtime_ns or 0, LEFT_OUT, kind, version=version or ""))
    return found if following is None else sources


def _line(source: Source) -> bytes:
    content = source.digest or source.version or None
    mtime_ns = None if content else source.mtime_ns
    path, kind = recorded_path(source.name), source.kind.name
    return json.dumps((path, source.size_bytes, mtime_ns, content, source.split, kind)).encode("ascii")


def _source_values(line: bytes) -> list[Any]:
    values = _parsed(line)
    if not isinstance(values, list) or len(values) != len(_SOURCE_FIELDS) or not isinstance(values[0], str):
        raise ValueError("invalid source entry")
    return values


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _difference(name: str, old: Any, new: Any) -> str:
    is_option = name not in _DISPLAYED and " " not in name
    displayed = f"--{name.replace('_', '-')}" if is_option else _DISPLAYED.get(name, name)
    return f"{displayed} {_shown(old)} (now {_shown(new)})"


def _shown(value: Any) -> str:
    if isinstance(value, dict):  # a token of the tokenizer
        value = value.get("text", value)
    return "not given" if value is None else repr(value)
