"""BPE in plain Python, over characters: for tokenizers that the core does not hold.

Such is one whose pre-tokenizer the core does not execute, or whose added token has the id of another entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from bpe.compat.huggingface.unmerged import unmerged
from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown


class Token(NamedTuple):
    """size: how many bytes of the text it is counted as."""

    id: int
    text: str
    size: int


class PlainModel:
    """The entries and merges of tokenizer.json's model, and its options."""

    def __init__(
        self, vocab: Mapping[str, int], merges: Sequence[tuple[str, str]], options: Mapping[str, Any]
    ) -> None:
        if options.get("dropout"):
            raise UnsupportedTokenizer("model.dropout: not supported, since IDs would be random")
        self._vocab = vocab
        self._texts = {id_: text for text, id_ in vocab.items()}
        self._options = options
        prefix = len(options.get("continuing_subword_prefix") or "")
        self._merges: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, (left, right) in enumerate(merges):
            try:
                pair, made = (vocab[left], vocab[right]), vocab[left + right[prefix:]]
            except KeyError as error:
                raise BadTokenizer(
                    f"model.merges[{rank}]: not an entry (got {shown(error.args[0])})"
                ) from None
            self._merges[pair] = rank, made

    def tokens(self, word: str) -> list[Token]:
        """The tokens of a pretoken, in order."""
        if self._options.get("ignore_merges") and word in self._vocab:
            return [Token(self._vocab[word], word, len(word.encode()))]
        parts = unmerged(word, self._vocab, self._options)
        while len(parts) > 1:
            pairs = ((left[0], right[0]) for left, right in pairwise(parts))
            none = (len(self._merges), 0)
            (rank, made), at = min((self._merges.get(pair, none), at) for at, pair in enumerate(pairs))
            if rank == none[0]:
                break
            parts[at : at + 2] = [(made, parts[at][1] + parts[at + 1][1])]
        return [Token(id_, self._texts[id_], size) for id_, size in parts]
