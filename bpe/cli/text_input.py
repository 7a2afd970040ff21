"""The inputs of the commands: the files that arguments name, and their text in blocks of valid UTF-8."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from bpe.errors import BadArgument, MissingInput, printable
from bpe.pretoken_counts.records import Records
from bpe.pretoken_counts.sources import listed
from bpe.pretoken_counts.tally import Tally
from bpe.pretoken_counts.text_blocks import Reader
from tokenmill.cli.standard_streams import complain
from tokenmill.inputs import utf8
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.hints import what_no_text_is
from tokenmill.inputs.kinds import is_marked_up, markup_note
from tokenmill.inputs.source_list import Source as File
from tokenmill.stores import NO_OPTIONS, is_url

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Source
    from tokenmill.inputs.kinds import Kind
    from tokenmill.inputs.rules import IntakeRules

_BLOCK_BYTES: Final = 1 << 20


def standard_input() -> BinaryIO:
    """Return stdin. Raise MissingInput if the shell closed it (`<&-`)."""
    if sys.stdin is None:
        raise MissingInput("-: stdin is closed. Name a file.")
    return sys.stdin.buffer


def input_sources(arguments: list[str], options: Namespace | None = None) -> list[Source]:
    """Return the files and objects that the arguments name (tokenmill/inputs/sources.py), and stdin for "-".

    options: of the command, with input_format and storage_option.
    Raise MissingInput, which lists the arguments without a file.
    """
    if arguments.count("-") > 1:
        raise BadArgument("-: stdin can be read only once. Name it once.")
    if "" in arguments:  # Path("") is the current folder
        raise MissingInput("'': empty file name")
    form = "auto" if options is None else options.input_format
    if wrong := [
        f"{argument}: {what}" for argument in arguments if (what := what_no_text_is(argument, form))
    ]:
        raise MissingInput(printable("; ".join(wrong)))
    sources: list[Source] = []
    for argument in arguments:
        named = argument if is_url(argument) else Path(argument)
        sources.append(standard_input() if argument == "-" else named)
    settings = NO_OPTIONS if options is None else dict(options.storage_option)
    exclude = getattr(options, "exclude", ())
    return listed(sources, form, True, settings, lambda line: complain(line, "note"), exclude)


def plain_text_note(sources: Iterable[Source]) -> str:
    """Return one line about HTML pages among the inputs, or "" if there are none."""
    return markup_note(
        [str(source) for source in sources if isinstance(source, Path) and is_marked_up(str(source))]
    )


def named_files(sources: Iterable[Source]) -> list[Path | str]:
    """Return the files of `input_sources`, and "-" for stdin, as input for `check_outputs_apart`."""
    return [source if isinstance(source, Path) else "-" for source in sources if not isinstance(source, File)]


def read_text(
    source: Source, kind: Kind, invalid: utf8.Invalid, tell: Callable[[Tally], None]
) -> Iterator[str]:
    """Yield the text in blocks of about 1 MiB, cut between characters. InvalidText names the source and byte offset.

    tell: called at the end with the number of inserted U+FFFD.
    """
    replaced = offset = 0
    with Reader(source, kind) as reader:
        for piece in utf8.whole_characters(_pieces(reader)):
            text, count, bad = utf8.repair(piece, invalid == "replace")
            if bad >= 0 or (offset == 0 and utf8.other_kind(piece)):
                raise utf8.invalid_text(piece, max(bad, 0), reader.where, offset)
            replaced += count
            offset += len(piece)
            yield str(text, "utf-8")
    tell(Tally(replaced))


def _pieces(reader: Reader) -> Iterator[tuple[bytes, bool]]:
    buffer = bytearray(_BLOCK_BYTES)
    while count := reader.fill(memoryview(buffer)):
        yield bytes(buffer[:count]), False
    yield b"", True


def record_texts(
    source: Source, kind: Kind, rules: IntakeRules, tell: Callable[[Tally], None]
) -> Iterator[str]:
    """Yield the text of each record. Memory holds a whole line.

    tell: as for `read_text`, plus the number of skipped records.
    """
    with Records(source, kind, rules) as records:
        for found in records.documents():
            if not isinstance(found, Batch):
                text = b"".join(map(bytes, found.texts()))
                if not found.fault:
                    yield text.decode()
                continue
            view = memoryview(found.text)
            for start, stop in pairwise(found.offsets.tolist()):
                yield str(view[start:stop], "utf-8")
        tell(Tally(records.replaced, records.skipped))
