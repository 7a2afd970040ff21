"""How the walks of a sequence of stages go over a character, for each right context that there may be.

What a place is depends on what stands to the right of it (`stage`). The right contexts of all stages at a place, of
which there are finitely many, have numbers here, and a set of them is an integer with a bit for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from bpe.pretokenization.classes import told_apart_by
from bpe.pretokenization.program import END
from bpe.pretokenization.program import NotBoundedError as NotBoundedError
from bpe.pretokenization.stage import SKIPPING, Stage, Turn, Where

MOST_RIGHT_CONTEXTS: Final = 500
MOST_WALKS: Final = 100_000  # of all states, behind all characters: what `explored` takes time for

Walks: TypeAlias = tuple[Where, ...]  # a state of each stage
_State = TypeVar("_State", bound=tuple[Any, ...])
_Due = TypeVar("_Due")
_NOTHING: Final = Turn(False, False, 0, False)


def explored(
    first: _State, characters: Sequence[int], step: Callable[[_State, int], tuple[_State, _Due]], most: int
) -> tuple[list[_State], list[list[int]], list[list[_Due]]]:
    """(all states that are reached from the first, which is number 0; by state and character the number of the next
    state; and what is due there). NotBoundedError where there are more than `most`, or more than MOST_WALKS in them."""
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
            if walks > MOST_WALKS:
                raise NotBoundedError(f"more than {MOST_WALKS:,} walks")
            if following not in numbers:
                if len(states) == most:
                    raise NotBoundedError(f"more than {most} states")
                numbers[following] = len(states)
                states.append(following)
            then[-1].append(numbers[following])
            due[-1].append(made)
    return states, then, due


class Way(NamedTuple):
    """One way over a character: the number of the right context before it, what the place before it is, the walks
    behind it, and the right contexts behind it for which that is so, a bit each."""

    before: int
    starts: bool
    drops: bool
    walks: Walks
    rights: int


class _Partly(NamedTuple):
    """How the first stages go over a character: their right contexts before it, what the places before and behind it
    are, their walks behind it, and the right contexts of all stages for which that is so, a bit each."""

    before: tuple[int, ...]
    turn: Turn
    walks: Walks
    next_turn: Turn
    rights: int


class Ways:
    """classes: of characters that the stages tell apart. first: the walks at the start of a text. rights: all right
    contexts, of which number `end` is that where no character is left."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages
        self.classes = told_apart_by([points for stage in stages for points in stage.sets()])
        self.first: Walks = tuple(stage.first for stage in stages)
        contexts = self._right_contexts()
        self.rights = (1 << len(contexts)) - 1
        self._number_of_right = {right: number for number, right in enumerate(contexts)}
        self.end = self._number_of_right[(END,) * len(stages)]
        self._rights_with: list[dict[int, int]] = [
            {} for _ in stages
        ]  # by stage and its context, a bit for each
        for number, right in enumerate(contexts):
            for context, rights in zip(right, self._rights_with, strict=True):
                rights[context] = rights.get(context, 0) | 1 << number
        self._known: dict[tuple[Walks, int], list[Way]] = {}

    def over(self, walks: Walks, character: int) -> list[Way]:
        """How the walks may go on over a character, of which a code point stands for its class."""
        known = self._known.get((walks, character))
        if known is None:
            known = self._known[walks, character] = list(self._find(walks, character))
        return known

    def _right_contexts(self) -> list[tuple[int, ...]]:
        """All that may stand to the right of a place, a context for each stage, and perhaps some more."""
        lefts = [self._left_states(stage) for stage in self._stages]
        nothing = (END,) * len(self._stages)
        found = {nothing: None}
        rest = [nothing]
        while rest:
            right = rest.pop()
            # A piece of a stage may end at a place; then so do those of all stages behind it.
            for first_cut in range(1, len(right) + 1):
                seen = right[:first_cut] + nothing[first_cut:]
                for character in self.classes.examples:
                    befores: list[tuple[int, ...]] = [()]
                    for stage, left_states, behind in zip(self._stages, lefts, seen, strict=True):
                        contexts = {stage.back(character, left, behind) for left in left_states[character]}
                        befores = [(*before, context) for before in befores for context in contexts]
                    for before in befores:
                        if before not in found:
                            if len(found) == MOST_RIGHT_CONTEXTS:
                                raise NotBoundedError("too many contexts to the right")
                            found[before] = None
                            rest.append(before)
        return list(found)

    def _left_states(self, stage: Stage) -> dict[int, set[object]]:
        """The left contexts there may be behind a character."""
        behind: dict[int, set[object]] = {character: set() for character in self.classes.examples}
        behind_any = {stage.first.left}
        rest = [stage.first.left]
        while rest:
            left = rest.pop()
            for character in self.classes.examples:
                following = stage.left_behind(left, character)
                behind[character].add(following)
                if following not in behind_any:
                    behind_any.add(following)
                    rest.append(following)
        for lefts in behind.values():
            lefts.add(stage.first.left)  # of a dropped piece
        return behind

    def _find(self, walks: Walks, character: int) -> Iterator[Way]:
        ways = [_Partly((), _NOTHING, (), _NOTHING, self.rights)]
        for number, (stage, walk) in enumerate(zip(self._stages, walks, strict=True)):
            ways = [after for way in ways for after in self._over(number, stage, walk, character, way)]
        for way in ways:
            if way.before in self._number_of_right:
                number = self._number_of_right[way.before]
                yield Way(number, way.turn.starts, way.turn.drops, way.walks, way.rights)

    def _over(
        self, number: int, stage: Stage, walk: Where, character: int, way: _Partly
    ) -> Iterator[_Partly]:
        """One stage more: of each way, those that its right contexts before and behind the character tell apart."""
        if way.turn.starts:
            walk = Where(SKIPPING, None, stage.first.left) if way.turn.drops else stage.first
        left = stage.left_behind(walk.left, character) if walk.step != SKIPPING else walk.left
        by_before: dict[int, int] = {}
        if way.next_turn.starts:  # the piece ends behind the character
            by_before[stage.back(character, left, END)] = way.rights
        else:
            for context, rights in self._rights_with[number].items():
                if rights & way.rights:
                    before = stage.back(character, left, context)
                    by_before[before] = by_before.get(before, 0) | rights & way.rights
        for before, rights in by_before.items():
            turn = stage.resolve(walk, before)
            if turn is None:
                continue
            behind = stage.advance(walk, turn, character)
            place, passed = _joined(way.turn, turn), ((*way.before, before), (*way.walks, behind))
            if way.next_turn.starts or number + 1 == len(self._stages):
                yield _Partly(passed[0], place, passed[1], way.next_turn, rights)
                continue
            by_turn: dict[Turn, int] = {}
            for context, with_context in self._rights_with[number].items():
                next_turn = stage.resolve(behind, context) if with_context & rights else None
                if next_turn is not None:
                    joined = _joined(way.next_turn, next_turn)._replace(taker=0, in_match=False)
                    by_turn[joined] = by_turn.get(joined, 0) | with_context & rights
            for next_turn, those in by_turn.items():
                yield _Partly(passed[0], place, passed[1], next_turn, those)


def _joined(place: Turn, turn: Turn) -> Turn:
    """What a place is, of which stages so far say `place` and the next one says `turn`."""
    if place.starts:
        return place._replace(drops=place.drops or (turn.starts and turn.drops))
    return turn
