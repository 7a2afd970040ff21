"""Fields of a dataclass that take any path and are read as text: what callers may write and what code reads differ."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, overload

from convert.errors import UsageError, shown

AnyPath = str | os.PathLike[str]


class PathField:
    """A path: a str or os.PathLike is taken, a str is read. UsageError for what is none."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> PathField: ...

    @overload
    def __get__(self, instance: object, owner: type) -> str: ...

    def __get__(self, instance: object | None, owner: type) -> PathField | str:
        if instance is None:
            raise AttributeError(self._name)  # the field has no default
        path: str = instance.__dict__[self._name]
        return path

    def __set__(self, instance: object, value: AnyPath) -> None:
        instance.__dict__[self._name] = checked_path(self._name, value)


class PathsField:
    """Paths: any iterable of them, or one, is taken, a tuple of str is read. default: whether it may be left out."""

    def __init__(self, is_optional: bool = False) -> None:
        self._is_optional = is_optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> tuple[str, ...]:
        if instance is None:
            if self._is_optional:
                return ()
            raise AttributeError(self._name)
        paths: tuple[str, ...] = instance.__dict__[self._name]
        return paths

    def __set__(self, instance: object, value: Iterable[AnyPath]) -> None:
        values = (value,) if isinstance(value, (str, bytes, os.PathLike)) else value
        if not isinstance(values, Iterable):
            raise UsageError(f"{self._name}: must be paths (got {shown(value)})")
        instance.__dict__[self._name] = tuple(checked_path(self._name, one) for one in values)


def checked_path(name: str, value: Any) -> str:
    """The path as a str; UsageError names the flag of the command line."""
    flag = "INPUT" if name == "inputs" else f"--{name}"
    path = os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else None
    if not path:
        raise UsageError(f"{flag}: must be a path (got {shown(value)})")
    if "\0" in path:
        raise UsageError(f"{flag}: must not contain a NUL character (got {shown(path)})")
    return path
