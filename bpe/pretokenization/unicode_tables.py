r"""Properties and letter case of Unicode 16.0, as each dialect names them.

The tables in unicode_ranges.py are read off tiktoken and tokenizers, so ids depend neither on the installed `regex`
package nor on this Python's `unicodedata`. Nothing is decoded before it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Literal, TypeAlias

from bpe.pretokenization import unicode_ranges
from bpe.pretokenization.code_points import CodePoints

Dialect: TypeAlias = Literal["rust", "oniguruma"]
_COLUMNS = {"rust": (0, 1), "oniguruma": (0, 2)}


def named(dialect: Dialect, name: str) -> CodePoints | None:
    r"""The code points of a property, or None where the dialect has none of that name.

    name: lower case without underscores, hyphens and spaces: "lu", "han", "uppercaseletter"; of Rust's dialect also
    "gc=lu", "sc=han" and "scx=han"; "\w" and the like; of Oniguruma also "[\w]" for what it is in a class and
    "[:alpha:]".
    """
    index = _indices(dialect).get(name)
    return None if index is None else _points(index)


def required(dialect: Dialect, name: str) -> CodePoints:
    """The same for a name that is known to be there."""
    return _points(_indices(dialect)[name])


def name_of(dialect: Dialect, points: CodePoints) -> str | None:
    """The shortest name by which the dialect knows the set, as `named` takes it, or None."""
    index = _by_ranges().get(_coded(points))
    if index is None:
        return None
    names = [name for column in _COLUMNS[dialect] for name in unicode_ranges.NAMES[index][column].split()]
    return min((name for name in names if name[0] != "["), key=len, default=None)


@cache
def case_classes() -> dict[int, tuple[int, ...]]:
    """The characters that are one under (?i), by each of them: 75 -> (75, 107, 8490), K, k and kelvin."""
    numbers = _numbers(unicode_ranges.CASE)
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
    """What Oniguruma takes under (?i) for single characters: "ss" -> (223, 7838), of ß and its capital."""
    numbers = _numbers(unicode_ranges.ONIGURUMA_SEVERAL_FOR_ONE)
    folds: dict[str, tuple[int, ...]] = {}
    for count in numbers:
        folded = "".join(chr(next(numbers)) for _ in range(count))
        folds[folded] = (*folds.get(folded, ()), next(numbers))
    return folds


@cache
def punctuation() -> CodePoints:
    """What tokenizers' Punctuation and BertPreTokenizer take for punctuation, by an older Unicode."""
    return _decoded(unicode_ranges.PUNCTUATION)


@cache
def numeric() -> CodePoints:
    """What tokenizers' Digits takes for digits."""
    return _decoded(unicode_ranges.NUMERIC)


@cache
def scripts() -> tuple[CodePoints, ...]:
    """The sets that UnicodeScripts takes for scripts; what is in none of them has no script."""
    numbers = _numbers(unicode_ranges.SCRIPT_RUNS)
    ranges: dict[int, list[tuple[int, int]]] = {}
    stop = 0
    for gap in numbers:
        start = stop + gap
        stop = start + next(numbers) + 1
        ranges.setdefault(next(numbers), []).append((start, stop))
    return tuple(CodePoints.of(*spans) for spans in ranges.values())


@lru_cache(maxsize=256)
def any_case(points: CodePoints) -> CodePoints:
    """The points and all that are one with any of them under (?i), character by character."""
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
    names = enumerate(unicode_ranges.NAMES)
    return {name: index for index, row in names for column in columns for name in row[column].split()}


@cache
def _points(index: int) -> CodePoints:
    return _decoded(unicode_ranges.RANGES[index])


def _decoded(text: str) -> CodePoints:
    numbers = _numbers(text)
    ranges: list[tuple[int, int]] = []
    stop = 0
    for gap in numbers:
        start = stop + gap
        stop = start + next(numbers) + 1
        ranges.append((start, stop))
    return CodePoints(tuple(ranges))


@cache
def _by_ranges() -> dict[str, int]:
    return {text: index for index, text in enumerate(unicode_ranges.RANGES)}


def _coded(points: CodePoints) -> str:
    """The set in the form of RANGES."""
    digits: list[str] = []
    last = 0
    for start, stop in points.ranges:
        for number in (start - last, stop - start - 1):
            while number >= 32:
                digits.append(unicode_ranges.DIGITS[32 + number % 32])
                number //= 32
            digits.append(unicode_ranges.DIGITS[number])
        last = stop
    return "".join(digits)


def _numbers(text: str) -> Iterator[int]:
    values = {digit: value for value, digit in enumerate(unicode_ranges.DIGITS)}
    number = shift = 0
    for digit in map(values.__getitem__, text):
        number |= (digit & 31) << shift
        if digit < 32:
            yield number
            number = shift = 0
        else:
            shift += 5
