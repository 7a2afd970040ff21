"""A syntax tree as a graph of steps, and the conditions under which a step succeeds.

A step consumes one character or chooses between other steps in order of preference (Thompson's construction). Whether
a step can reach the end of its pattern only depends on the text to its right. `Program.step_back` computes the set of
successful steps from right to left: the *right context* of a position. With it, matching from left to right needs no
backtracking, because each choice takes the first option that succeeds (Frisch and Cardelli, "Greedy regular expression
matching", 2004).

Lookbehinds are evaluated by a *left context*, a state that is updated from left to right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from bpe.errors import UnsupportedPattern
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.syntax import (
    Atomic,
    Characters,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    TextEnd,
    TextStart,
)

MAX_STEPS: Final = 4_000
# Evaluated steps; a pattern that needs more would take too long to compile.
MAX_LOOKS: Final = 500_000

# The right context at the end of the text.
END: Final = -1
# The bit of the left context for the start of the text; the other bits are for bodies of lookbehinds.
AT_START: Final = 0


class NotBoundedError(Exception):
    """The stages need more states or more work than an automaton supports."""


@dataclass
class Step:
    """A step of a program. then: the next step. kind:

    - take: consumes one character of `points`
    - choose: continues with the first of `options` that succeeds
    - look: tests whether the steps from `body` reach their `accept`
    - atomic_end: ends the body of atomic group `scope`
    - behind: tests bit `number` of the left context
    - end: tests for the end of the text
    - accept: ends a pattern
    """

    kind: str
    scope: int  # the innermost enclosing atomic group, lookaround or pattern
    then: int = -1
    points: CodePoints = field(default_factory=CodePoints)
    options: tuple[int, ...] = ()
    body: int = -1
    negated: bool = False
    number: int = -1


class Program:
    """The steps of one pattern. takers: the steps that consume a character; right contexts have a bit for each."""

    def __init__(self, tree: Node) -> None:
        self.steps: list[Step] = []
        self.scope_parent: list[
            int
        ] = []  # the enclosing scope of an atomic group; -1: a pattern or a lookaround
        self.left_bodies: list[Node] = []
        self.asks_for_start = False  # whether matches depend on the start of the text
        self._looks = 0
        self.start = self._pattern(tree)
        self.takers = [i for i, step in enumerate(self.steps) if step.kind == "take"]
        # One bit per taker and enclosing scope: whether the taker succeeds in it.
        self.bit_of: dict[tuple[int, int], int] = {}
        for taker in self.takers:
            for scope in self.scopes_around(self.steps[taker].scope):
                self.bit_of[taker, scope] = len(self.bit_of)

    def scopes_around(self, scope: int) -> list[int]:
        scopes = [scope]
        while self.scope_parent[scopes[-1]] >= 0:
            scopes.append(self.scope_parent[scopes[-1]])
        return scopes

    # -- construction, from the end of the pattern to its start

    def _add(self, step: Step) -> int:
        if len(self.steps) >= MAX_STEPS:
            raise UnsupportedPattern(
                f"pattern: more than {MAX_STEPS} steps once its repeats are expanded. Use smaller repeats."
            )
        self.steps.append(step)
        return len(self.steps) - 1

    def _scope(self, parent: int) -> int:
        self.scope_parent.append(parent)
        return len(self.scope_parent) - 1

    def _pattern(self, tree: Node) -> int:
        scope = self._scope(-1)
        return self._build(tree, scope, self._add(Step("accept", scope)))

    def _build(self, tree: Node, scope: int, then: int) -> int:
        """Add the steps of `tree`, followed by `then`, and return the first."""
        match tree:
            case Characters(points):
                return self._add(Step("take", scope, then, points=points))
            case Sequence(parts):
                for part in reversed(parts):
                    then = self._build(part, scope, then)
                return then
            case Choice(options):
                starts = tuple(self._build(option, scope, then) for option in options)
                return self._add(Step("choose", scope, options=starts))
            case Repeat(_, _, _, "possessive"):
                return self._build(Atomic(Repeat(tree.body, tree.least, tree.most)), scope, then)
            case Repeat():
                return self._repeat(tree, scope, then)
            case Atomic(body):
                inner = self._scope(scope)
                return self._build(body, inner, self._add(Step("atomic_end", inner, then)))
            case Look(body, False, negated):
                return self._add(Step("look", scope, then, body=self._pattern(body), negated=negated))
            case Look(body, True, negated):
                return self._behind(body, negated, scope, then)
            case TextStart():
                self.asks_for_start = True
                return self._add(Step("behind", scope, then, number=AT_START))
            case TextEnd():
                return self._add(Step("end", scope, then))
        raise TypeError(tree)

    def _behind(self, body: Node, negated: bool, scope: int, then: int) -> int:
        if body not in self.left_bodies:
            self.left_bodies.append(body)
        number = self.left_bodies.index(body) + 1
        return self._add(Step("behind", scope, then, negated=negated, number=number))

    def _repeat(self, tree: Repeat, scope: int, then: int) -> int:
        lazy = tree.mode == "lazy"

        def choose(again: int, stop: int) -> tuple[int, ...]:
            return (stop, again) if lazy else (again, stop)

        if tree.most is None:
            loop = self._add(Step("choose", scope))
            self.steps[loop].options = choose(self._build(tree.body, scope, loop), then)
            first = loop
        else:
            first = then
            for _ in range(tree.most - tree.least):
                first = self._add(
                    Step("choose", scope, options=choose(self._build(tree.body, scope, first), then))
                )
        for _ in range(tree.least):
            first = self._build(tree.body, scope, first)
        return first

    # -- right contexts

    def succeeds(self, step: int, scope: int, right: int, left: int, passed: Iterable[int] = ()) -> bool:
        """Return whether `step` reaches the end of `scope` with these contexts.

        passed: choices already made at this position; an iteration of a loop must consume a character.
        """
        return self._succeeds(step, scope, right, left, {(choice, scope): False for choice in passed})

    def matches(self, start: int, right: int, left: int) -> bool:
        """Return whether the pattern, or the body of a lookaround, that begins with `start` matches."""
        return self.succeeds(start, self.scopes_around(self.steps[start].scope)[-1], right, left)

    def _succeeds(
        self, number: int, scope: int, right: int, left: int, known: dict[tuple[int, int], bool]
    ) -> bool:
        self._looks += 1
        if self._looks > MAX_LOOKS:
            raise NotBoundedError(f"more than {MAX_LOOKS:,} steps to evaluate")
        step = self.steps[number]
        match step.kind:
            case "take":
                return right != END and bool(right >> self.bit_of[number, scope] & 1)
            case "accept":
                return True
            case "atomic_end" if step.scope == scope:
                return True
            case "choose":
                if (number, scope) not in known:
                    known[number, scope] = False  # during the evaluation
                    chosen: Iterable[int] = step.options
                    if step.scope != scope:
                        first = next(
                            (o for o in chosen if self._succeeds(o, step.scope, right, left, known)), None
                        )
                        chosen = () if first is None else (first,)
                    known[number, scope] = any(self._succeeds(o, scope, right, left, known) for o in chosen)
                return known[number, scope]
        return self.holds(step, right, left) and self._succeeds(step.then, scope, right, left, known)

    def holds(self, step: Step, right: int, left: int) -> bool:
        """Return whether the condition of a step holds; True for other steps."""
        match step.kind:
            case "look":
                return self.matches(step.body, right, left) != step.negated
            case "behind":
                return bool(left >> step.number & 1) != step.negated
            case "end":
                return right == END
        return True

    def follow(self, number: int, right: int, left: int) -> int:
        """Return the next taker or `accept` on the successful path from step `number`."""
        passed: list[int] = []
        while True:
            step = self.steps[number]
            if step.kind in ("take", "accept"):
                return number
            if step.kind == "choose":
                passed.append(number)
                scope = step.scope
                number = next(o for o in step.options if self.succeeds(o, scope, right, left, passed))
            else:
                number = step.then

    def step_back(self, taken: frozenset[int], right: int, left: int) -> int:
        """Return the right context before a character.

        taken: steps that accept the character. right, left: contexts after it.
        """
        bits = 0
        for taker in taken:
            step = self.steps[taker]
            for scope in self.scopes_around(step.scope):
                if self.succeeds(step.then, scope, right, left):
                    bits |= 1 << self.bit_of[taker, scope]
        return bits


@dataclass(frozen=True)
class LeftState:
    """The left context of a position: which lookbehinds of a pattern match there.

    active: current steps of each body. bits: bit n is set if body number n matches here.
    """

    bits: int
    active: tuple[frozenset[int], ...]


class LeftContext:
    """The automaton of the lookbehinds of a program. A body may start at any earlier position."""

    def __init__(self, bodies: list[Node], asks_for_start: bool) -> None:
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
