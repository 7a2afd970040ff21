"""Dataclass fields that accept any path and are read as text, with the types that callers and readers see."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from convert.errors import UsageError, shown

AnyPath = str | os.PathLike[str]


class PathField:
    """A field that accepts a str or os.PathLike and is read as a str."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> str:
        if instance is None:
            raise AttributeError(self._name)  # so the field has no default
        return str(instance.__dict__[self._name])

    def __set__(self, instance: object, value: AnyPath) -> None:
        instance.__dict__[self._name] = checked_path(self._name, value)


class PathsField:
    """A field that accepts one path or an iterable of paths and is read as a tuple of str."""

    def __init__(self, is_optional: bool = False) -> None:
        self._is_optional = is_optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> tuple[str, ...]:
        if instance is None and not self._is_optional:
            raise AttributeError(self._name)
        return () if instance is None else instance.__dict__[self._name]

    def __set__(self, instance: object, value: Iterable[AnyPath]) -> None:
        values = (value,) if isinstance(value, (str, bytes, os.PathLike)) else value
        if not isinstance(values, Iterable):
            raise UsageError(f"{self._name}: must be paths (got {shown(value)})")
        instance.__dict__[self._name] = tuple(checked_path(self._name, each) for each in values)


def checked_path(name: str, value: Any) -> str:
    """Return the path as text. name: the option, for UsageError."""
    path = os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else ""
    if not path or "\0" in path:
        flag = "INPUT" if name == "inputs" else f"--{name}"
        raise UsageError(f"{flag}: must be a path without NUL characters (got {shown(value)})")
    return path
