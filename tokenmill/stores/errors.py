"""Errors of stores. Each is built from its message alone, because errors are pickled between processes.

The message starts with the URL, without credentials.
"""

# ruff: noqa: N818 - named after the fault: StoreNotFound, AlreadyThere
from __future__ import annotations

from typing import ClassVar

from tokenmill.errors import TokenmillError


class StoreError(TokenmillError):
    """A store that cannot be read or written. Base class of the other store errors.

    is_transient: whether the same request may succeed later.
    """

    exit_code: ClassVar[int] = 4
    code: ClassVar[str] = "E-STORE-001"
    is_transient: ClassVar[bool] = False


class StoreUnavailable(StoreError):
    """A timeout, a broken connection, throttling or a server error that outlasted the retries of the request."""

    code: ClassVar[str] = "E-STORE-007"
    is_transient: ClassVar[bool] = True


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

    code: ClassVar[str] = "E-STORE-004"


class AlreadyThere(StoreError):
    """An object that exists although it was to be created."""

    exit_code: ClassVar[int] = 6
    code: ClassVar[str] = "E-STORE-005"


class UnknownScheme(StoreError):
    """A URL scheme or a store option that is not supported."""

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "E-STORE-006"


def not_found(shown: str) -> StoreNotFound:
    """Return the error for a missing object or file."""
    return StoreNotFound(f"{shown}: not found. Check whether it was removed or renamed.")


def changed(shown: object) -> StoreChanged:
    """Return the error for an object or file with another version than when it was listed."""
    return StoreChanged(f"{shown}: changed since it was listed. Run the command again.")


def already_there(shown: str) -> AlreadyThere:
    """Return the error for an object or file that another run created."""
    return AlreadyThere(f"{shown}: already exists. Check whether another run writes the same output.")


def read_only(shown: str) -> StoreError:
    """Return the error for a write to a read-only store."""
    return StoreError(f"{shown}: read-only. Write to an object store or a folder.")


def unknown_option(shown: str, name: str) -> UnknownScheme:
    """Return the error for a setting that the store does not have."""
    return UnknownScheme(f"{shown}: unknown storage option {name!r}. Remove it.")
