"""Normalizers, pre-tokenizers, post-processors, decoders and models as objects: what tokenizer.json says of each.

A component is its fields. It may be changed after a tokenizer has it, and tells the tokenizers that use it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple, Self
from weakref import WeakSet

from bpe.compat.huggingface import arguments
from bpe.errors import BadArgument, UnsupportedTokenizer, shown

REQUIRED: Final = object()
LONG: Final = 99  # repr() writes so many items of a list or an object
SHORT: Final = 5  # str() does
_BARE: Final = {"behavior", "prepend_scheme", "direction", "strategy"}  # fields whose values are names
_LONGEST_TEXT: Final = 100  # that str() writes


class Field(NamedTuple):
    """key: in tokenizer.json, if it is not the argument's name. to_json, from_json: its value there and back."""

    default: Any = REQUIRED
    key: str | None = None
    to_json: Callable[[Any], Any] = lambda value: value
    from_json: Callable[[Any], Any] = lambda value: value
    hidden: bool = False  # can't be read or changed
    check: Callable[[str, Any], Any] | None = None  # gives the value that is set; see arguments

    def checked(self, name: str, value: Any) -> Any:
        """The value; TypeError if it is of another type than `check` or the default says."""
        if self.check is not None:
            return self.check(name, value)
        kinds = {bool: arguments.flag, str: arguments.text, int: arguments.count}
        check = kinds.get(type(self.default))
        return value if check is None else check(name, value)


class Component:
    """A component with the arguments of `fields`, by place or name; a class says them behind its base."""

    fields: ClassVar[dict[str, Field]]
    kinds: ClassVar[dict[str, type[Component]]]  # of a base class: those that derive from it, by name

    def __init_subclass__(cls, /, is_sequence: bool = False, **fields: Field) -> None:
        cls.fields = fields
        if Component not in cls.__bases__:
            cls.base().kinds[cls.__name__] = cls
        elif not is_sequence:
            cls.kinds = {}

    @classmethod
    def base(cls) -> type[Component]:
        """What it is one of: Normalizer, PreTokenizer, …"""
        return next(each for each in cls.__mro__ if "kinds" in each.__dict__)

    def __init__(self, *args: Any, **named: Any) -> None:
        named.pop("type", None)  # of the JSON, which may be given whole
        if len(args) > len(self.fields):
            raise TypeError(f"{type(self).__name__} takes {len(self.fields)} arguments, got {len(args)}")
        values = dict(zip(self.fields, args, strict=False)) | named
        for name in values:
            if name not in self.fields:
                raise TypeError(f"{type(self).__name__} has no argument {shown(name)}")
        for name, field in self.fields.items():
            value = values.get(name, field.default)
            if value is REQUIRED:
                raise TypeError(f"{type(self).__name__} needs the argument {name}")
            self._set(name, field.checked(name, value))

    def _set(self, name: str, value: Any) -> None:
        self.__dict__["_" + name if self.fields[name].hidden else name] = self.checked(name, value)

    def checked(self, name: str, value: Any) -> Any:
        """The value that a field gets; ValueError if it can't be that."""
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.fields or self.fields[name].hidden:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r} to be changed")
        self._set(name, self.fields[name].checked(name, value))
        self._changed()

    def use(self, user: Any) -> Self:
        """Register a tokenizer, which drops its engine when the component changes; return the component."""
        self.__dict__.setdefault("_users", WeakSet()).add(user)
        return self

    def _changed(self) -> None:
        for user in self.__dict__.get("_users", ()):
            user.drop_engine()

    def to_json(self) -> dict[str, Any]:
        """What tokenizer.json has for it."""
        return {"type": type(self).__name__} | {
            field.key or name: field.to_json(self.__dict__["_" + name if field.hidden else name])
            for name, field in self.fields.items()
        }

    @classmethod
    def from_json(cls, value: Any) -> Any:
        """The component of this JSON, None for null; of a base class: whichever it is.

        UnsupportedTokenizer for a kind that is not known. Fields are checked where a tokenizer is made of them.
        """
        if value is None:
            return None
        name = value.get("type") if isinstance(value, dict) else None
        if name not in cls.kinds:
            raise UnsupportedTokenizer(
                f"{cls.__name__}: unsupported (got {shown(name)}). Supported: {', '.join(cls.kinds)}."
            )
        kind = cls.kinds[name]
        made = kind.__new__(kind)
        made._read(value)
        return made

    def _read(self, value: dict[str, Any]) -> None:
        for name, field in self.fields.items():
            key = field.key or name
            if key in value or field.default is not REQUIRED:
                self._set(name, field.from_json(value[key]) if key in value else field.default)
            else:
                raise BadArgument(f"{type(self).__name__}.{key}: missing")

    @classmethod
    def taken(cls, value: Any) -> Any:
        """A component as it is; one of tokenizers as one of these; None. TypeError for anything else."""
        if value is None or isinstance(value, cls):
            return value
        try:
            return cls.from_json(json.loads(value.__getstate__()))
        except (AttributeError, TypeError, ValueError):
            raise TypeError(f"component: must be a {cls.__name__} or None (got {shown(value)})") from None

    def __getstate__(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    def __setstate__(self, state: bytes) -> None:
        self._read(json.loads(state))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def to_show(self) -> dict[str, Any]:
        """What `repr` and `str` write down."""
        return self.to_json()

    def __repr__(self) -> str:
        return written(self.to_show())

    def __str__(self) -> str:
        return written(self.to_show(), SHORT)


class SequenceOf(Component, is_sequence=True):
    """Components one after the other, `list_key` in tokenizer.json; can be indexed.

    flat: of a sequence among them, the components are taken; a file may hold one within another all the same.
    """

    list_key: ClassVar[str]
    flat: ClassVar[bool] = True
    items: list[Any]

    def __init__(self, items: Any = ()) -> None:
        if not isinstance(items, (list, tuple)):
            raise TypeError(f"{type(self).__name__}: must be a list of components (got {shown(items)})")
        taken = [self.base().taken(item) for item in items]
        self.__dict__["items"] = [
            each
            for item in taken
            for each in (item.items if self.flat and isinstance(item, SequenceOf) else [item])
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self.items[index] = self.base().taken(value)
        for user in self.__dict__.get("_users", ()):
            self.items[index].use(user)
        self._changed()

    def use(self, user: Any) -> Self:
        for item in self.items:
            item.use(user)
        return super().use(user)

    def to_json(self) -> dict[str, Any]:
        return {"type": "Sequence", self.list_key: [item.to_json() for item in self.items]}

    def _read(self, value: dict[str, Any]) -> None:
        self.__dict__["items"] = [self.base().from_json(item) for item in value.get(self.list_key, [])]


def written(value: Any, most: int = LONG) -> str:
    """JSON as tokenizers writes a tokenizer down: an object with a type as `Type(field=value)`.

    most: how many items of a list or an object are written, then "...".
    """
    match value:
        case {"type": str(name), **fields}:
            named = (
                f"{key}={each if key in _BARE and isinstance(each, str) else written(each, most)}"
                for key, each in fields.items()
            )
            return f"{name}({', '.join(named)})"
        case {"Sequence": {"id": name, "type_id": type_id}}:
            return f"Sequence(id={name}, type_id={type_id})"
        case {"SpecialToken": {"id": name, "type_id": type_id}}:
            return f'SpecialToken(id="{name}", type_id={type_id})'
        case {"id": str(name), "ids": ids, "tokens": tokens}:
            return f'SpecialToken(id="{name}", ids={written(ids, most)}, tokens={written(tokens, most)})'
        case {"Fixed": int(length)}:
            return f"Fixed({length})"
        case {"String": str(text)} | {"Regex": str(text)}:
            return f'{next(iter(value))}("{text}")'
        case dict():
            items = [f"{written(key)}:{written(each, most)}" for key, each in value.items()]
            return f"{{{_listed(items, most)}}}"
        case list() | tuple():
            left, right = "[]" if isinstance(value, list) else "()"
            return f"{left}{_listed([written(each, most) for each in value], most)}{right}"
        case str():
            return (
                f'"{value}"'
                if most > SHORT or len(value) <= _LONGEST_TEXT
                else f'"{value[:_LONGEST_TEXT]}..."'
            )
    return str(value)


def _listed(items: list[str], most: int) -> str:
    return ", ".join(items if len(items) <= most else [*items[:most], "..."])
