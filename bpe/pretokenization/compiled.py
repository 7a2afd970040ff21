"""Compile pre-tokenizers to tables of the core, once per process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from bpe import _core
from bpe.errors import UnsupportedPattern
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER
from bpe.normalizers import ByteLevel
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.components import Component
from bpe.pretokenization.program import NotBoundedError
from bpe.pretokenization.stage import Cut
from bpe.pretokenization.stages import Phase, phases_of
from bpe.pretokenization.syntax import Atomic, Characters, Choice, Node, Repeat, Sequence
from bpe.pretokenization.tables import Tables, tables_of
from bpe.pretokenization.transitions import Transitions
from bpe.pretokenization.two_way import script_runs, two_way_of, two_way_tables_of


@dataclass(frozen=True)
class Compiled:
    """A compiled pre-tokenizer. may_leave_out: whether a text may have gaps that are errors."""

    automaton: _core.Automaton
    may_leave_out: bool


@dataclass(frozen=True)
class TablePhases:
    """The phases of a pre-tokenizer and the tables of each. from_alphabet: see `Phases`."""

    phases: tuple[Phase, ...]
    tables: tuple[Tables, ...]
    from_alphabet: bool

    @property
    def gaps_are_errors(self) -> bool:
        """Whether dropped text is an error."""
        return any(cut.gaps_are_errors for phase in self.phases for cut in phase.cuts)


def table_phases_of(components: tuple[Component, ...]) -> TablePhases:
    """Return the tables of components. Raise UnsupportedPattern if they cannot be compiled."""
    known = phases_of(components)
    try:
        phases = _compilable(known.phases)
        return TablePhases(phases, tuple(map(_tables_of, phases)), known.from_alphabet)
    except NotBoundedError as error:
        raise UnsupportedPattern(f"pattern: cannot be compiled ({error})") from None


@lru_cache(maxsize=64)
def compiled_of(components: tuple[Component, ...]) -> Compiled:
    """Return the tables of all phases, without the changes of the first phase.

    Raise UnsupportedPattern for components that cannot be compiled and BadTokenizer for invalid ones.
    """
    known = table_phases_of(components)
    phases = known.phases
    automata = [core_automaton(each) for each in known.tables]
    automaton = automata[0]
    may_leave_out = known.gaps_are_errors and automaton.drops
    if len(phases) > 1 or known.from_alphabet:
        later = [
            (phase.change.core if phase.change is not None else None, each)
            for phase, each in zip(phases[1:], automata[1:], strict=True)
        ]
        asks = any(phase.asks_for_input for phase in phases[1:])
        automaton = automaton.followed_by(
            later, known.from_alphabet, asks, _staying(phases, known.from_alphabet)
        )
    return Compiled(automaton, may_leave_out)


def dropping(tree: Node) -> _core.Automaton | None:
    """Return the automaton that drops the matches of a pattern, or None if it cannot be compiled."""
    if not _takes_text(tree):
        return None
    try:
        return core_automaton(_tables_of(Phase((), (Cut(tree, "Removed"),))))
    except (NotBoundedError, UnsupportedPattern):
        return None


def _takes_text(node: Node) -> bool:
    """Return whether every match contains a character."""
    match node:
        case Characters():
            return True
        case Sequence(parts):
            return any(map(_takes_text, parts))
        case Choice(options):
            return all(map(_takes_text, options))
        case Repeat(body, least):
            return least > 0 and _takes_text(body)
        case Atomic(body):
            return _takes_text(body)
    return False


def _compilable(phases: Iterable[Phase]) -> tuple[Phase, ...]:
    """Split the phases with cuts that need too many states for one automaton."""
    made: list[Phase] = []
    for phase in phases:
        try:
            _tables_of(phase)
            made.append(phase)
        except NotBoundedError:
            if len(phase.cuts) < 2:
                raise
            made += [
                Phase(phase.changes if number == 0 else (), (cut,)) for number, cut in enumerate(phase.cuts)
            ]
    return tuple(made)


@lru_cache(maxsize=64)
def _tables_of(phase: Phase) -> Tables:
    if any(cut.by_scripts for cut in phase.cuts):
        return two_way_tables_of(script_runs())
    transitions = Transitions(phase.stages())
    try:
        return tables_of(transitions)
    except NotBoundedError:
        return two_way_tables_of(two_way_of(transitions))


def _staying(phases: tuple[Phase, ...], from_alphabet: bool) -> bytes:
    """Return bytes that no pattern of later phases matches. The core leaves a piece of only these bytes unchanged."""
    later = phases[1:]
    if (
        not later
        or not from_alphabet
        or [phase.changes for phase in later] != [(ByteLevel(),), *[()] * len(later[1:])]
    ):
        return b""
    cuts = [cut for phase in later for cut in phase.cuts]
    if any(cut.invert or cut.gaps_are_errors or cut.by_scripts or not _takes_text(cut.tree) for cut in cuts):
        return b""
    matched = CodePoints.union(
        points for phase in later for stage in phase.stages() for points in stage.sets()
    )
    return bytes(byte for byte, character in BYTE_TO_CHARACTER.items() if ord(character) not in matched)


def core_automaton(tables: Tables) -> _core.Automaton:
    """Return the automaton of the core for these tables."""
    return _core.Automaton(
        tables.then,
        tables.initial,
        tables.group_ends,
        [(due.certain, due.registers) for due in tables.actions],
        tables.at_end,
        tables.pending,
        tables.borders,
        tables.page_of,
        tables.pages,
        None
        if tables.back is None
        else (tables.back.rows, tables.back.row_of, tables.back.settled, tables.back.end),
    )
