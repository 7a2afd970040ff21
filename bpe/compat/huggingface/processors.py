"""Post-processors, by the names and arguments of `tokenizers.processors`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bpe.compat.huggingface import arguments
from bpe.compat.huggingface.component import Component, Field, SequenceOf
from bpe.compat.huggingface.encoding import Encoding
from bpe.compat.huggingface.post_process import added_count, post_process
from bpe.errors import BadArgument, shown

_SEQUENCE: Final = re.compile(r"\$(?:([ABab])|(\d+))?(?::(\d+))?")
_SPECIAL: Final = re.compile(r"(.+?)(?::(\d+))?", re.DOTALL)


class PostProcessor(Component):
    """What is put around texts, and what becomes of their offsets."""

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many tokens it adds to a text or a pair."""
        return added_count(self.to_json(), is_pair)

    def process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """One encoding of one or two."""
        encodings = [each.copy() for each in (encoding, pair) if each is not None]
        return post_process(self.to_json(), encodings, add_special_tokens)


class ByteLevel(PostProcessor, add_prefix_space=Field(True), trim_offsets=Field(True), use_regex=Field(True)):
    """Takes the white space from offsets (trim_offsets)."""

    def __init__(
        self,
        add_prefix_space: bool | None = None,
        trim_offsets: bool | None = None,
        use_regex: bool | None = None,
        **_: Any,
    ) -> None:
        super().__init__(*(each is None or each for each in (add_prefix_space, trim_offsets, use_regex)))


def _token_and_id(name: str, value: Any) -> tuple[str, int]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(f"{name}: must be (token, id) (got {shown(value)})")
    return arguments.text(name, value[0]), arguments.id_number(name, value[1])


_TOKEN: Final = Field(from_json=tuple, check=_token_and_id)


def _with_cls(named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names of attributes: `cls` is called cls_token there."""
    return {"cls" if name == "cls_token" else name: value for name, value in named.items()}


class BertProcessing(PostProcessor, sep=_TOKEN, cls=_TOKEN):
    """[CLS] text [SEP], and [SEP] behind the second."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **_with_cls(named))


class RobertaProcessing(
    PostProcessor,
    sep=_TOKEN,
    cls=_TOKEN,
    trim_offsets=Field(True),
    add_prefix_space=Field(True),
):
    """<s> text </s>, and </s> text </s> behind it."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **_with_cls(named))


def _by_name(tokens: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(tokens.items()))


class TemplateProcessing(
    PostProcessor,
    single=Field(check=lambda _, value: _pieces(value)),
    pair=Field(),
    special_tokens=Field(from_json=lambda tokens: dict(sorted(tokens.items()))),
):
    """Tokens and texts in the order of a template: "[CLS] $A [SEP]", "… $B:1 [SEP]:1", or a list of such pieces.

    special_tokens: (token, id), (id, token), or {"id": …, "ids": […], "tokens": […]} each. BadArgument, a ValueError,
    for a piece that is none, and for a token that special_tokens lacks.
    """

    def __init__(
        self,
        single: str | list[str] | None = None,
        pair: str | list[str] | None = None,
        special_tokens: Iterable[Any] | None = None,
        **_: Any,
    ) -> None:
        pieces = [_pieces(given) for given in (single or "$0", pair or "$A:0 $B:1")]
        tokens = dict(sorted(_token(each) for each in special_tokens or ()))
        missing = {
            piece["SpecialToken"]["id"]
            for piece in (*pieces[0], *pieces[1])
            if "SpecialToken" in piece and piece["SpecialToken"]["id"] not in tokens
        }
        if missing:
            raise BadArgument(f"Missing SpecialToken(s) with id(s) `{', '.join(sorted(missing))}`")
        if pair is not None and {piece["Sequence"]["id"] for piece in pieces[1] if "Sequence" in piece} != {
            "A",
            "B",
        }:
            raise BadArgument("Template for `pair` must use both sequences")
        super().__init__(*pieces, tokens)


def _pieces(template: str | list[Any]) -> list[dict[str, Any]]:
    """The pieces of a template; those that are read already stay."""
    if not isinstance(template, (str, list)):
        raise TypeError(f"template: must be a str or a list of str (got {shown(template)})")
    texts = template.split(" ") if isinstance(template, str) else template
    return [_piece(text) if isinstance(text, str) else text for text in texts]


def _piece(text: str) -> dict[str, Any]:
    """`$A`, `$B:1`, `$0` and `$1` (A of this type), `[SEP]`, `[SEP]:1`."""
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
    text, id_ = arguments.text("a special token", text), arguments.id_number("its id", id_)
    return text, {"id": text, "ids": [id_], "tokens": [text]}


class Sequence(SequenceOf, PostProcessor):
    """Post-processors, one after the other."""

    list_key = "processors"
