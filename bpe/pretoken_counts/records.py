"""The documents of a file of records (JSON Lines, tables), or of text, as counting takes them: each a text by itself.

What `convert` reads by corpus is read by the same here, with the same rules for bad records. Special tokens in the text
of a record are text, as in a conversion, those in text are tokens. Where counting was stopped is known by how much text
came before.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from bpe.errors import Refused, system_failure
from bpe.pretoken_counts.counts_facts import COUNT_AGAIN, CountedSource
from bpe.pretoken_counts.source_facts import decoded_source
from bpe.pretoken_counts.sources import FileRange, StreamRest, file_of, kind_of_source
from bpe.pretoken_counts.tally import Skipped
from tokenmill.inputs.documents import Buffers, Documents, LongText, Reading
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.intake import UNREADABLE, BadRecord, Intake
from tokenmill.inputs.pieced_text import PiecedText
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Piece
from tokenmill.inputs.source_list import Source as File
from tokenmill.inputs.text_documents import checked_text, valid_documents

if TYPE_CHECKING:
    from bpe.pretoken_counts.counting_options import CountingOptions
    from bpe.pretoken_counts.sources import Source
    from tokenmill.inputs.batch import Batch
    from tokenmill.inputs.documents import Text
    from tokenmill.inputs.kinds import Kind


class _Intake(Intake):
    """Counts records, and keeps the place of the first bad one with each reason."""

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
    """Used as a context. text_bytes: of the documents so far. used_bytes: about how many of the file hold them.

    separator: of the documents of text. file: the file as it was when it was opened. replaced: how many U+FFFD were put
    in.
    """

    def __init__(self, source: Source, kind: Kind, rules: IntakeRules, separator: bytes = b"") -> None:
        file = file_of(source, kind, of_documents=True)
        assert file is not None
        self.file, self.text_bytes = file, 0
        self.is_text = kind.format == "text"
        self._separator = separator
        self.read_as = read_as(file, rules, separator)
        self._skipped_bytes = 0
        if isinstance(source, StreamRest):
            check_same_reading(file.shown, source.digest, self.read_as)
            self._skipped_bytes = source.counted_bytes
        try:
            self._intake = _Intake(rules)
            start, stop = 0, file.size_bytes
            if isinstance(source, FileRange):
                start, stop = source.start, file.size_bytes if source.stop is None else source.stop
            self._is_range, self._range_bytes = isinstance(source, FileRange), stop - start
            self._reading = Reading(0, file, Piece(0, start, stop), self._intake, separator, Buffers())
        except OSError as error:
            raise system_failure(file.shown, error) from error

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.close()

    @property
    def size_bytes(self) -> int:
        """Of what is read of the file."""
        return self._range_bytes

    @property
    def used_bytes(self) -> int:
        """See the class."""
        return self._reading.done_bytes

    @property
    def replaced(self) -> int:
        """See the class."""
        return self._intake.replaced

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The bad records that were left out, and the file if it could not be read to its end."""
        intake = self._intake
        counts = {**intake.skipped, **({UNREADABLE: 1} if intake.unreadable else {})}
        return tuple(Skipped(reason, count, intake.firsts[reason]) for reason, count in counts.items())

    def documents(self) -> Generator[Batch | PiecedText, None, None]:
        """Documents end to end, or one in pieces, to be read to its end; what was counted before is passed over."""
        left = self._skipped_bytes
        events = self._reading.documents()
        try:
            for event in events:
                if isinstance(event, LongText):
                    found = PiecedText(event, self.file, self._intake.rules)
                    if left:
                        left -= self.pass_over(found)
                    else:
                        yield found  # whoever counts it says how much text it has, if it is good
                    found.count_in(self._intake, 0, self.file)
                elif event is not None:
                    batch = event.batch if isinstance(event, Documents) else self._documents_of(event)
                    first = int(batch.offsets.searchsorted(left, side="left")) if left else 0
                    if left and first < len(batch.offsets) and int(batch.offsets[first]) != left:
                        raise _changed(self.file.shown)
                    first = min(first, len(batch))
                    passed = int(batch.offsets[first])
                    left -= passed
                    self.text_bytes += int(batch.offsets[-1])
                    if first < len(batch):
                        yield batch.rows(first, len(batch))
                if left < 0:
                    raise _changed(self.file.shown)
        except OSError as error:
            raise system_failure(error.filename or self.file.shown, error) from error
        if left:
            raise _changed(self.file.shown)

    def _documents_of(self, stretch: Text) -> Batch:
        """The good documents of a stretch of text."""
        text, _ = checked_text(stretch, self.file, self._intake)
        return valid_documents(0, self.file, stretch, text, self._separator, self._intake).batch

    def pass_over(self, found: PiecedText) -> int:
        """How much text a long document has that is not counted here."""
        size = sum(memoryview(text).nbytes for text in found.texts())
        if found.fault:
            return 0
        self.text_bytes += size
        return size

    def counted(self, stopped: bool) -> CountedSource:
        """What facts say of the file, read to its end unless `stopped`."""
        if self._is_range:  # of a sample, which can't go on
            name, size = os.path.realpath(self.file.path), self.file.size_bytes
            return CountedSource(name, size, self._range_bytes, self.file.mtime_ns, digest="")
        return decoded_source(self.file, self.read_as, stopped, self.used_bytes, self.text_bytes)


def check_same_cut_of_text(rest: Sequence[Source], options: CountingOptions) -> None:
    """Refused for text of a stopped run that was not read as documents then, and would be now."""
    for source in rest:
        if isinstance(source, FileRange) and options.text_separator:
            kind = kind_of_source(source, options.input_format)
            file = file_of(source, kind, of_documents=True)
            assert file is not None
            check_same_reading(file.shown, kind.name, read_as(file, options.rules, options.text_separator))


def read_as(file: File, rules: IntakeRules, separator: bytes = b"") -> str:
    """How a file is read, as facts of counting that was stopped say it: "jsonl.gz text", and an object's version.

    separator: of text that is read as documents.
    """
    name = file.kind.name
    if file.kind.format != "text":
        name += f" {rules.text_field}"
    elif separator:
        name += f" {separator!r}"
    return f"{name} {file.version}".rstrip()


def check_same_reading(path: str, before: str, now: str) -> None:
    """Raise Refused if the file was read in another way when counting was stopped."""
    if before != now:
        raise Refused(
            f"{path}: counted as {before!r} (kind, field or separator, version), but now read as "
            f"{now!r}. Pass the same --input-format, --text-field, --separator and --on-error, or count "
            "again without --counts."
        )


def _changed(path: str) -> BadInput:
    return BadInput(f"{path}: different from the documents counted before. {COUNT_AGAIN}")
