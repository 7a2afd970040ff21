"""One cut of pieces, as a state machine with unbounded lookahead.

Positions are between characters. `Stage.resolve` decides at a position whether a piece starts there and which step
consumes the next character. It needs the state after the text to the left, and the right context of the position.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from bpe.errors import UnsupportedPattern
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.components import Behavior
from bpe.pretokenization.program import END, LeftContext, LeftState, Program
from bpe.pretokenization.syntax import Node

SEARCHING: Final = -1  # not in a match
SKIPPING: Final = -2  # in a piece that an earlier stage dropped


@dataclass(frozen=True)
class Where:
    """The state at a position: the next step, the kind of the current segment and the left context."""

    step: int
    in_match: bool | None  # None: at the start of the text
    left: LeftState


class Boundary(NamedTuple):
    """The decision at a position: whether a piece starts, whether it is dropped, and the next step."""

    starts: bool
    drops: bool
    taker: int  # step for the next character; SEARCHING: between matches; SKIPPING: in a dropped piece
    in_match: bool


@dataclass(frozen=True)
class Cut:
    """A pattern and the behavior for its matches (invert: for the gaps). gaps_are_errors: gaps are errors."""

    tree: Node
    behavior: Behavior = "Isolated"
    invert: bool = False
    gaps_are_errors: bool = False
    name: str = ""  # the expression, for errors
    by_scripts: bool = False  # UnicodeScripts has a special automaton (script_runs)


class Stage:
    """The state machine of a cut."""

    def __init__(self, cut: Cut) -> None:
        self._cut = cut
        self._program = Program(cut.tree)
        self._left = LeftContext(self._program.left_bodies, self._program.asks_for_start)
        self.first = Where(SEARCHING, None, self._left.start)
        self.left_behind = self._left.step  # left context after a class, given by one of its code points
        self.resolve = cache(self._resolve)
        self.back = cache(self._back)
        self._taken = cache(self._takers_of)

    def sets(self) -> list[CodePoints]:
        """Return the sets of characters that the stage distinguishes."""
        program = self._program
        return [program.steps[taker].points for taker in program.takers] + self._left.sets()

    def advance(self, where: Where, boundary: Boundary, character: int) -> Where:
        """Return the state after a class, given by one of its code points."""
        if boundary.taker == SKIPPING:
            return where
        step = SEARCHING if boundary.taker == SEARCHING else self._program.steps[boundary.taker].then
        return Where(step, boundary.in_match, self._left.step(where.left, character))

    def _back(self, character: int, left: LeftState, right: int) -> int:
        """Return the right context before a character from the contexts after it."""
        return self._program.step_back(self._taken(character), right, left.bits)

    def _takers_of(self, character: int) -> frozenset[int]:
        program = self._program
        return frozenset(taker for taker in program.takers if character in program.steps[taker].points)

    def _resolve(self, where: Where, right: int) -> Boundary | None:
        """Return the decision at a position, or None if the state is impossible with this right context."""
        if where.step == SKIPPING:
            return Boundary(False, False, SKIPPING, False)
        program, left = self._program, where.left.bits
        ended = where.step != SEARCHING
        if ended:
            scopes = program.scopes_around(program.steps[where.step].scope)
            if not all(program.succeeds(where.step, scope, right, left) for scope in scopes):
                return None
            taker = program.follow(where.step, right, left)
            if program.steps[taker].kind == "take":
                return Boundary(False, False, taker, True)
        if right == END:
            return Boundary(False, False, SEARCHING, False)
        taker = SEARCHING
        empty = False
        if program.matches(program.start, right, left):
            taker = program.follow(program.start, right, left)
            if program.steps[taker].kind == "accept":  # an empty match; the next character is between matches
                taker, empty = SEARCHING, not ended
                if self._cut.behavior not in ("Isolated", "Removed"):
                    raise UnsupportedPattern(
                        f"pattern: matches empty text, which {self._cut.behavior} does not support"
                    )
        in_match = taker != SEARCHING
        if where.in_match is False and not in_match and not empty:
            return Boundary(False, False, SEARCHING, False)
        return self._segment(where.in_match, in_match, taker)

    def _segment(self, before: bool | None, in_match: bool, taker: int) -> Boundary:
        """Return the decision at the start of a match or gap.

        before: whether the previous segment is a match; None at the start of the text.
        """
        behavior, invert = self._cut.behavior, self._cut.invert
        counts, counted = in_match != invert, before is not None and before != invert
        starts = before is None or {
            "MergedWithPrevious": not counts or counted,
            "MergedWithNext": counts or not counted,
            "Contiguous": counts != counted,
        }.get(behavior, True)
        drops = (behavior == "Removed" and counts) or (self._cut.gaps_are_errors and not in_match)
        return Boundary(starts, drops, taker, in_match)
