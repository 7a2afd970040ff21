"""Sample files evenly: spans of whole documents at seeded offsets, equally many from each part of the text.

The bytes of all files, end to end, are divided into equal strata. Each stratum has one window at a random offset, which
depends on the seed. The sample takes the documents that begin in a window. From a window inside a long document it
takes lines, and from a window inside a long line characters. A document that extends far beyond its window is cut off
at the end of a line, so that it does not displace many others. No text is taken twice.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

from bpe.errors import BadArgument, check_range, check_whole, system_failure
from bpe.pretoken_counts.sources import FileRange, Stream
from tokenmill.inputs import _core
from tokenmill.inputs.json_array import is_array
from tokenmill.inputs.sizes import bytes_text
from tokenmill.inputs.source_list import SourceList
from tokenmill.inputs.utf8 import cut_character_bytes

if TYPE_CHECKING:
    from bpe.pretoken_counts.counting_options import CountingOptions
    from bpe.pretoken_counts.sources import Source

WINDOW_BYTES: Final = (1 << 12, 1 << 20)  # a document or two, but not so large that one window dominates
WINDOWS: Final = 1000  # target; the share of each kind of text then has a relative error of a few percent
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_LONGEST: Final = 4  # windows to search for the end of a document


def sampled(
    sources: Sequence[Source],
    sample_bytes: int,
    seed: int,
    options: CountingOptions,
) -> tuple[Sequence[Source], str]:
    """Return (spans of the files with about `sample_bytes` in total, a description of the sample).

    Return all sources and "" if they have at most `sample_bytes`. A span of JSON Lines, or of text that is read as
    documents, selects the lines or documents that begin in it.

    Raise BadArgument for sources without random access, such as pipes and compressed files, and if the sample is too
    small for one character.
    """
    check_range("sample_bytes", sample_bytes, 1)
    check_whole("seed", seed)
    files = SourceList()
    for source in sources:
        if isinstance(source, Stream) or source.file.version:
            raise BadArgument(
                "sample_bytes: needs files, not pipes or streams. Write the text to a file first."
            )
        file, kind = source.file, source.kind
        if kind.is_decoded or (kind.format == "jsonl" and is_array(file, options.rules)):
            raise BadArgument(
                f"{file.path}: sample_bytes needs uncompressed text or JSON Lines, without an array. Count all of the "
                "text, or fewer files."
            )
        files.append(file)
    total_bytes = sum(file.size_bytes for file in files)
    if total_bytes <= sample_bytes:
        return sources, ""
    smallest, largest = WINDOW_BYTES
    window_bytes = min(max(sample_bytes // WINDOWS, smallest), largest, sample_bytes)
    windows = max(1, round(sample_bytes / window_bytes))
    generator = random.Random(seed)
    separators = [token.encode() for token in options.special_tokens] or [b"\n"]
    spans: list[FileRange] = []
    taken = 0
    starts = files.starts()
    sampled_file = taken_stop = 0  # the file of the last span, and its end
    for window in range(windows):
        first = window * total_bytes // windows
        room = (window + 1) * total_bytes // windows - first - window_bytes
        first += generator.randrange(max(1, room + 1))
        place = bisect_right(starts, first) - 1
        file = files[place]
        first -= starts[place]
        stop = min(file.size_bytes, first + window_bytes)
        if place == sampled_file:
            first = max(first, taken_stop)
        if first >= stop:
            continue
        if file.kind.format == "text" and not options.text_separator:
            try:
                with open(file.path, "rb") as opened:  # noqa: PTH123 - keeps the path as given
                    first, stop = _part(opened, file.size_bytes, first, stop, separators)
            except OSError as error:
                raise system_failure(file.path, error) from None
        if stop > first:
            spans.append(FileRange(file, first, stop))
            taken += stop - first
            sampled_file, taken_stop = place, stop
    if not spans:
        raise BadArgument(
            f"sample_bytes: too small for one character, line or document (got {sample_bytes}). Raise it."
        )
    used = len({span.file for span in spans})
    what = "documents" if options.special_tokens else "lines"
    return spans, (
        f"sampled {bytes_text(taken)} of {bytes_text(total_bytes)} ({100 * taken / total_bytes:.3g} %): {what} at "
        f"{len(spans):,} places in {used:,} of {len(files):,} files, seed {seed}"
    )


def _part(file: BinaryIO, size: int, start: int, stop: int, separators: Sequence[bytes]) -> tuple[int, int]:
    """Return the span of the documents, lines or characters that the window [start, stop) of a file takes."""
    for ends in (separators, [b"\n"]):
        before = min(start, max(map(len, ends)))  # for a separator that ends at `start`
        text = _read(file, start - before, before + stop - start)
        after = (end for _, end in _separators(text, ends, start - before) if end >= start)
        first = 0 if start == 0 else next(after, stop)
        if first < stop:
            return first, _end_of_document(file, size, stop, stop - start, ends)
    text = text[before:]
    continued = len(text) - len(text.lstrip(_CONTINUATION))
    return start + continued, stop - cut_character_bytes(text[-3:])


def _end_of_document(
    file: BinaryIO, size: int, window_stop: int, window_bytes: int, separators: Sequence[bytes]
) -> int:
    """Return the end of the document that contains the byte before `window_stop`, or the offset to cut it off at."""
    if window_stop >= size:
        return size
    longest = max(map(len, separators))
    base = max(0, window_stop - longest)
    text = _read(file, base, longest + _LONGEST * window_bytes)
    for start, end in _separators(text, separators, base):
        if end >= window_stop:  # a separator that ends in the window is followed by a document of the window
            return start
    if base + len(text) >= size:
        return size
    line_end = text.rfind(b"\n", longest)
    return base + (line_end + 1 if line_end >= 0 else len(text) - cut_character_bytes(text[-3:]))


def _read(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(size)


def _separators(text: bytes, separators: Sequence[bytes], base: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of the separators in a file. base: offset of the text in it."""
    starts, which = _core.find_special_tokens(text, separators)
    for start, kind in zip(starts.tolist(), which.tolist(), strict=True):
        yield base + start, base + start + len(separators[kind])
