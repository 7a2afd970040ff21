"""The decoders of `tokenizers.decoders`, and `DecodeStream`.

A decoder maps the tokens of IDs, as tokenizer.json spells them, to texts that are joined. `bpe.decoders` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Items
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from bpe.compat.huggingface.component import Character, Component, Pattern, Scheme, SequenceOf
from bpe.errors import BpeError
from bpe.formats.huggingface_components import decoder_from_json

if TYPE_CHECKING:
    from bpe.compat.huggingface.tokenizer import Tokenizer

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


@dataclass(eq=False, repr=False, init=False)
class ByteLevel(Decoder):
    """Decodes the byte alphabet. A token with other characters is kept."""

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True

    def __init__(
        self, add_prefix_space: bool = True, trim_offsets: bool = True, use_regex: bool = True, **_: Any
    ) -> None:
        self.add_prefix_space, self.trim_offsets, self.use_regex = add_prefix_space, trim_offsets, use_regex


@dataclass(eq=False, repr=False)
class Replace(Decoder):
    """Replaces the matches of a str or `Regex`."""

    pattern: Pattern
    content: str


@dataclass(eq=False, repr=False)
class ByteFallback(Decoder):
    """Decodes runs of tokens such as <0x61> as UTF-8, or each as U+FFFD if they are not valid together."""


@dataclass(eq=False, repr=False)
class Fuse(Decoder):
    """Joins all tokens."""


@dataclass(eq=False, repr=False, init=False)
class Strip(Decoder):
    """Removes up to `left` copies of a character from the start of each token and up to `right` from its end."""

    content: Character = " "
    start: int = 0
    stop: int = 0

    def __init__(self, content: str = " ", left: int = 0, right: int = 0, **_: Any) -> None:
        self.content, self.start, self.stop = content, left, right


@dataclass(eq=False, repr=False)
class Metaspace(Decoder):
    """Turns the replacement into a space, or removes it from the start of the first token."""

    replacement: Character = "\u2581"
    prepend_scheme: Scheme = "always"
    split: bool = True


@dataclass(eq=False, repr=False)
class BPEDecoder(Decoder):
    """Turns the suffix of words into a space."""

    suffix: str = "</w>"


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


@dataclass(eq=False, repr=False)
class WordPiece(Decoder):
    """Puts a space before each token without the prefix."""

    prefix: str = "##"
    cleanup: bool = True

    def chain(self, tokens: list[str]) -> list[str]:
        for index in range(1, len(tokens)):
            token = tokens[index]
            tokens[index] = token.removeprefix(self.prefix) if token.startswith(self.prefix) else " " + token
        return [_cleaned(token) for token in tokens] if self.cleanup else tokens


@dataclass(eq=False, repr=False)
class CTC(Decoder):
    """Keeps one of equal neighbors and removes padding."""

    pad_token: str = "<pad>"
    word_delimiter_token: str = "|"
    cleanup: bool = True

    def chain(self, tokens: list[str]) -> list[str]:
        made = []
        for token, _ in groupby(tokens):
            text = token.replace(self.pad_token, "")
            if self.cleanup:
                text = _cleaned(text).replace(self.word_delimiter_token, " ")
            made.append(text)
        return [text for text in made if text]


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
