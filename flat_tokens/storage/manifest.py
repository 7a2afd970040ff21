"""The manifest: the content of a finished dataset, and where it came from.

`manifest.json` at the root is written last. `files.jsonl` lists every file with its size and digest, so that a missing
Zarr chunk, which zarr reads as zeros, is noticed. `sources.jsonl` lists the inputs. Both have one JSON object per line,
and the manifest contains their digests, so opening a dataset takes the same time for any number of files and sources.
The manifest contains no times and no host names: its bytes depend only on inputs, tokenizer and options.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from flat_tokens.errors import cause, damaged, printable
from flat_tokens.format import FORMAT_NAME, FORMAT_VERSION, LARGEST_TOKEN_ID, SPLITS
from flat_tokens.storage.file_digest import XXH64_DIGITS, FileDigest
from flat_tokens.storage.files import AbsentFileError, check_length
from flat_tokens.storage.opened_manifest import OpenedManifest, version_by_end
from flat_tokens.storage.places import Place, StorePath, open_file, read_whole
from flat_tokens.storage.zarr_metadata import MAX_METADATA_BYTES, parse_json

MANIFEST_NAME, FILES_NAME, SOURCES_NAME = "manifest.json", "files.jsonl", "sources.jsonl"
_HASH_NAME = "manifest_sha256"
_ZEROS = "0" * 64
_MAX_LINE_BYTES = 2**20


class FileRecord(NamedTuple):
    """One file: path relative to the root with `/`, length in bytes, XXH64 in 16 hexadecimal digits."""

    path: str
    bytes: int
    xxh64: str


class SplitRecord(NamedTuple):
    """The counts of a split. trained_tokens: tokens that contribute to the loss; None without a loss mask."""

    token_count: int
    seq_count: int
    max_token_id: int
    trained_tokens: int | None = None


class ListRecord(NamedTuple):
    """A list in a separate file: number of lines, length in bytes, XXH64."""

    lines: int
    bytes: int
    xxh64: str


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json.

    splits: the counts of both splits.
    files, sources: the files that list them; see `read_files` and `read_sources`.
    layout: the arguments of the ArrayLayout.
    tokenizer: {"path", "sha256", "fingerprint", "source_sha256"} or None.
    options, versions: plain JSON values of the writer.
    """

    splits: Mapping[str, SplitRecord]
    files: ListRecord
    sources: ListRecord
    layout: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The bytes of manifest.json, with one member per line. The last one is the SHA-256 of these bytes with zeros
        for its digits."""
        splits = {
            name: {what: count for what, count in split._asdict().items() if count is not None}
            for name, split in self.splits.items()
        }
        value = {
            "format": FORMAT_NAME,
            "format_version": FORMAT_VERSION,
            "splits": splits,
            "layout": dict(self.layout),
            "tokenizer": None if self.tokenizer is None else dict(self.tokenizer),
            "options": dict(self.options),
            "versions": dict(self.versions),
            "sources": self.sources._asdict(),
            "files": self.files._asdict(),
            _HASH_NAME: _ZEROS,
        }
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(member)}" for name, member in value.items())
        text = f"{{\n{lines}\n}}\n"
        digest = hashlib.sha256(text.encode("ascii")).hexdigest()
        return text.replace(f'"{_HASH_NAME}": "{_ZEROS}"', f'"{_HASH_NAME}": "{digest}"').encode("ascii")


def file_lines(files: Iterable[FileRecord]) -> Iterator[str]:
    """The lines of files.jsonl. By hand except for the path: 1 us per file, where json.dumps takes 7."""
    for path, size, digest in files:
        yield f'{{"path": {json.dumps(path)}, "bytes": {size}, "xxh64": "{digest}"}}'


def read_manifest(root: Place) -> Manifest | None:
    """The manifest of the dataset at `root`, None without one. Raise DatasetError if it is damaged."""
    try:
        return open_manifest(root)[0]
    except AbsentFileError:
        return None


def open_manifest(root: Place) -> tuple[Manifest, OpenedManifest]:
    """The manifest of the dataset at `root`, and its version. One read. Raise AbsentFileError without one."""
    place = root / MANIFEST_NAME
    if isinstance(place, StorePath):
        with place.reading():
            found, (_, _, version) = place.store.read_begin(place.key, MAX_METADATA_BYTES + 1)
        check_length(str(place), len(found), MAX_METADATA_BYTES)
        data = bytes(found)
    else:
        data = read_whole(place, MAX_METADATA_BYTES)
        version = version_by_end(data)
    return _parse(data, place), OpenedManifest(place, version)


def read_files(root: Place, manifest: Manifest) -> tuple[FileRecord, ...]:
    """Every file of a dataset except the manifest. Raise DatasetError if the list is damaged."""
    path = root / FILES_NAME
    found = []
    for value in _listed(root, FILES_NAME, manifest.files):
        try:
            found.append(FileRecord(*_members(FileRecord, value)))
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, cause(error, 200)) from None
    for name, record in ((FILES_NAME, manifest.files), (SOURCES_NAME, manifest.sources)):
        found.append(FileRecord(name, record.bytes, record.xxh64))
    paths = {record.path for record in found}
    if len(paths) != len(found):
        raise damaged(path, "files must be listed once each")
    if manifest.tokenizer is not None and manifest.tokenizer.get("path") not in paths:
        got = printable(repr(manifest.tokenizer.get("path")), 80)
        raise damaged(path, f"must list the file of the tokenizer (got {got})")
    return tuple(found)


def read_sources(root: Place, manifest: Manifest, limit: int | None = None) -> list[dict[str, Any]]:
    """The sources of a dataset, or the first `limit` of them, in the order of their sequences. Cost: reads all of the
    list, 0.7 us per source, and 7 us for each that is returned. Raise DatasetError if the list is damaged."""
    return list(_listed(root, SOURCES_NAME, manifest.sources, limit))


def _listed(root: Place, name: str, record: ListRecord, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the values of a list. Its digest is compared after the last one."""
    path = root / name
    digest, rest, count = FileDigest(), b"", 0
    with open_file(path) as file:
        if file.size != record.bytes:
            raise damaged(path, f"must have {record.bytes} bytes by {MANIFEST_NAME} (got {file.size})")
        for block in itertools.chain(file.blocks(), [b""]):
            digest.update(block)
            *lines, rest = (rest + bytes(block)).split(b"\n")
            if len(rest) > _MAX_LINE_BYTES or (not block and rest):
                raise damaged(path, "invalid line")
            wanted = lines if limit is None else lines[: max(limit - count, 0)]
            count += len(lines)
            try:
                values = json.loads(b"[%b]" % b",".join(wanted))
            except (ValueError, RecursionError) as error:
                raise damaged(path, f"not valid JSON ({cause(error)})") from None
            if len(values) != len(wanted) or not all(isinstance(value, dict) for value in values):
                raise damaged(path, "must have one JSON object per line")
            yield from values
    if digest.text() != record.xxh64 or count != record.lines:
        raise damaged(path, f"changed after it was written ({MANIFEST_NAME} has another digest)")


def _parse(data: bytes, place: Place) -> Manifest:
    value = parse_json(data, place)
    if value.get("format") != FORMAT_NAME:
        got = printable(repr(value.get("format")), 60)
        raise damaged(place, f"format must be {FORMAT_NAME!r} (got {got})", "Open another folder.")
    version = value.get("format_version")
    if version != FORMAT_VERSION or type(version) is not int:
        what = f"format_version must be {FORMAT_VERSION} (got {printable(repr(version), 60)})"
        is_earlier = type(version) is int and version < FORMAT_VERSION
        fix = "An earlier version of tokenmill made it. Convert again." if is_earlier else "Update tokenmill."
        raise damaged(place, what, fix)
    stated = value.get(_HASH_NAME)
    digits = str(stated).encode("ascii", "replace") or b"none"
    text = _ZEROS.encode("ascii").join(data.rsplit(digits, 1))
    if hashlib.sha256(text).hexdigest() != stated:
        raise damaged(place, f"changed after it was written ({_HASH_NAME} differs)")
    try:
        tokenizer = value["tokenizer"]
        if tokenizer is not None:
            _typed(str, "tokenizer.path", _typed(dict, "tokenizer", tokenizer).get("path"))
        return Manifest(
            {name: SplitRecord(*_members(SplitRecord, value["splits"][name], f"{name}.")) for name in SPLITS},
            ListRecord(*_members(ListRecord, value["files"])),
            ListRecord(*_members(ListRecord, value["sources"])),
            _typed(dict, "layout", value["layout"]),
            tokenizer,
            _typed(dict, "options", value["options"]),
            _typed(dict, "versions", value["versions"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(place, cause(error, 200)) from None


def _members(kind: Any, value: dict[str, Any], prefix: str = "") -> Iterator[Any]:
    """Yield the members of a JSON object for the fields of a record. Those with a default may be missing."""
    for name in kind._fields:
        if name in value or name not in kind._field_defaults:
            rule: Callable[[str, Any], Any] = _RULES.get(name, _count)
            yield rule(prefix + name, value[name])


def _typed(kind: type, name: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be a {kind.__name__} (got {type(value).__name__})")
    return value


def _count(name: str, value: Any, largest: int = 2**63 - 1) -> int:
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"{name} must be in [0, {largest}] (got {value!r})")
    return value


def _digest(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) != XXH64_DIGITS or set(value) - set("0123456789abcdef"):
        raise ValueError(f"{name} must have {XXH64_DIGITS} hexadecimal digits (got {value!r})")
    return value


def check_relative_path(path: str) -> str:
    """Return `path`. Raise ValueError unless it stays within the dataset and is not the manifest."""
    parts = path.split("/")  # an absolute path has an empty part
    if "\0" in path or "\\" in path or {"", ".", ".."} & set(parts):
        raise ValueError(f"paths must stay within the dataset (got {path!r})")
    if path == MANIFEST_NAME:
        raise ValueError("the manifest must not list itself")
    return path


# The members that are no counts.
_RULES: dict[str, Callable[[str, Any], Any]] = {
    "path": lambda name, value: check_relative_path(_typed(str, name, value)),
    "xxh64": _digest,
    "max_token_id": partial(_count, largest=LARGEST_TOKEN_ID),
}
