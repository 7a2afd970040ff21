"""The errors of a conversion, each with the exit code of `python -m convert`; messages are one line.

2 bad arguments, 3 bad input data, 4 environment (space, permission, I/O), 5 a worker lost, unfit or out of memory,
6 refused (the output exists, another run is at work, the plan changed), 130 interrupted. 1 is damage to files that
this program wrote, and bugs.
"""

# ruff: noqa: N818 - named for what is wrong: BadInput, WorkerLost
from __future__ import annotations

from tokenmill.engines.errors import EngineFailure as EngineFailure
from tokenmill.engines.errors import WorkerLost as WorkerLost
from tokenmill.inputs.errors import BadArgument, TokenmillError
from tokenmill.inputs.errors import BadInput as BadInput
from tokenmill.inputs.errors import naming as naming
from tokenmill.inputs.errors import printable as printable

ConvertError = TokenmillError  # the base of all packages' errors, as convert names it
UsageError = BadArgument


class StorageError(ConvertError):
    """The system refused to read or write: space, permission, a failing disk."""

    exit_code = 4


class Refused(ConvertError):
    """Going on would destroy or mix something; the message says what and which flag allows it."""

    exit_code = 6


class DataLost(ConvertError):
    """What was written differs from what is read back, and it can't be made again."""


class BrokenInvariant(RuntimeError):
    """Counts that must agree do not: a bug in this program, so commands show the traceback. Nothing is published."""
