"""Decoders, by the names and arguments of `tokenizers.decoders`, and `DecodeStream`.

A decoder takes the tokens of ids, as tokenizer.json spells them, and gives texts that are joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Items
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from bpe import decoders
from bpe.compat.huggingface import arguments
from bpe.compat.huggingface.component import Component, Field, SequenceOf
from bpe.compat.huggingface.pre_tokenizers import one_character, scheme
from bpe.compat.huggingface.regex import pattern, pattern_from_json, pattern_to_json
from bpe.errors import BpeError

if TYPE_CHECKING:
    from bpe.compat.huggingface.tokenizer import Tokenizer

_BROKEN: Final = "\ufffd"
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
    """Tokens to text."""

    def decode(self, tokens: Items[str]) -> str:
        """The text of the tokens."""
        return "".join(self.chain(list(tokens)))

    def chain(self, tokens: list[str]) -> list[str]:
        """Decode with the decoder of the same name in `bpe.decoders`; return at most one text per token."""
        fields = self.to_json()
        texts: list[str] = getattr(decoders, fields.pop("type"))(**fields).apply(tokens)
        return texts


class ByteLevel(Decoder, add_prefix_space=Field(True), trim_offsets=Field(True), use_regex=Field(True)):
    """The byte alphabet back to bytes, and these to text; a token with other characters is itself."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **{name: value for name, value in named.items() if name in self.fields})


class Replace(
    Decoder,
    pattern=Field(to_json=pattern_to_json, from_json=pattern_from_json, hidden=True, check=pattern),
    content=Field(check=arguments.text),
):
    """Matches of a text or `Regex` become a text."""

    def chain(self, tokens: list[str]) -> list[str]:
        ((kind, text),) = self.to_json()["pattern"].items()
        return decoders.Replace(text, self.content, kind == "Regex").apply(tokens)  # type: ignore[attr-defined]


class ByteFallback(Decoder):
    """Runs of tokens such as <0x61> become their text, or one U+FFFD per byte if they are not UTF-8."""


class Fuse(Decoder):
    """All tokens become one."""


class Strip(Decoder, content=Field(" "), start=Field(0), stop=Field(0)):
    """Remove up to `left` of a character from the start of each token and up to `right` from its end."""

    def __init__(self, content: str = " ", left: int = 0, right: int = 0, **_: Any) -> None:
        super().__init__(content, left, right)


class Metaspace(
    Decoder, replacement=Field("\u2581"), prepend_scheme=Field("always", check=scheme), split=Field(True)
):
    """The sign becomes a space; at the start of the first token it is removed."""

    def checked(self, name: str, value: Any) -> Any:
        return one_character(name, value) if name == "replacement" else value


class BPEDecoder(Decoder, suffix=Field("</w>")):
    """The suffix that ends words becomes a space."""


class Sequence(SequenceOf, Decoder):
    """Decoders, one after the other."""

    list_key = "decoders"
    flat = False

    def chain(self, tokens: list[str]) -> list[str]:
        for each in self.items:
            tokens = each.chain(tokens)
        return tokens


def _cleaned(text: str) -> str:
    """Without the spaces that English has none of."""
    for old, new in _CLEANING:
        text = text.replace(old, new)
    return text


class WordPiece(Decoder, prefix=Field("##"), cleanup=Field(True)):
    """Words are joined by spaces, but for those that begin with the prefix."""

    def chain(self, tokens: list[str]) -> list[str]:
        prefix, cleanup = (self.to_json()[key] for key in ("prefix", "cleanup"))
        for place in range(1, len(tokens)):
            token = tokens[place]
            tokens[place] = token[len(prefix) :] if token.startswith(prefix) else " " + token
        return [_cleaned(token) for token in tokens] if cleanup else tokens


class CTC(Decoder, pad_token=Field("<pad>"), word_delimiter_token=Field("|"), cleanup=Field(True)):
    """Of equal neighbours one stays, and the padding goes."""

    def chain(self, tokens: list[str]) -> list[str]:
        values = self.to_json()
        made = []
        for token, _ in groupby(tokens):
            text = token.replace(values["pad_token"], "")
            if values["cleanup"]:
                text = _cleaned(text).replace(values["word_delimiter_token"], " ")
            made.append(text)
        return [text for text in made if text]


class DecodeStream:
    """Texts of ids that come one by one.

    ids: those before, whose text does not come again. A step gives the text that has become certain, or None.
    """

    def __init__(self, ids: Iterable[int] | None = None, skip_special_tokens: bool = False) -> None:
        self._skip = skip_special_tokens
        self._ids = list(ids or ())
        self._prefix = ""
        self._prefix_ids = 0

    def step(self, tokenizer: Tokenizer, id: int | Items[int]) -> str | None:
        """The text that the id, or the ids, make certain; None while a character is not whole."""
        if not self._prefix and self._ids:
            text = tokenizer.decode(self._ids, self._skip)
            if not text.endswith(_BROKEN):
                self._prefix, self._prefix_ids = text, len(self._ids)
        self._ids += [id] if isinstance(id, int) else id
        text = tokenizer.decode(self._ids, self._skip)
        if len(text.encode()) <= len(self._prefix.encode()) or text.endswith(_BROKEN):
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
