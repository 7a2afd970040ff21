"""What kind of input a file is: its record format and how it is compressed, both told by its name.

The format may be forced with --input-format; the compression is always that of the name, or, for standard input, of
the first bytes. Kinds nobody can read are refused before the work starts: read as plain text they would give a
dataset of rubbish.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

from corpus.errors import BadArgument

INPUT_FORMATS = ("auto", "text", "jsonl", "parquet")
# .json is here too: large corpora name their JSON Lines so; a pretty-printed file is refused at its first line.
_FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonlines": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSIONS = {
    ".gz": "gz",
    ".gzip": "gz",
    ".zst": "zst",
    ".zstd": "zst",
    ".bz2": "bz2",
    ".xz": "xz",
}
_REFUSED = (
    ".zip",
    ".7z",
    ".rar",
    ".tar",
    ".tgz",
    ".arrow",
    ".feather",
    ".lz4",
    ".br",
    ".lzma",
    ".snappy",
    ".npy",
)
_MARKED_UP = (".csv", ".tsv", ".html", ".htm")
_MAGIC = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}


class Kind(NamedTuple):
    """format: text, jsonl or parquet; compression: none, gz, zst, bz2 or xz."""

    format: str = "text"
    compression: str = "none"

    @property
    def name(self) -> str:
        """As plans and manifests keep it: "jsonl", "text.gz"."""
        return self.format if self.compression == "none" else f"{self.format}.{self.compression}"

    @property
    def is_plain(self) -> bool:
        """Whether the file's bytes are the text itself, so that its parts can be read alone."""
        return self.compression == "none"

    @property
    def is_packed(self) -> bool:
        """Whether the size of a file says little of how much text is in it: compressed, or Parquet, which is inside."""
        return not self.is_plain or self.format == "parquet"


PLAIN_TEXT = Kind()
_shared_kind = cache(Kind)  # one for all files of a kind


def kind_of(path: str, input_format: str = "auto") -> Kind:
    """The kind of a file by its name; ValueError says which kind cannot be read and what to do.

    "a.jsonl.gz" -> Kind("jsonl", "gz"); "a.txt", "auto" -> Kind("text", "none"); "a.log", "jsonl" -> Kind("jsonl").
    """
    name = path.lower()
    compression = "none"
    for suffix, value in _COMPRESSIONS.items():
        if name.endswith(suffix):
            compression, name = value, name.removesuffix(suffix)
            break
    if name.endswith(_REFUSED):
        raise ValueError("this kind of file cannot be read; unpack it to text, JSON Lines or Parquet first")
    named = next((value for suffix, value in _FORMATS.items() if name.endswith(suffix)), "text")
    kind = _shared_kind(named if input_format == "auto" else input_format, compression)
    if kind.format == "parquet" and not kind.is_plain:
        raise ValueError("Parquet is compressed inside; unpack the file itself first")
    if input_format in ("text", "jsonl") and named == "parquet":
        raise ValueError(f"a Parquet file cannot be read as {input_format}; leave --input-format away")
    return kind


def is_marked_up(path: str) -> bool:
    """Whether the name is that of a table or a page, whose commas and tags become part of the text."""
    name = path.lower()
    suffix = next(filter(name.endswith, _COMPRESSIONS), "")
    return name.removesuffix(suffix).endswith(_MARKED_UP)


def compression_of(head: bytes) -> str:
    """The compression whose mark a file begins with, "none" if it is no known one."""
    return next((name for mark, name in _MAGIC.items() if head.startswith(mark)), "none")


def check_libraries(kinds: set[Kind]) -> None:
    """Raise BadArgument (exit 2) naming the extra if a library that one of the kinds needs is not installed.

    Only looks for it: what it costs to import it is for the workers, while they have nothing else to wait for.
    """
    needed = {"pyarrow": "Parquet"} if any(kind.format == "parquet" for kind in kinds) else {}
    if any(kind.compression == "zst" for kind in kinds):
        needed["zstandard"] = "zstd"
    for module, what in needed.items():
        if find_spec(module) is None:
            raise BadArgument(
                f"reading {what} needs {module}, which is not installed; install it: pip install 'tokenmill[inputs]'"
            )
