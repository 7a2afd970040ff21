"""Reader and writer of the pre_tokenizer of a tokenizer.json.

A missing field has the default of Hugging Face tokenizers. Nested sequences become one. The written components split
text like those that were read, but may be spelled differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, Final, get_args

from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.faults import must_be, unsupported, within
from bpe.formats.json_input import (
    component_type,
    expect,
    expect_integer,
    expect_object,
    expect_text,
    flag_field,
    flat_sequence,
    pattern_field,
    sequence_of,
)
from bpe.patterns import HUGGINGFACE_SPELLINGS, pattern_name
from bpe.pretokenization.components import (
    Behavior,
    BertPreTokenizer,
    ByteLevel,
    CharDelimiterSplit,
    Component,
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
_BEHAVIORS: Final = get_args(Behavior)

# -- reading -----------------------------------------------------------------------------------------------------


def components_from_json(value: Any, path: str = "pre_tokenizer") -> list[tuple[Component, str]]:
    """Return the components of a pre_tokenizer in order, with their JSON paths; [] for null."""
    return [(_component(item, where), where) for item, where in flat_sequence(value, path, "pretokenizers")]


def is_byte_level(components: Iterable[Component]) -> bool:
    """Return whether the components spell pieces in the byte alphabet."""
    return any(isinstance(component, ByteLevel) for component in components)


def _component(item: dict[str, Any], path: str) -> Component:
    name = component_type(item, path)
    reader = _READERS.get(name)
    if reader is None:
        raise unsupported(path, name, ", ".join(_READERS))
    return reader(item, path)


def _byte_level(item: dict[str, Any], path: str) -> Component:
    names = ("add_prefix_space", "use_regex", "trim_offsets")
    expect_object(item, path, {"type", *names})
    return ByteLevel(**{name: flag_field(item, name, path, True) for name in names})


def _split(item: dict[str, Any], path: str) -> Component:
    expect_object(item, path, {"type", "pattern", "behavior", "invert"})
    behavior = expect(item.get("behavior"), _BEHAVIORS, f"{path}.behavior")
    invert = flag_field(item, "invert", path, False)
    text, is_expression = pattern_field(item, path)
    if not text:
        raise must_be(f"{path}.pattern.{'Regex' if is_expression else 'String'}", "a non-empty text", text)
    return Split(text, "oniguruma" if is_expression else "text", behavior, invert)


def _digits(item: dict[str, Any], path: str) -> Component:
    expect_object(item, path, {"type", "individual_digits"})
    return Digits(flag_field(item, "individual_digits", path, False))


def _punctuation(item: dict[str, Any], path: str) -> Component:
    expect_object(item, path, {"type", "behavior"})
    return Punctuation(expect(item.get("behavior", "Isolated"), _BEHAVIORS, f"{path}.behavior"))


def _char_delimiter(item: dict[str, Any], path: str) -> Component:
    expect_object(item, path, {"type", "delimiter"})
    return CharDelimiterSplit(expect_text(item.get("delimiter"), f"{path}.delimiter", size=1))


def _fixed_length(item: dict[str, Any], path: str) -> Component:
    expect_object(item, path, {"type", "length"})
    return FixedLength(expect_integer(item.get("length", 5), f"{path}.length", least=1))


def metaspace_from_json(item: dict[str, Any], path: str) -> Metaspace:
    """Read a Metaspace of a pre-tokenizer or a decoder."""
    expect_object(
        item, path, {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"}
    )
    scheme = expect(
        item.get("prepend_scheme", "always"), ("always", "first", "never"), f"{path}.prepend_scheme"
    )
    split = expect(item.get("split"), (False, True, None), f"{path}.split")
    # Older files have add_prefix_space in addition to prepend_scheme or instead of it.
    prefix = expect(item.get("add_prefix_space"), (False, True, None), f"{path}.add_prefix_space")
    if prefix is False and scheme != "never":
        raise BadTokenizer(f"{path}.add_prefix_space: contradicts prepend_scheme {shown(scheme)} (got False)")
    replacement = expect_text(item.get("replacement"), f"{path}.replacement", size=1)
    return Metaspace(replacement, scheme, split is not False)


def _plain(component: Component) -> Callable[[dict[str, Any], str], Component]:
    def read(item: dict[str, Any], path: str) -> Component:
        expect_object(item, path, {"type"})
        return component

    return read


_READERS: Final[dict[str, Callable[[dict[str, Any], str], Component]]] = {
    "ByteLevel": _byte_level,
    "Split": _split,
    "Digits": _digits,
    "Punctuation": _punctuation,
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
    """Return components in tokenizer.json's form. Splits must be in Hugging Face's dialect, or texts."""
    return sequence_of([_component_to_json(component) for component in components], "pretokenizers")


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
    """Read a pre-tokenizer. Raise UnsupportedTokenizer for components that cannot be executed.

    as_text: whether entries are text, not bytes.
    """
    found = components_from_json(value)
    components = [component for component, _ in found]
    if not as_text and not is_byte_level(components):
        kinds = ", ".join(type(component).__name__ for component in components) or "none"
        raise UnsupportedTokenizer(f"pre_tokenizer: must contain ByteLevel (got {kinds})")
    for component, path in found:
        if isinstance(component, Split):
            with within(path, "."):
                tree_of(component)
    last = components[-1] if components else None
    if isinstance(last, ByteLevel) and not (
        last.use_regex or last.add_prefix_space or is_byte_level(components[:-1])
    ):
        components.pop()  # it only spells the bytes
    if name := _name_of(components):
        return named(name)
    with within("pre_tokenizer"):
        return Pretokenizer(tuple(components)).checked()


def _name_of(components: Sequence[Component]) -> str | None:
    match components:
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
    components = list(pretokenizer.components)
    if name:
        components = [Split(HUGGINGFACE_SPELLINGS[name], "oniguruma")]
    components = [_in_oniguruma(each) if isinstance(each, Split) else each for each in components]
    if not as_text and not is_byte_level(components):
        components.append(ByteLevel(add_prefix_space=False, use_regex=False))
    return components_to_json(components)


def _in_oniguruma(split: Split) -> Split:
    """Return the Split in Hugging Face's dialect.

    Text between matches, which is an error here, becomes a pretoken in Hugging Face tokenizers.
    """
    if split.dialect != "rust":
        return split
    return replace(
        split, expression=to_oniguruma(split.expression), dialect="oniguruma", gaps_are_errors=False
    )
