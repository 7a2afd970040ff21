"""The decoders of `tokenizers.decoders`, and `DecodeStream`.

A decoder maps the tokens of IDs, as tokenizer.json spells them, to texts that are joined. `bpe.decoders` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Items
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from bpe.compat.huggingface.component import BYTE_LEVEL, METASPACE, Component, SequenceOf, define
from bpe.errors import BpeError
from bpe.formats.huggingface_components import DECODERS, decoder_from_json, fields_of
from bpe.formats.json_input import FLAG, expect_text

if TYPE_CHECKING:
    from bpe.compat.huggingface.tokenizer import Tokenizer

_TEXT: Final = (expect_text, "")
_REPLACEMENT: Final = "\ufffd"
_CLEANING: Final = [
    *((" " + sign, sign) for sign in ".?!,"),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
]


class Decoder(Component):
    """Turns tokens into text."""

    types = MappingProxyType(
        {
            **fields_of(DECODERS),
            "WordPiece": {"prefix": _TEXT, "cleanup": (FLAG, True)},
            "CTC": {"pad_token": _TEXT, "word_delimiter_token": _TEXT, "cleanup": (FLAG, True)},
        }
    )

    def decode(self, tokens: Items[str]) -> str:
        """Return the text of the tokens."""
        return "".join(self.chain(list(tokens)))

    def chain(self, tokens: list[str]) -> list[str]:
        """Return at most one text per token."""
        decoder = decoder_from_json(self.to_json())
        assert decoder is not None
        for component in decoder.components:
            tokens = component.apply(tokens)
        return tokens


ByteLevel: Any = define(
    Decoder, "ByteLevel", "Decodes the byte alphabet and keeps other tokens.", True, **BYTE_LEVEL
)
Replace: Any = define(
    Decoder, "Replace", "Replaces a str or the matches of a `Regex`.", pattern=..., content=...
)
ByteFallback: Any = define(
    Decoder, "ByteFallback", "Decodes runs of <0x61> as UTF-8, invalid ones as U+FFFD each."
)
Fuse: Any = define(Decoder, "Fuse", "Joins all tokens.")
Strip: Any = define(
    Decoder,
    "Strip",
    "Removes up to `left` and `right` copies of a character.",
    True,
    content=" ",
    left=0,
    right=0,
)
Metaspace: Any = define(
    Decoder, "Metaspace", "Turns the replacement into a space, except at the start.", **METASPACE
)
BPEDecoder: Any = define(Decoder, "BPEDecoder", "Turns the suffix of words into a space.", suffix="</w>")


class Sequence(SequenceOf, Decoder):
    """Decoders that are applied in order."""

    list_key = "decoders"
    is_flat = False

    def chain(self, tokens: list[str]) -> list[str]:
        for each in self.items:
            tokens = each.chain(tokens)
        return tokens


def _cleaned(text: str) -> str:
    """Return English text without the spaces before punctuation and contractions."""
    for old, new in _CLEANING:
        text = text.replace(old, new)
    return text


class _WordPiece(Decoder):
    prefix: str
    cleanup: bool

    def chain(self, tokens: list[str]) -> list[str]:
        for index in range(1, len(tokens)):
            token = tokens[index]
            tokens[index] = token.removeprefix(self.prefix) if token.startswith(self.prefix) else " " + token
        return [_cleaned(token) for token in tokens] if self.cleanup else tokens


class _Ctc(Decoder):
    pad_token: str
    word_delimiter_token: str
    cleanup: bool

    def chain(self, tokens: list[str]) -> list[str]:
        made = []
        for token, _ in groupby(tokens):
            text = token.replace(self.pad_token, "")
            if self.cleanup:
                text = _cleaned(text).replace(self.word_delimiter_token, " ")
            made.append(text)
        return [text for text in made if text]


WordPiece: Any = define(_WordPiece, "WordPiece", "Puts spaces before words.", prefix="##", cleanup=True)
CTC: Any = define(
    _Ctc, "CTC", "Removes repetitions and padding.", pad_token="<pad>", word_delimiter_token="|", cleanup=True
)


class DecodeStream:
    """Decodes IDs one by one: `step` returns the text that has become certain, or None.

    ids: the IDs before the first step. Their text is not returned.
    """

    def __init__(self, ids: Iterable[int] | None = None, skip_special_tokens: bool = False) -> None:
        self._skip = skip_special_tokens
        self._ids = list(ids or ())
        self._prefix = ""
        self._prefix_ids = 0

    def step(self, tokenizer: Tokenizer, id: int | Items[int]) -> str | None:
        """Return the text that is certain after one ID, or several; None while a character is incomplete."""
        if not self._prefix and self._ids:
            text = tokenizer.decode(self._ids, self._skip)
            if not text.endswith(_REPLACEMENT):
                self._prefix, self._prefix_ids = text, len(self._ids)
        self._ids += [id] if isinstance(id, int) else id
        text = tokenizer.decode(self._ids, self._skip)
        if len(text.encode()) <= len(self._prefix.encode()) or text.endswith(_REPLACEMENT):
            return None
        if not text.startswith(self._prefix):
            raise BpeError(f"ids: ID {self._ids[-1]} changes text that was already returned")
        new = text[len(self._prefix) :]
        rest = self._ids[self._prefix_ids :]
        self._prefix_ids = len(self._ids) - self._prefix_ids
        self._ids = rest
        self._prefix = tokenizer.decode(rest, self._skip)
        return new

    def __copy__(self) -> DecodeStream:
        made = DecodeStream(self._ids, self._skip)
        made._prefix, made._prefix_ids = self._prefix, self._prefix_ids
        return made

    def __deepcopy__(self, memo: object) -> DecodeStream:
        return self.__copy__()
