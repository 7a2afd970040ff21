"""Errors of stores. Each is made of its message alone, since errors are pickled between processes.

The message starts with the URL without credentials.
"""

# ruff: noqa: N818 - named after the fault: StoreNotFound, AlreadyThere
from __future__ import annotations

from typing import ClassVar

from tokenmill.errors import TokenmillError


class StoreError(TokenmillError):
    """A store that cannot be read or written: no answer, no space, a server error. Base class of the others."""

    exit_code: ClassVar[int] = 4
    code: ClassVar[str] = "E-STORE-001"


class StoreNotFound(StoreError):
    """A missing object, file or bucket."""

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "E-STORE-002"


class StoreChanged(StoreError):
    """An object that was replaced since it was listed."""

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "E-STORE-003"


class StoreDenied(StoreError):
    """Missing, wrong or expired credentials, credentials without the needed permission, or a wrong region."""

    exit_code: ClassVar[int] = 4
    code: ClassVar[str] = "E-STORE-004"


class AlreadyThere(StoreError):
    """An object that exists although it was to be created."""

    exit_code: ClassVar[int] = 6
    code: ClassVar[str] = "E-STORE-005"


class UnknownScheme(StoreError):
    """A URL scheme or a store option that is not supported."""

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "E-STORE-006"
