"""Read the documents of a file of records (JSON Lines, tables) or of text for counting, which treats each as one text.

The readers and the rules for bad records are the same as in `convert`. Special tokens are tokens in text files and
ordinary text in records.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TYPE_CHECKING

from bpe.errors import system_failure
from bpe.pretoken_counts.counts_facts import CountedSource
from bpe.pretoken_counts.sources import FileRange, file_of
from bpe.pretoken_counts.tally import Skipped
from tokenmill.inputs.documents import Buffers, Documents, LongText, Reading
from tokenmill.inputs.intake import UNREADABLE, BadRecord, Intake
from tokenmill.inputs.pieced_text import PiecedText
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Piece
from tokenmill.inputs.source_list import Source as File
from tokenmill.inputs.text_documents import checked_text, valid_documents

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Source
    from tokenmill.inputs.batch import Batch
    from tokenmill.inputs.documents import Text
    from tokenmill.inputs.kinds import Kind


class _Intake(Intake):
    """Counts records, and keeps the location of the first bad one per reason."""

    def __init__(self, rules: IntakeRules) -> None:
        self.firsts: dict[str, tuple[str, int, str]] = {}
        super().__init__(rules)

    def bad(self, source_index: int, source: File, record: BadRecord) -> None:
        super().bad(source_index, source, record)
        if record.reason not in self.firsts:
            place = self.located(record).place
            self.firsts[record.reason] = source.shown, place, "row" if record.is_row else "byte"

    def bad_file(self, source_index: int, source: File, error: Exception) -> None:
        super().bad_file(source_index, source, error)
        self.firsts.setdefault(UNREADABLE, (source.shown, 0, ""))


class Records:
    """The documents of a source; a context manager.

    separator: separates the documents of text.
    file: the file when it was opened.
    size_bytes: bytes of the file to read.
    text_bytes: bytes of the documents so far.
    """

    def __init__(self, source: Source, kind: Kind, rules: IntakeRules, separator: bytes = b"") -> None:
        file = file_of(source, kind)
        assert file is not None
        self.file, self.text_bytes = file, 0
        self.is_text = kind.format == "text"
        self._separator = separator
        start, stop = 0, file.size_bytes
        if isinstance(source, FileRange):
            start, stop = source.start, file.size_bytes if source.stop is None else source.stop
        self.size_bytes = stop - start
        self._intake = _Intake(rules)
        try:
            self._reading = Reading(0, file, Piece(0, start, stop), self._intake, separator, Buffers())
        except OSError as error:
            raise system_failure(file.shown, error) from error

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.close()

    @property
    def used_bytes(self) -> int:
        """Return the approximate number of bytes of the file that were used."""
        return self._reading.done_bytes

    @property
    def replaced(self) -> int:
        """Return the number of inserted U+FFFD."""
        return self._intake.replaced

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Return the bad records, and the file if it could not be read to its end."""
        intake = self._intake
        counts = {**intake.skipped, **({UNREADABLE: 1} if intake.unreadable else {})}
        return tuple(Skipped(reason, count, intake.firsts[reason]) for reason, count in counts.items())

    def documents(self) -> Generator[Batch | PiecedText, None, None]:
        """Yield batches of documents, or one long document that must be read to its end."""
        try:
            for event in self._reading.documents():
                if isinstance(event, LongText):
                    found = PiecedText(event, self.file, self._intake.rules)
                    yield found  # the consumer adds to text_bytes if the document is valid
                    found.count_in(self._intake, 0, self.file)
                elif event is not None:
                    batch = event.batch if isinstance(event, Documents) else self._documents_of(event)
                    self.text_bytes += int(batch.offsets[-1])
                    if len(batch):
                        yield batch
        except OSError as error:
            raise system_failure(error.filename or self.file.shown, error) from error

    def _documents_of(self, text: Text) -> Batch:
        """Return the valid documents of a text."""
        checked, _ = checked_text(text, self.file, self._intake)
        return valid_documents(0, self.file, text, checked, self._separator, self._intake).batch

    def counted(self) -> CountedSource:
        """Return the entry for the facts. The file must have been read to its end."""
        name = self.file.shown if self.file.version else os.path.realpath(self.file.path)
        return CountedSource(name, self.file.size_bytes, self.size_bytes, self.file.mtime_ns)
