"""Reads rank files from tiktoken's cache folder, without downloads.

The folder is TIKTOKEN_CACHE_DIR, else DATA_GYM_CACHE_DIR, else data-gym-cache in the folder for temporary files. The
file is named after the SHA-1 of its URL, as tiktoken does it, or after the end of the URL, as in
`cl100k_base.tiktoken`. expected_hash: its SHA-256.
"""

from __future__ import annotations

import binascii
import hashlib
import os
import tempfile
from pathlib import Path

from bpe.errors import MissingInput, shown
from bpe.formats.by_path import read_file as read_path
from bpe.formats.tiktoken import rank_file
from bpe.output_file import write_file


def check_hash(data: bytes, expected_hash: str) -> bool:
    """Return whether the data has this SHA-256."""
    return hashlib.sha256(data).hexdigest() == expected_hash


def cached_file(blobpath: str, expected_hash: str | None = None) -> Path:
    """Return the path of the file with this URL. Raise MissingInput if there is none, or none with this hash."""
    folder = Path(
        os.environ.get("TIKTOKEN_CACHE_DIR")
        or os.environ.get("DATA_GYM_CACHE_DIR")
        or Path(tempfile.gettempdir(), "data-gym-cache")
    )
    name = blobpath.rpartition("/")[2]
    key = hashlib.sha1(blobpath.encode(), usedforsecurity=False).hexdigest()
    for path in (folder / key, folder / name):
        if path.is_file() and (expected_hash is None or check_hash(read_path(path), expected_hash)):
            return path
    hashed = "" if expected_hash is None else f", with SHA-256 {expected_hash[:12]}…"
    raise MissingInput(
        f"{folder / key}: not found, and neither is {name} next to it{hashed}. Put {blobpath} "
        "there, or set TIKTOKEN_CACHE_DIR to its folder."
    )


def read_file(blobpath: str) -> bytes:
    """Return the bytes of the file with this path or URL."""
    return read_path(cached_file(blobpath) if "://" in blobpath else Path(blobpath))


def read_file_cached(blobpath: str, expected_hash: str | None = None) -> bytes:
    """Return the bytes of the file. Raise ValueError if its hash differs."""
    if "://" in blobpath:
        return read_path(cached_file(blobpath, expected_hash))
    data = read_file(blobpath)
    if expected_hash is not None and not check_hash(data, expected_hash):
        raise ValueError(f"{blobpath}: SHA-256 must be {expected_hash}")
    return data


def load_tiktoken_bpe(tiktoken_bpe_file: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Return entry -> rank of a rank file. Raise ValueError for a line other than `base64 rank`."""
    ranks = {}
    for line in read_file_cached(tiktoken_bpe_file, expected_hash).splitlines():
        if line:
            try:
                entry, rank = line.split()
                ranks[binascii.a2b_base64(entry)] = int(rank)
            except ValueError:
                raise ValueError(f"{tiktoken_bpe_file}: line {shown(line)}: must be `base64 rank`") from None
    return ranks


def dump_tiktoken_bpe(bpe_ranks: dict[bytes, int], tiktoken_bpe_file: str) -> None:
    """Write a rank file by ascending rank, atomically."""
    write_file(tiktoken_bpe_file, rank_file(sorted(bpe_ranks.items(), key=lambda item: item[1])))


def data_gym_to_mergeable_bpe_ranks(
    vocab_bpe_file: str, encoder_json_file: str, **_: object
) -> dict[bytes, int]:
    """Raise NotImplementedError: data-gym files are not supported."""
    raise NotImplementedError(
        "data-gym files: not supported. Load GPT-2's vocab.json and merges.txt with bpe.Tokenizer.load."
    )
