"""Gather a corpus from files that any machine with Python has, and print its sources.

    python tools/gather_corpus.py OUTPUT [--megabytes 20]

Sources are the standard library and its documentation, then the system's documentation, manual pages and C headers,
then the packages of the environment, until the corpus is large enough. Distributions lack different files. No source
contributes more than three fifths. Each file is a document, and `<|endoftext|>` separates documents. Files that are
empty, not UTF-8, duplicates, or contain the separator are skipped. Files are sorted by path, so the corpus of a machine
is reproducible.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import sysconfig
import zlib
from collections.abc import Iterator
from pathlib import Path

SEPARATOR = "<|endoftext|>"
SHARE = 0.6  # maximum share of one source in the corpus
MAX_DOCUMENT_BYTES = 2_000_000  # excludes generated tables and long change logs

STDLIB = Path(sysconfig.get_path("stdlib"))
PACKAGES = Path(sysconfig.get_path("purelib"))
SOURCES: tuple[tuple[str, Path, tuple[str, ...]], ...] = (
    ("the standard library", STDLIB, ("*.py", "*.txt", "*.rst")),
    ("Python's documentation", Path("/usr/share/doc/python3/html"), ("*.rst.txt", "*.html")),
    (
        "documentation of the system",
        Path("/usr/share/doc"),
        ("*.txt", "*.md", "*.rst", "README*", "copyright", "*.txt.gz"),
    ),
    ("manual pages", Path("/usr/share/man"), ("*.1", "*.3", "*.5", "*.7", "*.8", "*.gz")),
    ("C headers", Path("/usr/include"), ("*.h", "*.hpp")),
    ("packages of this environment", PACKAGES, ("*.py", "*.md", "*.rst", "*.pyi")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--megabytes", type=float, default=20, help="size of the corpus (default: 20)")
    options = parser.parse_args()
    limit_bytes = int(options.megabytes * 1e6)
    seen: set[bytes] = set()
    total_bytes = total_documents = 0
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("w", encoding="utf-8", newline="") as corpus:
        for what, folder, patterns in SOURCES:
            documents = size = 0
            for text in texts(folder, patterns, seen):
                if total_bytes >= limit_bytes or size >= SHARE * limit_bytes:
                    break
                corpus.write((SEPARATOR if total_documents else "") + text)
                text_bytes = len(text.encode())
                documents, size = documents + 1, size + text_bytes
                total_documents, total_bytes = total_documents + 1, total_bytes + text_bytes
            if documents:
                print(f"{size / 1e6:6.1f} MB in {documents:6,} files: {what} ({folder})")
    print(f"{total_bytes / 1e6:6.1f} MB in {total_documents:6,} documents: {options.output}")


def texts(folder: Path, patterns: tuple[str, ...], seen: set[bytes]) -> Iterator[str]:
    """Yield the folder's documents by path. `seen` has the hashes of earlier documents."""
    paths = {path for pattern in patterns for path in folder.rglob(pattern)} if folder.is_dir() else set()
    for path in sorted(paths):
        inner = path.relative_to(folder).parts
        if "site-packages" in inner or "__pycache__" in inner or not path.is_file():
            continue
        text = read(path)
        if not text.strip() or SEPARATOR in text:
            continue
        digest = hashlib.sha256(text.encode()).digest()
        if digest not in seen:
            seen.add(digest)
            yield text


def read(path: Path) -> str:
    """Return the text of a file, or "" if it is unreadable, too large or not UTF-8."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return content.decode() if len(content) <= MAX_DOCUMENT_BYTES else ""
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return ""


if __name__ == "__main__":
    main()
