"""Samples of the inputs for estimates: parts at regular offsets, and one of each kind, read by the usual readers.

A compressed file, and a table, is sampled at its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tokenmill.errors import TokenmillError, printable
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.chunks import Chunks
from tokenmill.inputs.documents import Buffers, Documents, LongText, Reading, Text
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.json_array import is_array
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.sizes import counted
from tokenmill.inputs.source_list import Piece, Source
from tokenmill.stores.files import read_at

SAMPLES = 16
SAMPLE_BYTES = 256 << 10


class Sample(NamedTuple):
    """A part of a source: its size in the file, its texts, and the number of documents that begin in it."""

    source: Source
    source_bytes: int
    batch: Batch
    documents: int


def samples_of(
    chunks: Chunks, rules: IntakeRules, separator: bytes, faults: dict[int, str]
) -> Iterator[Sample]:
    """Yield samples that do not overlap. faults: receives the first fault of each source, by index."""
    stops: dict[int, int] = {}  # of the last sample of a source
    intake = Intake(rules._replace(on_error="skip", max_errors=None))
    for index, offset in _offsets(chunks):
        source = chunks.sources[index]
        start, stop, last_stop = 0, source.size_bytes, stops.get(index, 0)
        try:
            if not source.kind.is_decoded and not (source.kind.format == "jsonl" and is_array(source, rules)):
                start = max(last_stop, offset - SAMPLE_BYTES // 2)
                stop = min(start + SAMPLE_BYTES, stop)
            if start >= stop or last_stop > start:
                continue
            stops[index] = stop
            intake.reset()
            sample = _sample(Piece(index, start, stop), source, intake, separator)
        except (TokenmillError, PermissionError) as error:
            faults.setdefault(index, printable(str(error)))
            continue
        if intake.unreadable:
            faults.setdefault(index, intake.unreadable[0][1])
        elif bad := sum(intake.skipped.values()):
            records, reasons = counted(intake.records, "record"), ", ".join(sorted(intake.skipped))
            fault = f"{bad:,} of {records} in the sample are bad ({reasons})"
            faults.setdefault(index, f"{printable(source.shown)}: {fault}")
        if sample.source_bytes and len(sample.batch):
            yield sample


def _offsets(chunks: Chunks) -> Iterator[tuple[int, int]]:
    """Yield (source, offset) at regular distances, and in the largest source of each kind that these miss."""
    missed = chunks.sources.kinds
    for number in range(SAMPLES if chunks.total_bytes else 0):
        offset = chunks.total_bytes * (2 * number + 1) // (2 * SAMPLES)
        index = chunks.source_at(offset)
        missed.discard(chunks.sources[index].kind)
        yield index, offset - chunks.source_starts[index]
    for kind in sorted(missed):
        size, index = max(
            (source.size_bytes, -index) for index, source in enumerate(chunks.sources) if source.kind == kind
        )
        yield -index, size // 2


def _sample(piece: Piece, source: Source, intake: Intake, separator: bytes) -> Sample:
    texts: list[bytes] = []
    text_bytes = documents = done_bytes = 0
    piece_bytes = piece.stop - piece.start
    buffers = Buffers(SAMPLE_BYTES)
    with Reading(piece.source_index, source, piece, intake, separator, buffers) as reading:
        for event in reading.documents():
            first = len(texts)
            if isinstance(event, Text):
                texts += bytes(event.text).split(separator)
            elif isinstance(event, Documents):
                view = memoryview(event.batch.text)
                texts += [bytes(view[start:stop]) for start, stop in pairwise(event.batch.offsets.tolist())]
            documents += len(texts) - first
            if isinstance(event, LongText):  # only its beginning, which is no document
                texts.append(bytes(next(event.pieces)[0]))
            text_bytes += sum(map(len, texts[first:]))
            done_bytes = reading.done_bytes
            if text_bytes >= 4 * SAMPLE_BYTES or isinstance(event, LongText):
                break
        else:
            done_bytes = piece_bytes
        if not source.kind.is_decoded and piece_bytes <= SAMPLE_BYTES:
            # A document may extend far beyond the piece in which it begins. A piece in its middle is all text.
            done_bytes = max(piece_bytes, text_bytes)
            if not texts and not intake.records and not intake.unreadable:
                texts = [bytes(read_at(reading.file, piece.start, piece_bytes))]
    texts = [text.decode(errors="replace").encode() for text in texts]
    return Sample(source, done_bytes, Batch.of(texts), documents)
