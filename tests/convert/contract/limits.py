"""Sizes inside the program that only large inputs exceed, so that small corpora take the same paths.

    @given(limits(), ...)
    with small(drawn): convert(...)

Workers that are forked have the same sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from hypothesis import strategies as st

# Values next to the usual one, which is drawn as often as all of these.
_SMALL: dict[str, list[Any]] = {
    "convert.planning.plan.LARGE_FILE_BYTES": [100, 1000],  # compressed files that are unpacked into blocks
    "convert.planning.plan.MIN_GIVEN_SHARD_BYTES": [1, 300],  # several temporary shards per compressed file
    "convert.encode.unpack_task.MAX_BLOCKS": [1, 2],
    "convert.encode.encode_task.READ_BYTES": [16, 256],
    "tokenmill.inputs.read_text.TEXT_BLOCK_BYTES": [1, 7, 64],  # longer documents are encoded in pieces
    "convert.encode.document_encoder.LONG_DOCUMENT_BYTES": [0, 40],
    "convert.encode.document_encoder.PIECE_BYTES": [1, 7, 50],
    "convert.shards.shard.BLOCK_BYTES": [32, 104],
    "convert.shards.merge.MERGE_ITEMS": [8, 64],  # several merge tasks per split
}
EVERY: Mapping[str, Any] = {name: values[-1] for name, values in _SMALL.items()}


def limits() -> st.SearchStrategy[dict[str, Any]]:
    """Some sizes with other values."""
    values = {name: st.none() | st.sampled_from(small) for name, small in _SMALL.items()}
    return st.fixed_dictionaries(values).map(
        lambda drawn: {name: value for name, value in drawn.items() if value is not None}
    )


@contextmanager
def small(values: Mapping[str, Any] = EVERY) -> Iterator[None]:
    """Give the sizes other values."""
    with ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(mock.patch(name, value))
        yield
