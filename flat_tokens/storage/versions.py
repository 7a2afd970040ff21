"""The versions of a dataset that grows: numbered files, each a list of its parts, which never change.

    manifest.json, train/, ...    the dataset itself: version 0, and the first part of all others
    part-1/                       what was appended first, a dataset by itself
    versions/1.json               {"format": "flat-tokens-version", "format_version": 1, "version": 1, "parts": [...],
                                   "sha256": of the JSON text of all before it}

A part is told by its path, the size and hash of its manifest, its layout and counts. A version is put when its part
is whole, and only if there is none of its number: of two that append one succeeds. Nothing is written again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from flat_tokens.errors import DatasetError, cause, damaged, printable
from flat_tokens.format import SPLITS
from flat_tokens.storage.file_digest import FileDigest
from flat_tokens.storage.files import AbsentFileError
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import MANIFEST_NAME, FileRecord, SplitRecord, check_relative_path
from flat_tokens.storage.manifest_head import read_head
from flat_tokens.storage.places import Place, StorePath, is_there, open_file, read_whole, walk
from flat_tokens.storage.zarr_metadata import parse_json
from tokenmill.stores import Store
from tokenmill.stores.errors import StoreDenied

FORMAT = "flat-tokens-version"
FORMAT_VERSION = 1
VERSIONS_NAME = "versions"
PART_PREFIX = "part-"
LARGEST_BYTES = 2**26  # some hundred thousand parts
_PART_NAME = re.compile(f"{PART_PREFIX}[1-9][0-9]*")
_VERSION_NAME = re.compile(r"([1-9][0-9]*)\.json")


class Part(NamedTuple):
    """A part of a version. path: within the dataset, "" for the dataset itself."""

    path: str
    manifest: FileRecord
    layout: ArrayLayout
    splits: Mapping[str, SplitRecord]


class Version(NamedTuple):
    """A version: its number and its parts, in order."""

    number: int
    parts: tuple[Part, ...]


def newest(root: Place) -> int:
    """The number of the newest version, 0 if nothing was appended; DatasetError where one before it is gone.

    A store is searched by a few requests, one where there is no version: a web server has no listing, and versions have
    no gaps."""
    if isinstance(root, Path):
        found = listed(root)
        for number, there in enumerate(found, 1):
            if number != there:
                what = f"{version_path(number)} is missing, but {version_path(found[-1])} exists"
                raise damaged(root, what, "Restore it or pass a version.")
        return len(found)
    try:
        return _searched(root)
    except StoreDenied as error:  # of what is not there, too, where listing is not allowed
        raise StoreDenied(
            f"{str(error).rstrip('.')}. If the store denies listing (S3 without s3:ListBucket), pass the version: "
            "0 if nothing was appended."
        ) from None


def _searched(root: StorePath) -> int:
    low, high = 0, 1
    while is_there(within(root, version_path(high))):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_there(within(root, version_path(middle))) else (low, middle)
    return low


def listed(root: Place) -> list[int]:
    """The numbers of the versions that are there, rising. StoreError of a store that has no listing."""
    folder = root / VERSIONS_NAME
    if isinstance(folder, Path):
        names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 - a Path each costs more
    else:
        names = [relative for relative, _, _ in walk(folder)]
    return sorted(int(found[1]) for found in map(_VERSION_NAME.fullmatch, names) if found)


def version_path(number: int) -> str:
    """Where a version lies within the dataset."""
    return f"{VERSIONS_NAME}/{number}.json"


def part_path(number: int) -> str:
    """Where the part that a version adds lies within the dataset."""
    return f"{PART_PREFIX}{number}"


def is_part_name(name: str) -> bool:
    """Whether a folder in a dataset that has this name is one of its parts."""
    return _PART_NAME.fullmatch(name) is not None


def within(root: Place, path: str) -> Place:
    """A place below `root`; "" is root."""
    for name in path.split("/") if path else ():
        root = root / name
    return root


def place_of(root: Place, part: Part, number: int) -> Place:
    """Where a part of a version is. DatasetError if its folder is gone; on a store that is found when it is read."""
    place = within(root, part.path)
    if isinstance(place, Path) and not place.is_dir():
        what = f"missing, but version {number} lists it"
        raise damaged(place, what, "Restore it or open an earlier version.")
    return place


def read_version(root: Place, number: int) -> Version:
    """A version of the dataset at `root`, from 1 on; DatasetError if there is none or it was changed."""
    path = within(root, version_path(number))
    try:
        value = parse_json(read_whole(path, LARGEST_BYTES), path)
    except AbsentFileError:
        what = f"version must be in [0, {newest(root)}] (got {number})"
        raise DatasetError(f"{printable(str(root))}: {what}") from None
    digest = value.pop("sha256", None)
    if digest != _digest(value):
        raise damaged(path, "changed after it was written (sha256 differs)", "Restore it.")
    known = (value.get("format"), value.get("format_version"), value.get("version"))
    if known != (FORMAT, FORMAT_VERSION, number):
        expected = f"format, format_version and version must be {(FORMAT, FORMAT_VERSION, number)}"
        raise damaged(
            path, f"{expected} (got {printable(str(known), 80)})", "Update tokenmill or restore the file."
        )
    try:
        return Version(number, tuple(_part(part) for part in value["parts"]))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise damaged(path, cause(error), "Restore it.") from None


def _part(value: Mapping[str, Any]) -> Part:
    path, manifest = value["path"], value["manifest"]
    if path:
        check_relative_path(path)
    record = FileRecord(f"{path}/{MANIFEST_NAME}".lstrip("/"), int(manifest["bytes"]), str(manifest["xxh64"]))
    splits = {name: SplitRecord(*map(int, value["splits"][name])) for name in SPLITS}
    return Part(path, record, ArrayLayout(**value["layout"]), splits)


def describe_part(root: Place, path: str) -> Part:
    """The part at `path`, a finished dataset, as a version will tell of it."""
    place = within(root, path)
    head = read_head(place)
    digest, size = FileDigest(), 0
    with open_file(place / MANIFEST_NAME) as file, file.reader() as reader:
        while block := reader.read(2**20):
            digest.update(block)
            size += len(block)
    record = FileRecord(f"{path}/{MANIFEST_NAME}".lstrip("/"), size, digest.text())
    splits = {name: SplitRecord(**head.counts[name]) for name in SPLITS}
    return Part(path, record, ArrayLayout(**head.layout), splits)


def write_version(store: Store, version: Version) -> None:
    """Put a version; AlreadyThere (stores) if there is one of its number. store: the dataset's container."""
    value: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "version": version.number,
        "parts": [
            {
                "path": part.path,
                "manifest": {"bytes": part.manifest.bytes, "xxh64": part.manifest.digest},
                "layout": part.layout.to_json(),
                "splits": {name: list(part.splits[name].facts().values()) for name in SPLITS},
            }
            for part in version.parts
        ],
    }
    data = json.dumps(value | {"sha256": _digest(value)}, indent=1).encode("ascii") + b"\n"
    store.put(version_path(version.number), data, if_absent=True)


def _digest(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def is_of_versions(path: str) -> bool:
    """Whether a file of a dataset's folder belongs to what was appended to it."""
    return path.startswith((f"{VERSIONS_NAME}/", PART_PREFIX))
