"""Splits that hold no tokens of their own: parts one after the other, or some sequences of another split.

They are FlatTokensArrays like any other, for readers, loaders and packs; what they show are ranges of stored arrays
(flat_tokens/storage/pieces.py).
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import invalid, split
from flat_tokens.errors import ArgumentError, damaged, printable
from flat_tokens.format import MASK_NAME, STARTS_NAME, TOKENS_NAME, decode_ids, not_rising
from flat_tokens.masks import AllTrained
from flat_tokens.packs.plan import read_starts
from flat_tokens.reader import FlatTokensArray, indices_of
from flat_tokens.sources import JoinedSources, SelectedSources, SequenceSources
from flat_tokens.storage.chunks import Int64
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.pieces import PiecedElements, Pieces
from flat_tokens.storage.places import Place

_STARTS_AT_A_TIME = _TOKENS_AT_A_TIME = 2**20
_PASSED_STARTS = 16  # entries that are read although nobody asks for them, since a range takes longer


def joined(path: Place, name: str, parts: Sequence[FlatTokensArray]) -> FlatTokensArray:
    """The sequences of all parts, in order, as one split."""
    tokens = np.array([part.token_count for part in parts], dtype=np.int64)
    sequences = np.array([part.seq_count for part in parts], dtype=np.int64)
    numbers, zeros = np.arange(len(parts)), np.zeros(len(parts), dtype=np.int64)
    sequences[-1] += 1  # and the token count, which ends the last part
    return _view(
        path,
        name,
        [part.encoded_tokens for part in parts],
        [part.seq_starts for part in parts],
        Pieces(numbers, zeros, tokens, zeros),
        Pieces(numbers, zeros, sequences, np.cumsum(tokens) - tokens),
        max(part.max_token_id for part in parts),
        JoinedSources([part.sequence_sources for part in parts], [part.seq_count for part in parts]),
        [part.loss_mask for part in parts],
    )


def _check_split(array: FlatTokensArray) -> None:
    split("array", array, "seq_count", "seq_starts", "encoded_tokens")


def selected(array: FlatTokensArray, sequences: npt.ArrayLike) -> FlatTokensArray:
    """Some sequences of a split as a split, without a copy.

    sequences: integer[n], rising, each in [0, array.seq_count). Cost: one read of seq_starts where they lie near each
    other, and 60 bytes of memory for each run of neighbours. ArgumentError where they do not rise or are outside.
    max_token_id is that of the whole split, of which the sequences may have less."""
    _check_split(array)
    chosen = indices_of(sequences)
    falls = np.flatnonzero(np.diff(chosen) <= 0)
    if len(falls):
        at = int(falls[0]) + 1
        raise ArgumentError(not_rising("sequences", at, chosen[at], chosen[at - 1]))
    if len(chosen) and not 0 <= int(chosen[0]) <= int(chosen[-1]) < array.seq_count:
        wrong = int(chosen[0]) if int(chosen[0]) < 0 else int(chosen[-1])
        raise ArgumentError(f"{array.name}: sequences must be in [0, {array.seq_count}) (got {wrong})")
    borders = np.flatnonzero(np.diff(chosen, prepend=-2) != 1)
    return _of_runs(array, chosen[borders], np.diff(np.append(borders, len(chosen))))


def of_sources(array: FlatTokensArray, *patterns: str) -> FlatTokensArray:
    """The sequences of some sources as a split, without a copy, in their order.

    patterns: paths of sources as the manifest has them and `info` shows them, or globs in which * stands for any
    characters, / too. Cost: the manifest with all its sources, once. ArgumentError where a pattern is no source's,
    DatasetError where it is not recorded how many sequences each has."""
    _check_split(array)
    for pattern in patterns:
        if not isinstance(pattern, str) or not pattern:
            raise invalid("source", "must be the path of a source or a glob", pattern)
    paths, counts = array.sequence_sources.counts()
    is_chosen = np.zeros(len(paths), dtype=np.bool_)
    for pattern in patterns:
        of_pattern = np.array([is_source(path, pattern) for path in paths], dtype=np.bool_)
        if not of_pattern.any():
            known = ", ".join(printable(path, 60) for path in dict.fromkeys(paths[:3]))
            more = ", ..." if len(paths) > 3 else ""
            raise invalid("source", f"must match one of {known or 'no sources'}{more}", pattern)
        is_chosen |= of_pattern
    stops = np.cumsum(counts)
    has_any = is_chosen & (counts > 0)
    firsts, ends = (stops - counts)[has_any], stops[has_any]
    is_new = np.append(True, firsts[1:] != ends[:-1])[: len(firsts)]  # neighbours are one run
    is_last = np.append(is_new[1:], True)[: len(firsts)]
    return _of_runs(array, firsts[is_new], ends[is_last] - firsts[is_new])


def is_source(path: str, pattern: str) -> bool:
    """Whether the path of a source is the pattern, or what it stands for."""
    return path == pattern or fnmatchcase(path, pattern)


def _of_runs(array: FlatTokensArray, firsts: Int64, counts: Int64) -> FlatTokensArray:
    """The sequences [firsts[i], firsts[i] + counts[i]) of a split, which rise."""
    begins, ends = _starts_at(array.seq_starts, firsts), _starts_at(array.seq_starts, firsts + counts)
    if not bool(np.all(begins < ends)) or (len(ends) and int(ends.max()) > array.token_count):
        raise damaged(array.seq_starts.name, "must rise to the token count", "Verify the dataset.")
    lengths = ends - begins
    zeros = np.zeros(len(firsts), dtype=np.int64)
    added = np.cumsum(lengths) - lengths - begins
    # Behind the last run, the entry that is its end: the token count of the view. Without any, the 0 of the split.
    last = int(firsts[-1] + counts[-1]) if len(firsts) else 0
    last_added = int(lengths.sum()) - int(ends[-1]) if len(firsts) else 0
    return _view(
        array.path,
        array.name,
        [array.encoded_tokens],
        [array.seq_starts],
        Pieces(zeros, begins, lengths, zeros),
        Pieces(
            np.append(zeros, 0),
            np.append(firsts, last),
            np.append(counts, 1),
            np.append(added, last_added),
        ),
        array.max_token_id,
        SelectedSources(array.sequence_sources, firsts, counts),
        [array.loss_mask],
    )


def all_trained(array: FlatTokensArray) -> FlatTokensArray:
    """A split without its loss_mask: every token is to be learned."""
    _check_split(array)
    view = copy.copy(array)
    view.loss_mask = None
    return view


def first_of_equals(array: FlatTokensArray) -> Int64:
    """The sequences that equal none before them, int64[n], rising: `selected(array, first_of_equals(array))` is the
    split without exact duplicates. Cost: one pass over all tokens, and 50 bytes a sequence; equal is what BLAKE2b of
    128 bits says."""
    _check_split(array)
    digests = np.frombuffer(b"".join(_digests(array)), dtype=np.uint64).reshape(-1, 2)
    order = np.lexsort((digests[:, 1], digests[:, 0]))  # stable, so that of equals the first comes first
    digests = digests[order]
    is_other = np.append(True, (digests[1:] != digests[:-1]).any(axis=1))[: len(order)]
    return np.sort(order[is_other])


def _digests(array: FlatTokensArray) -> Iterator[bytes]:
    """Those of some sequences after the other, 16 bytes each."""
    for first in range(0, array.seq_count, _STARTS_AT_A_TIME):
        starts = read_starts(array.seq_starts, first, min(first + _STARTS_AT_A_TIME, array.seq_count))
        begin = 0
        while begin < len(starts) - 1:
            end = int(np.searchsorted(starts, starts[begin] + _TOKENS_AT_A_TIME, side="right")) - 1
            end = max(end, begin + 1)
            ids = decode_ids(array.encoded_tokens.read(int(starts[begin]), int(starts[end])))
            data, borders = ids.view(np.uint8).data, (starts[begin : end + 1] - starts[begin]) * ids.itemsize
            yield b"".join(
                hashlib.blake2b(data[start:stop], digest_size=16).digest()
                for start, stop in pairwise(borders.tolist())
            )
            begin = end


def _starts_at(seq_starts: Elements, indices: Int64) -> Int64:
    """Some entries, by rising index. Those near each other are read as one range."""
    is_first = np.diff(indices, prepend=-_PASSED_STARTS - 1) > _PASSED_STARTS
    firsts = indices[is_first]
    stops = indices[np.append(is_first[1:], True)[: len(indices)]] + 1
    found = seq_starts.read_ranges(list(zip(firsts.tolist(), stops.tolist(), strict=True)))
    read: Int64 = np.concatenate([np.empty(0, dtype=np.uint64), *found]).astype(np.int64)
    passed = firsts - (
        np.cumsum(stops - firsts) - (stops - firsts)
    )  # entries before each range that are not read
    places: Int64 = indices - passed[np.cumsum(is_first) - 1]
    return read[places]


def _view(
    path: Place,
    name: str,
    tokens: Sequence[Elements],
    starts: Sequence[Elements],
    token_pieces: Pieces,
    start_pieces: Pieces,
    max_token_id: int,
    sources: SequenceSources,
    masks: Sequence[Elements | None],
) -> FlatTokensArray:
    mask = None
    if any(part is not None for part in masks):  # the tokens of parts without one are all to be learned
        own = [
            AllTrained(whole.name, len(whole)) if part is None else part
            for part, whole in zip(masks, tokens, strict=True)
        ]
        mask = PiecedElements(f"{name}/{MASK_NAME}", own, token_pieces, None)
    return FlatTokensArray(
        path,
        name,
        PiecedElements(f"{name}/{TOKENS_NAME}", tokens, token_pieces, 2 * max_token_id + 1),
        PiecedElements(f"{name}/{STARTS_NAME}", starts, start_pieces, None),
        max_token_id,
        sources,
        mask,
    )
