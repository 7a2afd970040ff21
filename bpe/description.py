"""What a tokenizer is: its entries, merges, special tokens and options, and when two tokenizers are the same.

Nothing here encodes. What needs a Python object for each entry makes them on first use; loading does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from bpe import _core
from bpe.core_vocabulary import CoreVocabulary
from bpe.errors import shown
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import MAX_ID, Vocabulary


class Description:
    """The immutable state of a `Tokenizer`, by its public names."""

    _vocabulary: Vocabulary | CoreVocabulary
    _pretokenizer: Pretokenizer
    _normalizer: Literal["NFC"] | None
    _template: dict[str, Any] | None
    _plain_added_tokens: frozenset[str]

    @property
    def vocab(self) -> Mapping[int, bytes]:
        """id -> bytes of every entry, special tokens included, by ascending id; read-only."""
        return MappingProxyType(self._vocabulary.all_entries)

    @property
    def ordinary_entries(self) -> dict[int, bytes]:
        """id -> bytes of the entries that text between special tokens is encoded with, a copy."""
        return dict(self._vocabulary.entries)

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The pairs that merge, lowest rank first; of a rank file, every split of every entry (about 1 µs an entry)."""
        return self._vocabulary.listed_merges

    @property
    def is_rank_file(self) -> bool:
        """Whether the id of an entry is its rank and all pairs that make an entry merge."""
        return self._vocabulary.is_rank_file

    @property
    def whole_pretokens(self) -> bool:
        """Whether a pretoken that is an entry is emitted at once, be it reached by merges or not."""
        return self._vocabulary.whole_pretokens

    @property
    def special_tokens(self) -> dict[str, int]:
        """text -> id of the special tokens."""
        return dict(self._vocabulary.special_tokens)

    @property
    def plain_added_tokens(self) -> frozenset[str]:
        """The special tokens that Hugging Face keeps when it decodes without special tokens."""
        return self._plain_added_tokens

    @property
    def vocab_size(self) -> int:
        """The number of entries, special tokens included; with gaps in the ids less than max_token_id + 1."""
        return self._vocabulary.entry_count

    @property
    def max_token_id(self) -> int:
        """The highest id."""
        return self._vocabulary.max_id

    @property
    def pattern(self) -> str:
        """The name of the pattern, or its expression; several stages are joined by " then "."""
        return self._pretokenizer.description

    @property
    def pretokenizer(self) -> Pretokenizer:
        """How text between special tokens is cut."""
        return self._pretokenizer

    @property
    def normalizer(self) -> Literal["NFC"] | None:
        """What is done to the text first."""
        return self._normalizer

    @property
    def template(self) -> dict[str, Any] | None:
        """Hugging Face's TemplateProcessing, which is kept for `save` and not applied."""
        return self._template

    def token_to_id(self, token: bytes | str) -> int | None:
        """The id of a special token (a text) or an ordinary entry (bytes), or None."""
        if isinstance(token, str):
            return self._vocabulary.special_tokens.get(token)
        return self._encoder.find(token) if token else None

    def id_to_token(self, id_: int) -> bytes | None:
        """The bytes of an entry, or None."""
        return self._special_by_id.get(id_) or (self._encoder.entry(id_) if 0 <= id_ <= MAX_ID else None)

    def __len__(self) -> int:
        return self.vocab_size

    def __repr__(self) -> str:
        rule = "rank file" if self.is_rank_file else f"{self._vocabulary.merge_count} merges"
        return (
            f"<Tokenizer {self.vocab_size} entries, {rule}, {len(self._vocabulary.special_tokens)} special tokens, "
            f"pattern {shown(self.pattern)}>"
        )

    def __eq__(self, other: object) -> bool:
        """Whether both are the same tokenizer.json; a rank file equals the list of its merges."""
        if self is other:
            return True
        return isinstance(other, Description) and self.canonical_json == other.canonical_json

    def __hash__(self) -> int:
        return hash((self.vocab_size, self.pattern))

    def fingerprint(self) -> str:
        """The SHA-256 of the canonical tokenizer.json, the bytes that `save` writes, in hexadecimal."""
        return hashlib.sha256(self.canonical_json).hexdigest()

    @cached_property
    def canonical_json(self) -> bytes:
        """The tokenizer.json that `save` writes; equal tokenizers have equal ones."""
        from bpe.formats import huggingface

        return huggingface.to_json(self)

    @cached_property
    def _special_by_id(self) -> dict[int, bytes]:
        return {id_: text.encode() for text, id_ in self._vocabulary.special_tokens.items()}

    @cached_property
    def _encoder(self) -> _core.Encoder:
        # Built on first use where it was not read from a file, so that converting between formats does not wait.
        return self._vocabulary.make_encoder(self._pretokenizer.core_pattern)

    @property
    def core_encoder(self) -> _core.Encoder:
        """The core's form of the entries and merges, built on first use."""
        return self._encoder
