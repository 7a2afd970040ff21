r"""Unicode 16.0 properties and letter case, as each pattern dialect names them.

unicode_sets.json is generated from tiktoken and tokenizers (tools/generate_unicode_tables.py), so IDs depend neither on
the installed `regex` package nor on `unicodedata`. The file is read on first use. Its fields:

- sets: [names in both dialects, names in Rust only, names in Oniguruma only, ranges] per set
- case: [count, first - previous first, differences...] per class of characters that are equal under (?i)
- several_for_one: [count, characters..., the character that equals them under (?i) in Oniguruma]
- punctuation, numeric: ranges of the components of the same name in tokenizers
- script_runs: ranges with a script number each

Ranges are stored as [gap before the range, length - 1]. Numbers have five bits per digit, lowest first; all digits of a
number except the last are from the upper half of the alphabet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from bpe.pretokenization.code_points import CodePoints

Dialect: TypeAlias = Literal["rust", "oniguruma"]
_COLUMNS: Final = {"rust": (0, 1), "oniguruma": (0, 2)}
_RANGES: Final = 3
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+="


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(Path(__file__).with_name("unicode_sets.json").read_bytes())
    return tables


def named(dialect: Dialect, name: str) -> CodePoints | None:
    r"""Return the code points of a property, or None if the dialect does not know the name.

    name: lower case without underscores, hyphens and spaces, such as "lu", "han" or "uppercaseletter", or an escape
        such as "\w". The Rust dialect also has "gc=lu", "sc=han" and "scx=han". The Oniguruma dialect also has
        "[:alpha:]" and, for the meaning of an escape inside a class, "[\w]".
    """
    index = _indices(dialect).get(name)
    return None if index is None else _points(index)


def required(dialect: Dialect, name: str) -> CodePoints:
    """Return the code points of a property that exists."""
    return _points(_indices(dialect)[name])


@cache
def case_classes() -> dict[int, tuple[int, ...]]:
    """Map each cased character to all characters equal to it under (?i): 75 -> (75, 107, 8490), K, k and kelvin."""
    numbers = _numbers(_tables()["case"])
    classes: dict[int, tuple[int, ...]] = {}
    first = 0
    for count in numbers:
        first += next(numbers)
        points = [first]
        for _ in range(count - 1):
            points.append(points[-1] + next(numbers))
        classes.update(dict.fromkeys(points, tuple(points)))
    return classes


@cache
def several_for_one() -> dict[str, tuple[int, ...]]:
    """Map texts to the single characters that equal them under (?i) in Oniguruma: "ss" -> (223, 7838), ß and ẞ."""
    numbers = _numbers(_tables()["several_for_one"])
    folds: dict[str, tuple[int, ...]] = {}
    for count in numbers:
        folded = "".join(chr(next(numbers)) for _ in range(count))
        folds[folded] = (*folds.get(folded, ()), next(numbers))
    return folds


@cache
def punctuation() -> CodePoints:
    """Return the punctuation of Punctuation and BertPreTokenizer in tokenizers, from an older Unicode version."""
    return _decoded(_tables()["punctuation"])


@cache
def numeric() -> CodePoints:
    """Return the digits of Digits in tokenizers."""
    return _decoded(_tables()["numeric"])


@cache
def scripts() -> tuple[CodePoints, ...]:
    """Return one set per script of UnicodeScripts in tokenizers. Other characters have no script."""
    numbers = _numbers(_tables()["script_runs"])
    ranges: dict[int, list[tuple[int, int]]] = {}
    stop = 0
    for gap in numbers:
        start = stop + gap
        stop = start + next(numbers) + 1
        ranges.setdefault(next(numbers), []).append((start, stop))
    return tuple(CodePoints.of(*spans) for spans in ranges.values())


@lru_cache(maxsize=256)
def any_case(points: CodePoints) -> CodePoints:
    """Return the points and all characters that equal one of them under (?i)."""
    classes = case_classes()
    added = [
        (other, other + 1)
        for start, stop in (points & _cased()).ranges
        for point in range(start, stop)
        for other in classes[point]
    ]
    return CodePoints.of(*points.ranges, *added)


@cache
def _cased() -> CodePoints:
    return CodePoints.of(*((point, point + 1) for point in case_classes()))


@cache
def _indices(dialect: Dialect) -> dict[str, int]:
    columns = _COLUMNS[dialect]
    rows = enumerate(_tables()["sets"])
    return {name: index for index, row in rows for column in columns for name in row[column].split()}


@cache
def _points(index: int) -> CodePoints:
    return _decoded(_tables()["sets"][index][_RANGES])


def _decoded(text: str) -> CodePoints:
    numbers = _numbers(text)
    ranges: list[tuple[int, int]] = []
    stop = 0
    for gap in numbers:
        start = stop + gap
        stop = start + next(numbers) + 1
        ranges.append((start, stop))
    return CodePoints(tuple(ranges))


def _numbers(text: str) -> Iterator[int]:
    values = {digit: value for value, digit in enumerate(_DIGITS)}
    number = shift = 0
    for digit in map(values.__getitem__, text):
        number |= (digit & 31) << shift
        if digit < 32:
            yield number
            number = shift = 0
        else:
            shift += 5
