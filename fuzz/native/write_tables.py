"""Write the tables of the named patterns as numbers, for programs without Python.

    python fuzz/native/write_tables.py FILE [--more]

--more: add pre-tokenizers that drop pieces or scan a text from its end.
For each pattern: its name, then the length and the items of each list, in the order of pattern_tables.hpp.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from bpe.patterns import PATTERNS
from bpe.pretokenization.compiled import table_phases_of
from bpe.pretokenization.components import Component, Digits, Punctuation, Split, Whitespace
from bpe.pretokenization.tables import Start, Tables

MORE: dict[str, tuple[Component, ...]] = {
    "words": (Whitespace(),),
    "digits": (Punctuation("MergedWithNext"), Digits(individual_digits=True)),
    "dropped": (Split(r"\s+|,", "oniguruma", "Removed"),),
    "threes": (Split(r"\d{1,3}(?=(?:\d{3})*\b)", "oniguruma"),),
    "far": (Split(r"(?:ab|ba|.)+?(?=\s|$)|\s", "oniguruma", "Removed"),),
    "alike": (Split("a*b|a", "oniguruma", "Contiguous"),),
}


def main() -> None:
    lines = []
    known: dict[str, tuple[Component, ...]] = {
        name: (Split(expression, "rust", gaps_are_errors=True),) for name, expression in PATTERNS.items()
    }
    for name, components in (known | MORE if "--more" in sys.argv[2:] else known).items():
        (tables,) = table_phases_of(components).tables
        lines.append(f"{name} {' '.join(map(str, numbers_of(tables)))}\n")
    Path(sys.argv[1]).write_text("".join(lines))


def numbers_of(tables: Tables) -> Iterable[int]:
    """Yield the numbers of the tables in order."""
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
    yield from counted(tables.borders.ravel().tolist())
    yield from counted(tables.page_of.tolist())
    yield from counted(tables.pages.ravel().tolist())
    if tables.back is None:
        yield 0
        return
    yield tables.back.rows.shape[1]
    yield tables.back.end
    yield from counted(tables.back.settled.tolist())
    yield from counted(tables.back.row_of.ravel().tolist())
    yield from counted(tables.back.rows.ravel().tolist())


def counted(numbers: list[int]) -> Iterable[int]:
    return (len(numbers), *numbers)


def counted_starts(starts: tuple[Start, ...]) -> Iterable[int]:
    yield len(starts)
    for start in starts:
        yield from map(int, start)


if __name__ == "__main__":
    main()
