"""Errors of inputs. The message names the file and the byte, row or record."""

# ruff: noqa: N818 - named after the fault: BadInput, InvalidText
from __future__ import annotations

from typing import ClassVar

from tokenmill.errors import TokenmillError


class BadInput(TokenmillError):
    """A damaged or malformed source, or one that changed while it was read."""

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "E-INPUT-001"


class FatalInput(BadInput):
    """Bad input that ends the run even if bad files are skipped: a changed source, or more than --max-errors."""

    code: ClassVar[str] = "E-INPUT-002"


class InvalidText(TokenmillError, ValueError):
    """Text that is not valid UTF-8. The message names the source and the byte offset."""

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "E-INPUT-003"
