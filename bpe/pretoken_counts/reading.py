"""Read sources for counting: plain text in blocks that can be pretokenized separately, and records as documents.

A block of text ends only where the text may be cut whatever follows: after a special token that cannot become a longer
one, or where the pattern allows it (`PretokenCounter.last_cut`). Text without such an offset is held until the end, up
to a limit. Two buffers alternate, because fresh memory per block would cost a tenth of the counting time. While a block
of a file is counted, a thread reads the next one. Streams are not read ahead, because a read may never return.

The readers of records and the rules for bad ones are the same as in `convert`. Special tokens are tokens in text files
and ordinary text in records.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bpe.errors import NotEnoughMemory, system_failure
from bpe.pretoken_counts.memory import enough_limit, used_bytes
from bpe.pretoken_counts.sources import FileRange
from tokenmill.errors import printable
from tokenmill.inputs import utf8
from tokenmill.inputs.documents import Buffers, Documents, LongText, Reading
from tokenmill.inputs.intake import UNREADABLE, BadRecord, Intake
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.sizes import bytes_text, counted
from tokenmill.inputs.source_list import Piece
from tokenmill.inputs.source_list import Source as File
from tokenmill.inputs.text_documents import PiecedText, checked_text, valid_documents
from tokenmill.stores import read_at

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.pretoken_counts.sources import Source
    from bpe.progress import Progress
    from tokenmill.inputs.batch import Batch

_REPAIRED_BYTES: Final = 1 << 18  # at a time: an invalid byte becomes three, and several copies are held
_UNKNOWN: Final = 1 << 61

# Number of bad records with the same reason, and (source, offset, unit) of the first one. The unit is "row", "byte",
# or "" for a whole file.
Skipped = tuple[int, tuple[str, int, str]]


class Tally(NamedTuple):
    """The number of inserted U+FFFD, and the bad records that were skipped, by reason."""

    replaced: int = 0
    skipped: dict[str, Skipped] = {}  # noqa: RUF012 - never changed

    def plus(self, other: Tally) -> Tally:
        """Return the sum of both."""
        both = self.skipped | other.skipped
        for reason in self.skipped.keys() & other.skipped.keys():
            (count, first), (more, second) = self.skipped[reason], other.skipped[reason]
            both[reason] = count + more, min(first, second)
        return Tally(self.replaced + other.replaced, both)

    def report_to(self, progress: Progress | None) -> None:
        """Pass the lines to `progress.note`."""
        if progress is not None:
            for line in self.lines():
                progress.note(line)

    def lines(self) -> Iterator[str]:
        """Yield one line per kind of notice."""
        if self.replaced:
            yield f"replaced {counted(self.replaced, 'byte sequence')} with U+FFFD (invalid UTF-8)"
        if self.skipped:
            records = sum(count for count, _ in self.skipped.values())
            reasons = []  # such as "malformed: 2, first in a.jsonl at byte 17"
            for reason, (count, (source, offset, unit)) in sorted(self.skipped.items()):
                at = f" at {unit} {offset}" if unit else ""
                reasons.append(f"{reason}: {count:,}, first in {printable(source)}{at}")
            yield f"skipped {counted(records, 'bad record')} ({'; '.join(reasons)})"


class HeldLimit(NamedTuple):
    """The limit for text that is held because it cannot be cut.

    bytes: the limit.
    memory_factor, memory_bytes: holding n bytes takes n * memory_factor + memory_bytes.
    """

    bytes: int
    memory_factor: int
    memory_bytes: int


class Reader:
    """Reads the bytes of an open source, and replaces invalid UTF-8 if `replaces`.

    start: offset of the first byte in a file.
    read_bytes: bytes read so far.
    tally: the number of inserted U+FFFD so far.
    """

    def __init__(self, source: Source, stream: Any, replaces: bool = False) -> None:
        self.source, self.replaces, self._stream = source, replaces, stream
        self.start = source.start if isinstance(source, FileRange) else 0
        self.read_bytes, self.tally = 0, Tally()
        self._repaired = self._repair()
        self._rest = memoryview(b"")

    @property
    def used_bytes(self) -> int:
        """The approximate number of bytes of the source that were used."""
        return int(getattr(self._stream, "used_bytes", self.read_bytes))

    @property
    def left_bytes(self) -> int:
        """The number of bytes still to be read, or more than any memory if it is unknown."""
        size = self.source.size_bytes if self.source.kind.compression == "none" else None
        return _UNKNOWN if size is None else size - self.read_bytes

    def starts_in_document(self, special_tokens: Sequence[bytes]) -> bool:
        """Return whether the text continues a document: it starts inside a file and not after a special token."""
        if not isinstance(self.source, FileRange) or self.start == 0:
            return False
        longest = min(self.start, max(map(len, special_tokens), default=0))
        with self.source.file.open() as file:
            before = bytes(read_at(file, self.start - longest, longest))
        return not before.endswith(tuple(special_tokens))

    def fill(self, room: memoryview) -> int:
        """Fill `room` and return the number of bytes, less than its size only at the end of the source."""
        if not self.replaces:
            return self._fill(room)
        filled = 0
        while filled < len(room):
            self._rest = self._rest or next(self._repaired, memoryview(b""))
            if not self._rest:
                break
            size = min(len(room) - filled, len(self._rest))
            room[filled : filled + size], self._rest = self._rest[:size], self._rest[size:]
            filled += size
        return filled

    def _fill(self, room: memoryview) -> int:
        filled = 0
        try:
            while filled < len(room) and (count := self._stream.readinto(room[filled:])):
                filled += count
        except OSError as error:
            offset = self.start + self.read_bytes + filled
            raise system_failure(f"{self.source.name}: byte {offset}", error) from error
        if not self.read_bytes and not self.start and utf8.other_kind(head := room[:filled]):
            raise utf8.invalid_text(head, 0, self.source.name)
        self.read_bytes += filled
        return filled

    def pieces(self, size: int) -> Iterator[tuple[bytes, bool]]:
        """Yield the bytes of the source in pieces, and whether a piece is the last one, which may be empty."""
        buffer = memoryview(bytearray(size))
        while count := self._fill(buffer):
            yield bytes(buffer[:count]), False
        yield b"", True

    def _repair(self) -> Iterator[memoryview]:
        for piece in utf8.whole_characters(self.pieces(_REPAIRED_BYTES)):
            valid, replaced = utf8.replace_invalid(piece)
            self.tally = Tally(self.tally.replaced + replaced)
            if len(piece):
                yield memoryview(valid)


def text_blocks(
    reader: Reader, last_cut: Callable[[Buffer], int], block_bytes: int, held_limit: HeldLimit | None = None
) -> Generator[tuple[memoryview, int], None, None]:
    """Yield (block of about `block_bytes` of text, its offset in the source after replacements).

    A block is valid until the next one is read. It is not checked for invalid UTF-8.

    last_cut: returns the last offset at which a text may be cut, 0 if there is none.
    held_limit: raise NotEnoughMemory before more text is held.
    """
    buffer, other = bytearray(), bytearray()
    held, start = 0, reader.start
    at_end = False
    ahead: Future[tuple[bytearray, int, bool]] | None = None
    # Leaving the context waits for a running read, because the file is closed next.
    with ThreadPoolExecutor(1, "bpe reader") as pool:
        while not at_end:
            if ahead is not None:
                buffer, stop, at_end = ahead.result()
                ahead = None
            else:
                # At least as much as is held, so that text that cannot be cut is searched log n times.
                more = max(block_bytes, held)
                if held_limit is not None and held and held + min(more, reader.left_bytes) > held_limit.bytes:
                    more = held_limit.bytes - held
                    if more < min(block_bytes, reader.left_bytes):
                        raise _refused(reader, start, held, held_limit)
                buffer, stop, at_end = _read(reader, buffer, held, more)
            tail = bytes(memoryview(buffer)[max(0, stop - 3) : stop])
            whole = stop if at_end else stop - utf8.cut_character_bytes(tail)
            text = memoryview(buffer)[:whole]
            cut = whole if at_end else last_cut(text)
            while 0 < cut < whole and text[cut] & 0xC0 == 0x80:
                cut -= 1  # invalid UTF-8: cut before the character, so that the error names the right byte
            held = stop - cut
            if cut:
                other = _with_room(other, 0, held)
                other[:held] = memoryview(buffer)[cut:stop]
                if isinstance(reader.source, FileRange) and not at_end and held <= block_bytes:
                    ahead = pool.submit(_read, reader, other, held, block_bytes)
                yield text[:cut], start
                # Drop a buffer that grew large for text without a cut.
                buffer, other = other, buffer if len(buffer) <= 4 * block_bytes else bytearray()
            start += cut


def _refused(reader: Reader, start: int, held_bytes: int, limit: HeldLimit) -> NotEnoughMemory:
    left_bytes = reader.left_bytes * (3 if reader.replaces else 1)
    size = held_bytes + (left_bytes if left_bytes < _UNKNOWN else held_bytes)
    enough = enough_limit(used_bytes() + size * limit.memory_factor + limit.memory_bytes)
    return NotEnoughMemory(
        f"{reader.source.name}: byte {start}: no place to split the next {bytes_text(held_bytes)}, more than the "
        f"memory limit allows. Pass the special token that ends documents, or --max-memory {enough} or more."
    )


def _read(reader: Reader, buffer: bytearray, at: int, size: int) -> tuple[bytearray, int, bool]:
    """Read `size` bytes of text to offset `at` of the buffer.

    Return (the buffer or a larger one, the end of the text in it, whether the source is at its end).
    """
    if not reader.replaces:
        size = min(size, max(reader.left_bytes, 0) + 1)  # small files need small buffers
    buffer = _with_room(buffer, at, at + size)
    filled = reader.fill(memoryview(buffer)[at : at + size])
    return buffer, at + filled, filled < size


def _with_room(buffer: bytearray, kept: int, size: int) -> bytearray:
    """Return the buffer, or a copy of its first `kept` bytes with room for `size`."""
    if size <= len(buffer):
        return buffer
    # A sixteenth more, because the size of the held text varies. Views of the old buffer forbid resizing it.
    larger = bytearray(size + (size // 16 if size >= 1 << 20 else 0))
    larger[:kept] = memoryview(buffer)[:kept]
    return larger


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
    """The documents of a file of records (JSON Lines, tables), or of text; a context manager.

    separator: separates the documents of text.
    read_bytes: bytes of the documents so far.
    """

    def __init__(self, source: FileRange, rules: IntakeRules, separator: bytes = b"") -> None:
        self.source, self.read_bytes = source, 0
        self._separator, self._intake = separator, _Intake(rules)
        piece = Piece(0, source.start, source.stop)
        try:
            self._reading = Reading(0, source.file, piece, self._intake, separator, Buffers())
        except OSError as error:
            raise system_failure(source.name, error) from error

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.close()

    @property
    def used_bytes(self) -> int:
        """The approximate number of bytes of the file that were used."""
        return self._reading.done_bytes

    @property
    def tally(self) -> Tally:
        """The number of replaced bytes, the bad records, and the file if it could not be read to its end."""
        intake = self._intake
        counts = intake.skipped | ({UNREADABLE: 1} if intake.unreadable else {})
        return Tally(
            intake.replaced, {reason: (count, intake.firsts[reason]) for reason, count in counts.items()}
        )

    def documents(self) -> Generator[Batch | PiecedText, None, None]:
        """Yield batches of documents, or one long document that must be read to its end."""
        file, intake = self.source.file, self._intake
        try:
            for event in self._reading.documents():
                if isinstance(event, LongText):
                    found = PiecedText(event, file, intake.rules)
                    yield found  # the consumer adds to read_bytes if the document is valid
                    found.count_in(intake, 0, file)
                elif event is not None:
                    if not isinstance(event, Documents):
                        checked, _ = checked_text(event, file, intake)
                        event = valid_documents(0, file, event, checked, self._separator, intake)
                    self.read_bytes += int(event.batch.offsets[-1])
                    if len(event.batch):
                        yield event.batch
        except OSError as error:
            raise system_failure(error.filename or self.source.name, error) from error
