"""What tokenizer.json's post_processor adds to a text's ids when it is asked to: begin and end tokens.

As `tokenizers` adds them to a single text: TemplateProcessing by its `single` template, RobertaProcessing and
BertProcessing `cls` in front and `sep` behind. ByteLevel changes offsets only. The pair templates are kept for `save`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bpe.ragged import Ragged


@dataclass(frozen=True)
class PostProcessor:
    """component: the JSON of the file, checked. front, back: the ids around a text."""

    component: dict[str, Any]
    front: tuple[int, ...] = ()
    back: tuple[int, ...] = ()

    def around(self, ids: list[int]) -> list[int]:
        """[front, *ids, back]; an empty text gets both as well."""
        return [*self.front, *ids, *self.back]

    def around_rows(self, rows: Ragged) -> Ragged:
        """The same for each row."""
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
