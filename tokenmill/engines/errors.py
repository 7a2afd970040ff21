"""What can go wrong where tasks run; exit code 5 of commands, but for a package that is missing."""

# ruff: noqa: N818 - named for what is wrong: WorkerLost
from __future__ import annotations

from concurrent.futures import BrokenExecutor
from typing import Any

from tokenmill.stores.errors import TokenmillError


class WorkerLost(TokenmillError, BrokenExecutor):
    """A worker process ended before its task was done.

    place: what the task said it was at (`take_step`), None where it did not. crashed: by a fault in the program.
    """

    exit_code = 5
    place: Any = None
    crashed = False


class EngineFailure(TokenmillError):
    """What runs the tasks is not there, or has workers that cannot do them."""

    exit_code = 5


class EngineMissing(TokenmillError):
    """An engine whose package is not installed."""

    exit_code = 2


def cause_of(error: BaseException) -> str:
    """What an error of an engine's package says, as one line."""
    return " ".join(str(error).split()) or type(error).__name__
