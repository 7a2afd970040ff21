"""The flat-tokens format in memory: from sequences to two flat arrays and back (docs/reference/dataset-format.md).

Invariant: encoded_tokens[i] is odd if and only if i is in seq_starts[:-1]. seq_starts increases strictly from 0 to
token_count, because every sequence has at least one token. The example of the page: [[1, 2], [3, 4, 5], [6, 7, 8]] is
encoded_tokens [3, 4, 7, 8, 10, 13, 14, 16], seq_starts [0, 2, 5, 8], max_token_id 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

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
DTYPES: dict[str, np.dtype[Any]] = {
    TOKENS_NAME: TOKENS_DTYPE,
    STARTS_NAME: STARTS_DTYPE,
    MASK_NAME: MASK_DTYPE,
}
MASK_BITS = 8  # tokens per byte of a loss mask
LARGEST_TOKEN_ID = 2**31 - 1  # the low bit of uint32 is the start flag

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Uint32 = npt.NDArray[np.uint32]
Uint64 = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


def array_folder(split: str, array: str) -> str:
    """The folder of an array in a dataset: "train/encoded_tokens", "loss_mask/train"."""
    return f"{array}/{split}" if array == MASK_NAME else f"{split}/{array}"


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
