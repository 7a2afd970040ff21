"""Errors of the engines that run tasks."""

# ruff: noqa: N818 - named after the fault: WorkerLost
from __future__ import annotations

from concurrent.futures import BrokenExecutor
from typing import Any

from tokenmill.errors import TokenmillError


class WorkerLost(TokenmillError, BrokenExecutor):
    """A worker process that ended before its task was done.

    place: where the task was, as reported by `take_step`; None if it reported nothing.
    crashed: whether a fault in the program ended the worker.
    """

    exit_code = 5
    code = "E-ENGINE-001"
    place: Any = None
    crashed = False


class EngineFailure(TokenmillError):
    """A scheduler that does not answer, or workers that cannot run the tasks."""

    exit_code = 5
    code = "E-ENGINE-002"


class EngineMissing(TokenmillError):
    """An engine whose package is not installed."""

    exit_code = 2
    code = "E-ENGINE-003"


def cause_of(error: BaseException) -> str:
    """Return the message of an engine package's error on one line."""
    return " ".join(str(error).split()) or type(error).__name__
