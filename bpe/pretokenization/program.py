"""A syntax tree as a graph of steps, and when a way through it succeeds.

A step either takes one character or chooses, in the order of preference, between others (Thompson's construction).
Whether a step can reach the end of its pattern from a place of the text depends on what stands to the right of it
only; `Program.step_back` computes that from right to left, for all steps at once, as a set of steps: the *right
context* of the place. With it a walk from left to right needs no backtracking: at each choice it takes the first
option that can succeed (Frisch and Cardelli, "Greedy regular expression matching", 2004).

What must match up to a place (behind it) is told by a *left context*, a state that goes along from left to right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
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

MOST_STEPS: Final = 4_000
# Looks at steps: of a pattern that needs more, a process would be busy for longer than a user waits.
MOST_LOOKS: Final = 500_000

# What the right context is where no character is left.
END: Final = -1
# The bit of the left context that is set where nothing lies before; the others tell of the bodies of looks behind.
AT_START: Final = 0


class NotBoundedError(Exception):
    """The stages ask for more states, or more work, than an automaton has."""


@dataclass
class Step:
    """kind: what it does; then: the step behind it.

    take: one character of `points`. choose: the first of `options` that can succeed. look: whether the steps from
    `body` on can reach their `accept`. atomic_end: where the body of atomic group `scope` ends. behind: whether bit
    `number` of the left context is set. end: whether no character is left. accept: the end of a pattern.
    """

    kind: str
    scope: int  # the innermost atomic group, look or pattern that it is in
    then: int = -1
    points: CodePoints = field(default_factory=CodePoints)
    options: tuple[int, ...] = ()
    body: int = -1
    negated: bool = False
    number: int = -1


class Program:
    """The steps of one pattern. `takers` are those that take a character, by which right contexts are numbered."""

    def __init__(self, tree: Node) -> None:
        self.steps: list[Step] = []
        self.scope_parent: list[int] = []  # of an atomic group, the scope around it; -1: a pattern or a look
        self.left_bodies: list[Node] = []
        self.asks_for_start = False  # whether it makes a difference that nothing lies before
        self._looks = 0
        self.start = self._pattern(tree)
        self.takers = [i for i, step in enumerate(self.steps) if step.kind == "take"]
        # A bit for each taker and each scope that it is in, up to that of its pattern: whether it succeeds there.
        self.bit_of: dict[tuple[int, int], int] = {}
        for taker in self.takers:
            for scope in self.scopes_around(self.steps[taker].scope):
                self.bit_of[taker, scope] = len(self.bit_of)

    def scopes_around(self, scope: int) -> list[int]:
        scopes = [scope]
        while self.scope_parent[scopes[-1]] >= 0:
            scopes.append(self.scope_parent[scopes[-1]])
        return scopes

    # -- building, from the end of the pattern to its start

    def _add(self, step: Step) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise UnsupportedPattern(
                f"pattern: more than {MOST_STEPS} steps once its repeats are expanded. Use smaller repeats."
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
        """The first of the steps that match `tree` and go on with `then`."""
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
        """Whether the steps from `step` on reach the end of `scope` at a place with these contexts.

        passed: choices that led here from the same place; a loop does not come to itself without taking a character.
        """
        return self._succeeds(step, scope, right, left, {(choice, scope): False for choice in passed})

    def matches(self, start: int, right: int, left: int) -> bool:
        """The same of a whole pattern: that of this program, or the body of a look."""
        return self.succeeds(start, self.scopes_around(self.steps[start].scope)[-1], right, left)

    def _succeeds(
        self, number: int, scope: int, right: int, left: int, known: dict[tuple[int, int], bool]
    ) -> bool:
        self._looks += 1
        if self._looks > MOST_LOOKS:
            raise NotBoundedError(f"more than {MOST_LOOKS:,} steps to evaluate")
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
                    known[number, scope] = False  # while it is looked at
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
        """Whether the condition that a step is holds; of those that are none it does."""
        match step.kind:
            case "look":
                return self.matches(step.body, right, left) != step.negated
            case "behind":
                return bool(left >> step.number & 1) != step.negated
            case "end":
                return right == END
        return True

    def follow(self, number: int, right: int, left: int) -> int:
        """The taker, or `accept`, that a successful walk from step `number` comes to next."""
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
        """The right context before a character that the steps in `taken` take; right, left: those behind it."""
        bits = 0
        for taker in taken:
            step = self.steps[taker]
            for scope in self.scopes_around(step.scope):
                if self.succeeds(step.then, scope, right, left):
                    bits |= 1 << self.bit_of[taker, scope]
        return bits
