"""Readers of the post_processor, truncation and padding of a tokenizer.json, in the form that `save` writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.faults import must_be, unsupported
from bpe.formats.json_input import (
    FLAG,
    Fields,
    expect,
    expect_integer,
    expect_list,
    expect_object,
    expect_text,
    flat_sequence,
    list_of,
    one_of,
    optional,
    read_fields,
    sequence_of,
)
from bpe.post_processing import PostProcessor
from bpe.vocabulary import MAX_ID


def _token_pair(value: Any, path: str) -> list[Any]:
    if not isinstance(value, (list, tuple)) or len(value) != 2 or not isinstance(value[0], str):
        raise must_be(path, "[token, id]", value)
    return [value[0], expect_integer(value[1], f"{path}[1]", most=MAX_ID)]


def _padding_strategy(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return read_fields(value, path, {"Fixed": (_count, None)})
    return expect(value, ["BatchLongest"], path, 'or {"Fixed": length}')


_count: Final = partial(expect_integer, most=2**63)
_uint32: Final = partial(expect_integer, most=2**32 - 1)
_direction: Final = one_of("Left", "Right")
_ON: Final = (FLAG, True)
_AROUND: Final[Fields] = {"sep": (_token_pair, None), "cls": (_token_pair, None)}
# The components without a template.
PROCESSORS: Final[dict[str, Fields]] = {
    "ByteLevel": {"add_prefix_space": _ON, "trim_offsets": _ON, "use_regex": _ON},
    "RobertaProcessing": {**_AROUND, "trim_offsets": _ON, "add_prefix_space": _ON},
    "BertProcessing": _AROUND,
}
_SPECIAL_TOKEN: Final[Fields] = {
    "id": (expect_text, None),
    "ids": (list_of(partial(expect_integer, most=MAX_ID)), None),
    "tokens": (list_of(expect_text), None),
}
TRUNCATION: Final[Fields] = {
    "direction": (_direction, "Right"),
    "max_length": (_count, None),
    "strategy": (one_of("LongestFirst", "OnlyFirst", "OnlySecond"), None),
    "stride": (_count, None),
}
PADDING: Final[Fields] = {
    "strategy": (_padding_strategy, None),
    "direction": (_direction, None),
    "pad_to_multiple_of": (optional(_count), None),
    "pad_id": (_uint32, None),
    "pad_type_id": (_uint32, None),
    "pad_token": (expect_text, None),
}


def truncation_from_json(value: Any) -> dict[str, Any] | None:
    """Read the truncation, with all of its fields."""
    return None if value is None else read_fields(value, "truncation", TRUNCATION)


def padding_from_json(value: Any) -> dict[str, Any] | None:
    """Read the padding, with all of its fields."""
    return None if value is None else read_fields(value, "padding", PADDING)


def post_processor_from_json(value: Any, special_tokens: Mapping[str, int]) -> PostProcessor | None:
    """Read a post_processor. special_tokens: the IDs of the added tokens by text.

    Supports any number of ByteLevel components and one component that adds tokens. With two of them, Hugging Face
    tokenizers fails as well.
    """
    items: list[dict[str, Any]] = []
    front: list[int] = []
    back: list[int] = []
    adds = ""
    for item, path in flat_sequence(value, "post_processor", "processors"):
        name = item["type"]
        if name not in PROCESSORS and name != "TemplateProcessing":
            raise unsupported(path, name, ", ".join([*PROCESSORS, "TemplateProcessing"]))
        if adds and name != "ByteLevel":
            raise unsupported(path, name, f"one component that adds tokens, which is {adds}")
        given = {key: item[key] for key in item if key != "type"}
        if name == "TemplateProcessing":
            made = _template(given, path, special_tokens)
            front, back = _ids_around(made, path)
        else:
            made = read_fields(given, path, PROCESSORS[name])
            if name != "ByteLevel":
                front, back = [made["cls"][1]], [made["sep"][1]]
        adds = adds if name == "ByteLevel" else name
        items.append({"type": name} | made)
    component = sequence_of(items, "processors")
    return None if component is None else PostProcessor(component, tuple(front), tuple(back))


def _template(item: dict[str, Any], path: str, special_tokens: Mapping[str, int]) -> dict[str, Any]:
    expect_object(item, path, {"single", "pair", "special_tokens"})
    named = item.get("special_tokens")
    if not isinstance(named, dict):
        raise must_be(f"{path}.special_tokens", "an object", named)
    for text, token in named.items():
        where = f"{path}.special_tokens[{shown(text)}]"
        ids, tokens = (read_fields(token, where, _SPECIAL_TOKEN)[name] for name in ("ids", "tokens"))
        if text in special_tokens and ids != [special_tokens[text]]:
            raise must_be(f"{where}.ids", f"[{special_tokens[text]}]", ids)
        if len(tokens) != len(ids):
            raise BadTokenizer(f"{where}: must have as many tokens as IDs (got {len(tokens)} and {len(ids)})")
    return {
        "single": _pieces(item.get("single"), f"{path}.single", named),
        "pair": _pieces(item.get("pair"), f"{path}.pair", named),
        "special_tokens": dict(sorted(named.items())),
    }


def _pieces(value: Any, path: str, named: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the pieces of a template: objects with `Sequence` or `SpecialToken`."""
    pieces = expect_list(value, path)
    for index, piece in enumerate(pieces):
        where = f"{path}[{index}]"
        expect_object(piece, where, {"Sequence", "SpecialToken"})
        if len(piece) != 1:
            raise must_be(where, "a Sequence or a SpecialToken", piece)
        ((kind, content),) = piece.items()
        read_id = one_of("A", "B") if kind == "Sequence" else partial(_token_of, named)
        read_fields(content, f"{where}.{kind}", {"id": (read_id, None), "type_id": (_uint32, None)})
    return pieces


def _token_of(named: dict[str, Any], value: Any, path: str) -> Any:
    if not isinstance(value, str) or value not in named:
        raise must_be(path, "one of its special_tokens", value)
    return value


def _ids_around(template: dict[str, Any], path: str) -> tuple[list[int], list[int]]:
    """Return the IDs before and after a single text."""
    parts: list[list[int]] = [[]]
    for index, piece in enumerate(template["single"]):
        if sequence := piece.get("Sequence"):
            expect(sequence["id"], ["A"], f"{path}.single[{index}].Sequence.id", "a single text")
            parts.append([])
        else:
            parts[-1] += template["special_tokens"][piece["SpecialToken"]["id"]]["ids"]
    if len(parts) != 2:
        raise UnsupportedTokenizer(f"{path}.single: must contain the text once (got {len(parts) - 1} times)")
    return parts[0], parts[1]
