"""Opening a dataset and reading sequences and rows of it, at random or in order.

Only what is cheap is checked on opening: names, data types, the counts against each other, against the
manifest and against the first and last start, so an unfinished, foreign or half-copied directory is refused
at once; `verify` checks the rest. Any flat-tokens dataset opens, with or without a manifest, in zarr format
2 or 3.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from flat_tokens import format as flat_format
from flat_tokens import zarr_metadata
from flat_tokens.elements import Elements
from flat_tokens.errors import ArgumentError, DatasetError, RangeError, printable
from flat_tokens.format import Bools, Uint32
from flat_tokens.manifest import Manifest, read_manifest


class Fingerprinted(Protocol):
    """A tokenizer that can say who it is, as bpe.Tokenizer can."""

    def fingerprint(self) -> str: ...


class Row(NamedTuple):
    """A row of the packed stream. ids: uint32[length]; is_start: bool[length], true where a sequence
    starts."""

    ids: Uint32
    is_start: Bools


class FlatTokensArray:
    """One split: all its sequences, one after the other. Picklable, and safe to read from several threads.

    encoded_tokens and seq_starts read like one-dimensional numpy arrays, from disk: `array.seq_starts[5]`,
    `array.encoded_tokens[100:200]` (docs/flat-tokens.md says what they hold)."""

    def __init__(self, path: Path, name: str, promised: bool) -> None:
        group = zarr_metadata.read_group(path)
        where = printable(str(path))
        if group is None:
            raise DatasetError(
                f"{where}: no zarr group of this name; a flat-tokens dataset has train and validation"
            )
        self.name = name
        self.max_token_id = _attribute(group[1], where)
        self.encoded_tokens = Elements(
            f"{name}/{flat_format.TOKENS_NAME}",
            path / flat_format.TOKENS_NAME,
            flat_format.TOKENS_DTYPE,
            not promised,
        )
        self.seq_starts = Elements(
            f"{name}/{flat_format.STARTS_NAME}",
            path / flat_format.STARTS_NAME,
            flat_format.STARTS_DTYPE,
            not promised,
        )
        if len(self.seq_starts) == 0:
            raise DatasetError(
                f"{where}/{flat_format.STARTS_NAME}: empty; it must hold at least the token count"
            )
        first, last = self.seq_starts[0], self.seq_starts[-1]
        if first != 0 or last != self.token_count:
            raise DatasetError(
                f"{where}/{flat_format.STARTS_NAME}: goes from {first} to {last}, it must go from "
                f"0 to the token count "
                f"{self.token_count}; the dataset is unfinished or damaged, convert again"
            )

    @property
    def token_count(self) -> int:
        """How many tokens all sequences have together."""
        return len(self.encoded_tokens)

    @property
    def seq_count(self) -> int:
        """How many sequences there are."""
        return len(self.seq_starts) - 1

    def __len__(self) -> int:
        return self.seq_count

    def __repr__(self) -> str:
        sizes = f"{self.seq_count} sequences, {self.token_count} tokens"
        return f"<{self.name}: {sizes}, ids up to {self.max_token_id}>"

    def sequence(self, index: int) -> Uint32:
        """The ids of one sequence, uint32[tokens]; index in [-seq_count, seq_count). Two reads.

        In the example of the format page, sequence(1) and sequence(-2) are [3, 4, 5]. RangeError, an
        IndexError."""
        if not -self.seq_count <= index < self.seq_count:
            raise RangeError(f"{self.name}: sequence {index} is outside [0, {self.seq_count})")
        index %= self.seq_count
        start, stop = (int(value) for value in self.seq_starts.read(index, index + 2))
        if not start < stop <= self.token_count:
            raise DatasetError(
                f"{self.seq_starts.name}[{index + 1}] = {stop} must be in ({start}, {self.token_count}]; "
                "the dataset is damaged, convert again"
            )
        return flat_format.decode_ids(self.encoded_tokens.read(start, stop))

    def sequences(self, start: int = 0, stop: int | None = None) -> Iterator[Uint32]:
        """The ids of the sequences [start, stop), one after the other; stop may lie beyond the last."""
        for index in range(start, self.seq_count if stop is None else min(stop, self.seq_count)):
            yield self.sequence(index)

    def row_count(self, length: int) -> int:
        """How many full rows of `length` tokens there are; the tail that fills no row is left out."""
        if length < 1:
            raise ArgumentError(f"length of a row must be at least 1, got {length}")
        return self.token_count // length

    def encoded_row(self, index: int, length: int) -> Uint32:
        """encoded_tokens[index * length : (index + 1) * length]; index in [-row_count, row_count). One read.

        encoded_row(1, 3) of the example is [8, 10, 13]."""
        first = self._row_start(index, length)
        return self.encoded_tokens.read(first, first + length)

    def row(self, index: int, length: int) -> Row:
        """The ids of a row and where sequences start in it. One read.

        row(1, 3) of the example is ([4, 5, 6], [False, False, True])."""
        encoded = self.encoded_row(index, length)
        return Row(flat_format.decode_ids(encoded), flat_format.decode_start_flags(encoded))

    def inputs_and_targets(self, index: int, length: int) -> tuple[Uint32, Uint32]:
        """What a model reads and must say in a row: targets are its ids, inputs the targets shifted right by
        one, with 0 wherever a sequence starts. uint32[length] each; one read, of one token more in front.

        inputs_and_targets(1, 3) of the example is ([3, 4, 0], [4, 5, 6])."""
        first = self._row_start(index, length)
        encoded = self.encoded_tokens.read(max(first - 1, 0), first + length)
        before = int(encoded[0]) if first else 0
        return flat_format.inputs_and_targets(encoded[-length:], before)

    def _row_start(self, index: int, length: int) -> int:
        count = self.row_count(length)
        if not -count <= index < count:
            raise RangeError(f"{self.name}: row {index} of length {length} is outside [0, {count})")
        return index % count * length


def _attribute(attributes: dict[str, Any], where: str) -> int:
    value = attributes.get(flat_format.MAX_TOKEN_ID_NAME)
    if type(value) is not int or not 0 <= value <= flat_format.LARGEST_TOKEN_ID:
        raise DatasetError(
            f"{where}: attribute {flat_format.MAX_TOKEN_ID_NAME} is {printable(repr(value), 60)}, "
            f"it must be an integer "
            f"in [0, {flat_format.LARGEST_TOKEN_ID}]; the dataset is unfinished or not flat-tokens"
        )
    return value


@dataclass(frozen=True)
class Dataset:
    """A dataset: the splits `train` and `validation`, and what its manifest tells. dataset["train"] is
    dataset.train."""

    path: Path
    zarr_format: int
    train: FlatTokensArray
    validation: FlatTokensArray
    manifest: Manifest | None

    def __getitem__(self, split: str) -> FlatTokensArray:
        if split == "train":
            return self.train
        if split == "validation":
            return self.validation
        raise KeyError(f"split must be one of {', '.join(flat_format.SPLITS)}, got {split!r}")

    @property
    def tokenizer_path(self) -> Path | None:
        """The tokenizer.json that the dataset was made with, None if it brought none along."""
        if self.manifest is None or self.manifest.tokenizer is None:
            fallback = self.path / "tokenizer.json"
            return fallback if self.manifest is None and fallback.is_file() else None
        return self.path / str(self.manifest.tokenizer["path"])


def open(
    path: str | os.PathLike[str], tokenizer: str | os.PathLike[str] | Fingerprinted | None = None
) -> Dataset:
    """The dataset at `path`. Cost: about a millisecond, and the manifest is read.

    tokenizer: a tokenizer.json, or an object with fingerprint(), that must be the one the dataset was made
    with. DatasetError, one line, for a directory that is unfinished, foreign, damaged or of another
    tokenizer."""
    root = Path(path)
    where = printable(str(root))
    if not root.is_dir():
        raise DatasetError(
            f"{where}: {'not a directory' if root.exists() else 'does not exist'}; give a dataset's path"
        )
    manifest = read_manifest(root)
    group = zarr_metadata.read_group(root)
    if group is None:
        raise DatasetError(
            f"{where}: no dataset, or an unfinished one (no zarr group at its root); convert again"
        )
    if not (root / "train").is_dir():
        found = (
            "a single flat-tokens array, open its parent"
            if (root / flat_format.TOKENS_NAME).is_dir()
            else "foreign"
        )
        raise DatasetError(f"{where}: has no entry train ({found})")
    promised = manifest is not None
    splits = {name: FlatTokensArray(root / name, name, promised) for name in flat_format.SPLITS}
    if manifest is not None:
        _check_manifest(manifest, splits, where)
    dataset = Dataset(root, group[0], splits["train"], splits["validation"], manifest)
    if tokenizer is not None:
        _check_tokenizer(dataset, tokenizer)
    return dataset


def _check_manifest(manifest: Manifest, splits: dict[str, FlatTokensArray], where: str) -> None:
    for name, array in splits.items():
        record = manifest.splits.get(name)
        if record is None:
            raise DatasetError(f"{where}/manifest.json: lacks the split {name}; restore it or convert again")
        for what in ("token_count", "seq_count", "max_token_id"):
            stored, stated = getattr(array, what), getattr(record, what)
            if stored != stated:
                raise DatasetError(
                    f"{where}/{name}: {what} is {stored}, the manifest says {stated}; restore it "
                    f"or convert again"
                )


def _check_tokenizer(dataset: Dataset, tokenizer: str | os.PathLike[str] | Fingerprinted) -> None:
    where = printable(str(dataset.path))
    record = dataset.manifest.tokenizer if dataset.manifest is not None else None
    if record is None:
        raise DatasetError(
            f"{where}: does not say which tokenizer it was made with; open it without tokenizer="
        )
    if isinstance(tokenizer, str | os.PathLike):
        kind, given = "sha256", hashlib.sha256(Path(tokenizer).read_bytes()).hexdigest()
    else:
        kind, given = "fingerprint", tokenizer.fingerprint()
    if given != record.get(kind):
        stated = printable(str(record.get(kind)), 80)
        raise DatasetError(
            f"{where}: made with another tokenizer ({kind} {stated}, the given one has "
            f"{printable(given, 80)}); "
            f"use {printable(str(dataset.tokenizer_path))}"
        )
