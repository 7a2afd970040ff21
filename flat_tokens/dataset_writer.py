"""`Writer`: a dataset from sequences in memory, in bounded memory, verified before it gets its name.

    with flat_tokens.Writer("owt.zarr", tokenizer="tokenizer.json") as writer:
        for document in documents:
            writer.add("train", document)

Tokens collect until they fill a write unit of the layout, so memory does not depend on the size of the dataset.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flat_tokens import arguments, writer
from flat_tokens import format as flat_format
from flat_tokens.errors import ArgumentError, RefusedError, printable
from flat_tokens.storage.entries import LARGEST_TOKENIZER_BYTES, highest_id
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FILES_NAME, MANIFEST_NAME, SOURCES_NAME, FileRecord, SplitRecord
from flat_tokens.storage.places import Place, StorePath, Where, locate, read_whole
from flat_tokens.unfinished import Unfinished, not_ours
from flat_tokens.verify import verify_dataset
from tokenmill.stores import AlreadyThere, Store, StoreError

TOKENIZER_NAME = "tokenizer.json"
MARK_NAME = "writing"  # on a store, while a Writer is at work
# First parts of the keys that a Writer puts.
_OWN = {MARK_NAME, TOKENIZER_NAME, FILES_NAME, SOURCES_NAME, "zarr.json", "loss_mask", *flat_format.SPLITS}

Ends = npt.NDArray[np.int64]


class Block(NamedTuple):
    """Some tokens, and where documents end among them. [[1, 2], [], [3, 4]] is Block([1, 2, 3, 4], [2, 2, 4]).

    ids: integers[n].
    ends: int64 in [0, n], not falling; None if unknown. A document may begin in one block and end in a later one. An
        end between two blocks is n of the first or 0 of the second.
    trained: bool[n], whether each token contributes to the loss; None for all.
    """

    ids: npt.NDArray[Any]
    ends: Ends | None
    trained: flat_format.Bools | None = None


class WrittenSplit(NamedTuple):
    """A split that was written. empty_documents: documents without tokens, which a dataset leaves out."""

    record: SplitRecord
    files: list[FileRecord]
    empty_documents: int


class SavedTokenizer(Protocol):
    """A tokenizer such as bpe.Tokenizer."""

    def save(self, path: Path) -> object:
        """Write a tokenizer.json."""

    def fingerprint(self) -> str:
        """Return the SHA-256 of the saved file."""


class Writer:
    """Writes a new dataset. Use it as a context: at its end the dataset is verified and gets its name.

    After an error, or if the process is killed, there is no dataset at `path`.

    path: folder, URL or Store to write.
    tokenizer: the tokenizer of the IDs, as the path of a tokenizer.json or as an object with save() and fingerprint().
        It is stored in the dataset, and IDs above its highest are rejected (default: None).
    layout: Zarr format, chunks and compression (default: ArrayLayout(), or format 3 on a store).
    has_mask: write a loss mask. Sequences without one are trained completely.
    sources: facts about the inputs for the manifest, one dict each. The list may grow until the end.
    options: other facts for the manifest. The dict may grow until the end.
    overwrite: replace a dataset at `path`. A URL must be empty.
    storage_options: options of the store.

    Raise ArgumentError for invalid arguments, RefusedError if `path` exists, OSError or StoreError if writing fails.
    """

    def __init__(
        self,
        path: Where,
        tokenizer: str | os.PathLike[str] | StorePath | SavedTokenizer | None = None,
        *,
        layout: ArrayLayout | None = None,
        has_mask: bool = False,
        sources: Iterable[Mapping[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        place = locate("path", path, storage_options)
        self.layout = layout or ArrayLayout.create(3 if isinstance(place, StorePath) else 2)
        if isinstance(place, StorePath) and self.layout.zarr_format != 3:
            raise arguments.invalid("layout", "must have Zarr format 3 on a store", self.layout.zarr_format)
        if has_mask:
            self.layout.cuts(flat_format.MASK_NAME)  # raises if bytes of the mask would be in two chunks
        self.sources, self.options = list(sources), dict(options or {})
        self.tokenizer: dict[str, Any] | None = None
        self.max_token_id = flat_format.LARGEST_TOKEN_ID
        self.written: dict[str, WrittenSplit] = {}
        self._files: list[FileRecord] = []
        self._state = "open"  # then "failed", or "written"
        with ExitStack() as opened:
            self._unfinished: _Reserved | Unfinished
            if isinstance(place, StorePath):
                self._unfinished = opened.enter_context(_Reserved(place.store))
            else:
                self._unfinished = opened.enter_context(Unfinished(place, overwrite, not_ours))
            self._root: writer.Destination = self._unfinished.folder
            if tokenizer is not None:
                self._add_tokenizer(tokenizer)
            self._splits = {
                split: SplitWriter(self._root, split, self.layout, has_mask) for split in flat_format.SPLITS
            }
            self._opened = opened.pop_all()

    def add(self, split: str, ids: npt.ArrayLike, loss_mask: npt.ArrayLike | None = None) -> None:
        """Append one sequence to a split. An empty sequence is counted and left out.

        split: "train" or "validation".
        ids: integers[n].
        loss_mask: bool[n], whether each token contributes to the loss (default: all do).
        """
        tokens = arguments.integers("ids", ids)
        self.add_many(split, tokens, [len(tokens)], loss_mask)

    def add_many(
        self, split: str, ids: npt.ArrayLike, ends: npt.ArrayLike, loss_mask: npt.ArrayLike | None = None
    ) -> None:
        """Append the tokens of several sequences. add_many("train", [1, 2, 3], [2, 3]) appends [1, 2] and [3].

        ends: integers in [0, n], not falling: where sequences end. Without an end at n, the next call continues the
            last sequence.
        """
        self._check_open()
        arguments.choice("split", split, flat_format.SPLITS)
        tokens = arguments.integers("ids", ids)
        stops = arguments.integers("ends", ends).astype(np.int64)
        if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) <= self.max_token_id:
            wrong = int(tokens.min()) if int(tokens.min()) < 0 else int(tokens.max())
            raise arguments.invalid("ids", f"must be in [0, {self.max_token_id}]", wrong)
        if len(stops) and not (stops[0] >= 0 and stops[-1] <= len(tokens) and (np.diff(stops) >= 0).all()):
            raise arguments.invalid("ends", f"must not fall and be in [0, {len(tokens)}]", ends)
        mask = None
        if loss_mask is not None:
            mask = arguments.array("loss_mask", loss_mask, "must be bools in one dimension")
            mask = mask if len(mask) else mask.astype(np.bool_)
        self._splits[split].add(Block(tokens, stops, mask))

    def close(self) -> None:
        """Write the rest, verify the dataset and publish it. The context calls this at its end."""
        if self._state == "written":
            return
        self._check_open()
        self._state = "failed"
        with self._opened.pop_all():
            for split, own in self._splits.items():
                self.written[split] = own.end()
                self._files += self.written[split].files
            counts: dict[str, dict[str, int]] = {"documents": {}, "empty_documents": {}}
            for split, found in self.written.items():
                counts["documents"][split] = found.record.seq_count + found.empty_documents
                counts["empty_documents"][split] = found.empty_documents
            self._unfinished.complete()
            writer.write_root(
                self._root,
                {split: found.record for split, found in self.written.items()},
                self._files,
                self.layout,
                tokenizer=self.tokenizer,
                sources=self.sources,
                options=counts | self.options,
                versions={"tokenmill": _version()},
            )
            verify_dataset(self._root).require_ok()
            self._unfinished.publish()
        self._state = "written"

    def _check_open(self) -> None:
        if self._state != "open":
            raise ArgumentError("Writer: closed. Open another Writer.")

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._state = "failed" if self._state == "open" else self._state
            self._opened.__exit__(kind, error, trace)

    def _add_tokenizer(self, tokenizer: str | os.PathLike[str] | StorePath | SavedTokenizer) -> None:
        facts: dict[str, Any] = {"path": TOKENIZER_NAME}
        with tempfile.TemporaryDirectory() as folder:
            path: Place
            if isinstance(tokenizer, StorePath):
                path = tokenizer
            elif isinstance(tokenizer, str | os.PathLike):
                path = arguments.path("tokenizer", tokenizer)
                if not path.is_file():
                    raise ArgumentError(f"tokenizer: no such file (got {printable(str(path))})")
            else:
                path = Path(folder) / TOKENIZER_NAME
                tokenizer.save(path)
                facts["fingerprint"] = tokenizer.fingerprint()
            data = read_whole(path, LARGEST_TOKENIZER_BYTES, follow_link=True)
            self.max_token_id = highest_id(path)
        self._files.append(writer.write_file(self._root, TOKENIZER_NAME, data))
        facts["sha256"] = facts["source_sha256"] = hashlib.sha256(data).hexdigest()
        self.tokenizer = facts


class _Reserved:
    """The counterpart of Unfinished on a store, where objects cannot be renamed.

    An object marks the place as taken until the manifest is written. After an error the objects of the Writer are
    deleted, and all objects stay if another program has written a manifest.
    """

    def __init__(self, store: Store) -> None:
        self.folder, self._is_complete = store, False

    def __enter__(self) -> _Reserved:
        try:
            self.folder.put(MARK_NAME, b"", if_absent=True)
        except AlreadyThere:
            raise self._taken() from None
        if any(entry.key != MARK_NAME for entry in self.folder.list()):
            self.folder.delete([MARK_NAME])
            raise self._taken()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, AlreadyThere):
            return
        with suppress(StoreError):
            if self._is_complete:
                self.folder.delete([MANIFEST_NAME])
            keys = [entry.key for entry in self.folder.list()]
            self.folder.delete([key for key in keys if key.partition("/")[0] in _OWN])

    def complete(self) -> None:
        """Remove the mark."""
        self._is_complete = True
        self.folder.delete([MARK_NAME])

    def publish(self) -> None:
        """Do nothing: the manifest made the dataset visible."""

    def _taken(self) -> RefusedError:
        return RefusedError(
            f"{printable(self.folder.url)}: not empty. Delete its objects, or choose another URL."
        )


def _version() -> str:
    try:
        return metadata.version("tokenmill")
    except metadata.PackageNotFoundError:  # an uninstalled checkout
        return "unknown"


class SplitWriter:
    """Writes the blocks of one split.

    has_mask: write a loss mask, with True for the tokens of blocks without one.
    """

    def __init__(
        self, root: writer.Destination, split: str, layout: ArrayLayout, has_mask: bool = False
    ) -> None:
        self._root, self._split, self._layout = root, split, layout
        writer.create_arrays(root, split, layout, has_mask)

        def run(array: str, unit: int, dtype: npt.DTypeLike) -> _Run:
            return _Run(unit, dtype, partial(writer.write_run, root, split, layout, array))

        self._tokens = run(flat_format.TOKENS_NAME, layout.write_unit_tokens, flat_format.TOKENS_DTYPE)
        self._starts = run(flat_format.STARTS_NAME, layout.write_unit_starts, flat_format.STARTS_DTYPE)
        self._mask = run(flat_format.MASK_NAME, layout.write_unit_tokens, np.bool_) if has_mask else None
        self._trained_count = self._max_token_id = self._empty = 0
        self._is_open = False  # whether a document has begun and not ended

    def add(self, block: Block) -> None:
        """Append a block with IDs in [0, 2^31). Raise ArgumentError for a wrong loss mask."""
        ids, ends, trained = block
        assert ends is not None
        if trained is not None and (
            self._mask is None or trained.dtype != np.bool_ or trained.shape != ids.shape
        ):
            rule = "must be None without has_mask" if self._mask is None else f"must be bool[{len(ids)}]"
            raise ArgumentError(
                f"{self._split}: loss_mask {rule} (got {trained.dtype.name}{list(trained.shape)})"
            )
        count, was_open = len(ids), self._is_open
        # A document starts after each end, unless no token follows before the next end.
        borders = np.concatenate([[] if was_open else [0], ends, [count]]).astype(np.int64)
        starts = borders[:-1][borders[1:] > borders[:-1]]
        self._is_open = count > int(ends[-1]) if len(ends) else count > 0 or was_open
        self._empty += len(ends) - (len(starts) + was_open - self._is_open)
        if count:
            self._max_token_id = max(self._max_token_id, int(ids.max()))
        encoded = ids.astype(flat_format.TOKENS_DTYPE)
        encoded <<= 1
        encoded[starts] |= 1
        self._starts.add(starts.astype(flat_format.STARTS_DTYPE) + np.uint64(self._tokens.count))
        self._tokens.add(encoded)
        if self._mask is not None:
            bits = np.ones(count, np.bool_) if trained is None else trained
            self._trained_count += int(np.count_nonzero(bits))
            self._mask.add(bits)

    def end(self) -> WrittenSplit:
        """Write the rest and the metadata. Raise ArgumentError if the end of the last document is missing."""
        if self._is_open:
            raise ArgumentError(f"{self._split}: the last sequence has no end")
        trained = None if self._mask is None else self._trained_count
        record = SplitRecord(self._tokens.count, self._starts.count, self._max_token_id, trained)
        self._starts.add(np.array([record.token_count], flat_format.STARTS_DTYPE))
        runs = (self._tokens, self._starts, self._mask)
        files = [file for run in runs if run is not None for file in run.end()]
        files += writer.create_split(
            self._root, self._split, *record[:3], self._layout, has_mask=trained is not None
        )
        return WrittenSplit(record, files, self._empty)


class _Run:
    """The values of one array, written as soon as they fill a unit.

    write: writes values from the index of the first one on.
    """

    def __init__(
        self, unit: int, dtype: npt.DTypeLike, write: Callable[[int, npt.NDArray[Any]], list[FileRecord]]
    ) -> None:
        self._held = np.empty(unit, dtype)
        self._write = write
        self.count = 0
        self.files: list[FileRecord] = []

    def add(self, values: npt.NDArray[Any]) -> None:
        unit = len(self._held)
        while len(values):
            filled = self.count % unit
            part, values = values[: unit - filled], values[unit - filled :]
            self._held[filled : filled + len(part)] = part
            self.count += len(part)
            if self.count % unit == 0:
                self._put(unit)

    def end(self) -> list[FileRecord]:
        """Write the rest. Return the records of all files."""
        if rest := self.count % len(self._held):
            self._put(rest)
        return self.files

    def _put(self, count: int) -> None:
        self.files += self._write(self.count - count, self._held[:count])
