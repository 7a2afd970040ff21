"""Which files the arguments of a command stand for, in which order.

Arguments keep their order; the files of a folder or a glob are sorted by the bytes of the path, so the list does not
depend on the machine. Folders are walked down to the last level; names that begin with a dot are left out; links are
followed. Of the files in a folder, only the data are taken (`tokenmill.inputs.kinds.Rank`). source_urls.py finds the
objects of URLs. Everything wrong with the arguments is reported in one error before the work starts.
"""

# ruff: noqa: PTH115, PTH116, PTH118, PTH207, PTH208 - paths stay as they were given; Path would make "./a" and "a" one
from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tokenmill.errors import BadArgument, printable
from tokenmill.inputs.errors import BadInput, changed_while_read
from tokenmill.inputs.hints import DATASET_WITHIN, is_zarr_group, what_no_text_is, why_missing
from tokenmill.inputs.kinds import (
    FORMATS,
    PLAIN_TEXT,
    Rank,
    check_libraries,
    empty_table,
    is_marked_up,
    kind_of,
    rank_in_folder,
)
from tokenmill.inputs.saved_dataset import saved_parts
from tokenmill.inputs.source_list import Source, SourceList
from tokenmill.inputs.source_urls import find_objects, is_excluded_below, outermost, source_identity
from tokenmill.stores import NO_OPTIONS, StorageOptions, is_url, shown_url
from tokenmill.stores.url import parse

SHOWN_PROBLEMS = 20
SHOWN_FILES = 5
STANDARD_INPUT = "-"


def recorded_path(path: str) -> str:
    """The path as plan and manifest keep it: by its bytes, as UTF-8, so the same on a machine with another locale.

    Bytes that are no UTF-8 are kept as Python's surrogate escapes, "\\udcff" for 0xff.
    """
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def find_sources(
    inputs: Sequence[str],
    validation: Sequence[str] = (),
    input_format: str = "auto",
    standard_input: Source | None = None,
    options: StorageOptions = NO_OPTIONS,
) -> SourceList:
    """The files that the arguments stand for, in order, `validation` after `inputs`.

    standard_input: what stands for "-" among the inputs; without it that is refused. options: of the stores of URLs.
    A file that both name is validation only. BadArgument (exit 2) lists every path that is missing, special,
    unreadable or given twice.
    """
    found = search_sources(inputs, validation, input_format, standard_input, options)
    refuse(found.problems)
    return found.sources


class Found(NamedTuple):
    """Files that the arguments stand for.

    problems: faults of the arguments. note: line about the files in folders that were left out, or "". marked_up: names
    of HTML pages that were named.
    """

    sources: SourceList
    problems: list[str]
    note: str
    marked_up: list[str]


def search_sources(
    inputs: Sequence[str],
    validation: Sequence[str] = (),
    input_format: str = "auto",
    standard_input: Source | None = None,
    options: StorageOptions = NO_OPTIONS,
    keep_unreadable: bool = False,
    exclude: Sequence[str] = (),
) -> Found:
    """As `find_sources`, but with all that was found, problems included.

    keep_unreadable: files without permission and empty tables are sources, which reading leaves out. exclude: globs,
    see `excluder`.
    """
    problems: list[str] = []
    is_excluded = excluder(exclude)
    inputs = [named for named in inputs if not is_excluded(named)]
    validation = [named for named in validation if not is_excluded(named)]
    if STANDARD_INPUT in validation:
        problems.append("-: standard input cannot be held out. Pass a file to --validation.")
    elif STANDARD_INPUT in inputs and standard_input is None:
        problems.append("-: standard input is not supported here. Pass a file.")
    elif list(inputs).count(STANDARD_INPUT) > 1:
        problems.append("-: standard input must be passed only once")
    no_texts = {
        named: what for named in (*inputs, *validation) if (what := what_no_text_is(named, input_format))
    }
    problems += [f"{named}: {what}" for named, what in sorted(no_texts.items())]
    find = _Search(input_format, standard_input, problems, options, [], keep_unreadable, is_excluded)
    sources, devices, inodes, validation_from = SourceList(), array("Q"), array("Q"), 0
    left_out: list[int] = []
    for arguments, split in ((inputs, None), (validation, "validation")):
        validation_from = len(sources)
        for argument in arguments:
            if argument in no_texts:
                continue
            first, ranks = len(sources), bytearray()
            for (device, inode), source, rank in find(argument, arguments):
                sources.append(source if split is None else source._replace(split=split))
                devices.append(device)
                inodes.append(inode)
                ranks.append(rank)
            others = _left_out(first, ranks)
            if others and len(others) == len(ranks):
                named = _listed(sources, others)
                problems.append(
                    f"{shown_url(argument)}: no data files, only {named}. Pass the files to read by name."
                )
            left_out += others
    note = ""
    if left_out:
        note = (
            f"skipped files that are not data: {_listed(sources, left_out)}. Pass a file by name to read it."
        )
    if len(sources) > 1:
        sources = _without_copies(sources, validation_from, devices, inodes, left_out, problems)
    if not sources and not problems:
        named = ", ".join(map(shown_url, [*inputs, *validation])) or "--exclude"
        problems.append(f"{named}: no files (names that begin with a dot are skipped)")
    if not problems:
        check_libraries(sources.kinds)
    return Found(sources, problems, note, find.marked_up)


def excluder(globs: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path or URL matches one of the globs, as a whole or from a slash on; `*` matches slashes too.

    ["*.md", "drafts/*"] -> True for "a.md", "in/a.md" and "in/drafts/a/b.txt", False for "in/drafts".
    """
    if not globs:
        return lambda path: False
    pattern = re.compile("|".join(f"(?s:.*/)?{fnmatch.translate(glob)}" for glob in globs))
    return lambda path: pattern.match(path) is not None


def refuse(problems: Sequence[str]) -> None:
    """BadArgument (exit 2) that lists the problems, unless there are none."""
    if problems:
        shown = [printable(problem) for problem in problems[:SHOWN_PROBLEMS]]
        if len(problems) > SHOWN_PROBLEMS:
            shown.append(f"({len(problems) - SHOWN_PROBLEMS} more errors)")
        raise BadArgument(" ".join([*(f"{problem.removesuffix('.')}." for problem in shown[:-1]), shown[-1]]))


def _left_out(first: int, ranks: bytearray) -> list[int]:
    """The numbers of the files of one argument that are left out. first: number of the file that has ranks[0]."""
    lowest = min(filter(None, set(ranks)), default=int(Rank.NAMED))
    most = min(lowest, Rank.ABOUT)
    return [first + index for index, rank in enumerate(ranks) if rank > most]


def _listed(sources: SourceList, numbers: Sequence[int]) -> str:
    shown = ", ".join(printable(sources[number].shown) for number in numbers[:SHOWN_FILES])
    return f"{shown} and {len(numbers) - SHOWN_FILES:,} more" if len(numbers) > SHOWN_FILES else shown


def _without_copies(
    sources: SourceList,
    validation_from: int,
    devices: array[int],
    inodes: array[int],
    others: Sequence[int],
    problems: list[str],
) -> SourceList:
    """The sources without `others` and without those inputs that are validation too, which begins at a number;
    `problems` gets other files that are named twice. Neighbours in the order of device and number are compared: a table
    of a million took 200 MB.
    """
    numbers = np.frombuffer(inodes, np.uint64), np.frombuffer(devices, np.uint64)
    is_kept = np.ones(len(sources), np.bool_)
    is_kept[list(others)] = False
    order = np.lexsort(numbers)  # of equal ones, in the order of the sources
    order = order[is_kept[order]]
    same = np.logical_and.reduce([np.diff(number[order]) == 0 for number in numbers])
    left_out: set[int] = set(others)
    twice: list[tuple[int, int]] = []
    for place in np.flatnonzero(same)[::-1].tolist():
        earlier, later = order[place : place + 2].tolist()
        if earlier < validation_from and (later >= validation_from or later in left_out):
            left_out.add(earlier)
        else:
            twice.append((later, earlier))
    for later, earlier in sorted(twice):
        problems.append(f"{sources[later].shown}: same file as {sources[earlier].shown}. Pass it once.")
    if not left_out:
        return sources
    return SourceList(source for number, source in enumerate(sources) if number not in left_out)


def check_unchanged(sources: Sequence[Source]) -> array[int]:
    """Raise BadInput (exit 3) naming the first source whose size or time is no longer what it was; the numbers of those
    that something else was done to, so that their bytes may be others."""
    touched = array("q")
    for number, source in enumerate(sources):
        if source.version or source.is_left_out:
            continue  # each read was of that version, or there was none
        status = os.stat(source.path)
        if source.digest is None and (status.st_ctime_ns, status.st_ino) != (source.changed_ns, source.inode):
            touched.append(number)
        require_unchanged(source, status)
    return touched


def require_unchanged(source: Source, status: os.stat_result | None) -> None:
    """BadInput (exit 3) if a source has not the size and time any more that it had when the work was planned; status:
    see `RandomFile`."""
    if status is None:
        return
    if status.st_size != source.size_bytes:
        raise changed_while_read(source.path, f"had {source.size_bytes} bytes, has {status.st_size}")
    if status.st_mtime_ns != source.mtime_ns:
        raise changed_while_read(source.path, "new modification time")


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


_File = tuple[tuple[int, int], Source, Rank]


class _Search(NamedTuple):
    """An argument to readable regular files, in order, each with its device and number, and its rank.

    problems: receives the faults of the argument. marked_up: receives the HTML pages that are named.
    """

    input_format: str
    standard_input: Source | None
    problems: list[str]
    options: StorageOptions
    marked_up: list[str]
    keep_unreadable: bool
    is_excluded: Callable[[str], bool]

    def __call__(self, argument: str, arguments: Sequence[str]) -> Iterator[_File]:
        if argument == STANDARD_INPUT:
            if self.standard_input is not None:
                copy = self.standard_input
                identity = source_identity(copy) if copy.version else _identity(os.stat(copy.path))
                yield identity, copy, Rank.NAMED
        elif argument.lower().startswith("file://"):
            yield from self(parse(argument).path, arguments)
        elif is_url(argument):
            for source, rank in find_objects(
                argument,
                self.options,
                self.input_format,
                self.problems,
                self.keep_unreadable,
                self.is_excluded,
            ):
                self._look_for_markup(source, rank)
                yield source_identity(source), source, rank
        elif os.path.lexists(argument):
            yield from self._walk(argument, ())
        elif glob.has_magic(argument):
            matches = sorted(glob.glob(argument, recursive=True), key=os.fsencode)
            if not matches:
                self.problems.append(f"{argument}: matches no file")
            matches = [match for match in matches if not is_excluded_below(argument, match, self.is_excluded)]
            # "**" also matches folders in folders, and may yield them in addition to their files.
            passed = matches if "**" in argument else []
            folders = set(filter(os.path.isdir, passed))
            entered = folders | {os.path.dirname(match) or "." for match in passed}  # noqa: PTH120
            datasets = outermost(filter(is_zarr_group, entered))
            self.problems.extend(f"{folder}: {DATASET_WITHIN}" for folder in datasets)
            for match in matches if not datasets else ():
                if match not in folders:
                    yield from self._walk(match, ())
        else:
            self.problems.append(f"{argument}: not found{why_missing(argument, arguments)}")

    def _look_for_markup(self, source: Source, rank: Rank) -> None:
        if rank == Rank.NAMED and self.input_format == "auto" and is_marked_up(source.path):
            self.marked_up.append(source.shown)

    def _walk(self, path: str, above: tuple[tuple[int, int], ...]) -> Iterator[_File]:
        problems = self.problems
        if self.is_excluded(path):
            return
        try:
            status = os.stat(path)
        except FileNotFoundError:
            problems.append(f"{path}: broken link to {os.readlink(path)}")
            return
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
            return
        if stat.S_ISDIR(status.st_mode):
            if _identity(status) in above:
                problems.append(f"{path}: link to a folder that contains it")
                return
            if is_zarr_group(path):
                problems.append(f"{path}: {DATASET_WITHIN}")
                return
            try:
                names = [name for name in os.listdir(os.fsencode(path)) if not name.startswith(b".")]
            except OSError as error:
                problems.append(f"{path}: {error.strerror}")
                return
            names.sort()
            try:
                names = saved_parts(path, set(names)) or names
            except BadInput as error:
                problems.append(str(error))
                return
            above = (*above, _identity(status))
            for name in names:
                yield from self._walk(os.path.join(path, os.fsdecode(name)), above)
        elif not stat.S_ISREG(status.st_mode):
            way_out = ". Pass it as standard input with -." if stat.S_ISFIFO(status.st_mode) else ""
            problems.append(f"{path}: {_kind(status.st_mode)}, not a file or folder{way_out}")
        elif not self.keep_unreadable and not os.access(path, os.R_OK):
            problems.append(f"{path}: permission denied")
        else:
            rank = Rank.NAMED
            if above:
                rank = rank_in_folder(os.path.basename(path), self.input_format, len(above) == 1)  # noqa: PTH119
            try:
                kind = PLAIN_TEXT if rank == Rank.NO_DATA else kind_of(path, self.input_format)
            except ValueError as error:
                problems.append(f"{path}: {error}")
                return
            if FORMATS[kind.format].is_encoded and not status.st_size and not self.keep_unreadable:
                problems.append(empty_table(path, kind))
                return
            source = Source(
                path,
                status.st_size,
                status.st_mtime_ns,
                kind=kind,
                changed_ns=status.st_ctime_ns,
                inode=status.st_ino,
            )
            self._look_for_markup(source, rank)
            yield _identity(status), source, rank


def empty_tables(sources: SourceList) -> dict[int, str]:
    """The error of each source that is an empty file of a format that has no empty files, by number."""
    if not any(FORMATS[kind.format].is_encoded for kind in sources.kinds):
        return {}
    return {
        number: empty_table(source.shown, source.kind)
        for number, source in enumerate(sources)
        if not source.size_bytes and not source.is_left_out and FORMATS[source.kind.format].is_encoded
    }


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"
