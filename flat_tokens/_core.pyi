"""The C++ loops of flat_tokens as Python sees them; each has a twin in Python that runs where they are not built."""

from typing_extensions import Buffer

def cut_rows(
    encoded: Buffer,
    firsts: Buffer,
    length: int,
    start_id: int,
    inputs: Buffer,
    targets: Buffer,
    is_start: Buffer,
) -> None:
    """Fill inputs, targets and is_start with the rows that begin at some positions of `encoded`.

    encoded: uint32[tokens]; firsts: int64[rows], each with `length` tokens from it on inside `encoded`; inputs and
    targets: uint16, 32 or 64-bit integers [rows, length] that hold every id and start_id, which is the input where a
    sequence starts; is_start: bool of that shape. All contiguous; outputs overlap nothing. The GIL is released.
    ValueError names bound and value."""

def cut_labels(
    encoded: Buffer,
    firsts: Buffer,
    length: int,
    ignored: int,
    labels: Buffer,
    ids: Buffer,
    is_start: Buffer,
) -> None:
    """As cut_rows, unshifted: the ids, and labels that equal them but for `ignored` (31 bits and a sign) where a
    sequence starts; labels and ids are of 32 or 64 bits."""

def decode_ids(encoded: Buffer, ids: Buffer, is_start: Buffer | None) -> int:
    """Fill ids with encoded >> 1 and is_start with encoded & 1. Return the largest of `encoded`, 0 for none.

    encoded, ids: uint32[tokens], contiguous.
    is_start: bool[tokens], or None.

    Raise ValueError for another length.
    """

def find_matches(
    values: Buffer, shortest: int, block_tokens: int, farthest: int, matches: Buffer, table: Buffer
) -> int:
    """Fill matches as flat_tokens.storage.token_matches.find_with_python says; how many they are.

    values: uint32[n], n below 2^30; shortest: 2 or 3; matches: uint32[m, 4], m at least n / shortest and one a block;
    table: uint32[2^16], whatever it holds. The GIL is released. ValueError names bound and value."""

def next_fit(starts: Buffer, begin: int, max_tokens: int, bounds: Buffer) -> tuple[int, int]:
    """Plan packs as flat_tokens.packs.greedy.next_fit does. The GIL is released. Raise ValueError for another length.

    starts: int64[n + 1], rising.
    bounds: int64[n].
    """

def permute(values: Buffer, size: int, keys: Buffer) -> None:
    """Send values in [0, size) to their places under the permutations of flat_tokens/order/permutation.py, in place.

    values: uint64[n]; keys: uint64[k], each for n / k values, in order. The GIL is released. ValueError names bound and
    value."""

class Xxh64:
    """XXH64 of bytes that come in parts: the same value however they are cut. For one thread at a time."""

    def __init__(self) -> None: ...
    def update(self, data: Buffer) -> None:
        """Take the next bytes. The GIL is released."""
    def digest(self) -> int:
        """The hash of all bytes so far; more may follow."""
