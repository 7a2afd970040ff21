"""The units of work of `verify`: top-level functions of picklable arguments, for any process to run.

A unit reads some whole files, compares size and digest with the manifest's, decodes each zarr chunk once and
checks the format's rules on it. Damage is returned as problems, never raised; errors of the machine
(OSError) pass through.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import DatasetError, printable
from flat_tokens.storage.chunks import (
    decode_chunk,
    file_chunks,
    largest_file_bytes,
)
from flat_tokens.storage.file_digest import has_digest
from flat_tokens.storage.files import (
    AbsentFileError,
    ReadBuffer,
    absence,
    open_regular,
    read_whole,
)
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.token_facts import TokenFacts

if TYPE_CHECKING:
    from flat_tokens.storage.elements import Elements

READ_BYTES = 2**20
FOREIGN_BLOCK = 2**20  # elements at a time where the zarr library reads


class ArrayUnit(NamedTuple):
    """The elements [start, stop) of an array; whole files of it where this package decodes it.

    records: the manifest's records of these files, None without a manifest. seq_starts and the range
    [first_start, stop_start) of its entries tell a unit of encoded_tokens where sequences may start; None if
    unknown. facts: of the unit's files of encoded_tokens that need not be decoded, by path."""

    root: Path
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
    seq_starts. encoded_max: the largest encoded token, -1 if there was none."""

    problems: dict[str, str] = field(default_factory=dict)
    byte_count: int = 0
    borders: list[tuple[int, int, int]] = field(default_factory=list)
    encoded_max: int = -1

    def report(self, path: str, text: str) -> None:
        """Keep the first problem of each path: the rest mostly follows from it."""
        self.problems.setdefault(path, f"{printable(path)}: {text}")


def verify_files(root: Path, records: tuple[FileRecord, ...]) -> UnitResult:
    """Compare files with their records, whatever they hold."""
    result = UnitResult()
    buffer = ReadBuffer.take()
    try:
        for record in records:
            try:
                file, size = open_regular(f"{root}/{record.path}")
            except DatasetError as error:
                result.problems.setdefault(record.path, str(error))
                continue
            with file:
                _compare(result, record, size, _file_blocks(file, buffer.room(READ_BYTES)))
    finally:
        buffer.give()
    return result


def _file_blocks(file: BinaryIO, room: memoryview) -> Iterator[memoryview]:
    """The bytes of a file, each block in the place of the one before."""
    while count := os.readv(file.fileno(), [room]):
        yield room[:count]


def _compare(result: UnitResult, record: FileRecord, size: int, blocks: Iterable[bytes | memoryview]) -> None:
    """size: of the file. blocks: its bytes, read as they are asked for."""
    result.byte_count += size
    if size != record.bytes:
        result.report(
            record.path, f"{size} bytes, the manifest says {record.bytes}; restore it or convert again"
        )
    elif not has_digest(blocks, record.digest):
        result.report(
            record.path,
            "its digest is not the manifest's: changed after it was written; restore it or convert again",
        )


def verify_starts(unit: ArrayUnit) -> UnitResult:
    """Check that entries rise strictly within each zarr chunk, and return the border entries for the rest."""
    result = UnitResult()
    for first, values in _blocks(unit, result):
        falls = np.flatnonzero(values[1:] <= values[:-1])
        if len(falls):
            at = int(falls[0])
            result.report(
                unit.elements.name,
                f"entry {first + at + 1} = {values[at + 1]} is not above entry {first + at} = {values[at]}; "
                "starts must rise, convert again",
            )
        result.borders.append((first, int(values[0]), int(values[-1])))
    return result


def verify_tokens(unit: ArrayUnit) -> UnitResult:
    """Check the start flags against seq_starts and the ids against max_token_id.

    Cost beside reading, digest and decoding: 0.5 ns a token."""
    result = UnitResult()
    starts = None
    if unit.seq_starts is not None:
        try:
            starts = unit.seq_starts.read(unit.first_start, unit.stop_start)
        except DatasetError as error:
            result.problems.setdefault(unit.seq_starts.name, str(error))
    for first, found in _blocks(unit, result):
        if isinstance(found, TokenFacts):
            _check_largest(result, unit, found.largest, "")
            _check_facts(result, unit.elements.name, first, found, starts)
        else:
            _check_largest(result, unit, int(found.max()), f" at {first + int(found.argmax())}")
            _check_flags(result, unit.elements.name, first, found, starts)
    return result


def _check_largest(result: UnitResult, unit: ArrayUnit, largest: int, where: str) -> None:
    result.encoded_max = max(result.encoded_max, largest)
    if largest >> 1 > unit.max_token_id:
        result.report(
            unit.elements.name,
            f"id {largest >> 1}{where} is above max_token_id {unit.max_token_id}; convert again",
        )


def _check_facts(
    result: UnitResult, name: str, first: int, facts: TokenFacts, starts: npt.NDArray[Any] | None
) -> None:
    stop = first + facts.token_count
    if starts is not None and not facts.has_starts(_within(starts, first, stop)):
        text = f"start flags of tokens {first} to {stop} are not where seq_starts has them; convert again"
        result.report(name, text)


def _check_flags(
    result: UnitResult, name: str, first: int, tokens: npt.NDArray[Any], starts: npt.NDArray[Any] | None
) -> None:
    if starts is None:
        return
    low_bit = tokens & np.uint32(1)
    expected = _within(starts, first, first + len(tokens)).astype(np.intp)
    if np.count_nonzero(low_bit) != len(expected) or not low_bit[expected].all():
        _report_flag(result, name, first, low_bit, expected)


def _within(starts: npt.NDArray[Any], first: int, stop: int) -> npt.NDArray[Any]:
    """The starts in [first, stop), counted from `first`: uint64."""
    low, high = np.searchsorted(starts, np.array([first, stop], dtype=starts.dtype))
    return starts[low:high] - np.uint64(first)


def _report_flag(
    result: UnitResult, name: str, first: int, low_bit: npt.NDArray[Any], expected: npt.NDArray[Any]
) -> None:
    wanted = np.zeros(len(low_bit), dtype=np.uint32)
    wanted[expected] = 1
    at = int(np.flatnonzero(wanted != low_bit)[0])
    has, says = ("no start flag", "begins") if wanted[at] else ("a start flag", "does not begin")
    result.report(
        name, f"token {first + at} has {has}, but seq_starts {says} a sequence there; convert again"
    )


def _blocks(unit: ArrayUnit, result: UnitResult) -> Iterator[tuple[int, npt.NDArray[Any] | TokenFacts]]:
    """(first element, values) of the unit, block by block, or in place of a file's values its facts; a block that
    cannot be read is reported and left out.

    The values are overwritten by the next block."""
    elements, stored = unit.elements, unit.elements.stored
    if stored is None:
        for first in range(unit.start, unit.stop, FOREIGN_BLOCK):
            stop = min(first + FOREIGN_BLOCK, unit.stop)
            try:
                values = elements.read(first, stop)
                if unit.records is None:  # else its files are read by themselves
                    result.byte_count += elements.foreign_bytes(first, stop)
            except DatasetError as error:
                result.problems.setdefault(elements.name, str(error))
                continue
            yield first, values
        return
    buffer = np.empty(stored.chunk_elements, dtype=elements.dtype)
    for file_index in range(unit.start // stored.shard_elements, -(-unit.stop // stored.shard_elements)):
        path = stored.file_path(file_index)
        relative = path.relative_to(unit.root).as_posix()
        try:
            payload = read_whole(path, largest_file_bytes(stored))
            if unit.records is None:
                result.byte_count += len(payload)
            elif (
                relative in unit.records
            ):  # otherwise it is reported as a file that the manifest does not list
                record = unit.records[relative]
                _compare(result, record, len(payload), (payload,))
            facts = unit.facts.get(relative)
            for chunk_index, part in file_chunks(stored, file_index, payload):
                first = chunk_index * stored.chunk_elements
                if part is None:
                    result.report(
                        relative, f"zarr chunk {chunk_index} is not in the shard; restore it or convert again"
                    )
                elif facts is None:
                    decode_chunk(stored, part, buffer, path)
                    yield first, buffer[: stored.element_count - first]
            if facts is not None:
                first = file_index * stored.shard_elements
                token_count = min(stored.shard_elements, stored.element_count - first)
                if facts.token_count == token_count:
                    yield first, facts
                else:
                    text = (
                        f"written with {facts.token_count} tokens, its place has {token_count}; convert again"
                    )
                    result.report(relative, text)
        except AbsentFileError:
            if unit.records is None and elements.is_lone_zero:
                yield 0, np.zeros(1, dtype=elements.dtype)
                continue
            result.report(relative, absence(relative))
        except DatasetError as error:
            result.problems.setdefault(relative, str(error))
