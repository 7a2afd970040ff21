"""Verification of a part, or of a dataset without any: every file against the manifest, then every element against
the format's rules.

Found: files that are missing (zarr reads zeros there), extra, truncated, changed or swapped; links and
devices; starts that do not rise from 0 to the token count; start flags that disagree with them; ids above
max_token_id, or a max_token_id that no token has. Without a manifest the rules alone are checked. Every file
is read once, but for zarr chunks of seq_starts, which the units of encoded_tokens that need them read again.
Cost, one core: 3 to 4 ns a token with zstd.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TypeVar

import numpy as np

from flat_tokens import opening
from flat_tokens.errors import CONVERT_AGAIN, RESTORE, DatasetError, printable
from flat_tokens.format import SPLITS, not_rising
from flat_tokens.masks import MaskElements
from flat_tokens.reader import FlatTokensArray, open_split
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.files import absence
from flat_tokens.storage.manifest import MANIFEST_NAME, FileRecord, Manifest, read_files, read_manifest
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Place, StorePath, walk
from flat_tokens.storage.token_facts import TokenFacts
from flat_tokens.verify_units import (
    ArrayUnit,
    UnitResult,
    verify_bits,
    verify_files,
    verify_starts,
    verify_tokens,
)

UNIT_TOKENS = 2**21  # some 7 ms of work: enough to hide the 0.3 ms of handing a unit to another process
UNIT_FILES = 32  # some 5 MB and 4 ms: the last units are shared out evenly
UNITS_IN_FLIGHT = 64  # a bound on memory; results are taken in order
PROBLEMS_KEPT = 1000

T = TypeVar("T")
Progress = Callable[[int, int], None]
Work = Callable[..., T]
Arguments = tuple[object, ...]


@dataclass(frozen=True)
class VerifyReport:
    """What was verified and what is wrong: problems holds one line a file or array, none means that all is
    well.

    file_count and byte_count count files that were read; counts of tokens and sequences are those of sound
    splits."""

    path: Place
    has_manifest: bool
    file_count: int
    byte_count: int
    token_count: int
    seq_count: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def require_ok(self) -> None:
        """Raise DatasetError with the first problem and the number of others, if there is any."""
        if self.problems:
            more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            raise DatasetError(self.problems[0] + more)


def verify_part(
    place: Place, executor: Executor | None, progress: Progress | None, facts: Mapping[str, TokenFacts]
) -> VerifyReport:
    """See verify_dataset."""
    opened = OpenedManifest.of(place / MANIFEST_NAME)
    with opened.reading():  # otherwise files of another dataset would count as damage
        promised = opening.open_by_manifest(place) if isinstance(place, StorePath) else None
        manifest = read_manifest(place)
        files = () if manifest is None else read_files(place, manifest)
        return _Verification(place, manifest, files, opened, promised, executor, progress, facts).run()


class _Verification:
    """One run: what is left to read, what was found."""

    def __init__(
        self,
        root: Place,
        manifest: Manifest | None,
        files: tuple[FileRecord, ...],
        opened: OpenedManifest,
        promised: opening.Dataset | None,
        executor: Executor | None,
        progress: Progress | None,
        facts: Mapping[str, TokenFacts],
    ) -> None:
        self.root = root
        self.manifest = manifest
        self.promised = promised
        self.executor = executor
        self.progress = progress
        self.facts = facts
        self.problems: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        self.chunk_files: Counter[str] = Counter()  # by the first folders of their paths, train/seq_starts
        self.done_bytes = 0
        self.total_bytes = 0
        self.unread = {record.path: record for record in files}
        self.opened = None if manifest is None else opened

    def run(self) -> VerifyReport:
        self._list_files()
        self.total_bytes = sum(self.sizes.values())
        splits, refusal = self._open()
        for split in splits:
            self._verify_split(split)
            self._verify_mask(split)
        for _ in self._run(verify_files, file_units(self.root, list(self.unread.values()))):
            pass
        if refusal and not self.problems:
            self.problems["."] = refusal
        return VerifyReport(
            self.root,
            self.manifest is not None,
            len(self.sizes),
            self.done_bytes,
            sum(split.token_count for split in splits),
            sum(split.seq_count for split in splits),
            tuple(self.problems.values())[:PROBLEMS_KEPT],
        )

    def _open(self) -> tuple[list[FlatTokensArray], str]:
        """The splits that can be opened, and why the dataset cannot, if so."""
        try:
            dataset = opening.open_by_files(self.root)
            self._compare_with_manifest(dataset)
            return [dataset[name] for name in SPLITS], ""
        except DatasetError as error:
            refusal = str(error)
        splits = []
        for name in SPLITS:
            try:
                array = open_split(self.root, name, self.opened)
                array.check_ends()
                splits.append(array)
            except DatasetError as error:
                if not self._is_damaged(name):  # else it says the same of a lost or changed file
                    self.problems.setdefault(name, str(error))
        return splits, refusal

    def _compare_with_manifest(self, dataset: opening.Dataset) -> None:
        """On a store readers take the manifest's word for how the arrays are stored: is it theirs?"""
        if self.promised is None:
            return
        for name in SPLITS:
            for theirs, its in zip(_arrays(dataset[name]), _arrays(self.promised[name]), strict=True):
                if theirs.stored != its.stored:
                    self._report(theirs.name, f"metadata must agree with the manifest. {CONVERT_AGAIN}")

    def _list_files(self) -> None:
        """Compare the names in the directory with the manifest's; links and the like are problems in any
        case."""
        for relative, kind, size in walk(self.root):
            if kind != "file":
                self._report(relative, f"must be a regular file (got a {kind}). Replace it with its content.")
                self.unread.pop(relative, None)
            elif self.manifest is None or relative in self.unread or relative == MANIFEST_NAME:
                self.sizes[relative] = size
                name = relative.rpartition("/")[2]
                if not name.startswith(".") and name != "zarr.json":
                    self.chunk_files["/".join(relative.split("/", 2)[:2])] += 1
            else:
                self._report(relative, "not listed in the manifest. Remove it.")
        for relative in self.unread.keys() - self.sizes.keys():
            self._report(relative, absence(relative))
            del self.unread[relative]  # a linked folder may have it; it is not the dataset's

    def _report(self, relative: str, text: str) -> None:
        self.problems.setdefault(relative, f"{printable(relative)}: {text}")

    def _is_damaged(self, name: str) -> bool:
        """Whether anything is wrong with a split or array, or with a file in it."""
        return any(path == name or path.startswith(f"{name}/") for path in self.problems)

    def _verify_split(self, split: FlatTokensArray) -> None:
        starts, tokens = split.seq_starts, split.encoded_tokens
        if not (self._has_its_files(starts) and self._has_its_files(tokens)):
            return
        borders: list[tuple[int, int, int]] = []
        for result in self._run(verify_starts, ((unit,) for unit in self._units(starts))):
            borders += result.borders
        for (_, _, last), (index, first, _) in pairwise(borders):
            if first <= last:
                text = not_rising(starts.name, index, first, last)
                self.problems.setdefault(starts.name, f"{text}. {CONVERT_AGAIN}")
        known = None if self._is_damaged(starts.name) else borders
        largest = -1
        for result in self._run(verify_tokens, ((unit,) for unit in self._token_units(split, known))):
            largest = max(largest, result.encoded_max)
        attained = max(largest, 0) >> 1
        if not self._is_damaged(split.name) and self.manifest is not None and attained != split.max_token_id:
            text = f"max_token_id must be the largest ID {attained} (got {split.max_token_id})"
            self.problems.setdefault(tokens.name, f"{tokens.name}: {text}. {CONVERT_AGAIN}")

    def _verify_mask(self, split: FlatTokensArray) -> None:
        if not isinstance(split.loss_mask, MaskElements) or not self._has_its_files(split.loss_mask.packed):
            return
        packed, trained = split.loss_mask.packed, 0
        for result in self._run(verify_bits, ((unit, split.token_count) for unit in self._units(packed))):
            trained += result.ones
        stated = None if self.manifest is None else self.manifest.splits[split.name].trained_tokens
        if stated not in (None, trained) and not self._is_damaged(packed.name):
            text = f"number of trained tokens must be {stated} by the manifest (got {trained})"
            self._report(packed.name, f"{text}. {CONVERT_AGAIN}")

    def _has_its_files(self, elements: Elements) -> bool:
        """Whether an array lacks no more files than are reported one by one. Otherwise the time would depend on the
        claims of its metadata."""
        assert elements.stored is not None
        file_count, found = elements.stored.file_count, self.chunk_files[elements.name]
        missing = file_count - found
        if missing > PROBLEMS_KEPT:
            text = f"must have {file_count} files by its metadata (got {found})"
            self._report(elements.name, f"{text}. {RESTORE}")
        return missing <= PROBLEMS_KEPT

    def _units(self, elements: Elements) -> Iterator[ArrayUnit]:
        """An array as units of whole files; their records are taken off the list of what is unread."""
        assert elements.stored is not None
        file_elements = elements.stored.shard_elements
        step = max(1, UNIT_TOKENS // file_elements) * file_elements
        for start in range(0, len(elements), step):
            stop = min(start + step, len(elements))
            records: dict[str, FileRecord] | None = None
            if self.manifest is not None:
                records = {}
                for file_index in range(start // file_elements, -(-stop // file_elements)):
                    relative = f"{elements.name}/{elements.stored.file_key(file_index)}"
                    record = self.unread.pop(relative, None)
                    if record is not None:
                        records[relative] = record
            yield ArrayUnit(self.root, elements, start, stop, records)

    def _token_units(
        self, split: FlatTokensArray, borders: list[tuple[int, int, int]] | None
    ) -> Iterator[ArrayUnit]:
        indexes = np.array([index for index, _, _ in borders or []] + [split.seq_count], dtype=np.int64)
        firsts = np.array([first for _, first, _ in borders or []], dtype=np.uint64)
        for unit in self._units(split.encoded_tokens):
            # the blocks that may hold positions in [start, stop): from the last that begins at or below start
            low = max(int(np.searchsorted(firsts, np.uint64(unit.start), side="right")) - 1, 0)
            high = int(np.searchsorted(firsts, np.uint64(unit.stop), side="left"))
            yield ArrayUnit(
                unit.root,
                unit.elements,
                unit.start,
                unit.stop,
                unit.records,
                max_token_id=split.max_token_id,
                seq_starts=None if borders is None else split.seq_starts,
                first_start=int(indexes[low]) if borders else 0,
                stop_start=min(int(indexes[high]), split.seq_count) if borders else 0,
                facts={path: self.facts[path] for path in unit.records or () if path in self.facts},
            )

    def _run(self, work: Work[UnitResult], arguments: Iterable[Arguments]) -> Iterator[UnitResult]:
        for result in in_order(self.executor, work, arguments):
            for name, text in result.problems.items():
                self.problems.setdefault(name, text)
            self.done_bytes += result.byte_count
            if self.progress is not None:
                self.progress(self.done_bytes, max(self.done_bytes, self.total_bytes))
            yield result


def _arrays(split: FlatTokensArray) -> list[Elements]:
    """The arrays that every reader of a split reads."""
    mask = [split.loss_mask.packed] if isinstance(split.loss_mask, MaskElements) else []
    return [split.encoded_tokens, split.seq_starts, *mask]


def file_units(root: Place, records: Sequence[FileRecord]) -> Iterator[tuple[Place, tuple[FileRecord, ...]]]:
    """Arguments of `verify_files`, a few files each."""
    for at in range(0, len(records), UNIT_FILES):
        yield root, tuple(records[at : at + UNIT_FILES])


def in_order(executor: Executor | None, work: Work[T], arguments: Iterable[Arguments]) -> Iterator[T]:
    """Results in the order of the arguments, with at most UNITS_IN_FLIGHT submitted; the first error cancels the
    rest."""
    if executor is None:
        for argument in arguments:
            yield work(*argument)
        return
    rest = iter(arguments)
    begun: deque[Future[T]] = deque()
    try:
        while True:
            more = islice(rest, UNITS_IN_FLIGHT - len(begun))
            begun.extend(executor.submit(work, *argument) for argument in more)
            if not begun:
                return
            yield begun.popleft().result()
    finally:
        for future in begun:
            future.cancel()
