"""Views: splits without stored tokens, which show several splits as one, or some sequences of a split.

Views are FlatTokensArrays, so readers, loaders and packs accept them. They consist of ranges of stored arrays
(flat_tokens/storage/pieces.py), and nothing is copied.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import count_of, invalid, split
from flat_tokens.errors import ArgumentError, damaged, printable
from flat_tokens.format import MASK_NAME, STARTS_NAME, TOKENS_NAME, Int64, not_rising
from flat_tokens.masks import AllTrained
from flat_tokens.reader import FlatTokensArray, indices_of
from flat_tokens.sources import PiecedSources
from flat_tokens.storage.pieces import PiecedElements, Pieces

_SEQUENCES_AT_ONCE = 2**12


def concat(arrays: Sequence[FlatTokensArray]) -> FlatTokensArray:
    """Some splits as one, in order, without a copy. Its max_token_id is the greatest of theirs.

    arrays: at least one split, such as [a.train, b.train]. Use datasets of the same tokenizer; `flat_tokens.open` with
    several paths compares them. Raise ArgumentError if there is none."""
    if not count_of("arrays", arrays):
        raise invalid("arrays", "must have at least one split", arrays)
    for array in arrays:
        _check_split(array)
    if len(arrays) == 1:
        return arrays[0]
    tokens = np.array([array.token_count for array in arrays], dtype=np.int64)
    sequences = np.array([array.seq_count for array in arrays], dtype=np.int64)
    zeros = np.zeros_like(tokens)
    return _view(arrays, np.arange(len(arrays)), zeros, sequences, zeros, tokens)


def selected(array: FlatTokensArray, sequences: npt.ArrayLike) -> FlatTokensArray:
    """Some sequences of a split as a split, without a copy. Its max_token_id is the one of the whole split.

    sequences: integer[n], increasing, each in [0, array.seq_count).

    Cost: 60 bytes of memory for each range of consecutive sequences, and one read of seq_starts for ranges that are
    close together. Raise ArgumentError for sequences that do not increase or are outside the split."""
    _check_split(array)
    chosen = indices_of(sequences)
    falls = np.flatnonzero(np.diff(chosen) <= 0)
    if len(falls):
        at = int(falls[0]) + 1
        raise ArgumentError(not_rising("sequences", at, chosen[at], chosen[at - 1]))
    if len(chosen) and not 0 <= int(chosen[0]) <= int(chosen[-1]) < array.seq_count:
        wrong = int(chosen[0]) if int(chosen[0]) < 0 else int(chosen[-1])
        raise ArgumentError(f"{array.name}: sequences must be in [0, {array.seq_count}) (got {wrong})")
    begins = np.flatnonzero(np.diff(chosen, prepend=-2) != 1)
    return _of_ranges(array, chosen[begins], np.diff(np.append(begins, len(chosen))))


def of_sources(array: FlatTokensArray, *patterns: str) -> FlatTokensArray:
    """The sequences of some sources as a split, without a copy, in their order.

    patterns: paths of sources as `info` shows them, or globs, in which * also matches /.

    Cost: reads the list of sources once. Raise ArgumentError for a pattern that matches no source, and DatasetError if
    the dataset does not record its sources."""
    _check_split(array)
    for pattern in patterns:
        if not isinstance(pattern, str) or not pattern:
            raise invalid("source", "must be the path of a source or a glob", pattern)
    paths, counts = array.sequence_sources.counts()
    is_chosen = np.zeros(len(paths), dtype=np.bool_)
    for pattern in patterns:
        matches = np.array([is_source(path, pattern) for path in paths], dtype=np.bool_)
        if not matches.any():
            known = ", ".join(printable(path, 60) for path in dict.fromkeys(paths[:3]))
            more = ", ..." if len(paths) > 3 else ""
            raise invalid("source", f"must match one of {known or 'no sources'}{more}", pattern)
        is_chosen |= matches
    edges = np.diff(is_chosen[counts > 0], prepend=False, append=False)
    borders = np.append(0, np.cumsum(counts[counts > 0]))[edges]  # of runs of chosen sources
    return _of_ranges(array, borders[::2], borders[1::2] - borders[::2])


def is_source(path: str, pattern: str) -> bool:
    """Whether a pattern is the path of a source or a glob that matches it."""
    return path == pattern or fnmatchcase(path, pattern)


def all_trained(array: FlatTokensArray) -> FlatTokensArray:
    """A split without its loss mask: every token contributes to the loss."""
    _check_split(array)
    view = copy.copy(array)
    view.loss_mask = None
    return view


def first_of_equals(array: FlatTokensArray) -> Int64:
    """The sequences that equal no earlier one, int64[n], increasing. `selected(array, first_of_equals(array))` is the
    split without exact duplicates. Cost: one pass over all tokens, and 100 bytes per sequence. BLAKE2b with 128 bits
    decides."""
    _check_split(array)
    known: set[bytes] = set()
    firsts = []
    for first in range(0, array.seq_count, _SEQUENCES_AT_ONCE):
        numbers = range(first, min(first + _SEQUENCES_AT_ONCE, array.seq_count))
        for number, ids in zip(numbers, array.sequences(numbers), strict=True):
            digest = hashlib.blake2b(ids.data, digest_size=16).digest()
            if digest not in known:
                known.add(digest)
                firsts.append(number)
    return np.array(firsts, dtype=np.int64)


def _check_split(array: FlatTokensArray) -> None:
    split("array", array, "seq_count", "seq_starts", "encoded_tokens")


def _of_ranges(array: FlatTokensArray, firsts: Int64, counts: Int64) -> FlatTokensArray:
    """The sequences [firsts[i], firsts[i] + counts[i]) of a split, in increasing ranges."""
    edges = np.stack([firsts, firsts + counts], axis=1).reshape(-1)
    is_new = np.append(True, edges[1:] != edges[:-1])[: len(edges)]
    starts = _checked_starts(array, edges[is_new])[np.cumsum(is_new) - 1]
    return _view([array], np.zeros_like(firsts), firsts, counts, starts[::2], starts[1::2] - starts[::2])


def _checked_starts(array: FlatTokensArray, indices: Int64) -> Int64:
    """Some entries of seq_starts, by increasing index. Raise DatasetError unless they rise up to the token count."""
    starts: Int64 = array.seq_starts.gather(indices).astype(np.int64)
    if (np.diff(starts) <= 0).any() or (
        len(starts) and not 0 <= starts[0] <= starts[-1] <= array.token_count
    ):
        raise damaged(array.seq_starts.name, "must rise to the token count", "Verify the dataset.")
    return starts


def _view(
    arrays: Sequence[FlatTokensArray], of: Int64, firsts: Int64, counts: Int64, begins: Int64, lengths: Int64
) -> FlatTokensArray:
    """The sequences [firsts[i], firsts[i] + counts[i]) of arrays[of[i]], whose tokens are [begins[i], begins[i] +
    lengths[i]), as a split with the name of the first array."""
    named, name, max_token_id = arrays[0], arrays[0].name, max(array.max_token_id for array in arrays)
    added = np.cumsum(lengths) - lengths - begins
    # One more piece is the final entry: the token count of the view, or the 0 of the split for an empty view.
    last = (of[-1], firsts[-1] + counts[-1], added[-1]) if len(of) else (0, 0, 0)
    start_pieces = Pieces(*map(np.append, (of, firsts, counts, added), (*last[:2], 1, last[2])))
    token_pieces = Pieces(of, begins, lengths, np.zeros_like(begins))
    tokens, starts = [array.encoded_tokens for array in arrays], [array.seq_starts for array in arrays]
    mask = None
    if any(array.loss_mask is not None for array in arrays):
        masks = [
            AllTrained(array.name, array.token_count) if array.loss_mask is None else array.loss_mask
            for array in arrays
        ]
        mask = PiecedElements(f"{MASK_NAME}/{name}", masks, token_pieces)
    return FlatTokensArray(
        named.path,
        name,
        PiecedElements(f"{name}/{TOKENS_NAME}", tokens, token_pieces, 2 * max_token_id + 1),
        PiecedElements(f"{name}/{STARTS_NAME}", starts, start_pieces),
        max_token_id,
        PiecedSources([array.sequence_sources for array in arrays], of, firsts, counts),
        mask,
    )
