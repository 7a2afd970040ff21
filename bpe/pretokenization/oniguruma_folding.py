"""Full case folding of literal text and classes under (?i) in Oniguruma, such as "ss" for "ß"."""

from __future__ import annotations

from functools import cache

from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.syntax import Characters, Choice, Node, Sequence
from bpe.pretokenization.unicode_tables import any_case, case_classes, several_for_one


def first_folded(text: str, looks_behind: bool) -> tuple[int, Node]:
    """Return (number of folded characters, node) for the start of a text, like get_case_fold_codes_by_str of unicode.c.

    looks_behind: whether this is in a lookbehind, where each character is folded separately.
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
    """Replace each character by its form in the table of several_for_one."""
    return "".join(_fold_key(character) for character in text)


def _fold_key(character: str) -> str:
    alike = case_classes().get(ord(character), (ord(character),))
    return next((chr(each) for each in alike if chr(each) in _fold_letters()), character)


@cache
def _fold_letters() -> frozenset[str]:
    return frozenset(each for folded in several_for_one() for each in folded)


def _several(folded: str) -> Node:
    """Match the characters in any case, or a single character that equals them."""
    ones = CodePoints.of(*((one, one + 1) for one in several_for_one()[folded]))
    return Choice((Characters(ones), _letter_by_letter(folded)))


def several_in(points: CodePoints) -> list[Node]:
    """Return nodes for the texts that equal one of the points, shorter ones first. Equal endings share a node."""
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
