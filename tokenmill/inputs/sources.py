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
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tokenmill.errors import BadArgument, printable
from tokenmill.inputs.errors import BadInput, changed_while_read
from tokenmill.inputs.hints import DATASET_WITHIN, is_zarr_group, what_no_text_is, why_missing
from tokenmill.inputs.kinds import (
    FORMATS,
    PLAIN_TEXT,
    STANDARD_INPUT,
    Rank,
    check_libraries,
    is_marked_up,
    kind_of,
    rank_in_folder,
)
from tokenmill.inputs.saved_dataset import saved_parts
from tokenmill.inputs.source_list import Source, SourceList
from tokenmill.inputs.source_urls import find_objects, is_excluded_below, outermost
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
    inputs, validation = ([name for name in names if not is_excluded(name)] for names in (inputs, validation))
    search = _Search(input_format, standard_input, options, keep_unreadable, is_excluded)
    problems = search.problems
    if STANDARD_INPUT in validation:
        problems.append("-: standard input cannot be held out. Pass a file to --validation.")
    elif STANDARD_INPUT in inputs and standard_input is None:
        problems.append("-: standard input is not supported here. Pass a file.")
    elif inputs.count(STANDARD_INPUT) > 1:
        problems.append("-: standard input must be passed only once")
    for split, arguments in ((None, inputs), ("validation", validation)):
        search.split = split
        for argument in arguments:
            if fault := what_no_text_is(argument, input_format):
                problems.append(f"{argument}: {fault}")
            else:
                search.add(argument)
    note = ""
    if search.left_out:
        listed = _listed(search.left_out)
        note = f"skipped files that are not data: {listed}. Pass a file by name to read it."
    sources = search.sources()
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
    if status.st_mtime_ns != source.mtime_ns:
        raise changed_while_read(source.path, "new modification time")


def empty_tables(sources: Sequence[Source]) -> dict[int, str]:
    """The error of each empty source in a format that does not allow empty files, by index."""
    return {
        index: printable(f"{source.shown}: not a {FORMATS[source.kind.format].name} file (got 0 bytes)")
        for index, source in enumerate(sources)
        if not source.size_bytes and FORMATS[source.kind.format].is_encoded
    }


def _listed(sources: Sequence[Source]) -> str:
    shown = ", ".join(printable(source.shown) for source in sources[:SHOWN_FILES])
    return f"{shown} and {len(sources) - SHOWN_FILES:,} more" if len(sources) > SHOWN_FILES else shown


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


class _Search:
    """Collects the sources of arguments.

    problems: faults of the arguments.
    marked_up: HTML pages that arguments name.
    left_out: files in folders that are not data.
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
        self.problems: list[str] = []
        self.marked_up: list[str] = []
        self.left_out: list[Source] = []
        self.split: str | None = None
        self._found: list[tuple[Source, str, Rank]] = []  # of one argument, with identities
        self._kept: list[tuple[Source, str]] = []

    def add(self, argument: str) -> None:
        """Add the sources of an argument: those that it names, and of folders those with the best rank."""
        self._found = []
        self._find(argument)
        best = min((rank for *_, rank in self._found if rank != Rank.NAMED), default=Rank.NAMED)
        kept = [found for found in self._found if found[2] <= min(best, Rank.ABOUT)]
        left_out = [found[0] for found in self._found if found[2] > min(best, Rank.ABOUT)]
        if left_out and not kept:
            self.problems.append(
                f"{shown_url(argument)}: no data files, only {_listed(left_out)}. Pass the files to read by name."
            )
        self._kept += [(source, identity) for source, identity, _ in kept]
        self.left_out += left_out

    def sources(self) -> SourceList:
        """The sources that are data, without inputs that are also validation. Other repeated files are problems."""
        validation = {identity for source, identity in self._kept if source.split is not None}
        sources, before = SourceList(), dict[str, Source]()
        for source, identity in self._kept:
            if source.split is None and identity in validation:
                continue
            if identity in before:
                self.problems.append(f"{source.shown}: same file as {before[identity].shown}. Pass it once.")
            before[identity] = source
            sources.append(source)
        return sources

    def _add(self, source: Source, identity: str, rank: Rank = Rank.NAMED) -> None:
        self._found.append((source._replace(split=self.split), identity, rank))
        if rank == Rank.NAMED and self._format == "auto" and is_marked_up(source.path):
            self.marked_up.append(source.shown)

    def _find(self, argument: str) -> None:
        if argument == STANDARD_INPUT:
            if self._standard_input is not None:
                copy = self._standard_input
                self._add(copy, copy.path if copy.version else _identity(os.stat(copy.path)))
        elif argument.lower().startswith("file://"):
            self._find(parse(argument).path)
        elif is_url(argument):
            for source, rank in find_objects(
                argument, self._options, self._format, self.problems, self._is_excluded
            ):
                self._add(source, source.path, rank)
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

    def _add_path(self, path: str, above: tuple[str, ...] = ()) -> None:
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
            self.problems.append(f"{path}: a device, pipe or socket. Pass its text as standard input with -.")
        elif not self._keep_unreadable and not os.access(path, os.R_OK):
            self.problems.append(f"{path}: permission denied")
        else:
            self._add_file(path, status, len(above))

    def _add_folder(self, path: str, above: tuple[str, ...]) -> None:
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
        source = Source(path, status.st_size, status.st_mtime_ns, kind=kind)
        self._add(source, _identity(status), rank)
