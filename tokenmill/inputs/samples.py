"""Samples of inputs: a few stretches, evenly spaced over them and at least one of each kind, with the texts in them.

Where the sources are alike, what is true of the samples is about true of all; what compressed files hold is judged by
their beginnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tokenmill.errors import TokenmillError, printable
from tokenmill.inputs import utf8
from tokenmill.inputs._core import json_texts
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import FileRange
from tokenmill.inputs.chunks import Chunks
from tokenmill.inputs.decompress import DecompressedFile
from tokenmill.inputs.documents import Buffers, Documents, Reading, refuse_lfs_pointer
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.json_array import is_array, may_be_array
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.sizes import counted
from tokenmill.inputs.source_list import Piece, Source

SAMPLES = 16
SAMPLE_BYTES = 256 << 10


class Sample(NamedTuple):
    """A part of one source: the bytes of the file it took, the texts in it, how many documents begin there, and what is
    wrong with it."""

    source: Source
    source_bytes: int
    batch: Batch
    documents: float
    fault: str = ""


def samples_of(
    chunks: Chunks, rules: IntakeRules, separator: bytes, faults: dict[int, str]
) -> Iterator[Sample]:
    """Samples of the sources at the places where they are to lie; bad records are passed over.

    faults: gets, by number, what is wrong with the sources that are sampled; the first of each.
    Nothing is taken twice: in a corpus of a few MB a sample begins where the one before ended.
    """
    taken: dict[int, int] = {}  # by source: how far
    for index, start in _places(chunks):
        source = chunks.sources[index]
        if source.is_left_out:
            continue
        # From the beginning, and once.
        is_compressed = source.kind.is_decoded or _is_marked(source, rules) or _is_array(source, rules)
        start = max(taken.get(index, 0), 0 if is_compressed else start - SAMPLE_BYTES // 2)
        if start >= source.size_bytes:
            continue
        taken[index] = source.size_bytes if is_compressed else start + SAMPLE_BYTES
        try:
            sample = _sample(source, start, rules, separator)
        except (TokenmillError, PermissionError) as error:
            faults.setdefault(index, printable(str(error)))
            continue
        if sample.fault:
            faults.setdefault(index, f"{printable(source.shown)}: {sample.fault}")
        if sample.source_bytes:
            yield sample


def _places(chunks: Chunks) -> Iterator[tuple[int, int]]:
    """(source, byte of it): evenly spaced over the line of all sources, and, of each kind that this passes over, in the
    middle of its largest source: a few compressed files may hold more text than what lies beside them."""
    missed = chunks.sources.kinds
    for k in range(SAMPLES):
        place = chunks.total_bytes * (2 * k + 1) // (2 * SAMPLES)
        if place >= chunks.total_bytes:
            return
        index = chunks.source_at(place)
        missed.discard(chunks.sources[index].kind)
        yield index, place - chunks.source_starts[index]
    for kind in sorted(missed):
        index = chunks.sources.largest_of(kind)
        yield index, chunks.sources[index].size_bytes // 2


def _sample(source: Source, start: int, rules: IntakeRules, separator: bytes) -> Sample:
    with source.open() as file:
        refuse_lfs_pointer(source, file)
    if _is_marked(source, rules) or _is_array(source, rules):
        return _table_sample(source, rules)
    if source.kind.format == "parquet":
        return _parquet_sample(source, rules)
    if source.kind.format not in ("text", "jsonl"):
        return _table_sample(source, rules)
    if source.kind.is_divisible:
        stop = min(start + SAMPLE_BYTES, source.size_bytes)
        data = bytearray(stop - start)
        with source.open() as file:
            used = _fill(FileRange(file, source.shown, start, stop), data)
        if source.kind.format == "jsonl":
            first = 0 if start == 0 else data.find(b"\n") + 1
            last = len(data) if stop == source.size_bytes else data.rfind(b"\n") + 1
            if (first == 0 and start > 0) or first >= last:  # within a long line: nearly all of it is text
                return Sample(
                    source, used, Batch.of([bytes(data).decode(errors="ignore").encode()]), start == 0
                )
            data, used = data[first:last], last - first
    else:
        data = bytearray(4 * SAMPLE_BYTES)
        with DecompressedFile(
            source.open(), source.shown, source.kind.compression, rules.max_window_bytes
        ) as stream:
            filled = _fill(stream, data)
            used = stream.used_bytes
        data = data[:filled]
        if source.kind.format == "jsonl" and filled == 4 * SAMPLE_BYTES and (last := data.rfind(b"\n")) >= 0:
            del data[last + 1 :]  # a line cut by us is no bad one
    fault = (utf8.other_kind(data) or "") if start == 0 else ""
    text = bytes(data).decode(errors="ignore").encode()
    if source.kind.format == "jsonl":
        out = np.empty(len(text) + 16, dtype=np.uint8)
        path = [name.encode() for name in rules.text_path]
        offsets, _, bad, lines, blank, _ = json_texts(text, path, out)
        if bad and not fault:
            from tokenmill.inputs.read_jsonl import reason_of  # a run that has room needs no sample

            fault = _bad_records(len(bad), lines - blank, {reason_of(name) for *_, name in bad})
        batch = Batch(out[: int(offsets[-1])].data, offsets)
        return Sample(source, used, batch, len(batch), fault)
    texts = text.split(separator)
    # Those that begin in it: not the one it begins within. A document of many stretches is begun once, not in each.
    begun = len(texts) - (start > 0) - (not texts[-1])
    return Sample(source, used, Batch.of(texts), begun, fault)


def _is_marked(source: Source, rules: IntakeRules) -> bool:
    return rules.marks is not None and source.kind.format != "text"


def _is_array(source: Source, rules: IntakeRules) -> bool:
    """Whether the source is or, where it is compressed, may be a JSON array."""
    if source.kind.format != "jsonl":
        return False
    return (is_array if source.kind.is_divisible else may_be_array)(source, rules)


def _fill(stream: FileRange | DecompressedFile, data: bytearray) -> int:
    filled = 0
    with memoryview(data) as view:
        while filled < len(view) and (got := stream.readinto(view[filled:])):
            filled += got
    return filled


def _table_sample(source: Source, rules: IntakeRules) -> Sample:
    """The first rows."""
    intake = Intake(rules._replace(on_error="skip", max_errors=None))
    texts: list[bytes] = []
    text_bytes = 0
    piece = Piece(0, 0, source.size_bytes)
    with Reading(0, source, piece, intake, b"", Buffers(SAMPLE_BYTES)) as reading:
        for event in reading.documents():
            if isinstance(event, Documents):
                view = memoryview(event.batch.text)
                texts += [bytes(view[start:stop]) for start, stop in pairwise(event.batch.offsets.tolist())]
                text_bytes += len(view)
            if text_bytes >= 4 * SAMPLE_BYTES:
                used = reading.done_bytes
                break
        else:
            used = source.size_bytes
    if intake.unreadable:
        raise BadInput(intake.unreadable[0][1])
    fault = ""
    if bad := sum(intake.skipped.values()):
        fault = _bad_records(bad, intake.records, set(intake.skipped))
    return Sample(source, used, Batch.of(texts), len(texts), fault)


def _bad_records(bad: int, records: int, reasons: set[str]) -> str:
    return f"{bad:,} of {counted(records, 'record')} in the sample are bad ({', '.join(sorted(reasons))})"


def _parquet_sample(source: Source, rules: IntakeRules) -> Sample:
    from tokenmill.inputs.read_parquet import text_sample

    rows, row_count, texts = text_sample(source, rules, 4 * SAMPLE_BYTES)
    mended = [text.decode(errors="replace").encode() for text in texts]
    return Sample(source, round(source.size_bytes * rows / max(1, row_count)), Batch.of(mended), rows)
