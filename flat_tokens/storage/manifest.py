"""The manifest: what a finished dataset consists of, file by file, and where it came from.

`manifest.json` at the dataset's root is written last. It lists every other file with its size and digest,
so that a missing zarr chunk, which zarr reads as zeros, is noticed. It holds no times, host names or absolute
paths of its own: its bytes are a function of inputs, tokenizer and options. The format itself needs no
manifest; datasets of others have none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from flat_tokens.errors import DatasetError, cause, damaged, printable
from flat_tokens.format import FORMAT_NAME, FORMAT_VERSION, LARGEST_TOKEN_ID, SPLITS
from flat_tokens.storage.file_digest import SHA256_DIGITS, XXH64_DIGITS
from flat_tokens.storage.files import AbsentFileError
from flat_tokens.storage.manifest_lines import SELF_HASH_NAME, SELF_HASH_ZEROS, read_lines
from flat_tokens.storage.places import Place, read_whole
from flat_tokens.storage.zarr_metadata import parse_json

MANIFEST_NAME = "manifest.json"
LARGEST_MANIFEST_BYTES = 2**32  # 82 bytes a file: 52 million files
# Of a manifest that is not written line by line, as every one of ours is: it is parsed as a whole, which takes up to 25
# times as much memory. 200,000 files.
LARGEST_WHOLE_BYTES = 2**24
DIGESTS = {1: ("sha256", SHA256_DIGITS), 2: ("xxh64", XXH64_DIGITS)}  # by format_version: name and digits
_BLOCK_BYTES = 1 << 16


class FileRecord(NamedTuple):
    """One file: path relative to the dataset's root with `/`, length in bytes, digest in hexadecimal as
    flat_tokens/storage/file_digest.py has it (XXH64; SHA-256 from a manifest of format version 1)."""

    path: str
    bytes: int
    digest: str


class SplitRecord(NamedTuple):
    """What a split holds. trained_tokens: how many are to be learned, of a split with a loss_mask; else None, and
    nothing is written of it."""

    token_count: int
    seq_count: int
    max_token_id: int
    trained_tokens: int | None = None

    def facts(self) -> dict[str, int]:
        """What is known, by name, in order."""
        return {name: value for name, value in self._asdict().items() if value is not None}


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json. tokenizer: {"path", "sha256", "fingerprint", "source_sha256"} or None, of one
    from the Hugging Face Hub "source", too; layout, sources, options and versions are what the writer of the dataset
    wants kept, as plain JSON values.

    There may be a million sources: who reads may leave out all but the first, who writes may give them one after the
    other."""

    splits: Mapping[str, SplitRecord]
    files: tuple[FileRecord, ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Mapping[str, Any] | None = None
    sources: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    sources_left_out: int = 0

    def to_bytes(self) -> bytes:
        """The bytes of manifest.json: one member a line, one source or file a line, ASCII.

        Its member manifest_sha256 is the hash of these bytes with 64 zeros in the place of the digits."""
        return b"".join(self.blocks(self.sources))

    def blocks(self, sources: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
        """The same with these sources, some 64 KiB at a time."""
        digest = hashlib.sha256()
        block = bytearray()
        for line in self._lines(sources):
            block += line
            if len(block) >= _BLOCK_BYTES:
                digest.update(block)
                yield bytes(block)
                block.clear()
        block += f'"{SELF_HASH_NAME}": "'.encode("ascii")
        end = b'"\n}\n'
        digest.update(block + SELF_HASH_ZEROS.encode("ascii") + end)
        yield bytes(block) + digest.hexdigest().encode("ascii") + end

    def _lines(self, sources: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
        """All but the last two."""
        head = {
            "format": FORMAT_NAME,
            "format_version": FORMAT_VERSION,
            "splits": {name: split.facts() for name, split in self.splits.items()},
            "layout": dict(self.layout),
            "tokenizer": None if self.tokenizer is None else dict(self.tokenizer),
            "options": dict(self.options),
            "versions": dict(self.versions),
        }
        yield b"{\n"
        for name, value in head.items():
            yield f"{json.dumps(name)}: {json.dumps(value)},\n".encode("ascii")
        yield from _listed("sources", (json.dumps(dict(source)) for source in sources))
        kind, _ = DIGESTS[FORMAT_VERSION]
        # By hand, but for the path: 1 us a file, where json.dumps takes 7.
        yield from _listed(
            "files",
            (
                f'{{"path": {json.dumps(path)}, "bytes": {size}, "{kind}": "{digest}"}}'
                for path, size, digest in self.files
            ),
        )


def _listed(name: str, texts: Iterable[str]) -> Iterator[bytes]:
    line = f'"{name}": ['
    separator = "\n"
    for text in texts:
        yield (line + separator).encode("ascii")
        line, separator = text, ",\n"
    yield f"{line}\n],\n".encode("ascii")


def read_manifest(root: Place, most_sources: int | None = None) -> Manifest | None:
    """The manifest of the dataset at `root`, None if it has none. DatasetError names what is wrong with it.

    Of the sources, which take half a kilobyte each, no more than the first most_sources are parsed and kept; of all the
    hash is compared. Cost: 7 us a source that is kept, 0.7 us for another."""
    path = root / MANIFEST_NAME
    try:
        found = read_lines(path, LARGEST_MANIFEST_BYTES, most_sources)
    except AbsentFileError:
        return None
    left_out = 0
    if found is None:
        data = read_whole(path, LARGEST_WHOLE_BYTES)
        value = parse_json(data, path)
        is_unchanged = _self_hash_fits(data, value.get(SELF_HASH_NAME))
    else:
        value, left_out, digest = found
        is_unchanged = value[SELF_HASH_NAME] == digest
    where = printable(str(path))
    if value.get("format") != FORMAT_NAME:
        got = printable(repr(value.get("format")), 60)
        raise DatasetError(f"{where}: format must be {FORMAT_NAME!r} (got {got})")
    version = value.get("format_version")
    if type(version) is not int or version not in DIGESTS:
        what = f"format_version must be {' or '.join(map(str, DIGESTS))} (got {printable(repr(version), 60)})"
        raise damaged(path, what, "Update tokenmill.")
    if not is_unchanged:
        raise damaged(path, f"changed after it was written ({SELF_HASH_NAME} differs)")
    try:
        manifest = _parse(value)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, cause(error, 200)) from None
    kept = manifest.sources[:most_sources]
    return replace(manifest, sources=kept, sources_left_out=left_out + len(manifest.sources) - len(kept))


def _self_hash_fits(data: bytes, stated: object) -> bool:
    if not isinstance(stated, str):
        return False
    digits = stated.encode("utf-8", "surrogatepass")
    place = data.rfind(b'"%b"' % digits)
    if place < 0:
        return False
    start, stop = place + 1, place + 1 + len(digits)
    zeros = SELF_HASH_ZEROS.encode("ascii")
    return hashlib.sha256(data[:start] + zeros + data[stop:]).hexdigest() == stated


def _parse(value: dict[str, Any]) -> Manifest:
    splits = {}
    for name, split in _typed(value["splits"], dict, "splits").items():
        if name not in SPLITS:
            raise ValueError(f"splits must be {' and '.join(SPLITS)} (got {name!r})")
        splits[name] = SplitRecord(
            _count(split["token_count"], f"{name}.token_count"),
            _count(split["seq_count"], f"{name}.seq_count"),
            _count(split["max_token_id"], f"{name}.max_token_id", LARGEST_TOKEN_ID),
            _count(split["trained_tokens"], f"{name}.trained_tokens") if "trained_tokens" in split else None,
        )
    kind, digits = DIGESTS[value["format_version"]]
    files = tuple(_file_record(record, kind, digits) for record in _typed(value["files"], list, "files"))
    paths = {record.path for record in files}
    if len(paths) != len(files):
        raise ValueError("files must be listed once each")
    tokenizer = value.get("tokenizer")
    if tokenizer is not None:
        relative = _typed(tokenizer, dict, "tokenizer").get("path")
        if relative not in paths:
            raise ValueError(f"tokenizer.path must be one of the files (got {relative!r})")
    return Manifest(
        splits=splits,
        files=files,
        layout=_typed(value.get("layout", {}), dict, "layout"),
        tokenizer=tokenizer,
        sources=tuple(_typed(value.get("sources", []), list, "sources")),
        options=_typed(value.get("options", {}), dict, "options"),
        versions=_typed(value.get("versions", {}), dict, "versions"),
    )


def _typed(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be a {kind.__name__} (got {type(value).__name__})")
    return value


def _count(value: Any, name: str, largest: int = 2**63 - 1) -> int:
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"{name} must be in [0, {largest}] (got {value!r})")
    return value


def _file_record(record: dict[str, Any], kind: str, digits: int) -> FileRecord:
    path = _typed(record["path"], str, "files.path")
    check_relative_path(path)
    digest = record[kind]
    if not isinstance(digest, str) or len(digest) != digits or set(digest) - set("0123456789abcdef"):
        raise ValueError(f"{kind} of {path!r} must have {digits} hexadecimal digits")
    return FileRecord(path, _count(record["bytes"], f"bytes of {path!r}"), digest)


def check_relative_path(path: str) -> None:
    """Raise ValueError unless `path` is a plain relative path: no `..`, no root, no empty part, no NUL, not the
    manifest."""
    parts = path.split("/")
    if (
        "\0" in path or "\\" in path or "" in parts or "." in parts or ".." in parts
    ):  # a root is an empty part
        raise ValueError(f"paths must stay within the dataset (got {path!r})")
    if path == MANIFEST_NAME:
        raise ValueError("the manifest must not list itself")
