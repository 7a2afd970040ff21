"""Verification of a dataset: every file against the manifest, then every element against the rules of the format.

It finds missing, truncated, changed, swapped and extra files; links and devices; starts that do not rise from 0 to the
token count; start flags that disagree with them; IDs above max_token_id, or a max_token_id that no token has. Without a
manifest only the rules of the format are checked. Every file is read once, except the Zarr chunks of seq_starts that a
unit of encoded_tokens needs. Cost on one core: 3 to 4 ns per token with zstd.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from itertools import pairwise, starmap
from typing import Any, TypeVar

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
from flat_tokens.storage.places import Place, StorePath, Where, locate, walk
from flat_tokens.verify_units import (
    ArrayUnit,
    UnitResult,
    verify_files,
    verify_mask,
    verify_starts,
    verify_tokens,
)

UNIT_TOKENS = 2**21  # 7 ms of work, which hides the 0.3 ms to hand a unit to another process
UNIT_FILES = 32
MAX_IN_FLIGHT = 64  # units, which bounds memory
MAX_PROBLEMS = 1000

T = TypeVar("T")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class VerifyReport:
    """The extent of a verification, and the damage that it found.

    file_count, byte_count: files that were read.
    token_count, seq_count: counts of the splits that could be opened.
    problems: one line per damaged file or array; none if the dataset is sound.
    """

    path: Place
    has_manifest: bool
    file_count: int
    byte_count: int
    token_count: int
    seq_count: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the dataset is sound."""
        return not self.problems

    def require_ok(self) -> None:
        """Raise DatasetError with the first problem and the number of others, if there are any."""
        if self.problems:
            more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            raise DatasetError(self.problems[0] + more)


def verify_dataset(
    root: Where,
    executor: Executor | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> VerifyReport:
    """Verify the dataset at `root`, a path, URL or Store. Damage is in the report, not raised.

    executor: where units run, any concurrent.futures.Executor (default: the calling thread).
    progress: called in the calling thread with the bytes done and in all.
    storage_options: options of the store, as for `open`. An object takes two requests.

    Raise DatasetError if there is no dataset or its manifest is unreadable, so that nothing can be compared. Raise
    OSError and StoreError if the machine or the store fails.
    """
    place = locate("root", root, storage_options)
    opening.check_folder(place)
    opened = OpenedManifest.of(place / MANIFEST_NAME)
    with opened.reading():  # reports a replaced dataset as such, not as damage
        # As readers of a store see it.
        promised = opening.open_by_manifest(place) if isinstance(place, StorePath) else None
        manifest = read_manifest(place)
        files = () if manifest is None else read_files(place, manifest)
        unread = {record.path: record for record in files}
        return _Verification(place, manifest, opened, executor, progress, unread).report(promised)


@dataclass
class _Verification:
    """One verification: the files that are left to read, and the problems found."""

    root: Place
    manifest: Manifest | None
    opened: OpenedManifest
    executor: Executor | None
    progress: Progress | None
    unread: dict[str, FileRecord]
    problems: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    chunk_files: Counter[str] = field(default_factory=Counter)  # by array
    done_bytes: int = 0

    def report(self, promised: opening.Dataset | None) -> VerifyReport:
        """Verify everything. promised: the dataset by its manifest alone, or None."""
        self._list_files()
        splits, refusal = self._open()
        for split in splits:
            stated = [] if promised is None or refusal else _arrays(promised[split.name])
            for array, found in zip(stated, _arrays(split), strict=False):
                if array.metadata != found.metadata:
                    self._report(found.name, f"metadata must agree with the manifest. {CONVERT_AGAIN}")
        for split in splits:
            self._verify_split(split)
            self._verify_mask(split)
        rest = list(self.unread.values())
        batches = (tuple(rest[at : at + UNIT_FILES]) for at in range(0, len(rest), UNIT_FILES))
        for _ in self._run(verify_files, ((self.root, batch) for batch in batches)):
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
            tuple(self.problems.values())[:MAX_PROBLEMS],
        )

    def _list_files(self) -> None:
        """Compare the names of the files with the manifest. Links and devices are always problems."""
        for relative, kind, size in walk(self.root):
            if kind != "file":
                self._report(relative, f"must be a regular file (got a {kind}). Replace it with its content.")
                self.unread.pop(relative, None)
            elif self.manifest is None or relative in self.unread or relative == MANIFEST_NAME:
                self.sizes[relative] = size
                folder, _, name = relative.rpartition("/")
                if not name.startswith(".") and name != "zarr.json":
                    self.chunk_files[folder.removesuffix("/c")] += 1
            else:
                self._report(relative, "not listed in the manifest. Remove it.")
        for relative in self.unread.keys() - self.sizes.keys():
            self._report(relative, absence(relative))
            del self.unread[relative]  # it may exist in a linked folder, which is not part of the dataset

    def _open(self) -> tuple[list[FlatTokensArray], str]:
        """Return the splits that can be opened, and the reason if the dataset cannot."""
        try:
            dataset = opening.open_by_files(self.root)
            return [dataset[name] for name in SPLITS], ""
        except DatasetError as error:
            refusal = str(error)
        splits = []
        for name in SPLITS:
            try:
                splits.append(open_split(self.root, name, self.opened))
            except DatasetError as error:
                if not self._is_damaged(name):  # otherwise it repeats the problem of a file
                    self.problems.setdefault(name, str(error))
        return splits, refusal

    def _verify_split(self, split: FlatTokensArray) -> None:
        starts, tokens = split.seq_starts, split.encoded_tokens
        if not (self._has_its_files(starts) and self._has_its_files(tokens)):
            return
        units = ((unit,) for unit in self._units(starts))
        borders = [border for result in self._run(verify_starts, units) for border in result.borders]
        for (_, _, last), (index, first, _) in pairwise(borders):
            if first <= last:
                text = not_rising(starts.name, index, first, last)
                self.problems.setdefault(starts.name, f"{text}. {CONVERT_AGAIN}")
        known = None if self._is_damaged(starts.name) else starts
        indexes = [*(index for index, _, _ in borders), split.seq_count]
        firsts = np.array([first for _, first, _ in borders], dtype=np.uint64)

        def entries(unit: ArrayUnit) -> tuple[int, int]:
            """The starts that may be in a unit, from the last Zarr chunk on that begins at or before it."""
            low = max(int(np.searchsorted(firsts, np.uint64(unit.start), side="right")) - 1, 0)
            high = int(np.searchsorted(firsts, np.uint64(unit.stop), side="left"))
            return indexes[low], min(indexes[high], split.seq_count)

        arguments = (
            (unit, split.max_token_id, known, entries(unit) if known is not None else (0, 0))
            for unit in self._units(tokens)
        )
        largest = max((result.encoded_max for result in self._run(verify_tokens, arguments)), default=0) >> 1
        if self.manifest is not None and not self._is_damaged(split.name) and largest != split.max_token_id:
            text = f"max_token_id must be the largest ID {largest} (got {split.max_token_id})"
            self._report(tokens.name, f"{text}. {CONVERT_AGAIN}")

    def _verify_mask(self, split: FlatTokensArray) -> None:
        for packed in _arrays(split)[2:]:
            if not self._has_its_files(packed):
                continue
            units = ((unit, split.token_count) for unit in self._units(packed))
            trained = sum(result.ones for result in self._run(verify_mask, units))
            stated = None if self.manifest is None else self.manifest.splits[split.name].trained_tokens
            if stated not in (None, trained) and not self._is_damaged(packed.name):
                text = f"number of trained tokens must be {stated} by the manifest (got {trained})"
                self._report(packed.name, f"{text}. {CONVERT_AGAIN}")

    def _has_its_files(self, array: Elements) -> bool:
        """Return False and report once if too many files are missing. Otherwise each is reported.

        Without this, metadata that claim 2^31 files would decide how long verification takes.
        """
        assert array.metadata is not None
        file_count, found = array.metadata.file_count, self.chunk_files[array.name]
        if is_far := file_count - found > MAX_PROBLEMS:
            self._report(array.name, f"must have {file_count} files by its metadata (got {found}). {RESTORE}")
        return not is_far

    def _units(self, elements: Elements) -> Iterator[ArrayUnit]:
        """Yield an array as units of whole files, which are no longer unread."""
        metadata = elements.metadata
        assert metadata is not None
        per_file = metadata.shard_elements
        step = max(1, UNIT_TOKENS // per_file) * per_file
        for start in range(0, len(elements), step):
            stop = min(start + step, len(elements))
            numbers = range(start // per_file, -(-stop // per_file))
            paths = [f"{elements.name}/{metadata.file_key(number)}" for number in numbers]
            records = {path: self.unread.pop(path) for path in paths if path in self.unread}
            yield ArrayUnit(elements, start, stop, None if self.manifest is None else records)

    def _run(
        self, work: Callable[..., UnitResult], arguments: Iterable[tuple[Any, ...]]
    ) -> Iterator[UnitResult]:
        """Run units, collect their problems and yield their results in order."""
        total = sum(self.sizes.values())
        for result in _in_order(self.executor, work, arguments):
            for name, text in result.problems.items():
                self.problems.setdefault(name, text)
            self.done_bytes += result.byte_count
            if self.progress is not None:
                self.progress(self.done_bytes, max(self.done_bytes, total))
            yield result

    def _report(self, relative: str, text: str) -> None:
        self.problems.setdefault(relative, f"{printable(relative)}: {text}")

    def _is_damaged(self, name: str) -> bool:
        """Return whether a split or array, or a file in it, has a problem."""
        return any(path == name or path.startswith(f"{name}/") for path in self.problems)


def _arrays(split: FlatTokensArray) -> list[Elements]:
    mask = [split.loss_mask.packed] if isinstance(split.loss_mask, MaskElements) else []
    return [split.encoded_tokens, split.seq_starts, *mask]


def _in_order(
    executor: Executor | None, work: Callable[..., T], arguments: Iterable[tuple[Any, ...]]
) -> Iterator[T]:
    """Yield results in the order of the arguments, with MAX_IN_FLIGHT in flight. The first error cancels the rest."""
    if executor is None:
        yield from starmap(work, arguments)
        return
    begun: deque[Future[T]] = deque()
    try:
        for argument in arguments:
            begun.append(executor.submit(work, *argument))
            if len(begun) == MAX_IN_FLIGHT:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        for future in begun:
            future.cancel()
