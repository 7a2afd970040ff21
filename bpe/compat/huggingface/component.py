"""The base of normalizers, pre-tokenizers, post-processors and decoders: dataclasses that tokenizer.json can hold.

A component is mutable, as in tokenizers. A tokenizer compares its components with those that its core was built from.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

from bpe.compat.huggingface import arguments
from bpe.errors import BadArgument, UnsupportedTokenizer, shown

Behavior = str
Scheme = str
Character = str
TokenAndId = tuple[str, int]
_BEHAVIORS: Final = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
_SCHEMES: Final = ("first", "never", "always")


@dataclass(frozen=True)
class Regex:
    """A regular expression in Oniguruma's syntax."""

    pattern: str


Pattern = str | Regex
Charsmap = bytes


def _pattern(name: str, value: Any) -> Pattern:
    if isinstance(value, str):
        return value
    pattern = getattr(value, "pattern", None)  # a Regex of this package or of tokenizers
    if not isinstance(pattern, str):
        raise TypeError(f"{name}: must be a str or a Regex (got {shown(value)})")
    return Regex(pattern)


def _token_and_id(name: str, value: Any) -> TokenAndId:
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(f"{name}: must be (token, id) (got {shown(value)})")
    return arguments.text(name, value[0]), arguments.id_number(name, value[1])


def _same(value: Any) -> Any:
    return value


class _FieldType(NamedTuple):
    """check: (name, value) -> value to set. is_hidden: the field cannot be read or changed."""

    check: Callable[[str, Any], Any]
    to_json: Callable[[Any], Any] = _same
    from_json: Callable[[Any], Any] = _same
    is_hidden: bool = False


_FIELD_TYPES: Final = {
    "bool": _FieldType(arguments.flag),
    "bool | None": _FieldType(lambda name, value: None if value is None else arguments.flag(name, value)),
    "str": _FieldType(arguments.text),
    "str | None": _FieldType(lambda name, value: None if value is None else arguments.text(name, value)),
    "int": _FieldType(arguments.count),
    "float | None": _FieldType(lambda _, value: value),
    "Character": _FieldType(arguments.character),
    "Scheme": _FieldType(lambda name, value: arguments.one_of(name, value, _SCHEMES)),
    "Behavior": _FieldType(
        lambda name, value: arguments.one_of(name, value, _BEHAVIORS), arguments.camel, arguments.snake
    ),
    "TokenAndId": _FieldType(_token_and_id, _same, tuple),
    "Pattern": _FieldType(
        _pattern,
        lambda value: {"String": value} if isinstance(value, str) else {"Regex": value.pattern},
        lambda value: Regex(value["Regex"]) if "Regex" in value else value["String"],
        is_hidden=True,
    ),
    "Charsmap": _FieldType(
        lambda _, value: bytes(value), lambda value: base64.b64encode(value).decode(), base64.b64decode, True
    ),
    # only in TemplateProcessing, which checks them
    "list[Any]": _FieldType(lambda _, value: value),
    "dict[str, Any]": _FieldType(lambda _, value: dict(sorted(value.items()))),
}


class Component:
    """A component. Derived classes are dataclasses with fields of the types above.

    keys: field -> key in tokenizer.json, where they differ. kinds: class by name, for each of Normalizer, PreTokenizer,
    PostProcessor and Decoder.
    """

    keys: ClassVar[Mapping[str, str]] = MappingProxyType({})
    base: ClassVar[type[Component]]
    kinds: ClassVar[dict[str, type[Component]]]

    def __init_subclass__(cls) -> None:
        if Component in cls.__bases__:
            cls.base, cls.kinds = cls, {}
        else:
            cls.kinds[cls.__name__] = cls

    @classmethod
    def _fields(cls) -> list[Field[Any]]:
        return list(getattr(cls, "__dataclass_fields__", {}).values())

    def __setattr__(self, name: str, value: Any) -> None:
        known = {field.name: _FIELD_TYPES[str(field.type)] for field in self._fields()}
        if name not in known or "_" + name in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: attribute {name!r} cannot be set")
        self.__dict__["_" * known[name].is_hidden + name] = known[name].check(name, value)

    def to_json(self) -> dict[str, Any]:
        """Return the component as tokenizer.json has it."""
        made: dict[str, Any] = {"type": type(self).__name__}
        for field in self._fields():
            kind = _FIELD_TYPES[str(field.type)]
            value = self.__dict__["_" * kind.is_hidden + field.name]
            made[self.keys.get(field.name, field.name)] = kind.to_json(value)
        return made

    @classmethod
    def from_json(cls, value: Any) -> Any:
        """Return the component that tokenizer.json has, None for null. Raise UnsupportedTokenizer for another type."""
        if value is None:
            return None
        name = value.get("type") if isinstance(value, dict) else None
        if name not in cls.kinds:
            raise UnsupportedTokenizer(
                f"{cls.__name__}: unsupported (got {shown(name)}). Supported: {', '.join(cls.kinds)}."
            )
        made = cls.kinds[name].__new__(cls.kinds[name])
        made.__setstate__(value)
        return made

    @classmethod
    def coerce(cls, value: Any) -> Any:
        """Return a component or None. Components of tokenizers are converted."""
        if value is None or isinstance(value, cls):
            return value
        try:
            return cls.from_json(json.loads(value.__getstate__()))
        except (AttributeError, TypeError, ValueError):
            raise TypeError(f"component: must be a {cls.__name__} or None (got {shown(value)})") from None

    def __getstate__(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    def __setstate__(self, state: bytes | dict[str, Any]) -> None:
        value = json.loads(state) if isinstance(state, bytes) else state
        for field in self._fields():
            key = self.keys.get(field.name, field.name)
            if key in value:
                setattr(self, field.name, _FIELD_TYPES[str(field.type)].from_json(value[key]))
            elif field.default is MISSING:
                raise BadArgument(f"{type(self).__name__}.{key}: missing")
            else:
                setattr(self, field.name, field.default)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return short_repr(self.to_json())

    def __str__(self) -> str:
        return short_repr(self.to_json(), SHORT)


class SequenceOf:
    """Components that are applied in order; `list_key` in tokenizer.json.

    is_flat: the constructor replaces sequences among the items by their items.
    """

    list_key: ClassVar[str]
    is_flat: ClassVar[bool] = True
    base: ClassVar[type[Component]]
    items: list[Any]

    def __init__(self, items: Any = ()) -> None:
        if not isinstance(items, (list, tuple)):
            raise TypeError(f"{type(self).__name__}: must be a list of components (got {shown(items)})")
        self._set([self.base.coerce(item) for item in items])

    def _set(self, items: list[Any]) -> None:
        self.__dict__["items"] = [
            each
            for item in items
            for each in (item.items if self.is_flat and isinstance(item, SequenceOf) else [item])
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self.items[index] = self.base.coerce(value)

    def to_json(self) -> dict[str, Any]:
        return {"type": "Sequence", self.list_key: [item.to_json() for item in self.items]}

    def __setstate__(self, state: bytes | dict[str, Any]) -> None:
        value = json.loads(state) if isinstance(state, bytes) else state
        self.__dict__["items"] = [self.base.from_json(item) for item in value.get(self.list_key, [])]


# -- repr and str --------------------------------------------------------------------------------------------------

SHORT: Final = 5  # items that str() shows
_LONG: Final = 99  # items that repr() shows
_MAX_TEXT: Final = 100  # characters that str() shows
_BARE: Final = {"behavior", "prepend_scheme", "direction", "strategy"}  # fields that are shown without quotes


def short_repr(value: Any, max_items: int = _LONG) -> str:
    """Return JSON as tokenizers shows it: an object with a type as `Type(field=value)`."""
    match value:
        case {"type": str(name), **rest}:
            named = (
                f"{key}={each if key in _BARE and isinstance(each, str) else short_repr(each, max_items)}"
                for key, each in rest.items()
            )
            return f"{name}({', '.join(named)})"
        case {"Sequence": {"id": name, "type_id": type_id}}:
            return f"Sequence(id={name}, type_id={type_id})"
        case {"SpecialToken": {"id": name, "type_id": type_id}}:
            return f'SpecialToken(id="{name}", type_id={type_id})'
        case {"id": str(name), "ids": ids, "tokens": tokens}:
            shown_tokens = f"ids={short_repr(ids, max_items)}, tokens={short_repr(tokens, max_items)}"
            return f'SpecialToken(id="{name}", {shown_tokens})'
        case {"Fixed": int(length)}:
            return f"Fixed({length})"
        case {"String": str(text)} | {"Regex": str(text)}:
            return f'{next(iter(value))}("{text}")'
        case dict():
            items = [f"{short_repr(key)}:{short_repr(each, max_items)}" for key, each in value.items()]
            return f"{{{_joined(items, max_items)}}}"
        case list() | tuple():
            left, right = "[]" if isinstance(value, list) else "()"
            return f"{left}{_joined([short_repr(each, max_items) for each in value], max_items)}{right}"
        case str() if max_items > SHORT or len(value) <= _MAX_TEXT:
            return f'"{value}"'
        case str():
            return f'"{value[:_MAX_TEXT]}..."'
    return str(value)


def _joined(items: list[str], max_items: int) -> str:
    return ", ".join(items if len(items) <= max_items else [*items[:max_items], "..."])
