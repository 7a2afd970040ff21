"""Reads the documents of a file, divided into parts in any way."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenmill.inputs.documents import Buffers, Documents, Event, LongText, Reading, Text
from tokenmill.inputs.intake import BadRecord, Intake
from tokenmill.inputs.kinds import kind_of
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Piece, Source, SourceList
from tokenmill.inputs.sources import refuse, search_sources
from tokenmill.inputs.text_documents import PiecedText, checked_text, valid_documents

SEPARATOR = b"|"


class KeptIntake(Intake):
    """Keeps the records that are set aside."""

    def reset(self) -> None:
        super().reset()
        self.kept: list[BadRecord] = []

    def set_aside(self, source_index: int, record: BadRecord) -> None:
        self.kept.append(record)


def find_sources(
    inputs: Sequence[str], validation: Sequence[str] = (), input_format: str = "auto", **options: Any
) -> SourceList:
    """The sources of arguments. BadArgument lists all problems."""
    found = search_sources(inputs, validation, input_format, **options)
    refuse(found.problems)
    return found.sources


def source_of(path: Path, input_format: str = "auto") -> Source:
    status = os.stat(path)  # noqa: PTH116
    return Source(str(path), status.st_size, status.st_mtime_ns, kind=kind_of(str(path), input_format))


def texts_of(event: Event, reading: Reading) -> Iterator[str]:
    """The valid documents of an event."""
    source, intake, separator = reading.source, reading.intake, reading.separator
    if isinstance(event, LongText):
        document = PiecedText(event, source, intake.rules)
        text = b"".join(map(bytes, document.texts()))
        intake.records += 1
        document.count_in(intake, 0, source)
        if not document.fault:
            yield text.decode()
        return
    if isinstance(event, Text):
        text, _ = checked_text(event, source, intake)
        event = valid_documents(0, source, event, text, separator, intake)
    if isinstance(event, Documents):
        assert len(event.places) == len(event.batch)
        view = memoryview(event.batch.text)
        for start, stop in pairwise(event.batch.offsets.tolist()):
            yield bytes(view[start:stop]).decode()


def read_parts(
    source: Source,
    cuts: Sequence[int],
    intake: Intake,
    separator: bytes = SEPARATOR,
    block_bytes: int = 1 << 16,
) -> list[str]:
    """The documents of the parts between the cuts, in order."""
    documents: list[str] = []
    for start, stop in pairwise(cuts):
        with Reading(0, source, Piece(0, start, stop), intake, separator, Buffers(block_bytes)) as reading:
            for event in reading.documents():
                try:
                    documents += texts_of(event, reading)
                except Exception as error:
                    reading.damaged(error)
                    break
    return documents


def read(
    path: Path, pieces: int = 1, input_format: str = "auto", block_bytes: int = 1 << 16, **rules: Any
) -> tuple[list[str], KeptIntake]:
    """(the documents in order, the intake), with the file in so many pieces."""
    intake, source = KeptIntake(IntakeRules(**rules)), source_of(path, input_format)
    cuts = [source.size_bytes * number // pieces for number in range(pieces + 1)]
    return read_parts(source, cuts, intake, block_bytes=block_bytes), intake


def json_text(line: str) -> str | None:
    """The text by Python's json, None for a bad line."""
    twice: list[bool] = []

    def pairs(items: list[tuple[str, Any]]) -> Any:
        keys = [key for key, _ in items]
        twice.append(keys.count("text") > 1)
        return dict(items)

    try:
        value = json.loads(line.strip(" \t\r"), object_pairs_hook=pairs)
    except ValueError:
        return None
    if not isinstance(value, dict) or twice[-1] or not isinstance(value.get("text"), str):
        return None
    text: str = value["text"]
    return text if not any("\ud800" <= character <= "\udfff" for character in text) else None
