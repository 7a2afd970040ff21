"""Opening datasets.

Opening checks names and data types, and compares the counts with each other, the manifest, and the first and last
start. So an unfinished, foreign or incomplete folder is rejected; `verify` checks the rest. A folder opens with or
without a manifest. A store needs one, which is written there last.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

from flat_tokens import arguments
from flat_tokens import format as flat_format
from flat_tokens.errors import (
    CONVERT_AGAIN,
    ArgumentError,
    DatasetError,
    SplitError,
    cause,
    damaged,
    printable,
)
from flat_tokens.reader import FlatTokensArray, open_split, split_of
from flat_tokens.storage.entries import highest_id
from flat_tokens.storage.files import AbsentFileError, refuse_link
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import MANIFEST_NAME, Manifest, open_manifest, read_manifest, read_sources
from flat_tokens.storage.nodes import read_group, split_arrays
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Place, StorePath, Where, is_there, locate
from flat_tokens.views import concat, of_sources
from tokenmill.stores.cached import CachedStore
from tokenmill.stores.system import cached_property

NO_DATASET = "not a dataset, or an unfinished one"


class Fingerprinted(Protocol):
    """A tokenizer with a fingerprint, such as bpe.Tokenizer."""

    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class Dataset:
    """A dataset, or several as one: its two splits and its manifest. dataset["train"] is dataset.train.

    path: folder of the (first) dataset, or its location on a store. str(path) is the URL of a store.
    zarr_format: 2 or 3, of the first dataset.
    train, validation: the splits.
    opened: the manifest when the dataset was opened. Reading raises DatasetError if it was replaced.
    parts: the datasets that this one shows, in order; empty for a single dataset.
    """

    path: Place
    zarr_format: int
    train: FlatTokensArray
    validation: FlatTokensArray
    opened: OpenedManifest = field(repr=False)
    parts: tuple[Dataset, ...] = field(default=(), repr=False)

    @property
    def has_manifest(self) -> bool:
        """Whether every dataset has a manifest."""
        return all(part.opened.version for part in self.parts or (self,))

    @cached_property
    def manifest(self) -> Manifest | None:
        """The manifest of the (first) dataset, None without one; read on first use. Raise DatasetError if it was
        changed."""
        with self.opened.reading():
            return read_manifest(self.path)

    def sources(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The sources of all parts as in the manifests, or the first `limit` of them. There may be a million."""
        found: list[dict[str, Any]] = []
        for part in self.parts or (self,):
            with part.opened.reading():
                rest = None if limit is None else limit - len(found)
                found += [] if part.manifest is None else read_sources(part.path, part.manifest, rest)
        return found

    def __getitem__(self, split: str) -> FlatTokensArray:
        name = arguments.choice("split", split, flat_format.SPLITS, SplitError)
        return self.train if name == "train" else self.validation

    def of_sources(self, *patterns: str) -> Dataset:
        """The dataset with the sequences of some sources only, by path or glob; see views.of_sources."""
        train, validation = (of_sources(self[name], *patterns) for name in flat_format.SPLITS)
        return replace(self, train=train, validation=validation)

    @cached_property
    def vocab_size(self) -> int:
        """The least number of rows that a model's embedding needs: the highest ID + 1, over all tokenizer entries and
        the tokens of both splits, of all datasets.

        Without a recorded tokenizer the splits alone decide. Published models may have more rows than this, since many
        round up. Cost: reads the dataset's tokenizer.json once."""
        paths = [part.tokenizer_path for part in self.parts or (self,)]
        highest = max((highest_id(path) for path in paths if path is not None), default=-1)
        return 1 + max(highest, self.train.max_token_id, self.validation.max_token_id)

    @property
    def tokenizer_record(self) -> Mapping[str, Any] | None:
        """The tokenizer in the manifest, None if none is recorded."""
        return None if self.manifest is None else self.manifest.tokenizer

    @property
    def tokenizer_path(self) -> Place | None:
        """The tokenizer.json of the dataset, None if it includes none. Raise DatasetError for a link."""
        record = self.tokenizer_record
        found = self.path / ("tokenizer.json" if record is None else str(record["path"]))
        is_plain_file = isinstance(found, Path) and found.is_file() and self.manifest is None
        if record is None and not is_plain_file:
            return None
        if isinstance(found, Path):
            for folder in takewhile(lambda folder: folder != self.path, (found, *found.parents)):
                refuse_link(folder)
        return found


def open(
    path: Where | Sequence[Where],
    tokenizer: str | os.PathLike[str] | Fingerprinted | None = None,
    storage_options: Mapping[str, str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int = 100 << 30,
) -> Dataset:
    """Open the dataset at `path`, or several datasets as one.

    path: a folder, a URL such as "s3://bucket/owt.zarr", or a Store. A list of them shows the sequences of all, in
        order; the datasets must have the same tokenizer.
    tokenizer: tokenizer the dataset must be made with: a tokenizer.json, a folder with one (or with vocab.json and
        merges.txt), or an object with fingerprint() (default: None for no check).
    storage_options: options of the store, such as {"region": "eu-west-1"} (docs/guides/scale-out.md).
    cache_dir: folder that caches data read from a store, for later epochs and other processes. Unused on a disk.
    cache_bytes: size limit of cache_dir in bytes (default: 100 GiB, at least 16 MiB).

    Cost: 0.5 ms on a disk or one request on a store, for any number of files.

    Raise DatasetError for a folder that is unfinished, damaged, made with another tokenizer or not flat-tokens. Raise
    StoreError if the store does not answer or denies access. Raise ArgumentError for invalid arguments.
    """
    if isinstance(path, list | tuple):
        if not path:
            raise arguments.invalid("path", "must name at least one dataset", path)
        given = [open(part, tokenizer, storage_options, cache_dir, cache_bytes) for part in path]
        return _joined(given)
    root = locate("path", path, storage_options)
    if cache_dir is not None and isinstance(root, StorePath):
        folder = arguments.path("cache_dir", cache_dir)
        try:
            store = CachedStore(root.store, folder, arguments.integer("cache_bytes", cache_bytes, 1))
        except OSError as error:
            raise ArgumentError(f"cache_dir: {error.strerror} (got {printable(str(folder))})") from None
        root = StorePath(store, root.key)
    dataset = open_by_manifest(root) if isinstance(root, StorePath) else open_by_files(root)
    if tokenizer is not None:
        _check_tokenizer(dataset, tokenizer)
    return dataset


def _joined(given: Sequence[Dataset]) -> Dataset:
    if len(given) == 1:
        return given[0]
    first = given[0]
    train, validation = (concat([dataset[name] for dataset in given]) for name in flat_format.SPLITS)
    parts = tuple(part for dataset in given for part in dataset.parts or (dataset,))
    known = [(part.path, part.tokenizer_record) for part in parts if part.tokenizer_record is not None]
    for path, record in known:
        if not any(
            record.get(kind) and record[kind] == known[0][1].get(kind) for kind in ("fingerprint", "sha256")
        ):
            what = f"made with another tokenizer than {printable(str(known[0][0]))}"
            raise damaged(path, what, "Open datasets of one tokenizer.")
    return Dataset(first.path, first.zarr_format, train, validation, first.opened, parts)


def check_folder(root: Place) -> None:
    """Raise DatasetError for a local path that is no folder."""
    if isinstance(root, Path) and not root.is_dir():
        what = "not a folder" if root.exists() else "does not exist"
        raise DatasetError(f"{printable(str(root))}: {what}")


def open_by_files(root: Place) -> Dataset:
    """Open the dataset at `root` by the metadata of its arrays, compared with the counts of its manifest."""
    where = printable(str(root))
    check_folder(root)
    manifest, opened = None, OpenedManifest(root / MANIFEST_NAME, "")
    if is_there(opened.place):  # a link or pipe is not ignored
        manifest, opened = open_manifest(root)
    with opened.reading():
        group = read_group(root)
        if group is None:
            raise damaged(root, f"{NO_DATASET} (no zarr group at its root)", CONVERT_AGAIN)
        if isinstance(root, Path) and not (root / "train").is_dir():
            if (root / flat_format.TOKENS_NAME).is_dir():
                raise damaged(root, "a single split, not a dataset", "Open its parent folder.")
            raise DatasetError(f"{where}: not a flat-tokens dataset (no group train)")
        splits = {name: open_split(root, name, opened) for name in flat_format.SPLITS}
        if manifest is not None:
            _check_counts(manifest, splits, where)
    return Dataset(root, group[0], splits["train"], splits["validation"], opened)


def open_by_manifest(root: StorePath) -> Dataset:
    """Open the dataset on a store by its manifest alone. How the arrays are stored follows from the layout and the
    counts; `verify` compares this with the objects, which are complete and older than the manifest."""
    where = printable(str(root))
    try:
        manifest, opened = open_manifest(root)
    except AbsentFileError as error:
        raise DatasetError(f"{where}: {NO_DATASET} ({error.__cause__})") from None
    try:
        layout = ArrayLayout(**manifest.layout)
    except (TypeError, ValueError) as error:
        fix = "Copy the dataset to a local disk to read it."
        raise damaged(f"{where}/{MANIFEST_NAME}", f"invalid layout ({cause(error)})", fix) from None
    splits = {}
    for name, (token_count, seq_count, max_token_id, trained) in manifest.splits.items():
        arrays = split_arrays(root, name, layout, token_count, seq_count, trained is not None)
        splits[name] = split_of(root, name, opened, max_token_id, arrays)
    return Dataset(root, layout.zarr_format, splits["train"], splits["validation"], opened)


def _check_counts(manifest: Manifest, splits: Mapping[str, FlatTokensArray], where: str) -> None:
    for name, array in splits.items():
        record = manifest.splits[name]
        if (array.loss_mask is None) != (record.trained_tokens is None):
            is_missing = array.loss_mask is None
            has, says = ("missing", "lists it") if is_missing else ("present", "does not list it")
            raise damaged(f"{where}/{name}", f"{flat_format.MASK_NAME} is {has}, but {MANIFEST_NAME} {says}")
        for what in ("token_count", "seq_count", "max_token_id"):
            stored, stated = getattr(array, what), getattr(record, what)
            if stored != stated:
                raise damaged(f"{where}/{name}", f"{what} must be {stated} by {MANIFEST_NAME} (got {stored})")


def _check_tokenizer(dataset: Dataset, tokenizer: str | os.PathLike[str] | Fingerprinted) -> None:
    """Raise DatasetError unless a dataset was made with this tokenizer; see `open`."""
    record = dataset.tokenizer_record
    if record is None:
        raise damaged(dataset.path, "no tokenizer is recorded", "Open it without tokenizer=.")
    if isinstance(tokenizer, str | os.PathLike):
        kind, given = "sha256", _files_sha256(arguments.path("tokenizer", tokenizer))
    elif hasattr(tokenizer, "fingerprint"):
        kind, given = "fingerprint", tokenizer.fingerprint()
        if record.get(kind) is None:
            what = "no fingerprint of the tokenizer is recorded, since the dataset was imported"
            raise damaged(dataset.path, what, f"Pass the file {printable(str(dataset.tokenizer_path))}.")
    else:
        raise arguments.invalid("tokenizer", "must be a path or have fingerprint()", tokenizer)
    # The dataset has its own copy in a normal form; the file that was used for the conversion is accepted too.
    if given not in (record.get(kind), record.get("source_sha256")):
        stated = printable(str(record.get(kind)), 80)
        what = f"made with another tokenizer, of {kind} {stated} (got {printable(given, 80)})"
        raise damaged(dataset.path, what, f"Use {printable(str(dataset.tokenizer_path))}.")


def _files_sha256(path: Path) -> str:
    """The SHA-256 of a tokenizer file, or of vocab.json and merges.txt in a folder. Raise ArgumentError."""
    files = [path]
    if path.is_dir():
        single = path / "tokenizer.json"
        files = [single] if single.is_file() else [path / "vocab.json", path / "merges.txt"]
    digest = hashlib.sha256()
    for file in files:
        try:
            digest.update(file.read_bytes())
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            what = f"tokenizer: {reason} (got {printable(str(file))}). Pass a tokenizer.json."
            raise ArgumentError(what) from None
    return digest.hexdigest()
