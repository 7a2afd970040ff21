"""The transitions of a sequence of stages over one character, per right context.

Whether a piece starts at a position depends on the text to its right (`stage`). A position has one right context per
stage. There are finitely many tuples of them. Each tuple has a number, and a set of tuples is a bit mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from bpe.pretokenization.code_points import told_apart_by
from bpe.pretokenization.program import END, NotBoundedError
from bpe.pretokenization.stage import SKIPPING, Boundary, Stage, Where

MAX_RIGHT_CONTEXTS: Final = 500
MAX_WALKS: Final = 100_000  # states of stages that `explored` computes

Walks: TypeAlias = tuple[Where, ...]  # one state per stage
_State = TypeVar("_State", bound=tuple[Any, ...])
_Due = TypeVar("_Due")


def explored(
    first: _State, characters: Sequence[int], step: Callable[[_State, int], tuple[_State, _Due]], most: int
) -> tuple[list[_State], list[list[int]], list[list[_Due]]]:
    """Return all reachable states, the next state by state and character, and the actions by state and character.

    The first state is number 0. Raise NotBoundedError for more than `most` states or MAX_WALKS states of stages.
    """
    numbers = {first: 0}
    states = [first]
    then: list[list[int]] = []
    due: list[list[_Due]] = []
    walks = 0
    for state in states:  # grows
        then.append([])
        due.append([])
        for character in characters:
            following, made = step(state, character)
            walks += len(following)
            if walks > MAX_WALKS:
                raise NotBoundedError(f"more than {MAX_WALKS:,} walks")
            if following not in numbers:
                if len(states) == most:
                    raise NotBoundedError(f"more than {most} states")
                numbers[following] = len(states)
                states.append(following)
            then[-1].append(numbers[following])
            due[-1].append(made)
    return states, then, due


class Transition(NamedTuple):
    """A transition over one character.

    before: number of the right context before the character.
    starts, drops: whether a piece starts before the character, and whether it is dropped.
    walks: states after the character.
    rights: mask of the right contexts after the character that allow this transition.
    """

    before: int
    starts: bool
    drops: bool
    walks: Walks
    rights: int


class _Partly(NamedTuple):
    """A transition of the first stages only. edge, next_edge: (starts, drops) before and after the character."""

    before: tuple[int, ...]
    edge: tuple[bool, bool]
    walks: Walks
    next_edge: tuple[bool, bool]
    rights: int


class Transitions:
    """The transitions of some stages.

    classes: character classes that the stages distinguish.
    examples: a code point of each class.
    first: states at the start of a text.
    rights: mask of all right contexts.
    end: number of the right context at the end of a text.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages
        self.classes = told_apart_by([points for stage in stages for points in stage.sets()])
        self.examples = tuple(points.ranges[0][0] for points in self.classes)
        self.first: Walks = tuple(stage.first for stage in stages)
        contexts = self._right_contexts()
        self.rights = (1 << len(contexts)) - 1
        self._number_of_right = {right: number for number, right in enumerate(contexts)}
        self.end = self._number_of_right[(END,) * len(stages)]
        self._rights_with: list[dict[int, int]] = [{} for _ in stages]  # by stage and context: mask
        for number, right in enumerate(contexts):
            for context, rights in zip(right, self._rights_with, strict=True):
                rights[context] = rights.get(context, 0) | 1 << number
        self._known: dict[tuple[Walks, int], list[Transition]] = {}

    def over(self, walks: Walks, character: int) -> list[Transition]:
        """Return the transitions from these states over a class, given by one of its code points."""
        known = self._known.get((walks, character))
        if known is None:
            known = self._known[walks, character] = list(self._find(walks, character))
        return known

    def _right_contexts(self) -> list[tuple[int, ...]]:
        """Return a superset of the possible right contexts."""
        lefts = [self._left_states(stage) for stage in self._stages]
        nothing = (END,) * len(self._stages)
        found = {nothing: None}
        rest = [nothing]
        while rest:
            right = rest.pop()
            # A piece that ends in one stage also ends in all later stages.
            for first_cut in range(1, len(right) + 1):
                seen = right[:first_cut] + nothing[first_cut:]
                for character in self.examples:
                    befores: list[tuple[int, ...]] = [()]
                    for stage, left_states, behind in zip(self._stages, lefts, seen, strict=True):
                        contexts = {stage.back(character, left, behind) for left in left_states[character]}
                        befores = [(*before, context) for before in befores for context in contexts]
                    for before in befores:
                        if before not in found:
                            if len(found) == MAX_RIGHT_CONTEXTS:
                                raise NotBoundedError("the pattern needs more lookahead than supported")
                            found[before] = None
                            rest.append(before)
        return list(found)

    def _left_states(self, stage: Stage) -> dict[int, set[object]]:
        """Return the possible left contexts after each character."""
        start = stage.first.left
        behind: dict[int, set[object]] = {
            character: {start} for character in self.examples
        }  # start: after a drop
        known, rest = {start}, [start]
        while rest:
            left = rest.pop()
            for character in self.examples:
                following = stage.left_behind(left, character)
                behind[character].add(following)
                if following not in known:
                    known.add(following)
                    rest.append(following)
        return behind

    def _find(self, walks: Walks, character: int) -> Iterator[Transition]:
        parts = [_Partly((), (False, False), (), (False, False), self.rights)]
        for number, (stage, walk) in enumerate(zip(self._stages, walks, strict=True)):
            parts = [after for part in parts for after in self._over(number, stage, walk, character, part)]
        for part in parts:
            if part.before in self._number_of_right:
                yield Transition(self._number_of_right[part.before], *part.edge, part.walks, part.rights)

    def _over(
        self, number: int, stage: Stage, walk: Where, character: int, part: _Partly
    ) -> Iterator[_Partly]:
        """Extend a transition by one stage, split by the right contexts that this stage distinguishes."""
        (starts, drops), (ends, _) = part.edge, part.next_edge
        if starts:
            walk = Where(SKIPPING, None, stage.first.left) if drops else stage.first
        left = stage.left_behind(walk.left, character) if walk.step != SKIPPING else walk.left
        by_before: dict[int, int] = {}
        contexts = [(END, part.rights)] if ends else self._rights_with[number].items()
        for context, rights in contexts:
            if rights & part.rights:
                before = stage.back(character, left, context)
                by_before[before] = by_before.get(before, 0) | rights & part.rights
        for before, rights in by_before.items():
            boundary = stage.resolve(walk, before)
            if boundary is None:
                continue
            behind = stage.advance(walk, boundary, character)
            by_edge: dict[tuple[bool, bool], int] = {}
            if ends or number + 1 == len(self._stages):
                by_edge[part.next_edge] = rights
            else:
                for context, with_context in self._rights_with[number].items():
                    following = stage.resolve(behind, context) if with_context & rights else None
                    if following is not None:
                        edge = _joined(part.next_edge, following)
                        by_edge[edge] = by_edge.get(edge, 0) | with_context & rights
            passed, walks = (*part.before, before), (*part.walks, behind)
            for edge, those in by_edge.items():
                yield _Partly(passed, _joined(part.edge, boundary), walks, edge, those)


def _joined(edge: tuple[bool, bool], boundary: Boundary) -> tuple[bool, bool]:
    """Combine the edges of the earlier stages and the boundary of the next stage."""
    starts, drops = edge
    return (True, drops or (boundary.starts and boundary.drops)) if starts else boundary[:2]
