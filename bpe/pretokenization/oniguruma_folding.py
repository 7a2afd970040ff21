"""What literal text and classes match under Oniguruma's (?i): what folds alike, also where one character is as much as
several."""

from __future__ import annotations

from functools import cache

from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.syntax import Characters, Choice, Node, Sequence
from bpe.pretokenization.unicode_tables import any_case, case_classes, several_for_one


def first_folded(text: str, looks_behind: bool) -> tuple[int, Node]:
    """(how many of the first characters, what they match), by unicode.c's get_case_fold_codes_by_str.

    looks_behind: in a lookbehind, where each is matched by itself.
    """
    first = _folded(text[0])
    if looks_behind:
        return 1, Characters(first)
    for length in (3, 2):
        folded = _lowest(text[:length])
        if len(folded) == length and folded in several_for_one():
            return length, _several(folded)
    for folded, ones in several_for_one().items():
        if ord(text[0]) in ones:
            return 1, _several(folded)
    return 1, Characters(first)


def _folded(character: str) -> CodePoints:
    return any_case(CodePoints.of(character))


def _lowest(text: str) -> str:
    """Each character as the one that several of a table are listed by."""
    return "".join(_fold_key(character) for character in text)


def _fold_key(character: str) -> str:
    alike = case_classes().get(ord(character), (ord(character),))
    return next((chr(each) for each in alike if chr(each) in _fold_letters()), character)


@cache
def _fold_letters() -> frozenset[str]:
    return frozenset(each for folded in several_for_one() for each in folded)


def _several(folded: str) -> Node:
    """The characters one by one, in any case, or the single ones that are as much."""
    ones = CodePoints.of(*((one, one + 1) for one in several_for_one()[folded]))
    return Choice((Characters(ones), _letter_by_letter(folded)))


def several_in(points: CodePoints) -> list[Node]:
    """What is as much as one of the points, shorter ones first; those that end alike are one."""
    firsts: dict[str, list[CodePoints]] = {}
    for folded, ones in sorted(several_for_one().items(), key=lambda item: len(item[0])):
        if any(one in points for one in ones):
            firsts.setdefault(folded[1:], []).append(_folded(folded[0]))
    return [
        Sequence((Characters(CodePoints.union(first)), *(Characters(_folded(each)) for each in rest)))
        for rest, first in firsts.items()
    ]


def _letter_by_letter(folded: str) -> Node:
    return Sequence(tuple(Characters(_folded(character)) for character in folded))
