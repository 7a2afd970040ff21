"""A pack: whole sequences in a row of fixed length.

The fields have torchtune's names and content: labels are the tokens, not shifted, with -100 at padding; the model
shifts. All are int32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flat_tokens.format import Bools, Int32
from flat_tokens.rows import segments

FIELDS = ("tokens", "labels", "input_pos", "seq_lens")


@dataclass(frozen=True)
class Pack:
    """One row. Read it by attribute or by key; dict(pack) has torchtune's four fields.

    tokens: int32[max_seq_len], padding_id at padding.
    labels: int32[max_seq_len], the tokens, -100 where no loss is computed.
    input_pos: int32[max_seq_len], the position in the sequence. Padding continues it, up to max_seq_len - 1.
    seq_lens: int32[segments], tokens of each sequence or part of one, then of the padding; their sum is max_seq_len.
    token_count: tokens before the padding.
    """

    tokens: Int32
    labels: Int32
    input_pos: Int32
    seq_lens: Int32
    token_count: int

    def __getitem__(self, field: str) -> Int32:
        if field not in FIELDS:
            raise KeyError(f"fields of a pack are {', '.join(FIELDS)} (got {field!r})")
        value: Int32 = getattr(self, field)
        return value

    def keys(self) -> tuple[str, ...]:
        """("tokens", "labels", "input_pos", "seq_lens")."""
        return FIELDS

    def __iter__(self) -> Iterator[str]:
        return iter(FIELDS)

    def __len__(self) -> int:
        return len(FIELDS)

    @property
    def cu_seqlens(self) -> Int32:
        """Bounds of the segments: int32[segments + 1]. seq_lens [3, 2, 1] -> [0, 3, 5, 6]."""
        found: Int32 = np.cumsum([0, *self.seq_lens], dtype=np.int32)
        return found

    @property
    def max_seqlen(self) -> int:
        """Tokens of the longest segment."""
        return int(self.seq_lens.max())

    @property
    def segment_ids(self) -> Int32:
        """1 for the tokens of the first sequence, 2 for the second and so on, 0 at padding: int32[max_seq_len]."""
        lengths = np.array([self.token_count], dtype=np.int32)
        found: Int32 = segments.segment_ids(self.cu_seqlens, len(self.tokens), lengths)[0]
        return found

    def mask(self) -> Bools:
        """The causal attention mask within each sequence, bool[max_seq_len, max_seq_len]."""
        return segments.block_causal_mask(self.segment_ids)
