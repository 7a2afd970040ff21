"""Kinds of input files: record format and compression, both determined by the file name.

    corpus/a.jsonl.gz -> Kind("jsonl", "gz")        corpus/a.log -> Kind("text", "none")

`FORMATS` lists the formats. A new format is a row there and a reader (docs/development/extending.md). The user can set
the format with --input-format. Unsupported files are refused before the work starts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from importlib.util import find_spec
from typing import NamedTuple

from tokenmill.errors import BadArgument, not_installed, printable


class Format(NamedTuple):
    """A record format.

    name: display name.
    suffixes: file extensions.
    reader: module with `documents(reading)`.
    library: package that the reader needs.
    is_divisible: parts of a file can be read alone; otherwise a file is one task.
    is_encoded: the format has internal compression, so the file size does not predict the amount of text.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str
    library: str | None = None
    is_divisible: bool = True
    is_encoded: bool = False


STANDARD_INPUT = "-"  # among the inputs
_READERS = "tokenmill.inputs.read_"
_LINES = (".jsonl", ".ndjson", ".jsonlines")
FORMATS = {
    "text": Format("text", (), f"{_READERS}text"),
    # A .json file holds JSON Lines or one array (json_array.py).
    "jsonl": Format("JSON Lines", (*_LINES, ".json"), f"{_READERS}jsonl"),
    "parquet": Format("Parquet", (".parquet", ".pq"), f"{_READERS}arrow", "pyarrow", is_encoded=True),
    "arrow": Format("Arrow", (".arrow", ".feather", ".ipc"), f"{_READERS}arrow", "pyarrow", is_encoded=True),
    "csv": Format("CSV", (".csv",), f"{_READERS}csv", is_divisible=False),
    "tsv": Format("TSV", (".tsv", ".tab"), f"{_READERS}csv", is_divisible=False),
    "tar": Format("tar", (".tar",), f"{_READERS}tar", is_divisible=False),
}
INPUT_FORMATS = ("auto", *FORMATS)
MAGIC_NUMBERS = {"gz": b"\x1f\x8b", "zst": b"\x28\xb5\x2f\xfd", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00"}
_COMPRESSIONS = {**{f".{name}": name for name in MAGIC_NUMBERS}, ".gzip": "gz", ".zstd": "zst"}
_SHORT = {".tgz": ".tar.gz", ".txz": ".tar.xz"}
_REFUSED = (".zip", ".7z", ".rar", ".lz4", ".br", ".lzma", ".snappy", ".npy")
_MARKED_UP = (".html", ".htm", ".xhtml")
_NOT_TEXT = (
    *(".pdf", ".ps", ".djvu", ".epub", ".mobi", ".doc", ".docx", ".odt", ".ppt", ".pptx", ".xls", ".xlsx"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ico"),
    *(".mp3", ".mp4", ".wav", ".flac", ".ogg", ".avi", ".mov", ".mkv", ".webm"),
    *(".npz", ".pt", ".pth", ".pkl", ".safetensors", ".gguf", ".onnx", ".h5", ".sqlite", ".pyc", ".so"),
)
_ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|citation|changelog|contributing)(\.\w+)?")
_METADATA = re.compile(
    r"dataset_(infos?|dict)\.json|(.*\.)?metadata\.json|croissant\.json|config\.json|generation_config\.json|"
    r"tokenizer(_config)?\.json|special_tokens_map\.json|added_tokens\.json|vocab\.json|package(-lock)?\.json"
)


class Kind(NamedTuple):
    """format: key of FORMATS. compression: key of MAGIC_NUMBERS, or "none"."""

    format: str = "text"
    compression: str = "none"

    @property
    def name(self) -> str:
        """Name in plans and manifests: "jsonl", "text.gz"."""
        return self.format if self.compression == "none" else f"{self.format}.{self.compression}"

    @property
    def is_divisible(self) -> bool:
        """Whether parts of the file can be read alone."""
        return self.compression == "none" and FORMATS[self.format].is_divisible

    @property
    def is_decoded(self) -> bool:
        """Whether a part of the file can hold far more text than its size."""
        return not self.is_divisible or FORMATS[self.format].is_encoded


PLAIN_TEXT = Kind()


class Rank(IntEnum):
    """How likely a file holds data. Only the files with the lowest rank in a folder are read."""

    NAMED = 0  # by an argument or a glob: always read
    RECORDS = 1
    TEXT = 2
    ABOUT = 3  # README, LICENSE: read if the folder has no other text
    NO_DATA = 4  # metadata, HTML, PDF, images, archives: read only if named


def kind_of(path: str, input_format: str = "auto") -> Kind:
    """Return the kind of a file by its name. Raise ValueError for unsupported files.

    "a.jsonl.gz" -> Kind("jsonl", "gz"); "a.txt" -> Kind("text", "none"); "a.log", "jsonl" -> Kind("jsonl", "none").
    """
    return _kind_of_suffixes(_suffixes(path), input_format)


@lru_cache(4096)
def _kind_of_suffixes(suffixes: str, input_format: str) -> Kind:
    name, compression, named = _parsed(suffixes)
    if name.endswith(_REFUSED):
        raise ValueError("unsupported file type. Unpack it to text, JSON Lines or Parquet first.")
    if input_format == "auto" and name.endswith(_NOT_TEXT):
        raise ValueError(
            "not a text file. Extract its text first, or pass --input-format text if it is text."
        )
    kind = Kind(named if input_format == "auto" else input_format, compression)
    form = FORMATS[kind.format]
    if form.is_encoded and compression != "none":
        raise ValueError(f"compressed {form.name} file. Decompress it first.")
    if FORMATS[named].is_encoded and kind.format != named:
        raise ValueError(
            f"{FORMATS[named].name} file cannot be read as {kind.format}. Remove --input-format."
        )
    return kind


def rank_in_folder(name: str, input_format: str, is_top: bool) -> Rank:
    """Return the rank of a file in a folder by its name. is_top: the file is not in a subfolder.

    ("a.jsonl", "auto") -> RECORDS; ("a.txt", "auto") -> TEXT; ("README.md", "auto", True) -> ABOUT.
    """
    rank = _rank_of_suffixes(_suffixes(name), input_format)
    if input_format != "text":
        if rank == Rank.RECORDS and name.endswith(".json") and _METADATA.fullmatch(name):
            return Rank.NO_DATA
        if rank == Rank.TEXT and is_top and _ABOUT.fullmatch(name.lower()):
            return Rank.ABOUT
    return rank


@lru_cache(4096)
def _rank_of_suffixes(suffixes: str, input_format: str) -> Rank:
    name, _, named = _parsed(suffixes)
    if name.endswith(_REFUSED):
        return Rank.NO_DATA
    if input_format == "text":
        return Rank.NO_DATA if FORMATS[named].is_encoded else Rank.TEXT
    if named == "text":
        return Rank.NO_DATA if name.endswith((*_MARKED_UP, *_NOT_TEXT)) else Rank.TEXT
    return Rank.RECORDS if input_format in ("auto", named) else Rank.NO_DATA


def _suffixes(path: str) -> str:
    """ "a/b.jsonl.gz" -> ".jsonl.gz"."""
    name = path[path.rfind("/") + 1 :]
    return name[name.find(".") :] if "." in name else ""


def _parsed(path: str) -> tuple[str, str, str]:
    """Return the lowercase name without the compression suffix, the compression and the format."""
    name = path.lower()
    for short, suffix in _SHORT.items():
        if name.endswith(short):
            name = name.removesuffix(short) + suffix
    suffix = next(filter(name.endswith, _COMPRESSIONS), "")
    name = name.removesuffix(suffix)
    form = next((key for key, value in FORMATS.items() if name.endswith(value.suffixes)), "text")
    return name, _COMPRESSIONS.get(suffix, "none"), form


def compression_of(head: bytes) -> str:
    """Return the compression of a file by its first bytes, or "none"."""
    return next((name for name, magic in MAGIC_NUMBERS.items() if head.startswith(magic)), "none")


def is_named_lines(path: str) -> bool:
    """Whether the file extension means JSON Lines, so the file is not an array."""
    return _parsed(path)[0].endswith(_LINES)


def is_marked_up(path: str) -> bool:
    """Whether the file extension means HTML."""
    return _parsed(path)[0].endswith(_MARKED_UP)


def markup_note(names: Sequence[str]) -> str:
    """Return a warning about HTML pages that arguments name, or "" if there are none."""
    if not names:
        return ""
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return (
        f"{printable(names[0])}{more}: read as plain text, including the markup. Extract the text first, or pass "
        "--input-format text."
    )


def check_libraries(kinds: set[Kind]) -> None:
    """Raise BadArgument if a package that one of the kinds needs is not installed. Nothing is imported."""
    needed = {FORMATS[kind.format].library: FORMATS[kind.format].name for kind in kinds}
    if any(kind.compression == "zst" for kind in kinds):
        needed["zstandard"] = "zstd"
    for module, what in needed.items():
        if module is not None and find_spec(module) is None:
            raise BadArgument(not_installed(f"{what} input", module, "inputs"))
