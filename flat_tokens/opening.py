"""Opening a dataset.

Only what is cheap is checked: names, data types, the counts against each other, against the manifest and against the
first and last start, so an unfinished, foreign or half-copied directory is refused at once; `verify` checks the rest.
Any flat-tokens dataset opens from a disk, with or without a manifest, in zarr format 2 or 3; from a store one that has
its manifest, which is put there last.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

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
from flat_tokens.reader import FlatTokensArray, open_split
from flat_tokens.storage import opened_manifest, written_metadata, zarr_metadata
from flat_tokens.storage.entries import highest_id
from flat_tokens.storage.files import AbsentFileError
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import MANIFEST_NAME, Manifest, SplitRecord, read_manifest
from flat_tokens.storage.manifest_head import read_head
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Place, StorePath, Where, is_there, locate, refuse_link
from flat_tokens.storage.versions import newest, place_of, read_version, version_path, within
from flat_tokens.views import joined, of_sources
from tokenmill.stores.cached import CachedStore
from tokenmill.stores.system import cached_property

NO_DATASET = "not a dataset, or an unfinished one"


class Fingerprinted(Protocol):
    """A tokenizer that can say who it is, as bpe.Tokenizer can."""

    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class Dataset:
    """A dataset: its two splits, and what its manifest records. dataset["train"] is dataset.train.

    path: folder of the dataset, or its location on a store. str(path) is the URL of a store.
    zarr_format: 2 or 3.
    train, validation: the splits.
    opened: the manifest when the dataset was opened, None without one. Reading raises DatasetError if it was replaced.
    version: version of a dataset that grew by appending, 0 for the original.
    parts: the datasets that make up a version, empty for version 0. The first one provides tokenizer and options.
    """

    path: Place
    zarr_format: int
    train: FlatTokensArray
    validation: FlatTokensArray
    opened: OpenedManifest | None = field(repr=False)
    version: int = 0
    parts: tuple[Dataset, ...] = field(default=(), repr=False)

    @property
    def has_manifest(self) -> bool:
        """Whether the dataset says what it is."""
        return self.opened is not None

    @cached_property
    def manifest(self) -> Manifest | None:
        """What the dataset, or its first part, says of itself, None if it says nothing; read when it is asked for
        first, 15 us a file. DatasetError if it was changed."""
        return self._read_manifest(None)

    @cached_property
    def without_sources(self) -> Manifest | None:
        """The same without its sources, or with those that were read before."""
        return self.with_sources(0)

    def with_sources(self, most: int | None) -> Manifest | None:
        """The same with the first of its sources, perhaps a million, which take half a kilobyte each. None: all of
        them, as there may be if they were read before."""
        if most is None or "manifest" in self.__dict__:
            return self.manifest
        return self._read_manifest(most)

    def _read_manifest(self, most_sources: int | None) -> Manifest | None:
        if self.opened is None:
            return None
        manifest = read_manifest(self.path, most_sources)
        self.opened.check()
        return manifest

    def __getitem__(self, split: str) -> FlatTokensArray:
        name = arguments.choice("split", split, flat_format.SPLITS, SplitError)
        return self.train if name == "train" else self.validation

    def of_sources(self, *patterns: str) -> Dataset:
        """The same with the sequences of some sources alone, named or by globs; see views.of_sources."""
        train, validation = (of_sources(self[name], *patterns) for name in flat_format.SPLITS)
        return replace(self, train=train, validation=validation)

    @cached_property
    def vocab_size(self) -> int:
        """The least number of rows that a model's embedding needs: the highest ID + 1, over all tokenizer entries and
        the tokens of both splits.

        Without a recorded tokenizer the splits alone decide. Published models may have more rows than this, since many
        round up. Cost: reads the dataset's tokenizer.json once."""
        path = self.tokenizer_path
        highest = -1 if path is None else highest_id(path)
        return 1 + max(highest, self.train.max_token_id, self.validation.max_token_id)

    @property
    def tokenizer_record(self) -> Mapping[str, Any] | None:
        """What the manifest says of the tokenizer, None if nothing does."""
        manifest = self.without_sources
        return None if manifest is None else manifest.tokenizer

    @property
    def tokenizer_path(self) -> Place | None:
        """The tokenizer.json that the dataset was made with, None if it brought none along. DatasetError for a link."""
        record = self.tokenizer_record
        if record is None:
            found = self.path / "tokenizer.json"
            if self.without_sources is not None or not (isinstance(found, Path) and found.is_file()):
                return None
        else:
            found = self.path / str(record["path"])
        if isinstance(found, Path):
            for folder in (found, *found.parents):
                if folder == self.path:
                    break
                refuse_link(folder)
        return found


def open(
    path: Where,
    tokenizer: str | os.PathLike[str] | Fingerprinted | None = None,
    storage_options: Mapping[str, str] | None = None,
    version: int | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int = 100 << 30,
) -> Dataset:
    """Open the dataset at `path`.

    path: a folder, a URL such as "s3://bucket/owt.zarr", or a Store.
    tokenizer: tokenizer the dataset must be made with: a tokenizer.json, a folder with one (or with vocab.json and
        merges.txt), or an object with fingerprint() (default: None for no check).
    storage_options: options of the store, such as {"region": "eu-west-1"} (docs/guides/scale-out.md).
    version: version of a dataset that grew by appending, in [0, newest] (default: the newest). A version never changes.
    cache_dir: folder that caches data read from a store, for later epochs and other processes. Unused on a disk.
    cache_bytes: size limit of cache_dir in bytes (default: 100 GiB, at least 16 MiB).

    Cost: 0.5 ms on a disk or two requests on a store, for any number of files. Versions take that for each part on a
        disk;
    on a store, a few requests to find the newest version and one to read it.

    Raise DatasetError for a folder that is unfinished, damaged, made with another tokenizer or not flat-tokens. Raise
    StoreError if the store does not answer or denies access. Raise ArgumentError for invalid arguments.
    """
    root = locate("path", path, storage_options)
    if cache_dir is not None and isinstance(root, StorePath):
        root = _cached(
            root, arguments.path("cache_dir", cache_dir), arguments.integer("cache_bytes", cache_bytes, 1)
        )
    number = newest(root) if version is None else arguments.integer("version", version, 0)
    if number:
        dataset = _open_version(root, number)
    else:
        dataset = open_by_manifest(root) if isinstance(root, StorePath) else open_by_files(root)
    if tokenizer is not None:
        check_tokenizer(dataset, tokenizer)
    return dataset


def _cached(root: StorePath, folder: Path, limit_bytes: int) -> StorePath:
    try:
        return StorePath(CachedStore(root.store, folder, limit_bytes), root.key)
    except OSError as error:
        raise ArgumentError(f"cache_dir: {error.strerror} (got {printable(str(folder))})") from None


def open_by_files(root: Place) -> Dataset:
    """The dataset at `root` by what its own metadata say, compared with the manifest's counts and with the first and
    last start."""
    where = printable(str(root))
    if isinstance(root, Path) and not root.is_dir():
        raise DatasetError(f"{where}: {'not a folder' if root.exists() else 'does not exist'}")
    promised = is_there(root / MANIFEST_NAME)  # be it a link or pipe: it is not passed over
    head = read_head(root) if promised else None
    opened = head and head.opened
    with opened_manifest.opening(opened):
        zarr_format, splits = _open_splits(root, opened)
        if head is not None:
            _check_counts(head.counts, splits, where)
    return Dataset(root, zarr_format, splits["train"], splits["validation"], opened)


def _open_splits(root: Place, opened: OpenedManifest | None) -> tuple[int, dict[str, FlatTokensArray]]:
    group = zarr_metadata.read_group(root)
    if group is None:
        raise damaged(root, f"{NO_DATASET} (no zarr group at its root)", CONVERT_AGAIN)
    if isinstance(root, Path) and not (root / "train").is_dir():
        if (root / flat_format.TOKENS_NAME).is_dir():
            raise damaged(root, "a single split, not a dataset", "Open its parent folder.")
        raise DatasetError(f"{printable(str(root))}: not a flat-tokens dataset (no group train)")
    splits = {name: open_split(root, name, opened) for name in flat_format.SPLITS}
    for array in splits.values():
        array.check_ends()
    return group[0], splits


def open_by_manifest(root: StorePath) -> Dataset:
    """The dataset on a store by its manifest alone: metadata follow from the layout and the counts, as for the writer.
    That the objects are so is for `verify` to find; each is whole, and was put before the manifest."""
    where = printable(str(root))
    try:
        head = read_head(root)
    except AbsentFileError as error:
        raise DatasetError(f"{where}: {NO_DATASET} ({error.__cause__})") from None
    try:
        layout = ArrayLayout(**head.layout)
        counts = {name: SplitRecord(**head.counts[name]) for name in flat_format.SPLITS}
        return _open_promised(root, layout, counts, head.opened)
    except (KeyError, TypeError, ValueError) as error:
        what = f"invalid layout or splits ({cause(error)})"
        fix = "Copy the dataset to a local disk to read it."
        raise damaged(f"{where}/{MANIFEST_NAME}", what, fix) from None


def _open_promised(
    root: Place, layout: ArrayLayout, counts: Mapping[str, SplitRecord], opened: OpenedManifest
) -> Dataset:
    promised = {
        f"{root / name / file}": data
        for name, split in counts.items()
        for file, data in written_metadata.split_files(
            layout, *split[:3], has_mask=split.trained_tokens is not None
        ).items()
    }

    def read(place: Place) -> dict[str, Any] | None:
        data = promised.get(str(place))
        return None if data is None else zarr_metadata.parse_json(data, place)

    train, validation = (open_split(root, name, opened, read) for name in flat_format.SPLITS)
    return Dataset(root, layout.zarr_format, train, validation, opened)


def _open_version(root: Place, number: int) -> Dataset:
    """A version of a dataset to which was appended, its splits one behind the other."""
    parts = []
    opened = OpenedManifest.of(within(root, version_path(number)))
    with opened.opening():  # else parts of two datasets might be taken together
        for part in read_version(root, number).parts:
            place = place_of(root, part, number)
            if isinstance(place, StorePath):
                parts.append(_open_promised(place, part.layout, part.splits, opened))
                continue
            parts.append(open_by_files(place))
            counts = {name: split.facts() for name, split in part.splits.items()}
            _check_counts(counts, {name: parts[-1][name] for name in flat_format.SPLITS}, str(place))
    splits = {name: joined(root / name, name, [part[name] for part in parts]) for name in flat_format.SPLITS}
    return Dataset(
        root, parts[0].zarr_format, splits["train"], splits["validation"], opened, number, tuple(parts)
    )


def _check_counts(counts: Mapping[str, Any], splits: dict[str, FlatTokensArray], where: str) -> None:
    for name, array in splits.items():
        record = counts.get(name)
        if record is None:
            raise damaged(f"{where}/{MANIFEST_NAME}", f"split {name} is missing")
        if (array.loss_mask is None) != ("trained_tokens" not in record):
            has, says = (
                ("missing", "lists it") if array.loss_mask is None else ("present", "does not list it")
            )
            what = f"{flat_format.MASK_NAME} is {has}, but {MANIFEST_NAME} {says}"
            raise damaged(f"{where}/{name}", what)
        for what in ("token_count", "seq_count", "max_token_id"):
            stored, stated = getattr(array, what), record.get(what)
            if stored != stated:
                raise damaged(f"{where}/{name}", f"{what} must be {stated} by {MANIFEST_NAME} (got {stored})")


def check_tokenizer(dataset: Dataset, tokenizer: str | os.PathLike[str] | Fingerprinted) -> None:
    """Raise DatasetError unless a dataset was made with this tokenizer; see `open`."""
    _require_record(dataset)  # before a file is looked for
    if isinstance(tokenizer, str | os.PathLike):
        check_made_with(dataset, "sha256", _files_sha256(arguments.path("tokenizer", tokenizer)))
    elif hasattr(tokenizer, "fingerprint"):
        check_made_with(dataset, "fingerprint", tokenizer.fingerprint())
    else:
        raise arguments.invalid("tokenizer", "must be a path or have fingerprint()", tokenizer)


def _require_record(dataset: Dataset) -> Mapping[str, Any]:
    record = dataset.tokenizer_record
    if record is None:
        raise damaged(dataset.path, "no tokenizer is recorded", "Open it without tokenizer=.")
    return record


def check_made_with(dataset: Dataset, kind: Literal["sha256", "fingerprint"], given: str) -> None:
    """Raise DatasetError unless that is the hash of the files, or the fingerprint, of a dataset's tokenizer."""
    record = _require_record(dataset)
    if kind == "fingerprint" and record.get(kind) is None:
        what = "no fingerprint of the tokenizer is recorded, since the dataset was imported"
        raise damaged(dataset.path, what, f"Pass the file {printable(str(dataset.tokenizer_path))}.")
    # The dataset's own file is written anew, in one form; the file that was converted with is as good.
    if given not in (record.get(kind), record.get("source_sha256")):
        stated = printable(str(record.get(kind)), 80)
        what = f"made with another tokenizer, of {kind} {stated} (got {printable(given, 80)})"
        raise damaged(dataset.path, what, f"Use {printable(str(dataset.tokenizer_path))}.")


def _files_sha256(path: Path) -> str:
    """Of a tokenizer's file, or of the files that are one: vocab.json and merges.txt of a folder, in this order;
    ArgumentError."""
    files = [path]
    if path.is_dir():
        files = [path / "tokenizer.json"]
        if not files[0].is_file():
            files = [path / "vocab.json", path / "merges.txt"]
    digest = hashlib.sha256()
    for file in files:
        try:
            digest.update(file.read_bytes())
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ArgumentError(
                f"tokenizer: {reason} (got {printable(str(file))}). Pass a tokenizer.json."
            ) from None
    return digest.hexdigest()
