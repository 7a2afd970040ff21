"""One splitting of pieces, as a machine that knows what stands to the right.

Places lie between characters. At each, `Stage.resolve` says from the state that the walk from the left has come to,
and from the right context, which way the next character goes and whether a piece starts there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final, NamedTuple

from bpe.errors import UnsupportedPattern
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.components import Behavior
from bpe.pretokenization.left_context import LeftContext, LeftState
from bpe.pretokenization.program import END, Program
from bpe.pretokenization.syntax import Node

SEARCHING: Final = -1  # not in a match
SKIPPING: Final = -2  # in a piece that a stage before dropped


@dataclass(frozen=True)
class Where:
    """The walk's state at a place: the step to go on with, in which kind of segment it is, what lies before."""

    step: int
    in_match: bool | None  # None: at the start of the text
    left: LeftState


class Turn(NamedTuple):
    """What a place is: whether a piece starts there and is dropped, and which step takes the next character."""

    starts: bool
    drops: bool
    taker: int  # SEARCHING: it lies between matches; SKIPPING: in a dropped piece
    in_match: bool


class Stage:
    """A pattern, what becomes of its matches, and of which characters it tells apart.

    drop_gaps: text between matches is dropped, as errors for the reader of the pieces.
    """

    def __init__(
        self,
        tree: Node,
        behavior: Behavior = "Isolated",
        *,
        invert: bool = False,
        gaps_are_errors: bool = False,
    ) -> None:
        self._program = Program(tree)
        self._behavior = behavior
        self._invert = invert
        self._gaps_are_errors = gaps_are_errors
        self._left = LeftContext(self._program.left_bodies, self._program.asks_for_start)
        self.first = Where(SEARCHING, None, self._left.start)
        self.resolve = cache(self._resolve)
        self.back = cache(self._back)
        self._taken = cache(self._takers_of)

    def sets(self) -> list[CodePoints]:
        """The sets of characters that are told apart."""
        program = self._program
        return [program.steps[taker].points for taker in program.takers] + self._left.sets()

    def advance(self, where: Where, turn: Turn, character: int) -> Where:
        """The state behind a character, of which a code point stands for its class."""
        if turn.taker == SKIPPING:
            return where
        step = SEARCHING if turn.taker == SEARCHING else self._program.steps[turn.taker].then
        return Where(step, turn.in_match, self._left.step(where.left, character))

    def left_behind(self, left: LeftState, character: int) -> LeftState:
        """The left context behind a character, of which a code point stands for its class."""
        return self._left.step(left, character)

    def _back(self, character: int, left: LeftState, right: int) -> int:
        """The right context before a character; left and right: the contexts behind it."""
        return self._program.step_back(self._taken(character), right, left.bits)

    def _takers_of(self, character: int) -> frozenset[int]:
        program = self._program
        return frozenset(taker for taker in program.takers if character in program.steps[taker].points)

    def _resolve(self, where: Where, right: int) -> Turn | None:
        """The turn of a place; None if the walk would not have come there with this to its right."""
        if where.step == SKIPPING:
            return Turn(False, False, SKIPPING, False)
        program, left = self._program, where.left.bits
        if where.step != SEARCHING:
            scopes = program.scopes_around(program.steps[where.step].scope)
            if not all(program.succeeds(where.step, scope, right, left) for scope in scopes):
                return None
            taker = program.follow(where.step, right, left)
            if program.steps[taker].kind == "take":
                return Turn(False, False, taker, True)
            where = replace(where, step=SEARCHING)
            ended = True
        else:
            ended = False
        if right == END:
            return Turn(False, False, SEARCHING, False)
        taker = SEARCHING
        empty = False
        if program.matches(program.start, right, left):
            taker = program.follow(program.start, right, left)
            if (
                program.steps[taker].kind == "accept"
            ):  # an empty match; the next character lies between matches
                taker, empty = SEARCHING, not ended
                if self._behavior not in ("Isolated", "Removed"):
                    raise UnsupportedPattern(
                        f"pattern: matches empty text, which {self._behavior} does not support"
                    )
        in_match = taker != SEARCHING
        if where.in_match is False and not in_match and not empty:
            return Turn(False, False, SEARCHING, False)
        return self._segment(where.in_match, in_match, taker)

    def _segment(self, before: bool | None, in_match: bool, taker: int) -> Turn:
        """The turn where a match or a gap starts behind one or the other (None: at the start of the text)."""
        counts, counted = in_match != self._invert, before is not None and before != self._invert
        starts = True
        if before is not None:
            if self._behavior == "MergedWithPrevious":
                starts = not counts or counted
            elif self._behavior == "MergedWithNext":
                starts = counts or not counted
            elif self._behavior == "Contiguous":
                starts = counts != counted
        drops = (self._behavior == "Removed" and counts) or (self._gaps_are_errors and not in_match)
        return Turn(starts, drops, taker, in_match)
