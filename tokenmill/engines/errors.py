"""Errors of the engines that run tasks."""

# ruff: noqa: N818 - named after the fault: WorkerLost
from __future__ import annotations

from concurrent.futures import BrokenExecutor

from tokenmill.errors import TokenmillError


class WorkerLost(TokenmillError, BrokenExecutor):
    """A worker that ended before its task was done."""

    exit_code = 5
    code = "E-ENGINE-001"


class EngineFailure(TokenmillError):
    """A scheduler that does not answer, or workers that cannot run the tasks."""

    exit_code = 5
    code = "E-ENGINE-002"


class EngineMissing(TokenmillError):
    """An engine that needs a missing package."""

    exit_code = 2
    code = "E-ENGINE-003"


def cause_of(error: BaseException) -> str:
    """Return the message of an engine package's error on one line."""
    return " ".join(str(error).split()) or type(error).__name__
