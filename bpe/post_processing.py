"""The post_processor of a tokenizer.json, which adds begin and end tokens on request.

The tokens are those that `tokenizers` adds to a single text. TemplateProcessing applies its `single` template.
RobertaProcessing and BertProcessing add `cls` before the IDs and `sep` after them. ByteLevel only changes offsets. The
pair templates are kept for `save`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bpe.ragged import Ragged


@dataclass(frozen=True)
class PostProcessor:
    """component: validated JSON of the file. front, back: IDs to add before and after a text."""

    component: dict[str, Any]
    front: tuple[int, ...] = ()
    back: tuple[int, ...] = ()

    def around(self, ids: list[int]) -> list[int]:
        """Return [*front, *ids, *back], even for an empty text."""
        return [*self.front, *ids, *self.back]

    def around_rows(self, rows: Ragged) -> Ragged:
        """Apply `around` to each row."""
        before, added = len(self.front), len(self.front) + len(self.back)
        row = np.arange(len(rows) + 1)
        offsets = rows.offsets.astype(np.int64) + added * row
        tokens = np.empty(len(rows.tokens) + added * len(rows), np.uint32)
        shifts = np.repeat(before + added * row[:-1], rows.lengths.astype(np.int64))
        tokens[np.arange(len(rows.tokens)) + shifts] = rows.tokens
        for place, id_ in enumerate(self.front):
            tokens[offsets[:-1] + place] = id_
        for place, id_ in enumerate(reversed(self.back), 1):
            tokens[offsets[1:] - place] = id_
        return Ragged(tokens, offsets.astype(np.uint64))
