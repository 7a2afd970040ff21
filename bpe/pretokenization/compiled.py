"""The core's tables of a pre-tokenizer, made once a process for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bpe import _core
from bpe.errors import UnsupportedPattern
from bpe.pretokenization.automaton import automaton_of
from bpe.pretokenization.components import Component, Split
from bpe.pretokenization.stage import Stage
from bpe.pretokenization.stages import stages_of
from bpe.pretokenization.tables import Tables, exchanged, tables_of
from bpe.pretokenization.two_way import two_way_of
from bpe.pretokenization.two_way_tables import two_way_tables_of
from bpe.pretokenization.ways import NotBoundedError


@dataclass(frozen=True)
class Compiled:
    """may_leave_out: whether text may lie between the matches, which is an error."""

    automaton: _core.Automaton
    may_leave_out: bool


@lru_cache(maxsize=64)
def compiled_of(components: tuple[Component, ...], has_spaces: bool = False) -> Compiled:
    """The tables; UnsupportedPattern says what can't be compiled, BadTokenizer what is wrong.

    has_spaces: texts have a space where the components see U+2581, and the other way round.
    """
    try:
        tables = _tables_of(stages_of(components))
    except NotBoundedError as error:
        raise UnsupportedPattern(f"the pattern can't be compiled: {error}") from None
    if has_spaces:
        tables = exchanged(tables, ord(" "), 0x2581)
    gaps_are_errors = any(isinstance(each, Split) and each.gaps_are_errors for each in components)
    automaton = core_automaton(tables)
    return Compiled(automaton, gaps_are_errors and automaton.drops)


def _tables_of(stages: list[Stage]) -> Tables:
    try:
        return tables_of(automaton_of(stages))
    except NotBoundedError:
        return two_way_tables_of(two_way_of(stages))


def core_automaton(tables: Tables) -> _core.Automaton:
    """The tables in the core."""
    return _core.Automaton(
        tables.then,
        tables.initial,
        tables.group_ends,
        [(due.certain, due.registers) for due in tables.actions],
        tables.at_end,
        tables.pending,
        tables.runs,
        tables.cuts,
        tables.page_of,
        tables.pages,
        None
        if tables.back is None
        else (tables.back.rows, tables.back.row_of, tables.back.settled, tables.back.end),
    )
