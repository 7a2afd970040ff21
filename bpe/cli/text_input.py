"""The inputs of the commands: the files that arguments name, and their text in blocks of valid UTF-8."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, Final

from bpe.errors import BadArgument, MissingInput, printable
from bpe.pretoken_counts.reading import Reader, Records, Tally
from bpe.pretoken_counts.sources import FileRange, Source, listed
from tokenmill.cli.standard_streams import complain
from tokenmill.inputs import utf8
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.hints import what_no_text_is
from tokenmill.inputs.kinds import is_marked_up, markup_note
from tokenmill.stores import NO_OPTIONS

if TYPE_CHECKING:
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
    named = [standard_input() if argument == "-" else argument for argument in arguments]
    settings = NO_OPTIONS if options is None else dict(options.storage_option)
    exclude = getattr(options, "exclude", ())
    return listed(named, form, True, settings, lambda line: complain(line, "note"), exclude)


def plain_text_note(sources: Iterable[Source]) -> str:
    """Return one line about HTML pages among the inputs, or "" if there are none."""
    return markup_note(
        [
            source.name
            for source in sources
            if isinstance(source, FileRange) and not source.file.version and is_marked_up(source.name)
        ]
    )


def named_files(sources: Iterable[Source]) -> list[str]:
    """Return the files of `input_sources`, and "-" for stdin, as input for `check_outputs_apart`."""
    return [
        source.file.path if isinstance(source, FileRange) else "-"
        for source in sources
        if not (isinstance(source, FileRange) and source.file.version)
    ]


def read_text(source: Source, invalid: utf8.Invalid, tell: Callable[[Tally], None]) -> Iterator[str]:
    """Yield the text in blocks of about 1 MiB, cut between characters. InvalidText names the source and byte offset.

    tell: called at the end with the number of inserted U+FFFD.
    """
    replaced = offset = 0
    with source.opened() as stream:
        for piece in utf8.whole_characters(Reader(source, stream).pieces(_BLOCK_BYTES)):
            text, count, bad = utf8.repair(piece, invalid == "replace")
            if bad >= 0:
                raise utf8.invalid_text(piece, bad, source.name, offset)
            replaced += count
            offset += len(piece)
            yield str(text, "utf-8")
    tell(Tally(replaced))


def record_texts(source: Source, rules: IntakeRules, tell: Callable[[Tally], None]) -> Iterator[str]:
    """Yield the text of each record. Memory holds a whole line.

    tell: as for `read_text`, plus the number of skipped records.
    """
    assert isinstance(source, FileRange)  # streams of records were spooled
    with Records(source, rules) as records:
        for found in records.documents():
            if not isinstance(found, Batch):
                text = b"".join(map(bytes, found.texts()))
                if not found.fault:
                    yield text.decode()
                continue
            view = memoryview(found.text)
            for start, stop in pairwise(found.offsets.tolist()):
                yield str(view[start:stop], "utf-8")
        tell(records.tally)
