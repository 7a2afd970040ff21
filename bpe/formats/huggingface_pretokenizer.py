"""tokenizer.json's pre_tokenizer and the components of `bpe.pretokenization.components`, both ways.

Every field is checked; one that is left out has the value that `tokenizers` gives it. Sequences within sequences are
one sequence. What is written is cut alike by `tokenizers`, though not always spelled as it was read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, Final, get_args

from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.faults import PATTERN_FORM, must_be, unsupported
from bpe.formats.json_input import component_type, expect, expect_object, flat_sequence
from bpe.patterns import HUGGINGFACE_SPELLINGS, pattern_name
from bpe.pretokenization.components import (
    Behavior,
    BertPreTokenizer,
    ByteLevel,
    CharDelimiterSplit,
    Component,
    Dialect,
    Digits,
    FixedLength,
    Metaspace,
    Punctuation,
    Split,
    UnicodeScripts,
    Whitespace,
    WhitespaceSplit,
)
from bpe.pretokenization.stages import tree_of
from bpe.pretokenization.write_pattern import to_oniguruma
from bpe.pretokenizer import Pretokenizer, named

_POSSESSIVE_INTERVAL: Final = re.compile(r"\{\d*,?\d*\}\+")
_FLAG: Final = (False, True)
_BEHAVIORS: Final = get_args(Behavior)

# -- reading -----------------------------------------------------------------------------------------------------


def components_from_json(value: Any, path: str = "pre_tokenizer") -> list[tuple[Component, str]]:
    """(component, its JSON path) of a pre_tokenizer in order; none for null. Errors name the JSON path."""
    return [(_component(item, where), where) for item, where in flat_sequence(value, path, "pretokenizers")]


def is_byte_level(components: Iterable[Component]) -> bool:
    """Whether the pieces are bytes in the byte alphabet in the end."""
    return any(isinstance(component, ByteLevel) for component in components)


def _component(item: dict[str, Any], path: str) -> Component:
    name = component_type(item, path)
    reader = _READERS.get(name)
    if reader is None:
        raise unsupported(path, name, ", ".join(_READERS))
    return reader(item, path)


def _fields(item: dict[str, Any], path: str, **allowed: tuple[Any, Sequence[Any]]) -> dict[str, Any]:
    """field -> value; allowed: (its default, the values it may have)."""
    expect_object(item, path, {"type", *allowed})
    for name, (default, values) in allowed.items():
        expect(item.get(name, default), values, f"{path}.{name}")
    return {name: item.get(name, default) for name, (default, _) in allowed.items()}


def _byte_level(item: dict[str, Any], path: str) -> Component:
    flag = (True, _FLAG)
    return ByteLevel(**_fields(item, path, add_prefix_space=flag, use_regex=flag, trim_offsets=flag))


def _split(item: dict[str, Any], path: str) -> Component:
    expect_object(item, path, {"type", "pattern", "behavior", "invert"})
    expect(item.get("behavior"), _BEHAVIORS, f"{path}.behavior")
    expect(item.get("invert", False), _FLAG, f"{path}.invert")
    pattern = item.get("pattern")
    if not isinstance(pattern, dict) or list(pattern) not in (["Regex"], ["String"]):
        raise must_be(f"{path}.pattern", PATTERN_FORM, pattern)
    (kind, text), *_ = pattern.items()
    if not isinstance(text, str) or not text:
        raise must_be(f"{path}.pattern.{kind}", "a non-empty text", text)
    dialect: Dialect = "oniguruma" if kind == "Regex" else "text"
    return Split(text, dialect, item["behavior"], item.get("invert", False))


def _char_delimiter(item: dict[str, Any], path: str) -> Component:
    expect_object(item, path, {"type", "delimiter"})
    return CharDelimiterSplit(_character(item.get("delimiter"), f"{path}.delimiter"))


def _fixed_length(item: dict[str, Any], path: str) -> Component:
    expect_object(item, path, {"type", "length"})
    length = item.get("length", 5)
    if type(length) is not int or length < 1:
        raise must_be(f"{path}.length", "an integer of at least 1", length)
    return FixedLength(length)


def metaspace_from_json(item: dict[str, Any], path: str) -> Metaspace:
    """A Metaspace, of a pre-tokenizer or a decoder."""
    expect_object(
        item, path, {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"}
    )
    scheme = item.get("prepend_scheme", "always")
    expect(scheme, ("always", "first", "never"), f"{path}.prepend_scheme")
    expect(item.get("split"), (*_FLAG, None), f"{path}.split")
    prefix = item.get("add_prefix_space")  # older files say it beside the scheme or in its place
    expect(prefix, (*_FLAG, None), f"{path}.add_prefix_space")
    if prefix is False and scheme != "never":
        raise BadTokenizer(f"{path}.add_prefix_space: contradicts prepend_scheme {shown(scheme)} (got False)")
    replacement = _character(item.get("replacement"), f"{path}.replacement")
    return Metaspace(replacement, scheme, item.get("split") is not False)


def _character(value: Any, path: str) -> str:
    if not isinstance(value, str) or len(value) != 1:
        raise must_be(path, "one character", value)
    return value


def _plain(component: Component) -> Callable[[dict[str, Any], str], Component]:
    def read(item: dict[str, Any], path: str) -> Component:
        expect_object(item, path, {"type"})
        return component

    return read


_READERS: Final[dict[str, Callable[[dict[str, Any], str], Component]]] = {
    "ByteLevel": _byte_level,
    "Split": _split,
    "Digits": lambda item, path: Digits(**_fields(item, path, individual_digits=(False, _FLAG))),
    "Punctuation": lambda item, path: Punctuation(**_fields(item, path, behavior=("Isolated", _BEHAVIORS))),
    "Whitespace": _plain(Whitespace()),
    "WhitespaceSplit": _plain(WhitespaceSplit()),
    "BertPreTokenizer": _plain(BertPreTokenizer()),
    "CharDelimiterSplit": _char_delimiter,
    "UnicodeScripts": _plain(UnicodeScripts()),
    "FixedLength": _fixed_length,
    "Metaspace": metaspace_from_json,
}

# -- writing -----------------------------------------------------------------------------------------------------


def components_to_json(components: Sequence[Component]) -> dict[str, Any] | None:
    """The pre_tokenizer of the components; None for none. Splits must be in Hugging Face's dialect, or texts."""
    items = [_component_to_json(component) for component in components]
    if len(items) < 2:
        return items[0] if items else None
    return {"type": "Sequence", "pretokenizers": items}


def _component_to_json(component: Component) -> dict[str, Any]:
    name = type(component).__name__
    if isinstance(component, Split):
        kind = "String" if component.dialect == "text" else "Regex"
        return {
            "type": name,
            "pattern": {kind: component.expression},
            "behavior": component.behavior,
            "invert": component.invert,
        }
    return {"type": name} | {field.name: getattr(component, field.name) for field in fields(component)}


# -- as a Pretokenizer --------------------------------------------------------------------------------------------


def pretokenizer_from_json(value: Any, as_text: bool = False) -> Pretokenizer:
    """The pre-tokenizer of byte-level entries; UnsupportedTokenizer for components that can't be executed.

    as_text: of entries that are text.
    """
    found = components_from_json(value)
    components = [component for component, _ in found]
    if not as_text and not is_byte_level(components):
        kinds = ", ".join(type(component).__name__ for component in components) or "none"
        raise UnsupportedTokenizer(f"pre_tokenizer: must contain ByteLevel (got {kinds})")
    for component, path in found:
        if isinstance(component, Split):
            _check_expression(component, path)
    last = components[-1] if components else None
    if isinstance(last, ByteLevel) and not (
        last.use_regex or last.add_prefix_space or is_byte_level(components[:-1])
    ):
        components.pop()  # it does nothing but spell the bytes
    if name := _name_of(components):
        return named(name)
    try:
        return Pretokenizer(tuple(components)).checked()
    except UnsupportedTokenizer as error:
        raise UnsupportedTokenizer(f"pre_tokenizer: {error}") from None


def _check_expression(split: Split, path: str) -> None:
    try:
        tree_of(split)
    except UnsupportedTokenizer as error:
        raise UnsupportedTokenizer(f"{path}.{error}") from None
    except BadTokenizer as error:
        raise BadTokenizer(f"{path}.{error}") from None


def _name_of(components: Sequence[Component]) -> str | None:
    match components:
        case [ByteLevel(False, True)]:
            return "gpt2"
        case [
            Split(expression, "oniguruma", "Isolated", False)
            | Split(expression, "oniguruma", "Removed", True)
        ]:
            # `{1,3}+` is a repetition to Oniguruma, so tiktoken's spelling of cl100k is not cl100k in this file.
            return None if _POSSESSIVE_INTERVAL.search(expression) else pattern_name(expression)
    return None


def pretokenizer_to_json(pretokenizer: Pretokenizer, as_text: bool = False) -> dict[str, Any] | None:
    """The pre_tokenizer that cuts alike. as_text: for entries that are text."""
    name = pretokenizer.name
    if name == "gpt2" and not as_text:
        return components_to_json([ByteLevel(add_prefix_space=False)])
    components = list(pretokenizer.components)
    if name:
        components = [Split(HUGGINGFACE_SPELLINGS[name], "oniguruma")]
    components = [_in_oniguruma(each) if isinstance(each, Split) else each for each in components]
    if not as_text and not is_byte_level(components):
        components.append(ByteLevel(add_prefix_space=False, use_regex=False))
    return components_to_json(components)


def _in_oniguruma(split: Split) -> Split:
    """The same in Hugging Face's dialect. Where text between matches is an error, a reader that keeps it cuts all
    other text alike and loses none."""
    if split.dialect != "rust":
        return split
    return replace(split, expression=to_oniguruma(tree_of(split)), dialect="oniguruma", gaps_are_errors=False)
