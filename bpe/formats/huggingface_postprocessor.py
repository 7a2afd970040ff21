"""Readers of the post_processor, truncation and padding of a tokenizer.json, in the form that `save` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.faults import must_be, unsupported
from bpe.formats.json_input import (
    component_type,
    expect,
    expect_integer,
    expect_list,
    expect_object,
    expect_text,
    flag_field,
    flat_sequence,
    sequence_of,
)
from bpe.post_processing import PostProcessor
from bpe.vocabulary import MAX_ID

_MAX_COUNT: Final = 2**63


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
        name = component_type(item, path)
        if name == "ByteLevel":
            items.append(_byte_level(item, path))
            continue
        if name not in ("TemplateProcessing", "RobertaProcessing", "BertProcessing"):
            supported = "ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing"
            raise unsupported(path, name, supported)
        if adds:
            raise unsupported(path, name, f"one component that adds tokens, which is {adds}")
        adds = name
        if name == "TemplateProcessing":
            items.append(_template(item, path, special_tokens))
            front, back = _ids_around(items[-1], path)
        else:
            items.append(_cls_and_sep(item, path, name))
            front, back = [items[-1]["cls"][1]], [items[-1]["sep"][1]]
    component = sequence_of(items, "processors")
    return None if component is None else PostProcessor(component, tuple(front), tuple(back))


def _byte_level(item: dict[str, Any], path: str) -> dict[str, Any]:
    names = ("add_prefix_space", "trim_offsets", "use_regex")
    expect_object(item, path, {"type", *names})
    return {"type": "ByteLevel"} | {name: flag_field(item, name, path, True) for name in names}


def _cls_and_sep(item: dict[str, Any], path: str, name: str) -> dict[str, Any]:
    flags = ("trim_offsets", "add_prefix_space") if name == "RobertaProcessing" else ()
    expect_object(item, path, {"type", "sep", "cls", *flags})
    kept: dict[str, Any] = {"type": name}
    for key in ("sep", "cls"):
        token = item.get(key)
        if not isinstance(token, list) or len(token) != 2 or not isinstance(token[0], str):
            raise must_be(f"{path}.{key}", "[token, id]", token)
        kept[key] = [token[0], expect_integer(token[1], f"{path}.{key}[1]", most=MAX_ID)]
    return kept | {flag: flag_field(item, flag, path, True) for flag in flags}


def _template(item: dict[str, Any], path: str, special_tokens: Mapping[str, int]) -> dict[str, Any]:
    expect_object(item, path, {"type", "single", "pair", "special_tokens"})
    named = item.get("special_tokens")
    if not isinstance(named, dict):
        raise must_be(f"{path}.special_tokens", "an object", named)
    for text, token in named.items():
        where = f"{path}.special_tokens[{shown(text)}]"
        ids = token.get("ids") if isinstance(token, dict) else None
        if text in special_tokens and ids != [special_tokens[text]]:
            raise must_be(f"{where}.ids", f"[{special_tokens[text]}]", ids)
        expect_object(token, where, {"id", "ids", "tokens"})
        for index, id_ in enumerate(expect_list(ids, f"{where}.ids")):
            expect_integer(id_, f"{where}.ids[{index}]", most=MAX_ID)
        if len(expect_list(token.get("tokens"), f"{where}.tokens")) != len(token["ids"]):
            raise BadTokenizer(
                f"{where}: must have as many tokens as IDs (got {len(token['tokens'])} and {len(token['ids'])})"
            )
    return {
        "type": "TemplateProcessing",
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
        kind = next(iter(piece))
        content = expect_object(piece[kind], f"{where}.{kind}", {"id", "type_id"})
        expect_integer(content.get("type_id"), f"{where}.{kind}.type_id", most=2**32 - 1)
        if kind == "Sequence":
            expect(content.get("id"), ("A", "B"), f"{where}.Sequence.id")
        elif content.get("id") not in named:
            raise must_be(f"{where}.SpecialToken.id", "one of its special_tokens", content.get("id"))
    return pieces


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


def truncation_from_json(value: Any) -> dict[str, Any] | None:
    """Read the truncation, with all of its fields."""
    if value is None:
        return None
    names = ("direction", "max_length", "strategy", "stride")
    given = expect_object(value, "truncation", names)
    expect(given.get("direction", "Right"), ("Left", "Right"), "truncation.direction")
    expect(given.get("strategy"), ("LongestFirst", "OnlyFirst", "OnlySecond"), "truncation.strategy")
    for name in ("max_length", "stride"):
        expect_integer(given.get(name), f"truncation.{name}", most=_MAX_COUNT)
    return {name: given.get(name, "Right") for name in names}


def padding_from_json(value: Any) -> dict[str, Any] | None:
    """Read the padding, with all of its fields."""
    if value is None:
        return None
    names = ("strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token")
    given = expect_object(value, "padding", names)
    strategy = given.get("strategy")
    if isinstance(strategy, dict):
        expect_object(strategy, "padding.strategy", {"Fixed"})
        expect_integer(strategy.get("Fixed"), "padding.strategy.Fixed", most=_MAX_COUNT)
    else:
        expect(strategy, ["BatchLongest"], "padding.strategy", 'or {"Fixed": length}')
    expect(given.get("direction"), ("Left", "Right"), "padding.direction")
    if given.get("pad_to_multiple_of") is not None:
        expect_integer(given["pad_to_multiple_of"], "padding.pad_to_multiple_of", most=_MAX_COUNT)
    for name in ("pad_id", "pad_type_id"):
        expect_integer(given.get(name), f"padding.{name}", most=2**32 - 1)
    expect_text(given.get("pad_token"), "padding.pad_token")
    return {name: given.get(name) for name in names}
