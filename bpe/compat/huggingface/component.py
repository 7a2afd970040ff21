"""The base of normalizers, pre-tokenizers, post-processors and decoders, which tokenizer.json can hold.

The tables of `bpe.formats` list the fields of each type and check their values. `define` makes a class from the
arguments of its constructor. A component is mutable, as in tokenizers. A tokenizer compares its components with those
that its core was built from.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from types import MappingProxyType
from typing import Any, ClassVar, Final

from bpe.compat.huggingface.arguments import camel, snake
from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer, shown
from bpe.formats.json_input import FLAG, OPTIONAL_FLAG, Fields, expect_character

# Arguments of constructors that several kinds have.
BYTE_LEVEL: Final[dict[str, Any]] = {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}
METASPACE: Final[dict[str, Any]] = {"replacement": "\u2581", "prepend_scheme": "always", "split": True}

TokenAndId = tuple[str, int]
_HIDDEN: Final = ("pattern", "precompiled_charsmap")  # fields that cannot be read or changed


@dataclass(frozen=True)
class Regex:
    """A regular expression in Oniguruma's syntax."""

    pattern: str


def _to_json(name: str, value: Any) -> Any:
    """Return the value of a field in tokenizer.json."""
    if name == "pattern":
        return {"String": value} if isinstance(value, str) else {"Regex": getattr(value, "pattern", None)}
    if name == "precompiled_charsmap":
        return base64.b64encode(value).decode()
    return camel(value) if name == "behavior" and isinstance(value, str) else value


def _from_json(name: str, value: Any) -> Any:
    """Return the value of a field of a component."""
    if name == "pattern":
        return value["String"] if "String" in value else Regex(value["Regex"])
    if name == "precompiled_charsmap":
        return base64.b64decode(value)
    if name == "behavior":
        return snake(value)
    return tuple(value) if name in ("sep", "cls") else value


class Component:
    """A component.

    signature: of the constructor. keys: field -> key in tokenizer.json, in the order of the signature.
    fields: key -> reader, for the values that tokenizer.json can have.
    types: the fields of all types of this kind. kinds: class by name. Both exist for Normalizer, PreTokenizer,
        PostProcessor and Decoder.
    """

    signature: ClassVar[Signature] = Signature()
    keys: ClassVar[Mapping[str, str]] = MappingProxyType({})
    fields: ClassVar[Fields] = MappingProxyType({})
    types: ClassVar[Mapping[str, Fields]] = MappingProxyType({})
    base: ClassVar[type[Component]]
    kinds: ClassVar[dict[str, type[Component]]]

    def __init_subclass__(cls) -> None:
        if Component in cls.__bases__:
            cls.base, cls.kinds = cls, {}
        elif not cls.__name__.startswith("_"):
            cls.kinds[cls.__name__] = cls

    def __init__(self, *given: Any, **named: Any) -> None:
        bound = self.signature.bind(*given, **named)
        bound.apply_defaults()
        for name, value in zip(
            self.keys, bound.arguments.values(), strict=False
        ):  # without unknown arguments
            self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        read = self.fields[self.keys[name]][0]
        try:
            read(_to_json(name, value), name)
        except BadTokenizer as error:
            if isinstance(value, int) and not isinstance(value, bool):
                raise (OverflowError if value < 0 else TypeError)(str(error)) from None
            is_value = isinstance(value, str) and read not in (FLAG, OPTIONAL_FLAG)
            if is_value and read is expect_character:  # in the words of tokenizers, which callers may match
                raise BadArgument(f"{name}: expected a string of length 1 (got {shown(value)})") from None
            raise (BadArgument if is_value else TypeError)(str(error)) from None
        if name == "pattern" and not isinstance(value, str):
            value = Regex(value.pattern)  # of this package or of tokenizers
        self.__dict__["_" * (name in _HIDDEN) + name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.keys or name in _HIDDEN:
            raise AttributeError(f"{type(self).__name__}: attribute {name!r} cannot be set")
        self._put(name, value)

    def to_json(self) -> dict[str, Any]:
        """Return the component as tokenizer.json has it."""
        values = {
            key: _to_json(name, self.__dict__["_" * (name in _HIDDEN) + name])
            for name, key in self.keys.items()
        }
        return {"type": type(self).__name__} | values

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
        for (name, key), parameter in zip(
            self.keys.items(), self.signature.parameters.values(), strict=False
        ):
            if key not in value and parameter.default is Parameter.empty:
                raise BadArgument(f"{type(self).__name__}.{key}: missing")
            self._put(name, _from_json(name, value[key]) if key in value else parameter.default)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return short_repr(self.to_json())

    def __str__(self) -> str:
        return short_repr(self.to_json(), SHORT)


def define(kind: type[Component], name: str, about: str, ignores: bool = False, **defaults: Any) -> Any:
    """Return the class of a component.

    kind: its base class. The class belongs to the same module.
    about: its docstring.
    ignores: whether the constructor ignores unknown arguments.
    defaults: the arguments of the constructor with their default values, `...` for none.
    """
    fields = kind.types[name]
    # An argument has the key of this name, or else the key at its place.
    keys = [each if each in fields else list(fields)[index] for index, each in enumerate(defaults)]
    parameters = [
        Parameter(
            each, Parameter.POSITIONAL_OR_KEYWORD, default=Parameter.empty if default is ... else default
        )
        for each, default in defaults.items()
    ]
    parameters += [Parameter("_", Parameter.VAR_KEYWORD)] if ignores else []
    members = {
        "__module__": kind.__module__,
        "__doc__": about,
        "signature": Signature(parameters),
        "keys": {key if key in defaults else key.removeprefix("strip_"): key for key in keys},
        "fields": fields,
    }
    return type(name, (kind,), members)


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
        self.__dict__["items"] = [
            each
            for item in map(self.base.coerce, items)
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
        case {"id": str(), "ids": _, "tokens": _}:
            return short_repr({"type": "SpecialToken", **value}, max_items)
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
