"""The post-processors of `tokenizers.processors`, which add tokens to encodings and trim offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from inspect import Parameter, Signature
from types import MappingProxyType
from typing import Any, Final

from bpe.compat.huggingface import arguments
from bpe.compat.huggingface.component import BYTE_LEVEL, Component, SequenceOf, TokenAndId, define
from bpe.compat.huggingface.encoding import Encoding
from bpe.errors import BadArgument, shown
from bpe.formats.huggingface_components import PROCESSORS

_TEMPLATE: Final = ("single", "pair", "special_tokens")
_SEQUENCE: Final = re.compile(r"\$(?:([ABab])|(\d+))?(?::(\d+))?")
_SPECIAL: Final = re.compile(r"(.+?)(?::(\d+))?", re.DOTALL)


class PostProcessor(Component):
    """Adds tokens to the encodings of one or two sequences."""

    types = PROCESSORS

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """Return the number of tokens that are added to one sequence or to two."""
        return 0

    def apply(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Return the encodings to concatenate. May change its arguments."""
        raise NotImplementedError

    def process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """Return one encoding of one sequence or two."""
        encodings = [each.copy() for each in (encoding, pair) if each is not None]
        return post_process(self, encodings, add_special_tokens)


def post_process(
    processor: PostProcessor | None, encodings: list[Encoding], add_special_tokens: bool
) -> Encoding:
    """Return one encoding of one sequence or two. May change the encodings."""
    if processor is not None or len(encodings) > 1:
        for index, encoding in enumerate(encodings):
            encoding.set_sequence_id(index)
            if processor is not None:
                encoding.set_type_id(index)
                for part in encoding.parts:
                    part.set_sequence_id(index)
    if processor is not None:
        encodings = processor.apply(encodings, add_special_tokens)
    return encodings[0] if len(encodings) == 1 else Encoding.merge(encodings, growing_offsets=False)


def _trim(encodings: list[Encoding], add_prefix_space: bool) -> None:
    for encoding in encodings:
        for each in (encoding, *encoding.parts):
            each.trim_offsets(add_prefix_space)


class _ByteLevel(PostProcessor):
    trim_offsets: bool
    add_prefix_space: bool

    def apply(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        if self.trim_offsets:
            _trim(encodings, self.add_prefix_space)
        for index, encoding in enumerate(encodings):
            encoding.set_sequence_id(index)
        return encodings


class _Bert(PostProcessor):
    sep: TokenAndId
    cls: TokenAndId

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        return 3 if is_pair else 2

    def apply(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        if not add_special_tokens:
            return encodings
        # A template in the same sequence can make more than two encodings.
        return [
            self._around(encoding, min(index, 1), [] if index else [self.cls], min(index, 1))
            for index, encoding in enumerate(encodings)
        ]

    def _around(self, encoding: Encoding, index: int, first: list[TokenAndId], last_type: int) -> Encoding:
        """Return the encoding and its overflowing parts between special tokens. Only the text is of its sequence."""
        made = []
        for each in (encoding, *encoding.parts):
            text = each.as_text()
            text.set_sequence_id(index)
            front = [Encoding.special([id_], [token]) for token, id_ in first]
            back = Encoding.special([self.sep[1]], [self.sep[0]], last_type)
            made.append(Encoding.merge([*front, text, back], growing_offsets=False))
        made[0].parts = made[1:]
        return made[0]


class _Roberta(_Bert):
    trim_offsets: bool
    add_prefix_space: bool

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        return 4 if is_pair else 2

    def apply(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        if self.trim_offsets:
            _trim(encodings, self.add_prefix_space)
        for each in encodings:
            for encoding in (each, *(each.parts if add_special_tokens else ())):
                encoding.set_type_id(0)
        if not add_special_tokens:
            return encodings
        return [
            self._around(encoding, min(index, 1), [self.sep if index else self.cls], 0)
            for index, encoding in enumerate(encodings)
        ]


ByteLevel: Any = define(_ByteLevel, "ByteLevel", "Removes white space from offsets.", True, **BYTE_LEVEL)
BertProcessing: Any = define(_Bert, "BertProcessing", "[CLS] A [SEP] B [SEP].", sep=..., cls_token=...)
RobertaProcessing: Any = define(
    _Roberta,
    "RobertaProcessing",
    "<s> A </s></s> B </s>.",
    sep=...,
    cls_token=...,
    trim_offsets=True,
    add_prefix_space=True,
)


class TemplateProcessing(PostProcessor):
    """Puts tokens and texts in the order of a template: "[CLS] $A [SEP]", "… $B:1 [SEP]:1", or a list of such pieces.

    special_tokens: (token, id), (id, token), or {"id": …, "ids": […], "tokens": […]} each. Raises BadArgument, a
    ValueError, for an invalid piece and for a token that is not in special_tokens.
    """

    keys = MappingProxyType({name: name for name in _TEMPLATE})
    signature = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in _TEMPLATE])
    single: list[Any]
    pair: list[Any]
    special_tokens: dict[str, Any]

    def __init__(
        self,
        single: str | list[str] | None = None,
        pair: str | list[str] | None = None,
        special_tokens: Iterable[Any] | None = None,
        **_: Any,
    ) -> None:
        self.single, self.pair = single or "$0", pair or "$A:0 $B:1"  # type: ignore[assignment]
        self.special_tokens = dict(map(_token, special_tokens or ()))
        pieces = [*self.single, *self.pair]
        used = {piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece}
        if missing := sorted(used - self.special_tokens.keys()):
            raise BadArgument(f"Missing SpecialToken(s) with id(s) `{', '.join(missing)}`")
        if pair is not None and len({p["Sequence"]["id"] for p in self.pair if "Sequence" in p}) != 2:
            raise BadArgument("Template for `pair` must use both sequences")

    def _put(self, name: str, value: Any) -> None:
        if name == "special_tokens":
            self.__dict__[name] = dict(sorted(value.items()))
            return
        if not isinstance(value, (str, list)):
            raise TypeError(f"template: must be a str or a list of str (got {shown(value)})")
        texts = value.split(" ") if isinstance(value, str) else value
        self.__dict__[name] = [_piece(text) if isinstance(text, str) else text for text in texts]

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        pieces = self.pair if is_pair else self.single
        names = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
        return sum(len(self.special_tokens[name]["ids"]) for name in names)

    def apply(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        made = []
        for piece in self.pair if len(encodings) == 2 else self.single:
            if "Sequence" in piece:
                index = int(piece["Sequence"]["id"] != "A")
                encoding = encodings[index].copy()
                encoding.set_type_id(piece["Sequence"]["type_id"])
                encoding.set_sequence_id(index)
                made.append(encoding)
            elif add_special_tokens:
                token = self.special_tokens[piece["SpecialToken"]["id"]]
                made.append(Encoding.special(token["ids"], token["tokens"], piece["SpecialToken"]["type_id"]))
        return made


def _piece(text: str) -> dict[str, Any]:
    """Parse `$A`, `$B:1`, `$0` and `$1` (A with this type), `[SEP]` or `[SEP]:1`."""
    if text.startswith("$"):
        if match := _SEQUENCE.fullmatch(text):
            name, bare_type, type_id = match.groups()
            if not (bare_type and type_id):
                return {"Sequence": {"id": (name or "A").upper(), "type_id": int(bare_type or type_id or 0)}}
    elif match := _SPECIAL.fullmatch(text):
        return {"SpecialToken": {"id": match[1], "type_id": int(match[2] or 0)}}
    raise BadArgument(f"Cannot build Piece from string {shown(text)}")


def _token(token: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(token, Mapping):
        return token["id"], {"id": token["id"], "ids": list(token["ids"]), "tokens": list(token["tokens"])}
    if not isinstance(token, (list, tuple)) or len(token) != 2:
        raise TypeError(f"special_tokens: must be (token, id), (id, token) or a dict (got {shown(token)})")
    text, id_ = token[::-1] if isinstance(token[0], int) else token
    text, id_ = arguments.text("special token", text), arguments.id_number("special token ID", id_)
    return text, {"id": text, "ids": [id_], "tokens": [text]}


class Sequence(SequenceOf, PostProcessor):
    """Post-processors that are applied in order."""

    list_key = "processors"

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        return sum(each.num_special_tokens_to_add(is_pair) for each in self.items)

    def apply(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        for each in self.items:
            encodings = each.apply(encodings, add_special_tokens)
        return encodings
