"""Texts to columns for vocabularies of text, whose tokens do not say how many bytes of a text they are of.

The ids of a pretoken are walked beside it: an entry is of its own characters, without what marks the middle and the end
of words; a byte entry is of one byte, the unknown token of all characters that are no entries. Characters that are
dropped are not counted, so what follows them points before itself, as it does in tokenizers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from bpe.compat.huggingface.aligned_text import AlignedText
from bpe.compat.huggingface.columns import Offsets
from bpe.compat.huggingface.engine import CoreEngine, Rows, character_of_byte
from bpe.compat.huggingface.pretokenize import pretokens
from bpe.formats.byte_alphabet import to_bytes
from bpe.vocabulary import TextRules

_BYTE: Final = re.compile(r"<0x[0-9A-F]{2}>")


class TextEngine(CoreEngine):
    """A tokenizer of this package with `text_rules`."""

    def _rows(self, text: AlignedText) -> Rows:
        ids: list[int] = []
        tokens: list[str] = []
        offsets: list[Offsets] = []
        words: list[int] = []
        pieces = pretokens(text, self._components)
        for word, piece in enumerate(pieces):
            data = (to_bytes(piece.text) or b"") if self._rules.byte_level else piece.text.encode()
            own: list[int] = self.tokenizer.encode_pretokens(data, np.array([len(data)], np.uint64)).tolist()
            character = character_of_byte(piece.text.encode()).tolist()
            at = 0
            for size in self._sizes(piece.text, character, own):
                first, last = min(at, len(character) - 1), min(at + size, len(character)) - 1
                offsets.append((piece.starts[character[first]], piece.stops[character[last]]))
                at += size
            ids += own
            tokens += map(self._texts.__getitem__, own)
            words += [word] * len(own)
        return ids, tokens, offsets, len(pieces), words

    def _sizes(self, piece: str, character: Sequence[int], ids: Sequence[int]) -> Iterator[int]:
        """The bytes of the piece that each token is of. character: that of each byte of the piece."""
        rules = self._rules
        at = 0  # in bytes
        for number, id_ in enumerate(ids):
            text = self._texts[id_]
            place = character[at] if at < len(character) else len(piece)
            if rules.byte_fallback and _BYTE.fullmatch(text):
                size = 1
            elif text == rules.unk_token and not piece.startswith(text, place):
                stop = place + 1
                while rules.fuse_unk and stop < len(piece) and self._is_unknown(piece, stop):
                    stop += 1
                size = len(piece[place:stop].encode())
            else:
                if place or not piece.startswith(text):  # characters in front of it may have been dropped
                    text = text.removeprefix(rules.continuing_subword_prefix)
                if number == len(ids) - 1:
                    text = text.removesuffix(rules.end_of_word_suffix)
                size = len(text.encode())
            yield size
            at += size

    def _is_unknown(self, piece: str, place: int) -> bool:
        return piece[place] not in self._characters

    @cached_property
    def _characters(self) -> frozenset[str]:
        """The entries of one character."""
        entries = self.tokenizer.ordinary_entries.values()
        return frozenset(text for entry in entries if len(text := entry.decode("utf-8", "replace")) == 1)

    @cached_property
    def _rules(self) -> TextRules:
        rules = self.tokenizer.text_rules
        assert rules is not None
        return rules
