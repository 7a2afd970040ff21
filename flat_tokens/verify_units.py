"""The units of work of `verify_dataset`: functions of picklable arguments, for any process.

A unit reads whole files, compares their size and digest with the manifest, decodes each Zarr chunk once and checks the
rules of the format. Damage is returned as problems. Errors of the machine (OSError) and of the store pass through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import CONVERT_AGAIN, RESTORE, DatasetError, damaged, printable
from flat_tokens.format import MASK_BITS, not_rising
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.file_digest import file_digest
from flat_tokens.storage.files import AbsentFileError, absence, check_length
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.places import File, Payload, Place, open_file
from flat_tokens.storage.shards import ABSENT, ReadPart, absent_chunk, read_index
from flat_tokens.storage.zarr_metadata import ArrayMetadata

WHOLE_SHARD_BYTES = 2**27  # larger shards are read twice instead of held


class ArrayUnit(NamedTuple):
    """The elements [start, stop) of an array, in whole files.

    records: the manifest's records of these files, None without a manifest.
    """

    elements: Elements
    start: int
    stop: int
    records: Mapping[str, FileRecord] | None


@dataclass
class UnitResult:
    """The result of a unit.

    problems: one line per path or array, the first one of each, because the others mostly follow from it.
    borders: (index, first entry, last entry) of each Zarr chunk of seq_starts.
    encoded_max: the largest encoded token, or -1.
    ones: bits of a loss mask that are set.
    """

    problems: dict[str, str] = field(default_factory=dict)
    byte_count: int = 0
    borders: list[tuple[int, int, int]] = field(default_factory=list)
    encoded_max: int = -1
    ones: int = 0

    def report(self, path: str, text: str, fix: str = CONVERT_AGAIN) -> None:
        """Add a problem."""
        self.problems.setdefault(path, f"{printable(path)}: {text}. {fix}")


def verify_files(root: Place, records: tuple[FileRecord, ...]) -> UnitResult:
    """Compare files with their records."""
    result = UnitResult()
    for record in records:
        try:
            with open_file(root / record.path) as file:
                _compare(result, record, file.size, file.blocks())
        except DatasetError as error:
            result.problems.setdefault(record.path, str(error))
    return result


def verify_starts(unit: ArrayUnit) -> UnitResult:
    """Check that entries rise within each Zarr chunk. The caller compares the chunks by their borders."""
    result = UnitResult()
    name = unit.elements.name
    for first, values in _blocks(unit, result):
        falls = np.flatnonzero(values[1:] <= values[:-1])
        if len(falls):
            at = int(falls[0])
            result.report(name, not_rising(name, first + at + 1, values[at + 1], values[at]))
        result.borders.append((first, int(values[0]), int(values[-1])))
    return result


def verify_mask(unit: ArrayUnit, token_count: int) -> UnitResult:
    """Count the bits that are set. Bits after the last token must be 0."""
    result = UnitResult()
    for first, values in _blocks(unit, result):
        bits = np.unpackbits(values, bitorder="little")
        result.ones += int(np.count_nonzero(bits))
        if bits[max(token_count - first * MASK_BITS, 0) :].any():
            result.report(unit.elements.name, f"bits after the last of {token_count} tokens must be 0")
    return result


def verify_tokens(
    unit: ArrayUnit, max_token_id: int, seq_starts: Elements | None, entries: tuple[int, int]
) -> UnitResult:
    """Check the start flags and the largest ID.

    seq_starts: None if it is damaged. entries: those that may be in this unit; they rise.

    Cost on top of reading, hashing and decoding: 0.5 ns per token.
    """
    result = UnitResult()
    name = unit.elements.name
    starts: npt.NDArray[np.uint64] | None = None
    if seq_starts is not None:
        try:
            starts = seq_starts.read(*entries)
        except DatasetError as error:
            result.problems.setdefault(seq_starts.name, str(error))
    for first, found in _blocks(unit, result):
        largest = int(found.max())
        result.encoded_max = max(result.encoded_max, largest)
        if largest >> 1 > max_token_id:
            where = f"ID of token {first + int(found.argmax())}"
            result.report(name, f"{where} must be at most max_token_id = {max_token_id} (got {largest >> 1})")
        if starts is not None:
            low, high = np.searchsorted(starts, np.array([first, first + len(found)], np.uint64))
            _check_flags(result, name, first, found, (starts[low:high] - np.uint64(first)).astype(np.int64))
    return result


def _check_flags(
    result: UnitResult, name: str, first: int, tokens: npt.NDArray[Any], expected: npt.NDArray[np.int64]
) -> None:
    """Report the first token with a wrong start flag. expected: the indices of the starts."""
    flags = tokens & np.uint32(1)
    if np.count_nonzero(flags) == len(expected) and flags[expected].all():
        return
    flags[expected] ^= 1
    at = int(np.flatnonzero(flags)[0])
    is_start = int(at in expected)
    result.report(
        name, f"start flag of token {first + at} must be {is_start} by seq_starts (got {1 - is_start})"
    )


def _blocks(unit: ArrayUnit, result: UnitResult) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Yield (first element, values) per Zarr chunk.

    A chunk that cannot be read is reported and left out. Each chunk overwrites the previous one.
    """
    elements, array = unit.elements, unit.elements.metadata
    assert array is not None
    values = np.empty(array.chunk_elements, dtype=elements.dtype)
    for number in range(unit.start // array.shard_elements, -(-unit.stop // array.shard_elements)):
        path, where = f"{elements.name}/{array.file_key(number)}", array.file_name(number)
        record = None if unit.records is None else unit.records.get(path)
        try:
            with open_file(array.file_path(number)) as file:
                check_length(where, file.size, array.max_file_bytes)
                blocks, read = _opened(file, array)
                if record is not None:
                    _compare(result, record, file.size, blocks)
                elif unit.records is None:  # otherwise the manifest does not list it, which is reported
                    result.byte_count += file.size
                entries = read_index(array, read, file.size, where).tolist()
                first_chunk = number * array.chunks_per_file
                for index in range(first_chunk, min(first_chunk + len(entries), array.chunk_count)):
                    offset, length = entries[index - first_chunk]
                    if offset == ABSENT:
                        result.problems.setdefault(path, f"{printable(path)}: {absent_chunk(index)}")
                        continue
                    first = index * array.chunk_elements
                    try:
                        array.codecs.decode(read(offset, length), values)
                    except ValueError as error:
                        raise damaged(where, str(error)) from None
                    yield first, values[: array.element_count - first]
        except AbsentFileError:
            if unit.records is None and len(elements) == 1:
                yield 0, np.zeros(1, dtype=elements.dtype)
            else:
                result.problems.setdefault(path, f"{printable(path)}: {absence(path)}")
        except DatasetError as error:
            result.problems.setdefault(path, str(error))


def _opened(file: File, array: ArrayMetadata) -> tuple[Iterable[Payload], ReadPart]:
    """Return the bytes of a file for its digest, and a function that reads a part."""
    if array.sharded and file.size > WHOLE_SHARD_BYTES:
        return file.blocks(), file.part
    data = memoryview(file.part(0, file.size))
    return (data,), lambda offset, length: data[offset : offset + length]


def _compare(result: UnitResult, record: FileRecord, size: int, blocks: Iterable[Payload]) -> None:
    """Compare a file of `size` bytes with its record. blocks: its bytes, read only if the size is right."""
    result.byte_count += size
    if size != record.bytes:
        result.report(record.path, f"must have {record.bytes} bytes by the manifest (got {size})", RESTORE)
    elif file_digest(blocks) != record.xxh64:
        what = "changed after it was written (its digest differs from the manifest)"
        result.report(record.path, what, RESTORE)
