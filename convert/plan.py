"""The corpus as text chunks, by arithmetic alone.

The sources lie end to end in one line of bytes; text chunk k is [k * C, (k + 1) * C) of that line and owns the
documents whose first byte lies in it. So a large file is many chunks, many small files are one, nothing need be read
to plan, and any chunk can be found without looking at another. C depends on the size of the corpus, never on the
number of workers. The dataset's bytes do not depend on C at all; finished shards do, so it is part of the plan.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from convert.inputs.sources import Source, recorded_path

MIB = 1 << 20
# The sources are hashed in blocks of this size (convert/inputs/digest.py); chunks of whole blocks read no byte twice.
BLOCK_BYTES = 4 * MIB
PLAN_VERSION = 4
_MARKS = ("changed_ns", "inode")


class Piece(NamedTuple):
    """Of source number `source_index`, the documents whose first byte lies in [start, stop)."""

    source_index: int
    start: int
    stop: int


@dataclass(frozen=True)
class TextChunk:
    """The unit of work: what one task encodes into one shard."""

    index: int
    pieces: tuple[Piece, ...]

    @property
    def text_bytes(self) -> int:
        """The length of the chunk in bytes; summed over all chunks it is the size of the corpus."""
        return sum(piece.stop - piece.start for piece in self.pieces)

    def describe(self, sources: Sequence[Source]) -> str:
        """For errors: "text chunk 3 (en.txt, bytes 12582912 to 16777216)"."""
        first, last = self.pieces[0], self.pieces[-1]
        where = f"{sources[first.source_index].path}, bytes {first.start} to {first.stop}"
        if last is not first:
            where += f" up to {sources[last.source_index].path}, bytes {last.start} to {last.stop}"
        return f"text chunk {self.index} ({where})"


class Plan(NamedTuple):
    """The sources and how long a text chunk is; chunks are made when they are asked for."""

    sources: tuple[Source, ...]
    chunk_bytes: int
    source_starts: tuple[int, ...]  # where each source starts in the line of all, and at last the total

    @property
    def total_bytes(self) -> int:
        """The size of the corpus."""
        return self.source_starts[-1]

    @property
    def chunk_count(self) -> int:
        """How many text chunks there are, none for an empty corpus."""
        return -(-self.total_bytes // self.chunk_bytes)

    def chunk(self, index: int) -> TextChunk:
        """Text chunk `index`; O(log sources + pieces)."""
        start = index * self.chunk_bytes
        stop = min(start + self.chunk_bytes, self.total_bytes)
        pieces = []
        source_index = bisect_right(self.source_starts, start) - 1
        while start < stop:
            source_start, source_stop = self.source_starts[source_index : source_index + 2]
            piece_stop = min(stop, source_stop)
            if start < piece_stop:
                pieces.append(Piece(source_index, start - source_start, piece_stop - source_start))
            start = piece_stop
            source_index += 1
        return TextChunk(index, tuple(pieces))

    def chunks(self) -> Iterator[TextChunk]:
        """All text chunks in order."""
        return map(self.chunk, range(self.chunk_count))


def make_plan(sources: Sequence[Source], chunk_bytes: int | None = None) -> Plan:
    """The plan for `sources`; chunk_bytes None takes `default_chunk_bytes` of their total."""
    starts = (0, *accumulate(source.size_bytes for source in sources))
    return Plan(tuple(sources), chunk_bytes or default_chunk_bytes(starts[-1]), starts)


def default_chunk_bytes(total_bytes: int) -> int:
    """A 64th of the corpus in whole blocks, from 4 to 32 MiB: 64 MB -> 4 MiB, 12 GB -> 32 MiB.

    64 chunks keep a few dozen workers busy to the end. Under 4 MiB the 0.5 ms a task costs would show against the
    10 ms of its encoding. A worker holds the text, its ids and their narrow copy: 200 MB for 32 MiB of usual text, and
    under the 350 MB a worker may take for a token a byte; 64 MiB took 430 MB and were no faster.
    """
    blocks = -(-total_bytes // (64 * BLOCK_BYTES))
    return min(max(blocks, 1), 8) * BLOCK_BYTES


def plan_record(plan: Plan, tokenizer_sha256: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """All that finished shards depend on, as plain JSON: the same record, the same shards.

    But "changed_ns" and "inode" of a source only say whether its bytes may be others; `without_marks` leaves them out.
    """
    return {
        "tokenmill_plan": PLAN_VERSION,
        "tokenizer_sha256": tokenizer_sha256,
        "text_chunk_bytes": plan.chunk_bytes,
        "options": dict(options),
        "sources": [
            {
                "path": recorded_path(s.name),
                "bytes": s.size_bytes,
                "mtime_ns": s.mtime_ns if s.digest is None else None,
                "changed_ns": s.changed_ns if s.digest is None else None,
                "inode": s.inode if s.digest is None else None,
                "digest": s.digest,
                "split": s.split,
                "kind": s.kind.name,
            }
            for s in plan.sources
        ],
    }


def without_marks(record: Any) -> Any:
    """A plan record of this version without what may change while the sources' bytes do not."""
    if not isinstance(record, dict) or record.get("tokenmill_plan") != PLAN_VERSION:
        return record
    sources = [
        {name: value for name, value in source.items() if name not in _MARKS} for source in record["sources"]
    ]
    return {**record, "sources": sources}


def touched_sources(old: dict[str, Any], new: dict[str, Any]) -> list[int]:
    """The sources, by number, that something was done to between two records that are equal without marks."""
    pairs = zip(old.get("sources", []), new.get("sources", []), strict=True)
    return [index for index, (was, is_) in enumerate(pairs) if any(was[mark] != is_[mark] for mark in _MARKS)]


def differences(old: Any, new: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The fields in which two plan records differ: (name, old value, new value).

    {"options": {"seed": 0}}, {"options": {"seed": 1}} -> ("options.seed", 0, 1)
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(key for key in old if key not in new)]:
            yield from differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key))
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"number of {name}", len(old), len(new)
            return
        for index, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from differences(old_item, new_item, f"{name}[{index}]")
    elif old != new or type(old) is not type(new):
        yield name, old, new


def told(name: str) -> str:
    """What a user calls a field of a plan record: "options.seed" -> "--seed", "sources[2].path" -> "input 3"."""
    if name == "text_chunk_bytes" or name.startswith("options."):
        return "--" + name.removeprefix("options.").replace("_", "-")
    if name == "tokenizer_sha256":
        return "the SHA-256 of the tokenizer"
    if name == "number of sources":
        return "the number of input files"
    found = re.fullmatch(r"sources\[([0-9]+)\]\.([a-z_]+)", name)
    if found:
        return (
            f"input {int(found[1]) + 1}" if found[2] == "path" else f"{found[2]} of input {int(found[1]) + 1}"
        )
    return name


def changed_source(old: Any, new: Any) -> str | None:
    """What changed about the first file that both plan records name but with another size or time; None if none did."""
    if not isinstance(old, dict) or old.get("tokenmill_plan") != new.get("tokenmill_plan"):
        return None  # what it says of sources may have another form
    known = {source["path"]: source for source in old.get("sources", [])}
    for source in new.get("sources", []):
        was = known.get(source["path"], source)
        if was["bytes"] != source["bytes"]:
            return f"{source['path']} had {was['bytes']} bytes and has {source['bytes']} now"
        if was["mtime_ns"] != source["mtime_ns"]:
            return f"{source['path']} was written to, its {source['bytes']} bytes may be others"
        if was.get("digest") != source["digest"]:
            return f"{source['path']} is other text now"
    return None
