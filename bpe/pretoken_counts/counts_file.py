"""Read counts files (counts_layout.py). Every hash, the order and the sums are checked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Final, NoReturn

import numpy as np

from bpe.errors import BadCounts, BadTokenizer, MissingInput, printable, system_failure
from bpe.pretoken_counts.count_sums import check_total, exact_sum
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts, whole
from bpe.pretoken_counts.counts_layout import (
    BLOCK,
    END,
    HASH_BYTES,
    HEADER,
    MAGIC,
    TAIL,
    VERSION,
    Mark,
)
from bpe.pretoken_counts.pretoken_order import ascend, pretoken_at
from tokenmill.inputs import _core
from tokenmill.stores import NO_OPTIONS, RandomFile, StorageOptions, open_file, read_at, shown_url

_BLOCKS_DIFFER: Final = "blocks do not match the footer"


class CountsFile:
    """A counts file. The constructor reads and checks the header and footer; `blocks` reads and checks the rest.

    distinct: number of distinct pretokens.
    total: number of occurrences.
    pretoken_bytes: sum of the lengths of the distinct pretokens.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: StorageOptions = NO_OPTIONS,
        size: int | None = None,
    ) -> None:
        """Open a counts file.

        path: path or URL.
        size: bytes of an object, None if unknown.

        Raise MissingInput if the file does not exist, BadCounts if it is damaged, and EnvironmentFailure if it cannot
        be read.
        """
        self.path = os.fspath(path)
        self._options, self._file_bytes = storage_options, size
        try:
            with self._open() as file:
                self._file_bytes = file.size
                footer = self._read_footer(file)
        except (FileNotFoundError, IsADirectoryError) as error:
            raise MissingInput(f"{path}: {error.strerror}") from None
        except OSError as error:
            raise system_failure(path, error) from error
        try:
            facts = json.loads(footer, parse_constant=_no_number)
            self.facts = CountsFacts.from_json(facts)
            self._blocks, self.distinct, self.pretoken_bytes = (
                whole(facts[name]) for name in ("blocks", "distinct", "pretoken_bytes")
            )
            self.total = whole(facts["total"], below=1 << 128)  # check_total reports 2^63 or more
            if self.facts.pretokenizer is not None:
                self.facts.pretokenizer.checked()
        except (ValueError, KeyError, TypeError, RecursionError, BadTokenizer) as error:
            what = f"missing {error}" if isinstance(error, KeyError) else printable(str(error))[:100]
            raise self._bad(f"invalid footer of version {VERSION} ({what})") from None
        check_total(self.total, self.shown)

    def __len__(self) -> int:
        return self.distinct

    @property
    def shown(self) -> str:
        """Return the path, or the URL without credentials."""
        return shown_url(self.path)

    def _open(self) -> RandomFile:
        return open_file(self.path, self._options, size=self._file_bytes)

    def _bad(self, what: str) -> BadCounts:
        return BadCounts(f"{self.shown}: damaged or truncated ({what}). Count its texts again.")

    def _read_footer(self, file: RandomFile) -> bytes:
        size = file.size
        tail_start = max(0, size - TAIL.size)
        # The tail is read first, because a request to a store also fetches the footer.
        tail = read_at(file, tail_start, TAIL.size)
        header = read_at(file, 0, HEADER.size)
        if header[:8] != MAGIC[: len(header)] or not header:
            raise BadCounts(f"{self.shown}: not a counts file of tokenmill count")
        if size < HEADER.size + TAIL.size:
            raise self._bad(f"file has only {size} bytes")
        _, version, _ = HEADER.unpack(header)
        if version != VERSION:
            raise BadCounts(
                f"{self.shown}: unsupported version of the counts file (got {version}, this tokenmill reads "
                f"{VERSION}). Update tokenmill, or count again."
            )
        self._footer_start, digest, end = TAIL.unpack(tail)
        if end != END or not HEADER.size <= self._footer_start <= tail_start:
            raise self._bad(f"no end marker at byte {size}")
        footer = bytes(read_at(file, self._footer_start, tail_start - self._footer_start))
        if _core.xxh64(header + footer + tail[:8]) != digest:
            raise self._bad(f"wrong checksum of the footer at byte {self._footer_start}")
        return footer

    def largest_block_bytes(self) -> int:
        """Return the memory that the largest block takes. Reads only the heads of blocks and does not report damage."""
        largest = 0
        try:
            with self._open() as file:
                offset = HEADER.size
                for _ in range(self._blocks):
                    head = read_at(file, offset, BLOCK.size)
                    if len(head) < BLOCK.size:
                        break
                    pretokens, length_width, count_width, _, text_bytes = BLOCK.unpack(head)
                    size = BLOCK.size + pretokens * (length_width + count_width) + text_bytes + HASH_BYTES
                    offset += size
                    if offset > self._footer_start:
                        break
                    largest = max(largest, size + 16 * pretokens)
        except OSError as error:
            raise system_failure(self.shown, error) from error
        return largest

    def blocks(self) -> Iterator[Arrays]:
        """Yield (pretoken bytes, ends, counts) of each block, ascending. Raise BadCounts with the offset of damage."""
        distinct = total = pretoken_bytes = 0
        for arrays in self.blocks_from(Mark(b"", HEADER.size, 0)):
            distinct += len(arrays[1])
            total += exact_sum(arrays[2])
            pretoken_bytes += arrays[0].nbytes
            yield arrays
        if (distinct, total, pretoken_bytes) != (self.distinct, self.total, self.pretoken_bytes):
            raise self._bad(_BLOCKS_DIFFER)

    def blocks_from(self, mark: Mark) -> Iterator[Arrays]:
        """Yield the blocks from a mark of this file, without checking the sums of the file."""
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
            raise system_failure(self.shown, error) from error
        if offset != self._footer_start:
            raise self._bad(_BLOCKS_DIFFER)

    def _read_block(self, file: RandomFile, offset: int, number: int) -> tuple[Arrays, int]:
        """Return (arrays of the block, its bytes including head and hash)."""
        head = read_at(file, offset, BLOCK.size)
        size = 0
        if len(head) == BLOCK.size:
            pretokens, length_width, count_width, _, text_bytes = BLOCK.unpack(head)
            size = pretokens * (length_width + count_width) + text_bytes
        # Checked before reading, because a damaged number may request any amount of memory.
        if not 0 < size <= self._footer_start - offset - BLOCK.size - HASH_BYTES:
            raise self._bad(f"block {number} at byte {offset} exceeds the file")
        # Held once, because it may be one long pretoken.
        block = memoryview(read_at(file, offset, BLOCK.size + size + HASH_BYTES))
        if len(block) < BLOCK.size + size + HASH_BYTES:
            raise self._bad(f"block {number} at byte {offset} is truncated")
        if _core.xxh64(block[:-HASH_BYTES], number) != int.from_bytes(block[-HASH_BYTES:], "little"):
            raise self._bad(f"wrong checksum of block {number} at byte {offset}")
        if {length_width, count_width} - {1, 2, 4, 8}:
            raise self._bad(
                f"block {number} at byte {offset} has unsupported integer widths (got {length_width} and "
                f"{count_width})"
            )
        lengths_stop = BLOCK.size + pretokens * length_width
        counts_stop = lengths_stop + pretokens * count_width
        lengths = np.frombuffer(block, f"<u{length_width}", pretokens, BLOCK.size)
        counts = np.frombuffer(block, f"<u{count_width}", pretokens, lengths_stop).astype(np.uint64)
        ends = np.cumsum(lengths, dtype=np.uint64)
        # If the sum of the lengths overflows, the ends do not ascend.
        if not lengths.all() or ends[-1] != text_bytes or (ends[1:] <= ends[:-1]).any():
            raise self._bad(f"lengths of block {number} at byte {offset} do not match its pretokens")
        if not counts.all():
            raise self._bad(
                f"block {number} at byte {offset} has the count 0 (pretoken {int(counts.argmin())})"
            )
        return (np.frombuffer(block, np.uint8, text_bytes, counts_stop), ends, counts), len(block)

    def _check_order(self, arrays: Arrays, before: Arrays | None, offset: int) -> None:
        last = b"" if before is None else pretoken_at(before, len(before[1]) - 1)
        if last >= pretoken_at(arrays, 0) or not ascend(arrays):
            raise self._bad(f"pretokens of the block at byte {offset} are not ascending")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"not a JSON number (got {name})")
