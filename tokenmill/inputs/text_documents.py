"""Plain text in whole documents: checked for valid UTF-8, and cut at separators where documents differ in validity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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


def valid_documents(
    source_index: int, source: Source, text: Text, checked: Buffer, separator: bytes, intake: Intake
) -> Documents:
    """Return the valid documents of a text. The others are bad records. checked: the text of `checked_text`."""
    separators = find_separators(text.text, separator)  # offsets are those in the source, before any repair
    places = np.insert(separators + np.uint64(len(separator)), 0, 0) + np.uint64(text.start)
    documents = bytes(checked).split(separator)
    intake.records += len(documents)
    bad_rows = []
    if validate_utf8(checked) >= 0:
        for row, (document, place) in enumerate(zip(documents, places.tolist(), strict=True)):
            if (bad := validate_utf8(document)) >= 0:
                detail = utf8.invalid_byte(place + bad, document[bad])
                record = BadRecord(INVALID_UTF8, detail, place, document, len(document))
                intake.bad(source_index, source, record)
                bad_rows.append(row)
    return Documents(Batch.of(documents), places).without(np.array(bad_rows, np.int64))
