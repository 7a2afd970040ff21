"""Counts files: distinct pretokens with their counts, sorted, checksummed, in blocks (docs/counts-file.md).

All numbers are little-endian; XXH64 is the content hash of bpe.native. The file is, end to end,

    "tmcounts"  uint32 version (1)  uint32 0
    block       uint32 pretokens n >= 1, uint8 a, uint8 b, uint16 0, uint64 bytes t
                uint a bytes wide [n] lengths, uint b bytes wide [n] counts, t bytes of the pretokens end to end
                uint64 XXH64 of all the above of the block; the seed is the block's number, 0 first
    footer      JSON in UTF-8: the facts (`CountsFacts.to_json`), and "blocks", "distinct", "total", "pretoken_bytes"
    tail        uint64 where the footer starts, uint64 XXH64 of header, footer and the number before, "tmcntend"

Pretokens ascend as byte strings through the whole file and none is empty or comes twice, so that files of any size are
merged in one pass. A reader checks every hash, the order and the sums: what it returns is what was written.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadCounts, BadTokenizer, EnvironmentFailure, MissingInput, printable
from bpe.pretoken_counts.count_sums import check_total, exact_sum
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts, whole
from bpe.pretoken_counts.merge_counts import joined
from corpus import _core
from stores import NO_OPTIONS, RandomFile, StorageOptions, open_file, read_at, shown_url

VERSION: Final = 1
_MAGIC: Final = b"tmcounts"
_END: Final = b"tmcntend"
_HEADER: Final = struct.Struct("<8sII")
_FILE_HEADER: Final = _HEADER.pack(_MAGIC, VERSION, 0)
_SUMS: Final = ("blocks", "distinct", "total", "pretoken_bytes")
_BLOCK: Final = struct.Struct("<IBBHQ")
_TAIL: Final = struct.Struct("<QQ8s")
_HASH_BYTES: Final = 8
# Small, so that many files are merged in little memory: 64 of them hold some 40 MB.
BLOCK_PRETOKENS: Final = 1 << 14
BLOCK_BYTES: Final = 1 << 18
MARK_BYTES: Final = 32
_COMPARED_KEYS: Final = 4  # of 8 bytes; the few pairs that are equal so far are compared one by one
_AGAIN: Final = "it is damaged or cut short; count its texts again"


class Mark(NamedTuple):
    """Block `number` begins at byte `offset`, and its first pretoken with `key`, which is all of it or MARK_BYTES."""

    key: bytes
    offset: int
    number: int


class Written(NamedTuple):
    """What was written: the sum of its counts, and a mark for each block."""

    total: int
    marks: tuple[Mark, ...]


class CountsWriter:
    """Writes one counts file: `write` sorted counts, then `finish`. The file is the caller's to open and to name."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = file.write(_FILE_HEADER)
        self._blocks = self._distinct = self._total = self._pretoken_bytes = 0
        self._marks: list[Mark] = []
        self._waiting: list[Arrays] = []
        self._waiting_pretokens = self._waiting_bytes = 0

    def write(self, arrays: Arrays) -> None:
        """Write counts whose pretokens come after all before; how they are dealt out to calls changes nothing."""
        self._waiting.append(arrays)
        self._waiting_pretokens += len(arrays[1])
        self._waiting_bytes += arrays[0].nbytes
        if self._waiting_pretokens >= BLOCK_PRETOKENS or self._waiting_bytes > BLOCK_BYTES:
            self._write_blocks(all_of_it=False)

    def _write_blocks(self, all_of_it: bool) -> None:
        """Write full blocks: as many pretokens as are allowed in number and bytes, at least one."""
        pretoken_bytes, ends, counts = joined(self._waiting)
        first = 0
        for block in cut_in_blocks((pretoken_bytes, ends, counts)):
            size = len(block[1])
            if first + size == len(ends) and size < BLOCK_PRETOKENS and not all_of_it:
                break  # what comes next may go into it
            self._write_block(*block)
            first += size
        start = int(ends[first - 1]) if first else 0
        # Copied, less than a block: a view would keep all that it was cut from.
        self._waiting = [
            (pretoken_bytes[start:].copy(), ends[first:] - np.uint64(start), counts[first:].copy())
        ]
        self._waiting_pretokens, self._waiting_bytes = len(ends) - first, pretoken_bytes.nbytes - start

    def _write_block(
        self, pretoken_bytes: NDArray[np.uint8], ends: NDArray[np.uint64], counts: NDArray[np.uint64]
    ) -> None:
        if not counts.all():
            raise BadCounts("a pretoken has the count 0; a counts file holds pretokens that occur")
        lengths = np.diff(ends, prepend=np.uint64(0))
        columns = [_narrow(lengths), _narrow(counts)]
        head = _BLOCK.pack(len(ends), columns[0].itemsize, columns[1].itemsize, 0, pretoken_bytes.nbytes)
        block = np.empty(
            len(head) + sum(column.nbytes for column in columns) + pretoken_bytes.nbytes, np.uint8
        )
        stop = 0
        for part in (np.frombuffer(head, np.uint8), *columns, pretoken_bytes):
            start, stop = stop, stop + part.nbytes
            block[start:stop] = part.view(np.uint8)  # once: a pretoken may be of megabytes
        key = pretoken_bytes[: min(int(ends[0]), MARK_BYTES)].tobytes()
        self._marks.append(Mark(key, self._offset, self._blocks))
        self._file.write(block.data)
        self._file.write(_core.xxh64(block.data, self._blocks).to_bytes(_HASH_BYTES, "little"))
        self._offset += len(block) + _HASH_BYTES
        self._blocks += 1
        self._distinct += len(ends)
        self._total += exact_sum(counts)
        self._pretoken_bytes += pretoken_bytes.nbytes

    def finish(self, facts: CountsFacts) -> Written:
        """Write what is waiting, footer and tail."""
        self._write_blocks(all_of_it=True)
        check_total(self._total, "the counts file to be written")
        sums = (self._blocks, self._distinct, self._total, self._pretoken_bytes)
        _write_end(self._file, facts, dict(zip(_SUMS, sums, strict=True)), self._offset)
        return Written(self._total, tuple(self._marks))


def _write_end(file: BinaryIO, facts: CountsFacts, sums: dict[str, int], blocks_stop: int) -> None:
    """Write footer and tail behind the blocks, which end there."""
    footer = json.dumps(facts.to_json() | sums, separators=(",", ":")).encode()
    offset = blocks_stop.to_bytes(8, "little")
    digest = _core.xxh64(_FILE_HEADER + footer + offset).to_bytes(8, "little")
    file.write(footer + offset + digest + _END)


def _narrow(values: NDArray[np.uint64]) -> NDArray[Any]:
    highest = int(values.max())
    for kind, limit in (("<u1", 1 << 8), ("<u2", 1 << 16), ("<u4", 1 << 32)):
        if highest < limit:
            return values.astype(kind)
    return values.astype("<u8")


class CountsFile:
    """A counts file; header and footer are read and checked, the blocks when they are asked for.

    distinct: pretokens. total: occurrences. pretoken_bytes: of the distinct pretokens, end to end.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: StorageOptions = NO_OPTIONS,
        size: int | None = None,
    ) -> None:
        """MissingInput if there is none, BadCounts if it is damaged, EnvironmentFailure if it can't be read.

        path: may be a URL. size: of an object, where it is known.
        """
        self.path = os.fspath(path)
        self._options, self._file_bytes = storage_options, size
        try:
            with self._open() as file:
                self._file_bytes = file.size
                footer = self._read_footer(file)
        except (FileNotFoundError, IsADirectoryError) as error:
            raise MissingInput(f"{path}: can't read the counts: {error.strerror}") from None
        except OSError as error:
            raise EnvironmentFailure(f"{path}: {error.strerror}") from error
        try:
            facts = json.loads(footer, parse_constant=_no_number)
            self.facts = CountsFacts.from_json(facts)
            self._blocks, self.distinct, self.pretoken_bytes = (
                whole(facts[name]) for name in ("blocks", "distinct", "pretoken_bytes")
            )
            self.total = whole(facts["total"], below=1 << 128)  # beyond 2^63 it has an error of its own
            if self.facts.pretokenizer is not None:
                self.facts.pretokenizer.checked()
        except (ValueError, KeyError, TypeError, RecursionError, BadTokenizer) as error:
            what = f"no {error}" if isinstance(error, KeyError) else printable(str(error))[:100]
            raise self._bad(f"its footer is not as version {VERSION} has it ({what})") from None
        check_total(self.total, self.shown)

    def __len__(self) -> int:
        return self.distinct

    @property
    def shown(self) -> str:
        """The path, or the URL without credentials."""
        return shown_url(self.path)

    def _open(self) -> RandomFile:
        return open_file(self.path, self._options, size=self._file_bytes)

    def _bad(self, what: str) -> BadCounts:
        return BadCounts(f"{self.shown}: {what}; {_AGAIN}")

    def _read_footer(self, file: RandomFile) -> bytes:
        size = file.size
        tail_start = max(0, size - _TAIL.size)
        tail = read_at(
            file, tail_start, _TAIL.size
        )  # first: of an object, the request for it has the footer too
        header = read_at(file, 0, _HEADER.size)
        if header[:8] != _MAGIC[: len(header)] or not header:
            raise BadCounts(f"{self.shown}: is no counts file, as tokenmill count writes them")
        if size < _HEADER.size + _TAIL.size:
            raise self._bad(f"has only {size} bytes")
        _, version, _ = _HEADER.unpack(header)
        if version != VERSION:
            raise BadCounts(
                f"{self.shown}: is a counts file of version {version}, this tokenmill reads version {VERSION}; "
                "update it, or count again"
            )
        self._footer_start, digest, end = _TAIL.unpack(tail)
        if end != _END or not _HEADER.size <= self._footer_start <= tail_start:
            raise self._bad(f"does not end as a counts file does, at byte {size}")
        footer = bytes(read_at(file, self._footer_start, tail_start - self._footer_start))
        if _core.xxh64(header + footer + tail[:8]) != digest:
            raise self._bad(f"the checksum of its footer, at byte {self._footer_start}, does not fit")
        return footer

    def largest_block_bytes(self) -> int:
        """What the largest block takes in memory, by the heads of the blocks alone; damage is for `blocks` to find."""
        largest = 0
        try:
            with self._open() as file:
                offset = _HEADER.size
                for _ in range(self._blocks):
                    head = read_at(file, offset, _BLOCK.size)
                    if len(head) < _BLOCK.size:
                        break
                    pretokens, length_width, count_width, _, text_bytes = _BLOCK.unpack(head)
                    size = _BLOCK.size + pretokens * (length_width + count_width) + text_bytes + _HASH_BYTES
                    offset += size
                    if offset > self._footer_start:
                        break
                    largest = max(largest, size + 16 * pretokens)
        except OSError as error:
            raise EnvironmentFailure(f"{self.shown}: {error.strerror}") from error
        return largest

    def copy_to(self, path: str | os.PathLike[str], facts: CountsFacts) -> None:
        """Write the same counts with these facts, whatever the memory; it appears complete or not at all."""
        from bpe.output_file import open_output_file

        try:
            with self._open() as source:
                footer = self._read_footer(source)
                sums = {name: json.loads(footer)[name] for name in _SUMS}
                with open_output_file(path) as file:
                    for place in range(0, self._footer_start, BLOCK_BYTES):
                        wanted = min(BLOCK_BYTES, self._footer_start - place)
                        piece = read_at(source, place, wanted)
                        if len(piece) < wanted:
                            raise self._bad("is cut short")
                        file.write(piece)
                    _write_end(file, facts, sums, self._footer_start)
        except OSError as error:
            if isinstance(error, EnvironmentFailure):
                raise
            raise EnvironmentFailure(f"{self.shown}: {error.strerror}") from error

    def blocks(self) -> Iterator[Arrays]:
        """(pretoken bytes, ends, counts) of each block, ascending; BadCounts names the byte of one that is damaged."""
        distinct = total = pretoken_bytes = 0
        for arrays in self.blocks_from(Mark(b"", _HEADER.size, 0)):
            distinct += len(arrays[1])
            total += exact_sum(arrays[2])
            pretoken_bytes += arrays[0].nbytes
            yield arrays
        if (distinct, total, pretoken_bytes) != (self.distinct, self.total, self.pretoken_bytes):
            raise self._bad("its blocks are not what its footer says")

    def blocks_from(self, mark: Mark) -> Iterator[Arrays]:
        """The same from a mark of this file on; the sums of the file are not looked at."""
        before: Arrays | None = None
        offset = mark.offset
        try:
            with self._open() as file:
                file.expect(offset, self._footer_start)
                for number in range(mark.number, self._blocks):
                    arrays, size = self._read_block(file, offset, number)
                    self._check_order(arrays, before, offset)
                    before = arrays
                    offset += size
                    yield arrays
        except OSError as error:
            raise EnvironmentFailure(f"{self.shown}: {error.strerror}") from error
        if offset != self._footer_start:
            raise self._bad("its blocks are not what its footer says")

    def _read_block(self, file: RandomFile, offset: int, number: int) -> tuple[Arrays, int]:
        """(the block's arrays, its bytes with head and hash)."""
        head = read_at(file, offset, _BLOCK.size)
        size = 0
        if len(head) == _BLOCK.size:
            pretokens, length_width, count_width, _, text_bytes = _BLOCK.unpack(head)
            size = pretokens * (length_width + count_width) + text_bytes
        # Before anything is read into memory: a number that was damaged may ask for any amount.
        if not 0 < size <= self._footer_start - offset - _BLOCK.size - _HASH_BYTES:
            raise self._bad(f"block {number}, at byte {offset}, does not fit into the file")
        # Once in memory: it may be one long pretoken.
        block = memoryview(read_at(file, offset, _BLOCK.size + size + _HASH_BYTES))
        if len(block) < _BLOCK.size + size + _HASH_BYTES:
            raise self._bad(f"block {number}, at byte {offset}, is cut short")
        if _core.xxh64(block[:-_HASH_BYTES], number) != int.from_bytes(block[-_HASH_BYTES:], "little"):
            raise self._bad(f"the checksum of block {number}, at byte {offset}, does not fit")
        if {length_width, count_width} - {1, 2, 4, 8}:
            raise self._bad(
                f"block {number}, at byte {offset}, has numbers {length_width} and {count_width} wide"
            )
        lengths_stop = _BLOCK.size + pretokens * length_width
        counts_stop = lengths_stop + pretokens * count_width
        lengths = np.frombuffer(block, f"<u{length_width}", pretokens, _BLOCK.size)
        counts = np.frombuffer(block, f"<u{count_width}", pretokens, lengths_stop).astype(np.uint64)
        ends = np.cumsum(lengths, dtype=np.uint64)
        # Lengths so large that their sum wraps would make ends that do not ascend.
        if not lengths.all() or ends[-1] != text_bytes or (ends[1:] <= ends[:-1]).any():
            raise self._bad(f"block {number}, at byte {offset}: its lengths are not those of its pretokens")
        if not counts.all():
            raise self._bad(
                f"block {number}, at byte {offset}: pretoken {int(counts.argmin())} has the count 0"
            )
        return (np.frombuffer(block, np.uint8, text_bytes, counts_stop), ends, counts), len(block)

    def _check_order(self, arrays: Arrays, before: Arrays | None, offset: int) -> None:
        last = b"" if before is None else pretoken_at(before, len(before[1]) - 1)
        if last >= pretoken_at(arrays, 0) or not _ascend(arrays):
            raise self._bad(f"the pretokens of the block at byte {offset} do not ascend")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _eights(pretoken_bytes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The 8 bytes at each place, and behind the last one, as big-endian numbers; zeros follow the end."""
    padded = np.concatenate([pretoken_bytes, np.zeros(8, np.uint8)])
    eights: NDArray[np.uint64] = np.ndarray((len(padded) - 7,), ">u8", padded, strides=(1,))
    return eights


def _keys_at(
    eights: NDArray[np.uint64], starts: NDArray[np.uint64], ends: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """The bytes from each start on, 8 at most, up to each end, as numbers of 8 bytes."""
    missing = np.uint64(8) * (np.uint64(8) - np.minimum(ends - starts, np.uint64(8)))
    keys: NDArray[np.uint64] = eights[starts.astype(np.int64)].astype(np.uint64) >> missing << missing
    return keys


def _ascend(arrays: Arrays) -> bool:
    """Whether each pretoken of a block is less than the next: by 8 bytes of all pairs not yet decided at a time."""
    pretoken_bytes, ends, _ = arrays
    if len(ends) == 1:  # which may be long: nothing is copied
        return True
    starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    eights = _eights(pretoken_bytes)
    pairs = np.arange(len(ends) - 1)
    for depth in range(0, 8 * _COMPARED_KEYS, 8):
        here = [np.minimum(starts[pairs + side] + np.uint64(depth), ends[pairs + side]) for side in (0, 1)]
        left, right = (_keys_at(eights, here[side], ends[pairs + side]) for side in (0, 1))
        if (left > right).any():
            return False
        pairs = pairs[left == right]  # of those that end here, the shorter one is less: below
        if not len(pairs):
            return True
    return all(pretoken_at(arrays, place) < pretoken_at(arrays, place + 1) for place in pairs.tolist())


def pretoken_at(arrays: Arrays, place: int) -> bytes:
    """Pretoken `place` of a block."""
    pretoken_bytes, ends, _ = arrays
    return pretoken_bytes[int(ends[place - 1]) if place else 0 : int(ends[place])].tobytes()


def cut_in_blocks(arrays: Arrays) -> Iterator[Arrays]:
    """The counts as a counts file has them: blocks of so many pretokens and bytes at most, or one longer."""
    pretoken_bytes, ends, counts = arrays
    first = 0
    while first < len(ends):
        start = int(ends[first - 1]) if first else 0
        fitting = int(np.searchsorted(ends, np.uint64(start + BLOCK_BYTES), "right"))
        stop = min(max(fitting, first + 1), first + BLOCK_PRETOKENS)
        text = pretoken_bytes[start : int(ends[stop - 1])]
        yield text, ends[first:stop] - np.uint64(start), counts[first:stop]
        first = stop


def write_counts_file(
    path: str | os.PathLike[str],
    blocks: Iterable[Arrays],
    facts: CountsFacts,
    temporary: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
) -> Written:
    """Write a counts file, or an object where the path is a URL; it appears complete or not at all.

    temporary: in a folder that nobody else looks into, so neither renamed nor made to reach the disk.
    """
    from bpe.output_file import open_output_file

    if not temporary:
        with open_output_file(path, storage_options) as file:
            return _write(file, blocks, facts)
    try:
        with Path(path).open("wb") as file:
            return _write(file, blocks, facts)
    except OSError as error:
        if isinstance(error, EnvironmentFailure):
            raise  # of what is read while writing
        raise EnvironmentFailure(
            f"{path}: can't write: {error.strerror or error}; --temp-dir names another place for such files"
        ) from None


def _write(file: BinaryIO, blocks: Iterable[Arrays], facts: CountsFacts) -> Written:
    writer = CountsWriter(file)
    for arrays in blocks:
        writer.write(arrays)
    return writer.finish(facts)
