"""The inputs and options that finished shards depend on, in `plan.json`. Equal records mean equal shards.

    {"plan version": 18, "tokenizer SHA-256": "...", ..., "input file count": 2, "run": "...", "scratch": ""}
    ["en.txt", 12582912, 1699999999000000000, null, null, "text"]
    ["s3://bucket/more.jsonl.gz", 4, null, "\\"etag\\"", "validation", "jsonl.gz"]

Each line is a JSON value. Plans are compared line by line, so that a million sources take little memory.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from convert.planning.plan import Plan
from tokenmill.inputs.source_list import Source
from tokenmill.inputs.sources import recorded_path

PLAN_VERSION = 18
_VERSION, _COUNT = "plan version", "input file count"
_RUN = re.compile("[0-9a-f]{1,16}")
_SOURCE_FIELDS = ("path", "size", "modification time", "content", "split", "format")


class PlanRecord(NamedTuple):
    """A plan to write. head: everything except the sources, as plain JSON values."""

    head: Mapping[str, Any]
    sources: Iterable[Source] = ()

    def lines(self, run: str, scratch: str) -> Iterator[bytes]:
        """Yield the lines of plan.json. run: the number of the run. scratch: where its shards are."""
        yield json.dumps({**self.head, "run": run, "scratch": scratch}).encode("ascii") + b"\n"
        yield from map(_line, self.sources)


def plan_record(plan: Plan, tokenizer_sha256: str, options: Mapping[str, Any]) -> PlanRecord:
    """Return the record of a plan for one tokenizer and options."""
    head = {
        _VERSION: PLAN_VERSION,
        "tokenizer SHA-256": tokenizer_sha256,
        "text_chunk_bytes": plan.chunk_bytes,
        "text bytes per shard (--text-chunk-bytes)": plan.shard_text_bytes,
        _COUNT: len(plan.sources),
        **options,
    }
    return PlanRecord(head, plan.sources)


class FormerPlan(NamedTuple):
    """A plan.json that was read. lines: of its sources. run, scratch: as for PlanRecord.lines."""

    head: Mapping[str, Any]
    lines: Iterator[bytes]
    run: str
    scratch: str

    @classmethod
    def of(cls, data: bytes) -> FormerPlan:
        """Read the bytes of a plan.json. Raise ValueError if it is damaged."""
        lines = io.BytesIO(data)
        head = _value(next(lines, b""), dict)
        run, scratch = (str(head.pop(name, "")) for name in ("run", "scratch"))
        if not _RUN.fullmatch(run):
            raise ValueError("invalid run number")
        if head.get(_VERSION) == PLAN_VERSION and head.get(_COUNT) != data.count(b"\n") - 1:
            raise ValueError("truncated")
        return cls(head, lines, run, scratch)


def differences(old: FormerPlan, new: PlanRecord) -> Iterator[str]:
    """Yield how a new plan differs from the former one: "--seed 0 (now 1)", "size of en.txt 3 (now 4)"."""
    if old.head.get(_VERSION) != PLAN_VERSION:  # the rest may have another form
        yield _difference(_VERSION, old.head.get(_VERSION), PLAN_VERSION)
        return
    for name in {**new.head, **old.head}:
        former, now = old.head.get(name), new.head.get(name)
        if json.dumps(former) != json.dumps(now):  # 1 is not True, and a tuple was read as a list
            yield _difference(name, former, now)
    for number, (line, given) in enumerate(zip_longest(old.lines, map(_line, new.sources)), 1):
        if line == given:
            continue
        values, others = (
            dict(zip(_SOURCE_FIELDS, _value(one or b"[]", list), strict=False)) for one in (line, given)
        )
        if values.get("path") != others.get("path"):
            yield _difference(f"input {number}", values.get("path"), others.get("path"))
            continue
        for name in _SOURCE_FIELDS:
            if values.get(name) != others.get(name):
                yield _difference(f"{name} of {values['path']}", values.get(name), others.get(name))


def _value(line: bytes, kind: type) -> Any:
    """Return the JSON value in a line. ValueError if it is damaged or of another type."""
    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, kind):
        raise ValueError(f"must contain a {kind.__name__} per line")
    return value


def _line(source: Source) -> bytes:
    content = source.digest or source.version or None
    mtime_ns = None if content else source.mtime_ns
    values = recorded_path(source.name), source.size_bytes, mtime_ns, content, source.split, source.kind.name
    return json.dumps(values).encode("ascii") + b"\n"


def _difference(name: str, old: Any, new: Any) -> str:
    displayed = name if " " in name else f"--{name.replace('_', '-')}"
    return f"{displayed} {_shown(old)} (now {_shown(new)})"


def _shown(value: Any) -> str:
    if isinstance(value, dict):  # a token of the tokenizer
        value = value.get("text", value)
    return "not given" if value is None else repr(value)
