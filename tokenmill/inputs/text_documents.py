"""Plain text in whole documents: checked for valid UTF-8, and cut at separators where documents differ in validity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tokenmill.errors import printable
from tokenmill.inputs import utf8
from tokenmill.inputs._core import find_separators, validate_utf8
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.documents import Documents, Text
from tokenmill.inputs.intake import INVALID_UTF8, BadRecord, Intake
from tokenmill.inputs.source_list import Source

if TYPE_CHECKING:
    from typing_extensions import Buffer


def checked_text(text: Text, source: Source, intake: Intake) -> tuple[Buffer, bool]:
    """Return (the text, repaired if the rules say so, whether it is valid UTF-8), or raise InvalidText."""
    repaired, bad = intake.repair(text.text)
    if bad >= 0 and intake.rules.stops_at_invalid:
        where, flag = printable(source.name), intake.rules.replace_flag
        raise utf8.invalid_text(text.text, bad, where, text.start, flag)
    return repaired, bad < 0


def places_of_documents(text: Text, separator: bytes) -> NDArray[np.uint64]:
    """Return the offsets in the source at which the documents of a text begin."""
    separators = find_separators(text.text, separator)
    places = np.empty(len(separators) + 1, dtype=np.uint64)
    places[0] = text.start
    np.add(separators, np.uint64(text.start + len(separator)), out=places[1:])
    return places


def valid_documents(
    source_index: int,
    source: Source,
    text: Buffer,
    separator: bytes,
    places: NDArray[np.uint64],
    intake: Intake,
) -> Documents:
    """Return the valid documents of a text, which begin at `places` of the source. The others are bad records."""
    batch = _without_separators(text, find_separators(text, separator), len(separator))
    intake.records += len(batch)
    bad_rows = []
    if validate_utf8(text) >= 0:
        view = memoryview(batch.text)
        starts = batch.offsets.tolist()
        for row, place in enumerate(places.tolist()):
            document = view[starts[row] : starts[row + 1]]
            if (bad := validate_utf8(document)) >= 0:
                detail = utf8.invalid_byte(place + bad, document[bad])
                record = BadRecord(INVALID_UTF8, detail, place, bytes(document), len(document))
                intake.bad(source_index, source, record)
                bad_rows.append(row)
    rows = np.array(bad_rows, dtype=np.int64)
    return Documents(batch.without(rows), np.delete(places, rows))


def _without_separators(text: Buffer, separators: NDArray[np.uint64], length: int) -> Batch:
    """b"a|bc", separators [1], length 1 -> b"abc", [0, 1, 3]."""
    data = np.frombuffer(memoryview(text), np.uint8)
    starts = separators.astype(np.int64)
    kept = np.ones(len(data), np.bool_)
    for offset in range(length):
        kept[starts + offset] = False
    offsets = np.zeros(len(starts) + 2, np.uint64)
    offsets[1:-1] = starts - length * np.arange(len(starts))
    offsets[-1] = len(data) - length * len(starts)
    return Batch(data[kept].data, offsets)
