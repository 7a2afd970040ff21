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
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flat_tokens import arguments, writer
from flat_tokens import format as flat_format
from flat_tokens.errors import ArgumentError, printable
from flat_tokens.opening import Fingerprinted
from flat_tokens.split_writer import Block, SplitWriter, WrittenSplit
from flat_tokens.storage.entries import LARGEST_TOKENIZER_BYTES, highest_id
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.places import Place, StorePath, Where, locate, read_whole
from flat_tokens.unfinished import Reserved, Unfinished, not_ours
from flat_tokens.verify import verify_dataset

TOKENIZER_NAME = "tokenizer.json"


class SavedTokenizer(Fingerprinted, Protocol):
    """A tokenizer such as bpe.Tokenizer. Its fingerprint is the SHA-256 of the saved file."""

    def save(self, path: Path) -> object:
        """Write a tokenizer.json."""


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
        self._is_open, self._is_published = True, False
        self._output: Reserved | Unfinished
        if isinstance(place, StorePath):
            self._output = Reserved(place.store)
        else:
            self._output = Unfinished(place, overwrite, not_ours)
        with ExitStack() as opened:
            opened.enter_context(self._output)
            root = self._root = self._output.folder
            if tokenizer is not None:
                self._add_tokenizer(tokenizer)
            self._splits = {
                name: SplitWriter(root, name, self.layout, has_mask) for name in flat_format.SPLITS
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
        if self._is_published:
            return
        self._check_open()
        self._is_open = False
        with self._opened.pop_all():
            self.written = {split: own.end() for split, own in self._splits.items()}
            splits = self.written.items()
            counts = {
                "documents": {name: own.record.seq_count + own.empty_documents for name, own in splits},
                "empty_documents": {name: own.empty_documents for name, own in splits},
            }
            self._output.complete()
            version = "unknown"
            with suppress(metadata.PackageNotFoundError):  # an uninstalled checkout
                version = metadata.version("tokenmill")
            writer.write_root(
                self._root,
                {name: own.record for name, own in splits},
                self._files + [file for own in self.written.values() for file in own.files],
                self.layout,
                tokenizer=self.tokenizer,
                sources=self.sources,
                options=counts | self.options,
                versions={"tokenmill": version},
            )
            verify_dataset(self._root).require_ok()
            self._output.publish()
        self._is_published = True

    def _check_open(self) -> None:
        if not self._is_open:
            raise ArgumentError("Writer: closed. Open another Writer.")

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._is_open = False
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
