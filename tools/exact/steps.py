"""Resumable steps of the comparisons of tools/exactness."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """One comparison.

    following: number of the next step, to resume from.
    compared: number of pieces, characters or tokens.
    difference: the difference and how to repeat it, or "".
    """

    following: int
    compared: int
    difference: str = ""
