"""Texts to columns for vocabularies of text, whose tokens do not say how many bytes of a text they are of.

The ids of a pretoken are walked beside what merging began with (`unmerged`): a token is of the bytes of the parts whose
texts make its own. Characters that are dropped are not counted, so what follows them points before itself, as it does
in tokenizers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from bpe.compat.huggingface.aligned_text import AlignedText
from bpe.compat.huggingface.columns import Offsets
from bpe.compat.huggingface.engine import CoreEngine, Rows, character_of_byte
from bpe.compat.huggingface.pretokenize import pretokens
from bpe.compat.huggingface.unmerged import unmerged
from bpe.formats.byte_alphabet import to_bytes
from bpe.pretokenization.components import Component
from bpe.tokenizer import Tokenizer
from tokenmill.stores.system import cached_property


class TextEngine(CoreEngine):
    """A tokenizer of this package with `text_rules`. vocab: gives text -> id of the model, when it is asked for."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        components: tuple[Component, ...],
        ignored: frozenset[str],
        vocab: Callable[[], Mapping[str, int]],
    ) -> None:
        super().__init__(tokenizer, components, ignored)
        assert tokenizer.text_rules is not None
        self._rules = tokenizer.text_rules
        self._options = asdict(self._rules)
        self._vocab = vocab

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
            for size in self._sizes(piece.text, own):
                first, last = min(at, len(character) - 1), min(at + size, len(character)) - 1
                offsets.append((piece.starts[character[first]], piece.stops[character[last]]))
                at += size
            ids += own
            tokens += map(self._texts.__getitem__, own)
            words += [word] * len(own)
        return ids, tokens, offsets, len(pieces), words

    def _sizes(self, piece: str, ids: Sequence[int]) -> Iterable[int]:
        """The bytes of the piece that each token is of."""
        texts = [self._texts[id_] for id_ in ids]
        rules = self._rules
        prefix = len(rules.continuing_subword_prefix.encode())
        if not prefix and not rules.end_of_word_suffix and self._characters.issuperset(piece):
            return [len(text.encode()) for text in texts]
        if self.tokenizer.ignore_merges and piece in self._ids:
            return [len(piece.encode())]
        return self._summed(texts, iter(unmerged(piece, self._ids, self._options)), prefix)

    def _summed(self, texts: list[str], parts: Iterator[tuple[int, int]], prefix: int) -> Iterator[int]:
        """Of the parts that merged to each token, the bytes; prefix: what a merge takes from its right part."""
        for text in texts:
            missing = len(text.encode()) + prefix
            total = 0
            while missing > prefix:
                id_, size = next(parts)
                missing -= len(self._texts[id_].encode()) - prefix * bool(total)
                total += size
            yield total

    @cached_property
    def _ids(self) -> Mapping[str, int]:
        return self._vocab()

    @cached_property
    def _characters(self) -> frozenset[str]:
        """The entries of one character."""
        return frozenset(text for text in self._ids if len(text) == 1)
