"""Inputs that have the same content under different names, found by their sizes and digests; no file is read for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from convert.errors import printable
from tokenmill.inputs._core import xxh64
from tokenmill.inputs.digest import BLOCK_BYTES, DIGEST_BYTES
from tokenmill.inputs.source_list import SourceList

SHOWN_COPIES = 5
_CONTENT_HASH = re.compile(r'"[0-9a-f]{32}(-\d+)?"')  # entity tag of S3; other stores count writes


def copies(sources: SourceList, block_digests: bytes, has_documents: NDArray[np.bool_]) -> Iterator[str]:
    """Lines about inputs that are copies of earlier ones, and about those that could not be compared.

    block_digests: digests of the blocks of all local sources, end to end. has_documents: whether the dataset has
    documents of a source; others, such as unreadable files, are not compared.
    """
    sizes = np.diff(np.frombuffer(sources.starts(), np.int64))
    _, size_numbers, size_counts = np.unique(sizes, return_inverse=True, return_counts=True)
    suspects = np.flatnonzero((size_counts[size_numbers] > 1) & has_documents)
    if not len(suspects):
        return
    are_objects = np.array([bool(source.version) for source in sources], np.bool_)
    block_counts = np.where(are_objects, 0, -(-sizes // BLOCK_BYTES))
    stops = np.cumsum(block_counts) * DIGEST_BYTES
    digests = np.zeros(len(suspects), np.uint64)
    is_known = np.ones(len(suspects), np.bool_)
    for place, number in enumerate(suspects.tolist()):
        if are_objects[number]:
            version = sources[number].version
            is_known[place] = _CONTENT_HASH.fullmatch(version) is not None
            digests[place] = xxh64(version.encode())
        else:
            start = stops[number] - block_counts[number] * DIGEST_BYTES
            digests[place] = xxh64(block_digests[start : stops[number]])
    unknown = suspects[~is_known]
    suspects, digests = suspects[is_known], digests[is_known]
    # Objects and local files have digests of different kinds, so they are not compared with each other.
    order = np.lexsort((suspects, digests, are_objects[suspects], sizes[suspects]))
    suspects, digests = suspects[order], digests[order]
    is_copy = np.zeros(len(suspects), np.bool_)
    is_copy[1:] = (
        (np.diff(digests) == 0) & (np.diff(sizes[suspects]) == 0) & (np.diff(are_objects[suspects]) == 0)
    )
    firsts = np.maximum.accumulate(np.where(is_copy, 0, np.arange(len(suspects))))
    pairs = sorted(zip(suspects[is_copy].tolist(), suspects[firsts[is_copy]].tolist(), strict=True))
    if pairs:
        shown = ", ".join(_shown(sources, *pair) for pair in pairs[:SHOWN_COPIES])
        more = f" and {len(pairs) - SHOWN_COPIES:,} more" if len(pairs) > SHOWN_COPIES else ""
        yield (
            f"warning: duplicate inputs: {shown}{more}. Their documents are in the dataset more than once; remove "
            "the copies."
        )
    _, unknown_counts = np.unique(sizes[unknown], return_counts=True)
    if same := int(unknown_counts[unknown_counts > 1].sum()):
        first = printable(sources[int(unknown[0])].shown)
        yield (
            f"{first}: one of {same:,} inputs with the same size as another, which may be copies. Their store has no "
            "content hashes to compare."
        )


def _shown(sources: SourceList, copy: int, original: int) -> str:
    later, earlier = sources[copy], sources[original]
    mixed = "" if later.split == earlier.split else "; one of them is in validation"
    return f"{printable(later.name)} (copy of {printable(earlier.name)}{mixed})"
