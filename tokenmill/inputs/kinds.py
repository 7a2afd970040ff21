"""What kind of input a file is: its record format and how it is compressed, both told by its name.

`FORMATS` is the one table of formats. A new format is a line there and a reader (docs/development/extending.md).
The format may be forced with --input-format; the compression is always that of the name, or, for standard input, of
the first bytes. Kinds nobody can read are refused before the work starts: read as plain text they would give a
dataset of rubbish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import NamedTuple

from tokenmill.errors import BadArgument, not_installed, printable


class Format(NamedTuple):
    """name: of people and errors. suffixes: of files. reader: the module whose `documents(reading)` reads a piece.

    library: what has to be installed. is_divisible: whether the parts of a file can be read alone, by their bytes; else
    it is read from its beginning. is_encoded: whether the file's size says little of how much text is in it, as it is
    compressed inside; such a file cannot be compressed once more. has_rows: whether the place of a document is the
    number of its row; else a byte.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str
    library: str | None = None
    is_divisible: bool = True
    is_encoded: bool = False
    has_rows: bool = False


_LINES = (".jsonl", ".ndjson", ".jsonlines")
# Large corpora name their JSON Lines .json, too. A file with that name may also be an array (json_array.py).
FORMATS = {
    "text": Format("text", (), "tokenmill.inputs.read_text"),
    "jsonl": Format("JSON Lines", (*_LINES, ".json"), "tokenmill.inputs.read_jsonl"),
    "parquet": Format(
        "Parquet",
        (".parquet", ".pq"),
        "tokenmill.inputs.read_parquet",
        "pyarrow",
        is_encoded=True,
        has_rows=True,
    ),
    "arrow": Format(
        "Arrow",
        (".arrow", ".feather", ".ipc"),
        "tokenmill.inputs.read_arrow",
        "pyarrow",
        is_encoded=True,
        has_rows=True,
    ),
    "csv": Format("CSV", (".csv",), "tokenmill.inputs.read_csv", is_divisible=False, has_rows=True),
    "tsv": Format("TSV", (".tsv", ".tab"), "tokenmill.inputs.read_csv", is_divisible=False, has_rows=True),
    "tar": Format("tar", (".tar",), "tokenmill.inputs.read_tar", is_divisible=False, has_rows=True),
}
INPUT_FORMATS = ("auto", *FORMATS)
_COMPRESSIONS = {
    ".gz": "gz",
    ".gzip": "gz",
    ".zst": "zst",
    ".zstd": "zst",
    ".bz2": "bz2",
    ".xz": "xz",
}
_SHORT = {".tgz": ".tar.gz", ".txz": ".tar.xz"}
_REFUSED = (".zip", ".7z", ".rar", ".lz4", ".br", ".lzma", ".snappy", ".npy")
_MARKED_UP = (".html", ".htm", ".xhtml")
_NOT_TEXT = (
    *(".pdf", ".ps", ".djvu", ".epub", ".mobi", ".doc", ".docx", ".odt", ".ppt", ".pptx", ".xls", ".xlsx"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ico"),
    *(".mp3", ".mp4", ".wav", ".flac", ".ogg", ".avi", ".mov", ".mkv", ".webm"),
    *(".npz", ".pt", ".pth", ".pkl", ".safetensors", ".gguf", ".onnx", ".h5", ".sqlite", ".pyc", ".so"),
)
# Files of a repository that describe the data next to them.
_ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|citation|changelog|contributing)(\.\w+)?")
_METADATA = re.compile(
    r"dataset_(infos?|dict)\.json|(.*\.)?metadata\.json|croissant\.json|config\.json|generation_config\.json|"
    r"tokenizer(_config)?\.json|special_tokens_map\.json|added_tokens\.json|vocab\.json|package(-lock)?\.json"
)
_MAGIC = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}


class Kind(NamedTuple):
    """format: one of FORMATS; compression: none, gz, zst, bz2 or xz."""

    format: str = "text"
    compression: str = "none"

    @property
    def name(self) -> str:
        """As plans and manifests keep it: "jsonl", "text.gz"."""
        return self.format if self.compression == "none" else f"{self.format}.{self.compression}"

    @property
    def is_divisible(self) -> bool:
        """Whether parts of the file can be read alone."""
        return self.compression == "none" and FORMATS[self.format].is_divisible

    @property
    def is_decoded(self) -> bool:
        """Whether a part of the file may give many times its size of text: some of it, or all where it begins."""
        return not self.is_divisible or FORMATS[self.format].is_encoded


PLAIN_TEXT = Kind()
_shared_kind = cache(Kind)  # one for all files of a kind


def kind_of(path: str, input_format: str = "auto") -> Kind:
    """The kind of a file by its name; ValueError says which kind cannot be read and what to do.

    "a.jsonl.gz" -> Kind("jsonl", "gz"); "a.txt", "auto" -> Kind("text", "none"); "a.log", "jsonl" -> Kind("jsonl").
    """
    return _kind_of_suffixes(_suffixes(path), input_format)


@lru_cache(4096)
def _kind_of_suffixes(suffixes: str, input_format: str) -> Kind:
    name, compression = _uncompressed(suffixes)
    if name.endswith(_REFUSED):
        raise ValueError("unsupported file type. Unpack it to text, JSON Lines or Parquet first.")
    if input_format == "auto" and name.endswith(_NOT_TEXT):
        raise ValueError(
            "not a text file. Extract its text first, or pass --input-format text if it is text."
        )
    named = _format_of(name)
    kind = _shared_kind(named if input_format == "auto" else input_format, compression)
    form = FORMATS[kind.format]
    if form.is_encoded and compression != "none":
        raise ValueError(f"compressed {form.name} file. Decompress it first.")
    if FORMATS[named].is_encoded and kind.format != named:
        raise ValueError(
            f"{FORMATS[named].name} file cannot be read as {kind.format}. Remove --input-format."
        )
    return kind


class Rank(IntEnum):
    """How likely a file holds data. A folder is read by its files of the lowest rank, and the others are left out."""

    NAMED = 0  # by an argument or a glob, so it is read in any case
    RECORDS = 1
    TEXT = 2
    ABOUT = 3  # README, LICENSE: text if there is nothing else
    NO_DATA = 4  # never read unless named: metadata, HTML, PDF, images, archives


def rank_in_folder(name: str, input_format: str, is_top: bool) -> Rank:
    """The rank of a file in a folder by its name. is_top: the file is not in a folder within that folder.

    ("a.jsonl", "auto") -> RECORDS; ("a.txt", "auto") -> TEXT; ("README.md", "auto", True) -> ABOUT.
    """
    rank = _rank_of_suffixes(_suffixes(name), input_format)
    if input_format == "text":
        return rank
    if rank == Rank.RECORDS and name.endswith(".json") and _METADATA.fullmatch(name):
        return Rank.NO_DATA
    if rank == Rank.TEXT and is_top and _ABOUT.fullmatch(name.lower()):
        return Rank.ABOUT
    return rank


@lru_cache(4096)
def _rank_of_suffixes(suffixes: str, input_format: str) -> Rank:
    name = _uncompressed(suffixes)[0]
    named = _format_of(name)
    if name.endswith(_REFUSED) or (input_format == "text" and FORMATS[named].is_encoded):
        return Rank.NO_DATA
    if input_format == "text":
        return Rank.TEXT
    if name.endswith((*_MARKED_UP, *_NOT_TEXT)):
        return Rank.NO_DATA
    if named == "text":
        return Rank.TEXT
    return Rank.RECORDS if input_format in ("auto", named) else Rank.NO_DATA


def _suffixes(path: str) -> str:
    """ "a/b.jsonl.gz" -> ".jsonl.gz"."""
    name = path[path.rfind("/") + 1 :]
    return name[name.find(".") :] if "." in name else ""


def _format_of(name: str) -> str:
    return next((key for key, value in FORMATS.items() if name.endswith(value.suffixes)), "text")


def is_named_lines(path: str) -> bool:
    """Whether the name says JSON Lines, so that the file is no array."""
    return _uncompressed(path)[0].endswith(_LINES)


def is_marked_up(path: str) -> bool:
    """Whether the file is an HTML page by its name."""
    return _uncompressed(path)[0].endswith(_MARKED_UP)


def empty_table(path: str, kind: Kind) -> str:
    """Return the fault of an empty file of a format that has no empty files."""
    return printable(f"{path}: not a {FORMATS[kind.format].name} file (got 0 bytes)")


def markup_note(names: Sequence[str]) -> str:
    """A line about named files that are HTML pages; "" if there are none."""
    if not names:
        return ""
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return (
        f"{printable(names[0])}{more}: read as plain text, including the markup. Extract the text first, or pass "
        "--input-format text."
    )


def _uncompressed(path: str) -> tuple[str, str]:
    """The name in small letters without the suffix of a compression, and the compression."""
    name = path.lower()
    for short, suffix in _SHORT.items():
        if name.endswith(short):
            name = name.removesuffix(short) + suffix
    suffix = next(filter(name.endswith, _COMPRESSIONS), "")
    return name.removesuffix(suffix), _COMPRESSIONS.get(suffix, "none")


def compression_of(head: bytes) -> str:
    """The compression whose mark a file begins with, "none" if it is no known one."""
    return next((name for mark, name in _MAGIC.items() if head.startswith(mark)), "none")


def check_libraries(kinds: set[Kind]) -> None:
    """Raise BadArgument (exit 2) naming the extra if a library that one of the kinds needs is not installed.

    Only looks for it: what it costs to import it is for the workers, while they have nothing else to wait for.
    """
    needed = {FORMATS[kind.format].library: FORMATS[kind.format].name for kind in kinds}
    if any(kind.compression == "zst" for kind in kinds):
        needed["zstandard"] = "zstd"
    for module, what in needed.items():
        if module is not None and find_spec(module) is None:
            raise BadArgument(not_installed(f"{what} input", module, "inputs"))
