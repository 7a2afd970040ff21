"""Stages as one automaton that reads a text once, from left to right.

What a place is depends on what stands to the right of it (`stage`). The automaton keeps, for each right context that
there may be, what the stages would have made of the text so far; the next characters leave fewer and fewer of them. A
piece's start that all agree on is certain. One that they do not agree on is *pending*: it is known by its age, in
characters, and when it is older than `OLDEST` by a register that holds its place. So each state comes with a list of
actions: starts that have become certain, and places that go into registers (a subsequential transducer with registers,
after Laurikari's tagged automata, 2000).

Patterns for which this takes too many states or registers are those in which no bounded memory tells where pieces
start before the end of a run is seen: `NotBoundedError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from bpe.pretokenization.classes import Classes, told_apart_by
from bpe.pretokenization.program import END
from bpe.pretokenization.stage import SKIPPING, Stage, Turn, Where

OLDEST: Final = 2  # characters; a pending start that is older is held in a register
MOST_REGISTERS: Final = 3
MOST_STATES: Final = 1_000
MOST_RIGHT_CONTEXTS: Final = 500


class NotBoundedError(Exception):
    """No automaton of this kind does what the stages do."""


class Start(NamedTuple):
    """Where a piece starts: `age` characters ago or, if that is 0, where `register` says; whether it is dropped."""

    age: int
    register: int
    drops: bool


class Actions(NamedTuple):
    """What to do behind a character: the starts that are certain; then registers: (which, the place it is to hold)."""

    certain: tuple[Start, ...]
    registers: tuple[tuple[int, Start], ...]


NO_ACTIONS: Final = Actions((), ())

_Walks = tuple[Where, ...]  # a state of each stage
_Pending = tuple[Start, ...]
_State = tuple[tuple[_Walks, _Pending, int], ...]  # with the set of right contexts, a bit each
_NOTHING: Final = Turn(False, False, 0, False)


class _Way(NamedTuple):
    """How the first stages go over a character: their right contexts before it, what the places before and behind it
    are, their walks behind it, and the right contexts of all stages for which that is so, a bit each."""

    before: tuple[int, ...]
    turn: Turn
    walks: _Walks
    next_turn: Turn
    rights: int


@dataclass(frozen=True)
class Automaton:
    """State 0 is that at the start of a text. Behind a character of class c, state s becomes `then[s][c]`, and
    `actions[s][c]` are due; where the text ends in state s, the starts `at_end[s]` are certain, too.

    oldest_pending: by state, the first start that is not certain.
    """

    classes: Classes
    then: list[list[int]]
    actions: list[list[Actions]]
    at_end: list[tuple[Start, ...]]
    oldest_pending: list[Start | None]


def automaton_of(stages: Sequence[Stage]) -> Automaton:
    """The automaton of stages, each of which cuts the pieces of those before; NotBoundedError where there is none."""
    return _Builder(stages).build()


class _Builder:
    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages
        self._classes = told_apart_by([points for stage in stages for points in stage.sets()])
        self._rights = self._right_contexts()
        self._number_of_right = {right: number for number, right in enumerate(self._rights)}
        self._rights_with: list[dict[int, int]] = [
            {} for _ in stages
        ]  # by stage and its context, a bit for each
        for number, right in enumerate(self._rights):
            for context, rights in zip(right, self._rights_with, strict=True):
                rights[context] = rights.get(context, 0) | 1 << number
        self._known_ways: dict[tuple[_Walks, int], list[tuple[int, Turn, _Walks, int]]] = {}

    def build(self) -> Automaton:
        everything = (1 << len(self._rights)) - 1
        first: _State = ((tuple(stage.first for stage in self._stages), (), everything),)
        numbers = {first: 0}
        states = [first]
        then: list[list[int]] = []
        actions: list[list[Actions]] = []
        for state in states:  # grows
            then.append([])
            actions.append([])
            for character in self._classes.examples:
                following, due = self._step(state, character)
                if following not in numbers:
                    if len(states) == MOST_STATES:
                        raise NotBoundedError(f"more than {MOST_STATES} states")
                    numbers[following] = len(states)
                    states.append(following)
                then[-1].append(numbers[following])
                actions[-1].append(due)
        at_end = [self._at_end(state) for state in states]
        pending = [
            min((start for _, starts, _ in state for start in starts), key=_by_place, default=None)
            for state in states
        ]
        return Automaton(self._classes, then, actions, at_end, pending)

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
                for character in self._classes.examples:
                    befores: list[tuple[int, ...]] = [()]
                    for stage, left_states, behind in zip(self._stages, lefts, seen, strict=True):
                        contexts = {stage.back(character, left, behind) for left in left_states[character]}
                        befores = [(*before, context) for before in befores for context in contexts]
                    for before in befores:
                        if before not in found:
                            if len(found) == MOST_RIGHT_CONTEXTS:
                                raise NotBoundedError("too much hangs on what is to the right")
                            found[before] = None
                            rest.append(before)
        return list(found)

    def _left_states(self, stage: Stage) -> dict[int, set[object]]:
        """The left contexts there may be behind a character."""
        behind: dict[int, set[object]] = {character: set() for character in self._classes.examples}
        behind_any = {stage.first.left}
        rest = [stage.first.left]
        while rest:
            left = rest.pop()
            for character in self._classes.examples:
                following = stage.left_behind(left, character)
                behind[character].add(following)
                if following not in behind_any:
                    behind_any.add(following)
                    rest.append(following)
        for lefts in behind.values():
            lefts.add(stage.first.left)  # of a dropped piece
        return behind

    def _step(self, state: _State, character: int) -> tuple[_State, Actions]:
        groups: dict[tuple[_Walks, _Pending], int] = {}
        for walks, pending, rights in state:
            aged = tuple(Start(start.age + 1, 0, start.drops) if start.age else start for start in pending)
            for before, turn, following, behind in self._ways(walks, character):
                if not rights >> before & 1:
                    continue
                key = (following, (*aged, Start(1, 0, turn.drops)) if turn.starts else aged)
                groups[key] = groups.get(key, 0) | behind
        return _settled(groups)

    def _ways(self, walks: _Walks, character: int) -> list[tuple[int, Turn, _Walks, int]]:
        """How the walks may go on over a character: the number of the right context before it, the place's turn, the
        walks behind it, and the right contexts behind it for which that is so, a bit each."""
        known = self._known_ways.get((walks, character))
        if known is None:
            known = self._known_ways[walks, character] = list(self._find_ways(walks, character))
        return known

    def _find_ways(self, walks: _Walks, character: int) -> Iterator[tuple[int, Turn, _Walks, int]]:
        ways = [_Way((), _NOTHING, (), _NOTHING, (1 << len(self._rights)) - 1)]
        for number, (stage, walk) in enumerate(zip(self._stages, walks, strict=True)):
            ways = [after for way in ways for after in self._over(number, stage, walk, character, way)]
        for way in ways:
            if way.before in self._number_of_right:
                yield self._number_of_right[way.before], way.turn, way.walks, way.rights

    def _over(self, number: int, stage: Stage, walk: Where, character: int, way: _Way) -> Iterator[_Way]:
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
                yield _Way(passed[0], place, passed[1], way.next_turn, rights)
                continue
            by_turn: dict[Turn, int] = {}
            for context, with_context in self._rights_with[number].items():
                next_turn = stage.resolve(behind, context) if with_context & rights else None
                if next_turn is not None:
                    joined = _joined(way.next_turn, next_turn)._replace(taker=0, in_match=False)
                    by_turn[joined] = by_turn.get(joined, 0) | with_context & rights
            for next_turn, those in by_turn.items():
                yield _Way(passed[0], place, passed[1], next_turn, those)

    def _at_end(self, state: _State) -> tuple[Start, ...]:
        end = 1 << self._number_of_right[(END,) * len(self._stages)]
        for _, pending, rights in state:
            if rights & end:
                return pending
        raise AssertionError("no walk reaches the end")


def _joined(place: Turn, turn: Turn) -> Turn:
    """What a place is, of which stages so far say `place` and the next one says `turn`."""
    if place.starts:
        return place._replace(drops=place.drops or (turn.starts and turn.drops))
    return turn


def _by_place(start: Start) -> tuple[bool, int, int]:
    """A key by which starts of a state are in the order of the text: registers hold older ones than there are ages."""
    return (start.age > 0, -start.age, start.register)


def _settled(groups: dict[tuple[_Walks, _Pending], int]) -> tuple[_State, Actions]:
    """The state of these groups: what all have pending is certain, what is too old goes into registers."""
    pendings = [set(pending) for _, pending in groups]
    certain = set.intersection(*pendings)
    pending = sorted(set.union(*pendings) - certain, key=_by_place)
    old = [start for start in pending if start.age == 0 or start.age > OLDEST]
    if len(old) > MOST_REGISTERS:
        raise NotBoundedError(
            f"more than {MOST_REGISTERS} starts of pieces at a time hang on what is far to the right"
        )
    renamed = {start: Start(0, register, start.drops) for register, start in enumerate(old)}
    merged: dict[tuple[_Walks, _Pending], int] = {}
    for (walks, starts), rights in groups.items():
        key = (walks, tuple(renamed.get(start, start) for start in starts if start not in certain))
        merged[key] = merged.get(key, 0) | rights
    moves = tuple((new.register, start) for start, new in renamed.items() if start != new)
    state = tuple((*key, rights) for key, rights in sorted(merged.items(), key=lambda item: item[1]))
    return state, Actions(tuple(sorted(certain)), moves)
