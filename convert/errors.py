"""Errors of a conversion."""

# ruff: noqa: N818 - named after the fault: BadInput, DataLost
from __future__ import annotations

from tokenmill.engines.errors import EngineFailure as EngineFailure
from tokenmill.engines.errors import WorkerLost as WorkerLost
from tokenmill.errors import Advice as Advice
from tokenmill.errors import BadArgument as BadArgument
from tokenmill.errors import Refused as Refused
from tokenmill.errors import TokenmillError
from tokenmill.errors import naming as naming
from tokenmill.errors import printable as printable
from tokenmill.errors import shown as shown
from tokenmill.errors import with_sentence as with_sentence
from tokenmill.inputs.errors import BadInput as BadInput

UsageError = BadArgument


COMPLETE = Advice("The dataset is complete.")


def not_regular(path: object) -> UsageError:
    """Return the error for a pipe or device that a resumed run could not read again."""
    return UsageError(f"{printable(path)}: must be a regular file, because a resumed run reads it again")


class StorageError(TokenmillError):
    """A read or write that the system rejected: space, permission or an I/O error."""

    exit_code = 4
    code = "E-SYSTEM-002"


class DataLost(TokenmillError):
    """Written data that reads back differently and cannot be rebuilt."""

    code = "E-RUN-003"


class BrokenInvariant(RuntimeError):
    """Counts that must be equal differ: a bug, so commands show the traceback. Nothing is published."""
