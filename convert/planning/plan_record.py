"""The inputs and options that finished shards depend on, in `plan.json`. Equal records mean equal shards.

    {"tokenmill_plan": 14, "tokenizer_sha256": "...", ..., "number of sources": 2, "run": "...", "scratch": ""}
    ["en.txt", 12582912, 1699999999000000000, null, null, "text"]
    ["s3://bucket/more.jsonl.gz", 4, null, "\\"etag\\"", "validation", "jsonl.gz"]

Each line is a JSON value. The file is written and compared line by line, so that a million sources take no memory.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from convert.planning.plan import Plan
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.source_list import LEFT_OUT, Source, SourceList
from tokenmill.inputs.sources import recorded_path

PLAN_VERSION = 16
_VERSION, _COUNT = "tokenmill_plan", "number of sources"
_DISPLAYED = {
    _VERSION: "plan version",
    _COUNT: "input file count",
    "tokenizer_sha256": "tokenizer SHA-256",
    "text_chunk_bytes": "--text-chunk-bytes",
    "shard_text_bytes": "text bytes per shard (--text-chunk-bytes)",
}
_RUN = re.compile("[0-9a-f]{1,16}")
_SOURCE_FIELDS = ("path", "size", "modification time", "content", "split", "format")


class PlanRecord(NamedTuple):
    """A plan to write. head: everything except the sources, as plain JSON values."""

    head: Mapping[str, Any]
    sources: Iterable[Source] = ()

    def lines(self, run: str = "0", scratch: str = "") -> Iterator[bytes]:
        """Yield the lines of plan.json. run: the number of the run. scratch: where its shards are."""
        yield json.dumps({**self.head, "run": run, "scratch": scratch}).encode("ascii") + b"\n"
        yield from map(_line, self.sources)


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
        head = _value(next(self._lines(), b""))
        if not isinstance(head, dict):
            raise ValueError("not a JSON object")
        self.run, self.scratch = str(head.pop("run", "0")), str(head.pop("scratch", ""))
        if not _RUN.fullmatch(self.run):
            raise ValueError("invalid run number")
        self.head, self.version = head, head.get(_VERSION)

    def sources(self) -> Iterator[list[Any]]:
        """Yield the values of each source."""
        count = 0
        for count, line in enumerate(self._lines()):
            if count == 0:
                continue
            values = _value(line) if line.endswith(b"\n") else None
            if (
                not isinstance(values, list)
                or len(values) != len(_SOURCE_FIELDS)
                or not isinstance(values[0], str)
            ):
                raise ValueError("invalid source entry")
            yield values
        if count != self.head.get(_COUNT, 0):
            raise ValueError("truncated")

    def _lines(self) -> Iterator[bytes]:
        content = self._content
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
            yield from file


def _value(line: bytes) -> Any:
    """Return the JSON value in a line. ValueError if it is damaged."""
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


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
    for number, (values, source) in enumerate(zip_longest(old.sources(), new.sources), 1):
        if values is None or source is None:
            raise ValueError("lists another number of sources than it declares")
        given = json.loads(_line(source))
        if values[0] != given[0]:
            yield _difference(f"input {number}", values[0], given[0])
        elif not source.is_left_out:
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
    for path, size, mtime_ns, version, _, kind in old.sources():
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
    values = recorded_path(source.name), source.size_bytes, mtime_ns, content, source.split, source.kind.name
    return json.dumps(values).encode("ascii") + b"\n"


def _difference(name: str, old: Any, new: Any) -> str:
    is_option = name not in _DISPLAYED and " " not in name
    displayed = f"--{name.replace('_', '-')}" if is_option else _DISPLAYED.get(name, name)
    return f"{displayed} {_shown(old)} (now {_shown(new)})"


def _shown(value: Any) -> str:
    if isinstance(value, dict):  # a token of the tokenizer
        value = value.get("text", value)
    return "not given" if value is None else repr(value)
