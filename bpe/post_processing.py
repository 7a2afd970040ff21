"""The post_processor of a tokenizer.json, which adds begin and end tokens on request.

The tokens are those that `tokenizers` adds to a single text. TemplateProcessing applies its `single` template.
RobertaProcessing and BertProcessing add `cls` before the IDs and `sep` after them. ByteLevel only changes offsets. The
pair templates are kept for `save`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bpe.end_tokens import put_around
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
        tokens, offsets, _ = put_around(rows.tokens, rows.offsets, self.front, self.back, skip_empty=False)
        return Ragged(tokens, offsets)
