"""The left context of a position: which lookbehinds of a pattern match there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from bpe.errors import UnsupportedPattern
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.program import AT_START, Program
from bpe.pretokenization.syntax import Node


@dataclass(frozen=True)
class LeftState:
    """active: current steps of each body. bits: bit n is set if body number n matches here."""

    bits: int
    active: tuple[frozenset[int], ...]


class LeftContext:
    """The automaton of the lookbehinds of a program. A body may start at any earlier position."""

    def __init__(self, bodies: Sequence[Node], asks_for_start: bool) -> None:
        self._programs = [Program(body) for body in bodies]
        asks_for_start |= any(program.asks_for_start for program in self._programs)
        for program in self._programs:
            if program.left_bodies or any(
                step.kind in ("look", "atomic_end", "end") for step in program.steps
            ):
                raise UnsupportedPattern(
                    "pattern: a lookaround or possessive repeat in a lookbehind is not supported. Rewrite "
                    "the lookbehind."
                )
        self.start = self._state([set() for _ in self._programs], at_start=asks_for_start)
        self.step = cache(self._step)

    def sets(self) -> list[CodePoints]:
        """Return the sets of characters that the lookbehinds distinguish."""
        return [program.steps[taker].points for program in self._programs for taker in program.takers]

    def _step(self, state: LeftState, character: int) -> LeftState:
        """Return the state after another class, given by one of its code points."""
        entered = [
            {program.steps[taker].then for taker in active if character in program.steps[taker].points}
            for program, active in zip(self._programs, state.active, strict=True)
        ]
        return self._state(entered, at_start=False)

    def _state(self, entered: list[set[int]], *, at_start: bool) -> LeftState:
        bits = int(at_start) << AT_START
        active: list[frozenset[int]] = []
        for number, (program, steps) in enumerate(zip(self._programs, entered, strict=True), 1):
            reached = _reached(program, {*steps, program.start}, at_start)
            bits |= any(program.steps[step].kind == "accept" for step in reached) << number
            active.append(frozenset(step for step in reached if program.steps[step].kind == "take"))
        return LeftState(bits, tuple(active))


def _reached(program: Program, steps: set[int], at_start: bool) -> set[int]:
    reached: set[int] = set()
    rest = list(steps)
    while rest:
        number = rest.pop()
        if number in reached:
            continue
        reached.add(number)
        step = program.steps[number]
        if step.kind == "choose":
            rest += step.options
        elif step.kind == "behind" and at_start != step.negated:
            rest.append(step.then)
    return reached
