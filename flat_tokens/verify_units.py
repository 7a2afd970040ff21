"""The units of work of `verify`: top-level functions of picklable arguments, for any process to run.

A unit reads some whole files, compares size and digest with the manifest's, decodes each zarr chunk once and
checks the format's rules on it. Damage is returned as problems, never raised; errors of the machine
(OSError) pass through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import CONVERT_AGAIN, RESTORE, DatasetError, printable
from flat_tokens.format import MASK_BITS, not_rising
from flat_tokens.storage.chunks import ReadPart, decode_chunk, file_chunks, largest_file_bytes
from flat_tokens.storage.file_digest import file_digest
from flat_tokens.storage.files import AbsentFileError, ReadBuffer, absence, absent_chunk, check_length
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.places import File, Payload, Place, open_file
from flat_tokens.storage.token_facts import TokenFacts
from flat_tokens.storage.zarr_metadata import StoredArray

if TYPE_CHECKING:
    from flat_tokens.storage.elements import Elements

WHOLE_SHARD_BYTES = 2**27  # of a shard that is read at once: twice that of 16 Mi tokens as they are
STARTS_AT_ONCE = 2**20


class ArrayUnit(NamedTuple):
    """The elements [start, stop) of an array; whole files of it.

    records: the manifest's records of these files, None without a manifest. seq_starts and the range
    [first_start, stop_start) of its entries tell a unit of encoded_tokens where sequences may start; None if
    unknown. facts: of the unit's files of encoded_tokens that need not be decoded, by path."""

    root: Place
    elements: Elements
    start: int
    stop: int
    records: dict[str, FileRecord] | None
    max_token_id: int = 0
    seq_starts: Elements | None = None
    first_start: int = 0
    stop_start: int = 0
    facts: Mapping[str, TokenFacts] = {}


@dataclass
class UnitResult:
    """problems: path or array -> one line. borders: (index, first, last entry) of each zarr chunk of
    seq_starts. encoded_max: the largest encoded token, -1 if there was none. ones: bits of a mask that are set."""

    problems: dict[str, str] = field(default_factory=dict)
    byte_count: int = 0
    borders: list[tuple[int, int, int]] = field(default_factory=list)
    encoded_max: int = -1
    ones: int = 0

    def report(self, path: str, text: str) -> None:
        """Keep the first problem of each path: the rest mostly follows from it."""
        self.problems.setdefault(path, f"{printable(path)}: {text}")


def verify_files(root: Place, records: tuple[FileRecord, ...]) -> UnitResult:
    """Compare files with their records, whatever they hold."""
    result = UnitResult()
    buffer = ReadBuffer.take()
    try:
        for record in records:
            try:
                with open_file(root / record.path) as file:
                    _compare(result, record, file.size, file.blocks(buffer))
            except DatasetError as error:
                result.problems.setdefault(record.path, str(error))
    finally:
        buffer.give()
    return result


def _compare(result: UnitResult, record: FileRecord, size: int, blocks: Iterable[bytes | memoryview]) -> None:
    """size: of the file. blocks: its bytes, read as they are asked for."""
    result.byte_count += size
    if size != record.bytes:
        what = f"must have {record.bytes} bytes by the manifest (got {size})"
        result.report(record.path, f"{what}. {RESTORE}")
    elif file_digest(blocks) != record.digest:
        what = "changed after it was written (its digest differs from the manifest)"
        result.report(record.path, f"{what}. {RESTORE}")


def verify_starts(unit: ArrayUnit) -> UnitResult:
    """Check that entries rise strictly within each zarr chunk, and return the border entries for the rest."""
    result = UnitResult()
    for first, values in _blocks(unit, result):
        falls = np.flatnonzero(values[1:] <= values[:-1])
        if len(falls):
            at = int(falls[0])
            name = unit.elements.name
            what = not_rising(name, first + at + 1, values[at + 1], values[at])
            result.problems.setdefault(name, f"{what}. {CONVERT_AGAIN}")
        result.borders.append((first, int(values[0]), int(values[-1])))
    return result


def verify_bits(unit: ArrayUnit, token_count: int) -> UnitResult:
    """Count the bits of a mask that are set, which must be none behind those of `token_count` tokens."""
    result = UnitResult()
    for first, values in _blocks(unit, result):
        assert not isinstance(values, TokenFacts)
        bits = np.unpackbits(values, bitorder="little")
        result.ones += int(np.count_nonzero(bits))
        if bits[max(token_count - first * MASK_BITS, 0) :].any():
            text = f"bits after the last of {token_count} tokens must be 0"
            result.report(unit.elements.name, f"{text}. {CONVERT_AGAIN}")
    return result


def verify_tokens(unit: ArrayUnit) -> UnitResult:
    """Check the start flags against seq_starts and the ids against max_token_id.

    Cost beside reading, digest and decoding: 0.5 ns a token."""
    result = UnitResult()
    name = unit.elements.name
    starts = None
    if unit.seq_starts is not None:
        starts = StartsInOrder(unit.seq_starts, unit.first_start, unit.stop_start)
    low_bit = np.empty(0, dtype=np.uint32)
    for first, found in _blocks(unit, result):
        if isinstance(found, TokenFacts):
            _check_largest(result, unit, found.largest)
        else:
            _check_largest(result, unit, int(found.max()), first, found)
        if starts is None:
            continue
        try:
            if isinstance(found, TokenFacts):
                _check_facts(result, name, first, found, starts)
            else:
                if len(low_bit) != len(found):
                    low_bit = np.empty(len(found), dtype=np.uint32)
                np.bitwise_and(found, np.uint32(1), out=low_bit)
                _check_flags(result, name, first, low_bit, starts)
        except DatasetError as error:
            result.problems.setdefault(starts.name, str(error))
            starts = None
    return result


def _check_largest(
    result: UnitResult, unit: ArrayUnit, largest: int, first: int = 0, values: npt.NDArray[Any] | None = None
) -> None:
    result.encoded_max = max(result.encoded_max, largest)
    if largest >> 1 > unit.max_token_id:
        where = "IDs" if values is None else f"ID of token {first + int(values.argmax())}"
        what = f"{where} must be at most max_token_id = {unit.max_token_id} (got {largest >> 1})"
        result.report(unit.elements.name, f"{what}. {CONVERT_AGAIN}")


def _check_facts(result: UnitResult, name: str, first: int, facts: TokenFacts, starts: StartsInOrder) -> None:
    stop = first + facts.token_count
    positions = np.concatenate([np.empty(0, np.intp), *starts.within(first, stop)])
    if not facts.has_starts(positions.view(np.uint64)):
        text = f"start flags of tokens [{first}, {stop}) must agree with seq_starts"
        result.report(name, f"{text}. {CONVERT_AGAIN}")


def _check_flags(
    result: UnitResult, name: str, first: int, low_bit: npt.NDArray[Any], starts: StartsInOrder
) -> None:
    """Report the first token of a block whose low bit is not what seq_starts says. low_bit is overwritten then."""
    count, stop, all_set = 0, first + len(low_bit), True
    for positions in starts.within(first, stop):
        count += len(positions)
        all_set = all_set and bool(low_bit[positions].all())
    if all_set and count == np.count_nonzero(low_bit):
        return
    for positions in starts.within(first, stop):
        low_bit[positions] ^= 1
    at = int(np.flatnonzero(low_bit)[0])
    wanted = any((positions == at).any() for positions in starts.within(first, stop))
    what = f"start flag of token {first + at} must be {int(wanted)} by seq_starts (got {int(not wanted)})"
    result.report(name, f"{what}. {CONVERT_AGAIN}")


class StartsInOrder:
    """The entries [first, stop) of seq_starts, which rise, for one block of tokens after the other: so many are held as
    one read gives, however many there are."""

    def __init__(self, seq_starts: Elements, first: int, stop: int) -> None:
        self.name = seq_starts.name
        self._seq_starts = seq_starts
        self._first, self._stop = first, stop
        self._at = first
        self._entries: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._left_behind = -1  # the last entry in front of those that are held

    def within(self, low: int, high: int) -> Iterator[npt.NDArray[np.intp]]:
        """Those in [low, high), less low, a read of them at a time. DatasetError from reading."""
        if low <= self._left_behind:
            self._load(self._first)
        while True:
            window = np.searchsorted(self._entries, np.array([low, high], dtype=np.uint64))
            if window[0] < window[1]:
                yield (self._entries[window[0] : window[1]] - np.uint64(low)).astype(np.intp)
            end = self._at + len(self._entries)
            if window[1] < len(self._entries) or end >= self._stop:
                return
            self._load(end)

    def _load(self, first: int) -> None:
        self._left_behind = int(self._entries[-1]) if first > self._first else -1
        self._at = first
        self._entries = self._seq_starts.read(first, min(first + STARTS_AT_ONCE, self._stop))


def _blocks(unit: ArrayUnit, result: UnitResult) -> Iterator[tuple[int, npt.NDArray[Any] | TokenFacts]]:
    """(first element, values) of the unit, block by block, or in place of a file's values its facts; a block that
    cannot be read is reported and left out.

    The values are overwritten by the next block."""
    elements, stored = unit.elements, unit.elements.stored
    assert stored is not None
    buffer = np.empty(stored.chunk_elements, dtype=elements.dtype)
    room = ReadBuffer()
    for file_index in range(unit.start // stored.shard_elements, -(-unit.stop // stored.shard_elements)):
        place = stored.file_path(file_index)
        relative = f"{elements.name}/{stored.file_key(file_index)}"
        try:
            facts = unit.facts.get(relative)
            with open_file(place) as file:
                check_length(str(place), file.size, largest_file_bytes(stored))
                blocks, read = _opened(file, stored, room)
                if unit.records is None:
                    result.byte_count += file.size
                elif (
                    relative in unit.records
                ):  # otherwise it is reported as a file that the manifest does not list
                    _compare(result, unit.records[relative], file.size, blocks)
                for chunk_index, part in file_chunks(stored, file_index, read, file.size):
                    first = chunk_index * stored.chunk_elements
                    if part is None:
                        result.report(relative, absent_chunk(chunk_index))
                    elif facts is None:
                        decode_chunk(stored, read(*part), buffer, str(place))
                        yield first, buffer[: stored.element_count - first]
            if facts is not None:
                first = file_index * stored.shard_elements
                token_count = min(stored.shard_elements, stored.element_count - first)
                if facts.token_count == token_count:
                    yield first, facts
                else:
                    text = f"must have {token_count} tokens (got {facts.token_count})"
                    result.report(relative, f"{text}. {CONVERT_AGAIN}")
        except AbsentFileError:
            if unit.records is None and len(elements) == 1:
                yield 0, np.zeros(1, dtype=elements.dtype)
                continue
            result.report(relative, absence(relative))
        except DatasetError as error:
            result.problems.setdefault(relative, str(error))


def _opened(file: File, stored: StoredArray, room: ReadBuffer) -> tuple[Iterable[Payload], ReadPart]:
    """The bytes of a file of zarr chunks for its digest, and what reads a part of it. A long shard is read twice, so
    that no more than a block or a zarr chunk of it is held."""
    if stored.sharded and file.size > WHOLE_SHARD_BYTES:
        return file.blocks(room), file.part
    data = file.whole(room)
    return (data,), lambda offset, length: data[offset : offset + length]
