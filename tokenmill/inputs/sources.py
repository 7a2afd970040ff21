"""Find the files and objects that the arguments of a command name.

    en.txt    corpus/    "corpus/**/*.jsonl"    s3://bucket/data/    -

Arguments keep their order. The files of a folder or glob are sorted by the bytes of their paths, so the list is the
same on every machine. Folders are read recursively, links are followed, and names that begin with a dot are skipped. A
folder gives only its data files (`tokenmill.inputs.kinds.Rank`). source_urls.py finds objects. All faults of the
arguments are reported in one error before the work starts.
"""

# ruff: noqa: PTH115, PTH116, PTH118, PTH119, PTH120, PTH207, PTH208 - Path would change "./a" to "a"
from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tokenmill.errors import BadArgument, printable
from tokenmill.inputs.errors import BadInput, changed_while_read
from tokenmill.inputs.hints import DATASET_WITHIN, is_zarr_group, what_no_text_is, why_missing
from tokenmill.inputs.kinds import (
    FORMATS,
    PLAIN_TEXT,
    STANDARD_INPUT,
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


def recorded_path(path: str) -> str:
    """Return the path as plans and manifests store it, independent of the locale.

    Bytes that are not UTF-8 become surrogate escapes: b"\\xff" -> "\\udcff".
    """
    return os.fsencode(path).decode("utf-8", "surrogateescape")


class Found(NamedTuple):
    """The result of a search.

    problems: faults of the arguments.
    note: line about files in folders that are not data, or "".
    marked_up: HTML pages that arguments name.
    """

    sources: SourceList
    problems: list[str]
    note: str
    marked_up: list[str]


def find_sources(
    inputs: Sequence[str],
    validation: Sequence[str] = (),
    input_format: str = "auto",
    standard_input: Source | None = None,
    options: StorageOptions = NO_OPTIONS,
) -> SourceList:
    """Return the sources of `search_sources`. Raise BadArgument that lists all problems."""
    found = search_sources(inputs, validation, input_format, standard_input, options)
    refuse(found.problems)
    return found.sources


def search_sources(
    inputs: Sequence[str],
    validation: Sequence[str] = (),
    input_format: str = "auto",
    standard_input: Source | None = None,
    options: StorageOptions = NO_OPTIONS,
    keep_unreadable: bool = False,
    exclude: Sequence[str] = (),
) -> Found:
    """Find the files of all arguments, `validation` last. A file that both name is validation only.

    standard_input: source for "-", which is a problem without it.
    options: settings of stores.
    keep_unreadable: also return files without permission and empty tables, which reading skips.
    exclude: globs of files to leave out (`excluder`).
    """
    is_excluded = excluder(exclude)
    inputs = [named for named in inputs if not is_excluded(named)]
    validation = [named for named in validation if not is_excluded(named)]
    search = _Search(input_format, standard_input, options, keep_unreadable, is_excluded)
    problems, sources = search.problems, search.sources
    if STANDARD_INPUT in validation:
        problems.append("-: standard input cannot be held out. Pass a file to --validation.")
    elif STANDARD_INPUT in inputs and standard_input is None:
        problems.append("-: standard input is not supported here. Pass a file.")
    elif inputs.count(STANDARD_INPUT) > 1:
        problems.append("-: standard input must be passed only once")
    no_texts = {
        named: fault for named in (*inputs, *validation) if (fault := what_no_text_is(named, input_format))
    }
    problems += [f"{named}: {fault}" for named, fault in sorted(no_texts.items())]
    for argument in inputs:
        if argument not in no_texts:
            search.add(argument)
    search.split, validation_start = "validation", len(sources)
    for argument in validation:
        if argument not in no_texts:
            search.add(argument)
    note = ""
    if search.left_out:
        listed = _listed(sources, search.left_out)
        note = f"skipped files that are not data: {listed}. Pass a file by name to read it."
    if len(sources) > 1:
        sources = search.without_repeats(validation_start)
    if not keep_unreadable:
        problems += empty_tables(sources).values()
    if not sources and not problems:
        named = ", ".join(map(shown_url, [*inputs, *validation])) or "--exclude"
        problems.append(f"{named}: no files (names that begin with a dot are skipped)")
    if not problems:
        check_libraries(sources.kinds)
    return Found(sources, problems, note, search.marked_up)


def excluder(globs: Sequence[str]) -> Callable[[str], bool]:
    """Return a test whether a path or URL matches a glob, as a whole or after a slash; `*` also matches slashes.

    ["*.md", "drafts/*"] -> True for "a.md", "in/a.md" and "in/drafts/a/b.txt", False for "in/drafts".
    """
    if not globs:
        return lambda path: False
    pattern = re.compile("|".join(f"(?s:.*/)?{fnmatch.translate(glob)}" for glob in globs))
    return lambda path: pattern.match(path) is not None


def refuse(problems: Sequence[str]) -> None:
    """Raise BadArgument that lists the problems, if there are any."""
    if problems:
        shown = [printable(problem) for problem in problems[:SHOWN_PROBLEMS]]
        if len(problems) > SHOWN_PROBLEMS:
            shown.append(f"({len(problems) - SHOWN_PROBLEMS} more errors)")
        raise BadArgument(" ".join([*(f"{problem.removesuffix('.')}." for problem in shown[:-1]), shown[-1]]))


def require_unchanged(source: Source, status: os.stat_result | None) -> None:
    """Raise FatalInput unless a file still has the size and time of the plan. status: `RandomFile.status`.

    A worker compares before and after it reads a piece, so it encodes only text that was planned.
    """
    if status is None:
        return
    if status.st_size != source.size_bytes:
        raise changed_while_read(source.path, f"had {source.size_bytes} bytes, has {status.st_size}")
    if _modified(status) != source.mtime_ns:
        raise changed_while_read(source.path, "new modification time")


def empty_tables(sources: SourceList) -> dict[int, str]:
    """The error of each empty source in a format that does not allow empty files, by index."""
    if not any(FORMATS[kind.format].is_encoded for kind in sources.kinds):
        return {}
    return {
        index: empty_table(source.shown, source.kind)
        for index, source in enumerate(sources)
        if not source.size_bytes and not source.is_left_out and FORMATS[source.kind.format].is_encoded
    }


def _listed(sources: SourceList, indices: Sequence[int]) -> str:
    shown = ", ".join(printable(sources[index].shown) for index in indices[:SHOWN_FILES])
    return f"{shown} and {len(indices) - SHOWN_FILES:,} more" if len(indices) > SHOWN_FILES else shown


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _modified(status: os.stat_result) -> int:
    """Modification time, wrapped to the 64 bits that a SourceList has for it."""
    return (status.st_mtime_ns + 2**63) % 2**64 - 2**63


class _Search:
    """Collects the sources of arguments.

    problems: faults of the arguments.
    marked_up: HTML pages that arguments name.
    left_out: indices of files in folders that are not data.
    split: split of the sources that are added.
    """

    def __init__(
        self,
        input_format: str,
        standard_input: Source | None,
        options: StorageOptions,
        keep_unreadable: bool,
        is_excluded: Callable[[str], bool],
    ) -> None:
        self._format, self._standard_input, self._options = input_format, standard_input, options
        self._keep_unreadable, self._is_excluded = keep_unreadable, is_excluded
        self.sources = SourceList()
        self.problems: list[str] = []
        self.marked_up: list[str] = []
        self.left_out: list[int] = []
        self.split: str | None = None
        self._devices, self._inodes, self._ranks = array("Q"), array("Q"), bytearray()

    def add(self, argument: str) -> None:
        """Add the sources of an argument."""
        first = len(self.sources)
        self._find(argument)
        ranks = self._ranks[first:]
        lowest = min(filter(None, set(ranks)), default=int(Rank.NAMED))
        highest = min(lowest, Rank.ABOUT)
        others = [first + index for index, rank in enumerate(ranks) if rank > highest]
        if others and len(others) == len(ranks):
            listed = _listed(self.sources, others)
            self.problems.append(
                f"{shown_url(argument)}: no data files, only {listed}. Pass the files to read by name."
            )
        self.left_out += others

    def without_repeats(self, validation_start: int) -> SourceList:
        """The sources that are data, without inputs that are also validation. Other repeated files are problems.

        Sorting identities takes 16 bytes per source, a set of them 200.
        """
        identities = np.frombuffer(self._inodes, np.uint64), np.frombuffer(self._devices, np.uint64)
        is_kept = np.ones(len(self.sources), np.bool_)
        is_kept[self.left_out] = False
        order = np.lexsort(identities)  # stable, so equal ones keep their order
        order = order[is_kept[order]]
        is_same = np.logical_and.reduce([np.diff(numbers[order]) == 0 for numbers in identities])
        dropped = set(self.left_out)
        repeated: list[tuple[int, int]] = []
        for index in np.flatnonzero(is_same)[::-1].tolist():
            earlier, later = order[index : index + 2].tolist()
            if earlier < validation_start and (later >= validation_start or later in dropped):
                dropped.add(earlier)
            else:
                repeated.append((later, earlier))
        for later, earlier in sorted(repeated):
            names = self.sources[later].shown, self.sources[earlier].shown
            self.problems.append(f"{names[0]}: same file as {names[1]}. Pass it once.")
        if not dropped:
            return self.sources
        return SourceList(source for index, source in enumerate(self.sources) if index not in dropped)

    def _add(self, source: Source, identity: tuple[int, int], rank: Rank = Rank.NAMED) -> None:
        self.sources.append(source if self.split is None else source._replace(split=self.split))
        self._devices.append(identity[0])
        self._inodes.append(identity[1])
        self._ranks.append(rank)
        if rank == Rank.NAMED and self._format == "auto" and is_marked_up(source.path):
            self.marked_up.append(source.shown)

    def _find(self, argument: str) -> None:
        if argument == STANDARD_INPUT:
            if self._standard_input is not None:
                copy = self._standard_input
                identity = source_identity(copy) if copy.version else _identity(os.stat(copy.path))
                self._add(copy, identity)
        elif argument.lower().startswith("file://"):
            self._find(parse(argument).path)
        elif is_url(argument):
            for source, rank in find_objects(
                argument, self._options, self._format, self.problems, self._is_excluded
            ):
                self._add(source, source_identity(source), rank)
        elif os.path.lexists(argument):
            self._add_path(argument)
        elif glob.has_magic(argument):
            self._add_glob(argument)
        else:
            self.problems.append(f"{argument}: not found{why_missing(argument)}")

    def _add_glob(self, argument: str) -> None:
        matches = sorted(glob.glob(argument, recursive=True), key=os.fsencode)
        if not matches:
            self.problems.append(f"{argument}: matches no file")
        matches = [match for match in matches if not is_excluded_below(argument, match, self._is_excluded)]
        # "**" matches folders in addition to their files.
        folders = set(filter(os.path.isdir, matches)) if "**" in argument else set()
        entered = folders | {os.path.dirname(match) or "." for match in matches if "**" in argument}
        datasets = outermost(filter(is_zarr_group, entered))
        self.problems += [f"{folder}: {DATASET_WITHIN}" for folder in datasets]
        for match in matches if not datasets else ():
            if match not in folders:
                self._add_path(match)

    def _add_path(self, path: str, above: tuple[tuple[int, int], ...] = ()) -> None:
        """Add a file, or the files of a folder. above: identities of the folders that contain it."""
        if self._is_excluded(path):
            return
        try:
            status = os.stat(path)
        except FileNotFoundError:
            self.problems.append(f"{path}: broken link to {os.readlink(path)}")
            return
        except OSError as error:
            self.problems.append(f"{path}: {error.strerror}")
            return
        if stat.S_ISDIR(status.st_mode):
            if _identity(status) in above:
                self.problems.append(f"{path}: link to a folder that contains it")
            elif is_zarr_group(path):
                self.problems.append(f"{path}: {DATASET_WITHIN}")
            else:
                self._add_folder(path, (*above, _identity(status)))
        elif not stat.S_ISREG(status.st_mode):
            kind, advice = "a device", ""
            if stat.S_ISSOCK(status.st_mode):
                kind = "a socket"
            elif stat.S_ISFIFO(status.st_mode):
                kind, advice = "a pipe", ". Pass it as standard input with -."
            self.problems.append(f"{path}: {kind}, not a file or folder{advice}")
        elif not self._keep_unreadable and not os.access(path, os.R_OK):
            self.problems.append(f"{path}: permission denied")
        else:
            self._add_file(path, status, len(above))

    def _add_folder(self, path: str, above: tuple[tuple[int, int], ...]) -> None:
        try:
            names = sorted(name for name in os.listdir(os.fsencode(path)) if not name.startswith(b"."))
            names = saved_parts(path, names) or names
        except OSError as error:
            self.problems.append(f"{path}: {error.strerror}")
        except BadInput as error:
            self.problems.append(str(error))
        else:
            for name in names:
                self._add_path(os.path.join(path, os.fsdecode(name)), above)

    def _add_file(self, path: str, status: os.stat_result, depth: int) -> None:
        rank = Rank.NAMED if not depth else rank_in_folder(os.path.basename(path), self._format, depth == 1)
        try:
            kind = PLAIN_TEXT if rank == Rank.NO_DATA else kind_of(path, self._format)
        except ValueError as error:
            self.problems.append(f"{path}: {error}")
            return
        source = Source(path, status.st_size, _modified(status), kind=kind)
        self._add(source, _identity(status), rank)
