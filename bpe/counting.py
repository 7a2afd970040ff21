"""Count the distinct pretokens of files and texts, in blocks, so that memory depends on the distinct pretokens alone.

The counts equal `reference.count_pretokens`: they depend neither on the number of threads, the order of the sources
nor the size of the blocks. For that a block ends only where the text may be cut whatever follows: after a special token
that no longer one could be, or where the pattern allows it (`PretokenCounter.last_cut`). A text without such a place
is held whole. Sources are texts of their own: no pretoken spans two.
"""

from __future__ import annotations

import codecs
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bpe import _core, utf8
from bpe.errors import BadArgument, EnvironmentFailure, MissingInput, shown
from bpe.pretokenizer import Pretokenizer
from bpe.reference import cut_at_special_tokens

if TYPE_CHECKING:
    from typing_extensions import Buffer

    Source = str | os.PathLike[str] | Buffer

MAX_THREADS: Final = 4096  # more than any machine has cores; a typing error must not start a million threads
BLOCK_BYTES: Final = 16 << 20  # 0.05 to 0.3 s of counting on one core: Ctrl-C and progress wait no longer


class Progress(Protocol):
    """What training and counting report; a tqdm bar for each phase fits behind it."""

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        """A phase starts: "counting" in "bytes", then "merging" in "entries"; total None: not known."""

    def update(self, done: int) -> None:
        """So many units of the phase are done; never less than the last time. What this raises ends the work."""

    def note(self, text: str) -> None:
        """One line the user should read: bytes replaced, training that stopped early."""


@dataclass(frozen=True, slots=True, eq=False)
class PretokenCounts:
    """Distinct pretokens, ascending as byte strings, and how often each occurs.

    pretoken_bytes: uint8[sum of lengths], end to end. ends, counts: uint64[pretokens].
    text_bytes: bytes of text read. replaced: how many U+FFFD were put in for what was not valid UTF-8.
    {b"a": 2, b"bc": 1} -> pretoken_bytes b"abc", ends [1, 3], counts [2, 1].
    """

    pretoken_bytes: NDArray[np.uint8]
    ends: NDArray[np.uint64]
    counts: NDArray[np.uint64]
    text_bytes: int = 0
    replaced: int = 0

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def total(self) -> int:
        """How many pretokens the texts have, repeated ones each time."""
        return int(self.counts.sum())

    def as_dict(self) -> dict[bytes, int]:
        """{pretoken: count}, ascending; some 200 bytes a pretoken, so for small sets."""
        text = self.pretoken_bytes.tobytes()
        starts = [0, *self.ends.tolist()[:-1]]
        spans = zip(
            starts, self.ends.tolist(), self.counts.tolist(), strict=False
        )  # no ends: one start too many
        return {text[start:stop]: count for start, stop, count in spans}

    @staticmethod
    def from_mapping(counts: Mapping[bytes, int]) -> PretokenCounts:
        """The counts of a {pretoken: count}."""
        counter = _core.PretokenCounter(None)
        _add(counter, counts)
        return PretokenCounts(*counter.items())


def count_pretokens(
    sources: Iterable[Source],
    special_tokens: Sequence[str] = (),
    pattern: str | Pretokenizer = "gpt2",
    threads: int | None = None,
    invalid: utf8.Invalid = "error",
    progress: Progress | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> PretokenCounts:
    """The pretokens of all sources with exact counts; special tokens cut the text and are not counted.

    sources: a str or path names a file, bytes-like is a text. pattern: a name or an expression for the `regex` package,
    which runs on one thread at some 10 MB/s and cuts blocks at special tokens only. threads None: one a core.
    invalid: "error" or "replace", as `bytes.decode` does. count_pretokens([b"a b a"]).as_dict() -> {b" a": 1, ...}
    MissingInput names the files that are not there, InvalidText the file and byte, EnvironmentFailure a failed read.
    """
    sources = list(sources)
    if invalid not in ("error", "replace"):
        raise BadArgument(f'invalid must be "error" or "replace", got {shown(invalid)}')
    threads = available_threads() if threads is None else threads
    if threads < 1:
        raise BadArgument(f"threads must be at least 1, got {threads}")
    if threads > MAX_THREADS:
        raise BadArgument(f"threads must be at most {MAX_THREADS}, got {threads}")
    if block_bytes < 1:
        raise BadArgument(f"block_bytes must be at least 1, got {block_bytes}")
    pretokenizer = Pretokenizer.from_pattern(pattern)
    specials = [token.encode() for token in special_tokens]
    counter = _core.PretokenCounter(pretokenizer.core_pattern)
    total_bytes = _total_bytes(sources)
    if progress is not None:
        progress.begin("counting", total_bytes, "bytes")

    def last_cut(text: Buffer) -> int:
        return counter.last_cut(text, specials)

    text_bytes = replaced = 0
    for source in sources:
        where = os.fspath(source) if isinstance(source, (str, os.PathLike)) else "text"
        with _Reader(source, where, invalid, block_bytes) as reader:
            for block, base_bytes in _blocks(reader, last_cut):
                if pretokenizer.core_pattern is not None:
                    _count_block(counter, block, specials, threads, where, base_bytes)
                else:
                    utf8.check(block, where, base_bytes)
                    _add(counter, _count_by_expression(bytes(block).decode(), special_tokens, pretokenizer))
                if progress is not None:
                    progress.update(text_bytes + min(base_bytes + len(block), reader.read_bytes))
        text_bytes += reader.read_bytes
        replaced += reader.replaced
        if progress is not None:
            progress.update(text_bytes)
    if replaced and progress is not None:
        what = "byte sequence that is" if replaced == 1 else "byte sequences that are"
        progress.note(f"replaced by U+FFFD: {replaced:,} {what} not valid UTF-8")
    return PretokenCounts(*counter.items(), text_bytes, replaced)


def available_threads() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _total_bytes(sources: Iterable[Source]) -> int | None:
    """The bytes of all sources, None if a pipe is among them; MissingInput lists the files that are not there."""
    total = 0
    missing = []
    regular = True
    for source in sources:
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            if not path.exists() or path.is_dir():
                missing.append(f"{path} ({'is a folder' if path.is_dir() else 'not found'})")
            elif path.is_file():
                total += path.stat().st_size
            else:
                regular = False
        else:
            total += memoryview(source).nbytes
    if missing:
        raise MissingInput(f"can't read {', '.join(missing)}: name text files")
    return total if regular else None


class _Reader:
    """Reads one source as whole characters; text that is not valid is replaced here or found later, as asked."""

    def __init__(self, source: Source, where: str, invalid: utf8.Invalid, block_bytes: int) -> None:
        self.block_bytes = block_bytes
        self.read_bytes = 0
        self.replaced = 0
        self._where = where
        self._invalid = invalid
        self._rest = b""  # the start of a character whose end was not read yet
        self._file: FileIO | None = None
        self._text = memoryview(b"")
        if not isinstance(source, (str, os.PathLike)):
            self._text = memoryview(source).cast("B")
            return
        try:
            self._file = FileIO(os.fspath(source))
        except OSError as error:
            raise EnvironmentFailure(f"{where}: {error.strerror}") from error

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self, size: int) -> Buffer:
        if self._file is None:
            return self._text[self.read_bytes : self.read_bytes + size]
        try:
            return self._file.read(size) or b""
        except OSError as error:
            raise EnvironmentFailure(f"{self._where}: byte {self.read_bytes}: {error.strerror}") from error

    def read(self, size: int) -> tuple[Buffer, bool]:
        """(the next text, whether it is the last). With "error" it may hold anything that is not valid UTF-8."""
        data = self._read(size)
        first = self.read_bytes == 0
        new_bytes = memoryview(data).nbytes
        self.read_bytes += new_bytes
        at_end = new_bytes == 0
        if self._rest:
            data = self._rest + bytes(data)
            self._rest = b""
        if not at_end:
            rest = _cut_character_bytes(memoryview(data)[-3:])
            if rest:
                data, self._rest = memoryview(data)[:-rest], bytes(memoryview(data)[-rest:])
        if self._invalid == "replace":
            # Wrong bytes are whole within such reads: `rest` holds what a later byte could still complete.
            data, replaced = utf8.ensure_valid(data, self._where, "replace", 0 if first else self.read_bytes)
            self.replaced += replaced
        return data, at_end


def _cut_character_bytes(tail: memoryview) -> int:
    """How many of the last bytes (at most 3) are the valid start of a character that goes on: b"a\\xe2\\x82" -> 2."""
    for size in range(len(tail), 0, -1):
        try:
            _, used = codecs.utf_8_decode(tail[-size:], "strict", False)
        except UnicodeDecodeError:
            continue
        return size - used
    return 0


def _blocks(reader: _Reader, last_cut: Callable[[Buffer], int]) -> Iterator[tuple[memoryview, int]]:
    """(block, where it starts in its source): the text of the reader, cut where its continuation does not matter."""
    carry: Buffer = b""
    base_bytes = 0
    at_end = False
    while not at_end:
        # At least as much as is waiting, so that a text without a place to cut is searched log n times.
        data, at_end = reader.read(max(reader.block_bytes, memoryview(carry).nbytes))
        carry_bytes = memoryview(carry).nbytes
        block = memoryview(b"".join((carry, data)) if carry_bytes else data)
        cut = block.nbytes if at_end else last_cut(block)
        while 0 < cut < block.nbytes and block[cut] & 0xC0 == 0x80:
            cut -= 1  # not valid UTF-8: keep its characters together, so that the right byte is named
        if cut:
            yield block[:cut], base_bytes
        carry = bytes(block[cut:])
        base_bytes += cut


def _count_block(
    counter: _core.PretokenCounter,
    block: memoryview,
    special_tokens: Sequence[bytes],
    threads: int,
    where: str,
    base_bytes: int,
) -> None:
    try:
        counter.count(block, special_tokens, threads)
    except ValueError:
        utf8.check(block, where, base_bytes)  # names the source and the byte in it
        raise


def _count_by_expression(
    text: str, special_tokens: Sequence[str], pretokenizer: Pretokenizer
) -> Counter[bytes]:
    counts: Counter[str] = Counter()
    for part, is_special in cut_at_special_tokens(text, special_tokens):
        if not is_special:
            counts.update(pretokenizer.pretokens(part))
    return Counter({pretoken.encode(): count for pretoken, count in counts.items()})


def _add(counter: _core.PretokenCounter, counts: Mapping[bytes, int]) -> None:
    ends = np.cumsum([len(pretoken) for pretoken in counts], dtype=np.uint64)
    counter.add(b"".join(counts), ends, np.array(list(counts.values()), dtype=np.uint64))
