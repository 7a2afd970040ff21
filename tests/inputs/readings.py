"""The documents of a file by the reader of its kind, cut into pieces in any way, for the tests."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenmill.inputs.documents import Buffers, Documents, LongText, Reading, Text
from tokenmill.inputs.intake import BadRecord, Intake
from tokenmill.inputs.kinds import kind_of
from tokenmill.inputs.long_line import LongLine
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Piece, Source

SEPARATOR = b"|"


class KeptIntake(Intake):
    """Keeps what is set aside."""

    def reset(self) -> None:
        super().reset()
        self.kept: list[BadRecord] = []

    def set_aside(self, source_index: int, record: BadRecord) -> None:
        self.kept.append(record)


def read(
    path: Path, pieces: int = 1, input_format: str = "auto", block_bytes: int = 1 << 16, **rules: Any
) -> tuple[list[str], KeptIntake]:
    """(the documents in order, the intake), with the file in so many pieces."""
    intake = KeptIntake(IntakeRules(**rules))
    status = os.stat(path)  # noqa: PTH116
    size = status.st_size
    source = Source(str(path), size, status.st_mtime_ns, kind=kind_of(str(path), input_format))
    cuts = [size * number // pieces for number in range(pieces + 1)]
    documents: list[str] = []
    for start, stop in pairwise(cuts):
        with Reading(0, source, Piece(0, start, stop), intake, SEPARATOR, Buffers(block_bytes)) as reading:
            for event in reading.documents():
                if isinstance(event, Text):
                    documents += bytes(event.text).decode().split(SEPARATOR.decode())
                elif isinstance(event, Documents):
                    view = memoryview(event.batch.text)
                    bounds = event.batch.offsets.tolist()
                    documents += [bytes(view[a:b]).decode() for a, b in pairwise(bounds)]
                    assert len(event.places) == len(event.batch)
                elif isinstance(event, LongText):
                    documents.append(b"".join(bytes(piece) for piece, _ in event.pieces).decode())
                elif isinstance(event, LongLine):
                    documents.append(b"".join(map(bytes, event.texts())).decode())
    return documents, intake
