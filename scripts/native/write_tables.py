"""Writes the tables of the named patterns as numbers, for check_variants.cpp, which knows no Python.

    python scripts/native/write_tables.py FILE

For each pattern: its name, then every list behind its length, in the order that read_tables() takes them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from bpe.patterns import PATTERNS
from bpe.pretokenization.automaton import Start, automaton_of
from bpe.pretokenization.components import Split
from bpe.pretokenization.stages import phases_of
from bpe.pretokenization.tables import Tables, tables_of


def main() -> None:
    lines = []
    for name, expression in PATTERNS.items():
        (phase,) = phases_of((Split(expression, "rust", gaps_are_errors=True),)).phases
        tables = tables_of(automaton_of(phase.stages()))
        lines.append(f"{name} {' '.join(map(str, numbers_of(tables)))}\n")
    Path(sys.argv[1]).write_text("".join(lines))


def numbers_of(tables: Tables) -> Iterable[int]:
    """All of the tables, one number after the other."""
    yield from counted(tables.then.ravel().tolist())
    yield tables.initial
    yield from tables.group_ends
    yield len(tables.actions)
    for due in tables.actions:
        yield from counted_starts(due.certain)
        yield len(due.registers)
        for register, start in due.registers:
            yield from map(int, (register, *start))
    yield len(tables.at_end)
    for starts in tables.at_end:
        yield from counted_starts(starts)
    for pending in tables.pending:
        yield from counted_starts(() if pending is None else (pending,))
    yield from counted(tables.runs.tolist())
    yield from counted(tables.page_of.tolist())
    yield from counted(tables.pages.ravel().tolist())


def counted(numbers: list[int]) -> Iterable[int]:
    return (len(numbers), *numbers)


def counted_starts(starts: tuple[Start, ...]) -> Iterable[int]:
    yield len(starts)
    for start in starts:
        yield from map(int, start)


if __name__ == "__main__":
    main()
