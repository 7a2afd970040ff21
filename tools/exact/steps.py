"""What the parts of tools/exactness give: steps that can be gone on from."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """Something that was compared. following: the number to go on from. compared: pieces, characters or tokens.
    difference: what differs, and how to repeat it; empty if nothing does."""

    following: int
    compared: int
    difference: str = ""
