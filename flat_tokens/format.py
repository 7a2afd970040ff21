"""The flat-tokens format in memory: from sequences to two flat arrays and back (docs/reference/dataset-format.md).

Invariant: encoded_tokens[i] is odd if and only if i is in seq_starts[:-1]. seq_starts increases strictly from 0 to
token_count, because every sequence has at least one token. The example of the page: [[1, 2], [3, 4, 5], [6, 7, 8]] is
encoded_tokens [3, 4, 7, 8, 10, 13, 14, 16], seq_starts [0, 2, 5, 8], max_token_id 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import invalid
from flat_tokens.errors import ArgumentError

FORMAT_NAME = "flat-tokens"
FORMAT_VERSION = 3
SPLITS = ("train", "validation")
TOKENS_NAME = "encoded_tokens"
STARTS_NAME = "seq_starts"
MASK_NAME = "loss_mask"  # a group at the root, optional
MAX_TOKEN_ID_NAME = "max_token_id"
TOKENS_DTYPE = np.dtype("<u4")
STARTS_DTYPE = np.dtype("<u8")
MASK_DTYPE = np.dtype("u1")
MASK_BITS = 8  # tokens per byte of a loss mask
LARGEST_TOKEN_ID = 2**31 - 1  # the low bit of uint32 is the start flag

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Uint32 = npt.NDArray[np.uint32]
Uint64 = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


def encode_tokens(ids: npt.NDArray[Any], seq_starts: npt.NDArray[Any]) -> Uint32:
    """The encoded tokens of concatenated sequences: [1, 2, 3], [0, 2, 3] -> [3, 4, 7].

    ids: integer[tokens], in [0, 2^31).
    seq_starts: integer[sequences + 1], increasing from 0 to tokens.

    Raise ArgumentError for an ID outside the range, or starts that do not increase."""
    starts = check_starts(seq_starts, len(ids))
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) <= LARGEST_TOKEN_ID:
        wrong = int(ids.min()) if int(ids.min()) < 0 else int(ids.max())
        raise invalid("ids", f"must be in [0, {LARGEST_TOKEN_ID}]", wrong)
    encoded = ids.astype(TOKENS_DTYPE)
    encoded <<= 1
    encoded[starts[:-1]] |= 1
    return encoded


def check_starts(seq_starts: npt.NDArray[Any], token_count: int) -> Uint64:
    """seq_starts as uint64. Raise ArgumentError unless it increases strictly from 0 to token_count."""
    if len(seq_starts) == 0 or int(seq_starts[0]) != 0 or int(seq_starts[-1]) != token_count:
        ends = (int(seq_starts[0]), int(seq_starts[-1])) if len(seq_starts) else ()
        raise invalid("seq_starts", f"first and last must be 0 and the token count {token_count}", ends)
    falls = np.flatnonzero(seq_starts[1:] <= seq_starts[:-1])
    if len(falls):
        at = int(falls[0]) + 1
        what = not_rising("seq_starts", at, seq_starts[at], seq_starts[at - 1])
        raise ArgumentError(f"{what}. Remove empty sequences.")
    return seq_starts.astype(STARTS_DTYPE)


def not_rising(name: str, index: int, value: object, before: object) -> str:
    """The error text for an entry of seq_starts that is not above the previous one."""
    return f"{name}[{index}]: must be above {name}[{index - 1}] = {before} (got {value})"


def decode_ids(encoded: Uint32) -> Uint32:
    """The token ids: uint32[n] -> uint32[n]. [3, 4, 7] -> [1, 2, 3]."""
    return encoded >> np.uint32(1)


def decode_start_flags(encoded: Uint32) -> Bools:
    """True where a sequence starts: uint32[n] -> bool[n]. [3, 4, 7] -> [True, False, True]."""
    flags = encoded.astype(np.uint8)  # the narrow copy costs less than a comparison of wide values
    flags &= np.uint8(1)
    return flags.view(np.bool_)


def inputs_and_targets(encoded: Uint32, before: int | Uint32 = 0) -> tuple[Uint32, Uint32]:
    """The inputs and targets of a model for rows of the packed stream. Targets are the IDs. Inputs are the targets
    shifted right by one, with 0 wherever a sequence starts.

    encoded: uint32[n] or uint32[rows, n].
    before: the encoded token before each row; it has no effect if the row begins with a start.

    [3, 4, 7, 8, 10, 13, 14, 16] -> inputs [0, 1, 0, 3, 4, 0, 6, 7], targets [1, 2, 3, 4, 5, 6, 7, 8]."""
    targets = decode_ids(encoded)
    inputs = np.empty_like(targets)
    if encoded.shape[-1]:
        inputs[..., 1:] = targets[..., :-1]
        inputs[..., 0] = np.asarray(before, dtype=np.uint32) >> np.uint32(1)
        inputs[decode_start_flags(encoded)] = 0
    return inputs, targets


def packed_mask(trained: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """bool[n] -> uint8[ceil(n / 8)], lowest bit first, unused bits 0. [1, 0, 1] -> [5]. Raise ArgumentError for another
    type."""
    if trained.ndim != 1 or trained.dtype != np.bool_:
        got = f"{trained.dtype.name} of {trained.ndim} dimensions"
        raise ArgumentError(f"trained: must be bool[tokens] (got {got})")
    return np.packbits(trained, bitorder="little")


def from_sequences(sequences: Sequence[Sequence[int]]) -> tuple[Uint32, Uint64, int]:
    """(encoded_tokens, seq_starts, max_token_id) of sequences in memory, for examples and small data.

    [[1, 2], [3, 4, 5], [6, 7, 8]] -> ([3, 4, 7, 8, 10, 13, 14, 16], [0, 2, 5, 8], 8). Raise ArgumentError for an empty
    sequence."""
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(STARTS_DTYPE)
    ids = np.array([token for sequence in sequences for token in sequence], dtype=np.int64)
    return encode_tokens(ids, starts), starts, int(ids.max()) if len(ids) else 0
