"""Reader and writer of the components of a tokenizer.json: normalizer, pre_tokenizer, decoder, post_processor.

A table per kind lists the types: their class, and the fields in the order of its attributes. Nested sequences become
one. A missing field has the default of Hugging Face tokenizers. Written components do the same as those that were read,
but may be spelled differently.
"""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

from bpe import decoders, normalizers
from bpe.decoders import Decoder
from bpe.end_tokens import PostProcessor
from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.faults import PATTERN_FORM, must_be, unsupported, within
from bpe.formats.json_input import (
    FLAG,
    OPTIONAL_FLAG,
    Fields,
    anything,
    expect,
    expect_character,
    expect_filled,
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
from bpe.normalizers import Normalizer
from bpe.patterns import HUGGINGFACE_SPELLINGS, pattern_name
from bpe.pretokenization import components
from bpe.pretokenization.components import ByteLevel, Component, Split
from bpe.pretokenization.stages import tree_of
from bpe.pretokenization.write_pattern import to_oniguruma
from bpe.pretokenizer import Pretokenizer, named
from bpe.vocabulary import MAX_ID

_POSSESSIVE_INTERVAL: Final = re.compile(r"\{\d*,?\d*\}\+")


class _Type(NamedTuple):
    """make: builds the component from the values of its fields; None: the class."""

    made: type
    fields: Fields = MappingProxyType({})
    make: Callable[..., Any] | None = None


# -- readers of fields, and components that are not built field by field --------------------------------------------


def _pattern(value: Any, path: str) -> tuple[str, bool]:
    """Return the pattern and whether it is a regular expression: {"String": " "} -> (" ", False)."""
    if not isinstance(value, dict) or list(value) not in (["Regex"], ["String"]):
        raise must_be(path, PATTERN_FORM, value)
    ((kind, text),) = value.items()
    return expect_text(text, f"{path}.{kind}"), kind == "Regex"


def _filled_pattern(value: Any, path: str) -> tuple[str, bool]:
    text, is_expression = _pattern(value, path)
    return expect_filled(text, f"{path}.{'Regex' if is_expression else 'String'}"), is_expression


def _pattern_to_json(text: str, is_expression: bool) -> dict[str, str]:
    return {"Regex" if is_expression else "String": text}


def _replace(made: type, pattern: tuple[str, bool], content: str) -> Any:
    with within(f"pattern.{'Regex' if pattern[1] else 'String'}"):
        normalizers.Replace(pattern[0], content, pattern[1]).check()
    return made(pattern[0], content, pattern[1])


def _split(pattern: tuple[str, bool], behavior: components.Behavior, invert: bool) -> Split:
    return Split(pattern[0], "oniguruma" if pattern[1] else "text", behavior, invert)


def _charsmap(value: Any, path: str) -> bytes:
    encoded = expect_text(value, path)
    try:
        return normalizers.Precompiled(base64.b64decode(encoded, validate=True)).charsmap
    except ValueError as error:
        raise BadTokenizer(f"{path}: not a SentencePiece charsmap in base64 ({error})") from None


def _metaspace(
    made: type, replacement: str, scheme: str, split: bool | None, prefix: bool | None, _: Any
) -> Any:
    # Older files have add_prefix_space in addition to prepend_scheme or instead of it.
    if prefix is False and scheme != "never":
        raise BadTokenizer(f"add_prefix_space: contradicts prepend_scheme {shown(scheme)} (got False)")
    return made(replacement, scheme, split is not False)


# -- tables --------------------------------------------------------------------------------------------------------

_REQUIRED_FLAG: Final = (FLAG, None)
_ON: Final = (FLAG, True)
_OFF: Final = (FLAG, False)
_TEXT: Final = (expect_text, None)
_BEHAVIOR: Final = one_of(*get_args(components.Behavior))
_CHARSMAP: Final[Fields] = {"precompiled_charsmap": (_charsmap, None)}
_REPLACE: Final[Fields] = {"pattern": (_pattern, None), "content": _TEXT}
_METASPACE: Final[Fields] = {
    "replacement": (expect_character, None),
    "prepend_scheme": (one_of("always", "first", "never"), "always"),
    "split": (OPTIONAL_FLAG, None),
    "add_prefix_space": (OPTIONAL_FLAG, None),
    "str_rep": (anything, None),
}

NORMALIZERS: Final = {
    **{
        name: _Type(normalizers.Form, make=partial(normalizers.Form, name))
        for name in get_args(normalizers.FormName)
    },
    "Lowercase": _Type(normalizers.Lowercase),
    "StripAccents": _Type(normalizers.StripAccents),
    "Nmt": _Type(normalizers.Nmt),
    "ByteLevel": _Type(normalizers.ByteLevel),
    "Strip": _Type(normalizers.Strip, {"strip_left": _REQUIRED_FLAG, "strip_right": _REQUIRED_FLAG}),
    "Prepend": _Type(normalizers.Prepend, {"prepend": _TEXT}),
    "Replace": _Type(normalizers.Replace, _REPLACE, partial(_replace, normalizers.Replace)),
    "Precompiled": _Type(normalizers.Precompiled, _CHARSMAP),
    "BertNormalizer": _Type(
        normalizers.Bert,
        {
            "clean_text": _REQUIRED_FLAG,
            "handle_chinese_chars": _REQUIRED_FLAG,
            "strip_accents": (OPTIONAL_FLAG, None),
            "lowercase": _REQUIRED_FLAG,
        },
    ),
    # Hugging Face tokenizers does not read files with the SentencePiece components.
    "SentencePiecePrefix": _Type(normalizers.DummyPrefix, {"prefix": _TEXT}),
    "SentencePieceCharsmap": _Type(normalizers.Charsmap, _CHARSMAP),
}
PRETOKENIZERS: Final = {
    "ByteLevel": _Type(ByteLevel, {"add_prefix_space": _ON, "use_regex": _ON, "trim_offsets": _ON}),
    "Split": _Type(
        Split, {"pattern": (_filled_pattern, None), "behavior": (_BEHAVIOR, None), "invert": _OFF}, _split
    ),
    "Digits": _Type(components.Digits, {"individual_digits": _OFF}),
    "Punctuation": _Type(components.Punctuation, {"behavior": (_BEHAVIOR, "Isolated")}),
    "Whitespace": _Type(components.Whitespace),
    "WhitespaceSplit": _Type(components.WhitespaceSplit),
    "BertPreTokenizer": _Type(components.BertPreTokenizer),
    "CharDelimiterSplit": _Type(components.CharDelimiterSplit, {"delimiter": (expect_character, None)}),
    "UnicodeScripts": _Type(components.UnicodeScripts),
    "FixedLength": _Type(components.FixedLength, {"length": (partial(expect_integer, least=1), 5)}),
    "Metaspace": _Type(components.Metaspace, _METASPACE, partial(_metaspace, components.Metaspace)),
}
DECODERS: Final = {
    "BPEDecoder": _Type(decoders.BPEDecoder, {"suffix": (expect_filled, "</w>")}),
    "ByteFallback": _Type(decoders.ByteFallback),
    "ByteLevel": _Type(decoders.ByteLevel, {"add_prefix_space": _ON, "trim_offsets": _ON, "use_regex": _ON}),
    "Fuse": _Type(decoders.Fuse),
    "Metaspace": _Type(decoders.Metaspace, _METASPACE, partial(_metaspace, decoders.Metaspace)),
    "Replace": _Type(decoders.Replace, _REPLACE, partial(_replace, decoders.Replace)),
    "Strip": _Type(
        decoders.Strip,
        {
            "content": (expect_character, None),
            "start": (expect_integer, None),
            "stop": (expect_integer, None),
        },
    ),
}
_NAMES: Final = {
    known.made: (name, known.fields)
    for types in (NORMALIZERS, PRETOKENIZERS, DECODERS)
    for name, known in types.items()
}


def fields_of(types: Mapping[str, _Type]) -> dict[str, Fields]:
    """Return the fields of each type that Hugging Face tokenizers has."""
    return {name: known.fields for name, known in types.items() if not name.startswith("SentencePiece")}


def _read(value: Any, path: str, key: str, types: Mapping[str, _Type]) -> list[tuple[Any, str]]:
    """Return the components in order, with their JSON paths; [] for null."""
    return [(_component(item, where, types), where) for item, where in flat_sequence(value, path, key)]


def _component(item: dict[str, Any], path: str, types: Mapping[str, _Type]) -> Any:
    name = item["type"]
    if name not in types:
        supported = [each for each in types if not each.startswith("SentencePiece")]
        raise unsupported(path, name, ", ".join([*supported, "Sequence"]))
    known = types[name]
    values = read_fields({key: item[key] for key in item if key != "type"}, path, known.fields)
    with within(path, "."):
        return (known.make or known.made)(*values.values())


def _to_json(component: Any) -> dict[str, Any]:
    match component:
        case normalizers.Form():
            return {"type": component.name}
        case normalizers.Replace() | decoders.Replace():
            values: list[Any] = [
                _pattern_to_json(component.pattern, component.is_expression),
                component.content,
            ]
        case Split():
            pattern = _pattern_to_json(component.expression, component.dialect != "text")
            values = [pattern, component.behavior, component.invert]
        case normalizers.Precompiled():
            values = [base64.b64encode(component.charsmap).decode()]
        case _:
            values = [getattr(component, field.name) for field in dataclasses.fields(component)]
    name, fields = _NAMES[type(component)]
    return {"type": name} | dict(zip(fields, values, strict=False))  # without the former fields of Metaspace


# -- normalizer and decoder ----------------------------------------------------------------------------------------


def normalizer_from_json(value: Any, path: str = "normalizer") -> Normalizer | None:
    """Read a normalizer; null and empty sequences are None."""
    found = tuple(component for component, _ in _read(value, path, "normalizers", NORMALIZERS))
    return Normalizer(found) if found else None


def normalizer_to_json(normalizer: Normalizer | None) -> dict[str, Any] | None:
    """Return the normalizer in tokenizer.json's form; several components are a Sequence."""
    made = () if normalizer is None else normalizer.components
    return sequence_of([_to_json(each) for each in made], "normalizers")


def decoder_from_json(value: Any, as_text: bool = True) -> Decoder | None:
    """Read a decoder; null joins the entries by spaces. as_text: whether entries are text, not bytes.

    Return None for ByteLevel alone in a byte-level vocabulary: then entries are decoded as the bytes they are.
    """
    found = tuple(component for component, _ in _read(value, "decoder", "decoders", DECODERS))
    if not as_text and len(found) == 1 and isinstance(found[0], decoders.ByteLevel):
        return None
    return Decoder(found)


def decoder_to_json(decoder: Decoder | None) -> dict[str, Any] | None:
    """Return the decoder in tokenizer.json's form. None is the decoder of a byte-level vocabulary."""
    if decoder is None:
        decoder = Decoder((decoders.ByteLevel(add_prefix_space=False),))
    return sequence_of([_to_json(each) for each in decoder.components], "decoders")


# -- pre_tokenizer -------------------------------------------------------------------------------------------------


def components_from_json(value: Any) -> list[tuple[Component, str]]:
    """Return the components of a pre_tokenizer in order, with their JSON paths; [] for null."""
    return _read(value, "pre_tokenizer", "pretokenizers", PRETOKENIZERS)


def components_to_json(made: Sequence[Component]) -> dict[str, Any] | None:
    """Return components in tokenizer.json's form. Splits must be in Hugging Face's dialect, or texts."""
    return sequence_of([_to_json(component) for component in made], "pretokenizers")


def is_byte_level(made: Iterable[Component]) -> bool:
    """Return whether the components spell pieces in the byte alphabet."""
    return any(isinstance(component, ByteLevel) for component in made)


def pretokenizer_from_json(value: Any, as_text: bool = False) -> Pretokenizer:
    """Read a pre-tokenizer. Raise UnsupportedTokenizer for components that cannot be executed.

    as_text: whether entries are text, not bytes.
    """
    found = components_from_json(value)
    made = [component for component, _ in found]
    if not as_text and not is_byte_level(made):
        kinds = ", ".join(type(component).__name__ for component in made) or "none"
        raise UnsupportedTokenizer(f"pre_tokenizer: must contain ByteLevel (got {kinds})")
    for component, path in found:
        if isinstance(component, Split):
            with within(path, "."):
                tree_of(component)
    last = made[-1] if made else None
    if isinstance(last, ByteLevel) and not (
        last.use_regex or last.add_prefix_space or is_byte_level(made[:-1])
    ):
        made.pop()  # it only spells the bytes
    if name := _name_of(made):
        return named(name)
    with within("pre_tokenizer"):
        return Pretokenizer(tuple(made)).checked()


def _name_of(made: Sequence[Component]) -> str | None:
    match made:
        case [ByteLevel(False, True)]:
            return "gpt2"
        case [
            Split(expression, "oniguruma", "Isolated", False)
            | Split(expression, "oniguruma", "Removed", True)
        ]:
            # Oniguruma reads `{1,3}+` as a repetition, so tiktoken's spelling of cl100k has another meaning here.
            return None if _POSSESSIVE_INTERVAL.search(expression) else pattern_name(expression)
    return None


def pretokenizer_to_json(pretokenizer: Pretokenizer, as_text: bool = False) -> dict[str, Any] | None:
    """Return an equivalent pre_tokenizer in tokenizer.json's form. as_text: whether entries are text."""
    name = pretokenizer.name
    if name == "gpt2" and not as_text:
        return components_to_json([ByteLevel(add_prefix_space=False)])
    made = list(pretokenizer.components)
    if name:
        made = [Split(HUGGINGFACE_SPELLINGS[name], "oniguruma")]
    made = [_in_oniguruma(each) if isinstance(each, Split) else each for each in made]
    if not as_text and not is_byte_level(made):
        made.append(ByteLevel(add_prefix_space=False, use_regex=False))
    return components_to_json(made)


def _in_oniguruma(split: Split) -> Split:
    """Return the Split in Hugging Face's dialect.

    Text between matches, which is an error here, becomes a pretoken in Hugging Face tokenizers.
    """
    if split.dialect != "rust":
        return split
    expression = to_oniguruma(split.expression)
    return dataclasses.replace(split, expression=expression, dialect="oniguruma", gaps_are_errors=False)


# -- post_processor, truncation and padding ----------------------------------------------------------------------------


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
