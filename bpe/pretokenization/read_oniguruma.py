r"""The dialect of tokenizers' patterns: Oniguruma with its own syntax, on text of UTF-8.

- `^` and `$` match at the ends of lines. `\Z` matches before a final newline.
- `(?m)` is (?s) of other dialects. `(?i)` holds up to the end of its group, across `|`.
- `{n,m}+` repeats a repeat, `{n}?` is an optional repeat, and `{n,m}` with n > m is a possessive `{m,n}`.
- `\w` has a different meaning in classes. `\pL` is the literal text pL.
- Under (?i), literal text and classes match by full case folding, so "ss" matches "ß". Properties and `\w` only fold
  inside classes. `[^...]` folds before it is negated, and a nested class does not fold.

Escapes of bytes and control characters are not supported.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from bpe.errors import shown
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.pattern_reader import (
    ANY,
    CONTROLS,
    LINE_END,
    NEWLINE,
    LiteralText,
    Mode,
    Part,
    PatternReader,
    is_anchor,
    one_or_all,
)
from bpe.pretokenization.syntax import Characters, Choice, Look, Node, Repeat, Sequence, TextEnd, TextStart
from bpe.pretokenization.unicode_tables import any_case, case_classes, named, required, several_for_one

_GREATEST_REPEAT: Final = 100_000
_ESCAPE_DASH: Final = "Escape the dash as \\-."
_UNSUPPORTED_ESCAPES: Final = {
    "G": "\\G",
    "K": "\\K",
    "X": "grapheme cluster, \\X",
    "y": "boundary of grapheme clusters, \\y",
    "Y": "\\Y",
}
_POSIX: Final = re.compile(r"\[:(\^?)([^\W\d_]+):]")


def read(expression: str) -> Node:
    """Return the syntax tree of the expression as tokenizers reads it.

    Raise BadTokenizer for invalid syntax and UnsupportedPattern for syntax that a tree cannot represent.
    """
    return _OnigurumaReader(expression).read()


class _OnigurumaReader(PatternReader):
    dialect = "oniguruma"
    blanks = " \t\n\r\f"
    known_flags = "imx"
    unsupported_flags = "WDSPyCIL"
    flags_reach_on = False
    unsupported_groups = (
        ("?(", "condition, (?("),
        ("?~", "absent operator, (?~"),
        ("?{", "callout, (?{"),
        ("*", "callout, (*"),
    )
    named_groups = ("?<", "?'")
    operations = ("&&",)
    skips_in_tokens = False

    def literal_node(self, letters: LiteralText) -> Node:
        if not letters.any_case:
            return one_or_all([Characters(CodePoints.of(each)) for each in letters.text])
        nodes: list[Node] = []
        rest = letters.text
        while rest:
            length, node = _first_folded(rest, bool(self.looks_behind))
            nodes.append(node)
            rest = rest[length:]
        return one_or_all(nodes)

    def operator(self, character: str) -> Node | None:
        match character:
            case ".":
                return Characters(ANY if "m" in self.flags else ~NEWLINE)
            case "^":
                after_line = Look(Characters(NEWLINE), behind=True), Look(TextEnd(), negated=True)
                return Choice((TextStart(), Sequence(after_line)))
            case "$":
                return LINE_END
        return None

    def own_escape(self, letter: str, start: int) -> Part | None:
        match letter:
            case "Z":
                return Look(Sequence((Repeat(Characters(NEWLINE), 0, 1), TextEnd())))
            case "b" | "B":
                return self.word_boundary(negated=letter == "B")
            case "g" if self.peek() in ("<", "'"):
                raise self.unsupported("call of a group, \\g", start)
        if letter in _UNSUPPORTED_ESCAPES:
            raise self.unsupported(_UNSUPPORTED_ESCAPES[letter], start)
        if letter in "123456789" or (letter == "k" and self.peek() in ("<", "'")):
            raise self.unsupported("backreference", start)
        return None

    def set_escape(self, letter: str, start: int, in_class: bool) -> CodePoints | str:
        if letter in "dswhDSWH":
            name = "\\" + letter.lower()
            points = required("oniguruma", f"[{name}]" if in_class else name)
            return points if letter.islower() else ~points
        if letter in "pP" and self.take("{"):
            return self._property(letter == "P", start, in_class)
        if letter == "u":
            digits = self.take_hex(4, 4)
            if digits is None:
                raise self.wrong("\\u must be followed by four hexadecimal digits", start)
            return self.scalar(digits, start)
        if letter == "x":
            return self._hexadecimal(start)
        if letter in "01234567ocCM":
            raise self.unsupported(f"\\{letter}", start)
        if in_class and letter == "b":
            return "\b"
        return CONTROLS.get(letter) or letter

    def _hexadecimal(self, start: int) -> str:
        r"""Read `{H...}` or the two digits of an ASCII character after `\x`."""
        if self.take("{"):
            digits = self.take_hex(1, 11)
            if digits is None or self.peek() in (" ", "\n"):
                raise self.unsupported("\\x{ without one code point", start)
            if not self.take("}"):
                raise self.wrong("code point must be one number in braces", start)
            return self.scalar(digits, start)
        digits = self.take_hex(2, 2)
        if digits is None or digits > "7f":
            raise self.unsupported("byte, \\x", start)
        return self.scalar(digits, start)

    def _property(self, negated: bool, start: int, in_class: bool) -> CodePoints:
        text = self.property_text(start)
        if text.startswith("^"):
            negated, text = not negated, text[1:]
        name = "".join(each for each in text.lower() if each not in " _-")
        points = named("oniguruma", r"[\w]" if in_class and name == "word" else name)
        if points is None or any(each in text for each in "[]\\"):
            raise self.unsupported(f"property {shown(text)}", start)
        return ~points if negated else points

    def repeated(self, part: Part) -> Part:
        while True:
            self.skip_ignored()
            offset = self.offset
            bounds = self.bounds()
            if bounds is None:
                return part
            if is_anchor(part):
                raise self.wrong("nothing to repeat", offset)
            least, most = bounds
            if max(least, most or 0) > _GREATEST_REPEAT:
                raise self.wrong(f"repeat of more than {_GREATEST_REPEAT:,} times", offset)
            mode: Mode = "greedy"
            written = self.text[offset : self.offset]
            if most is not None and most < least:
                least, most, mode = most, least, "possessive"
            elif len(written) == 1 and self.take("+"):
                mode = "possessive"
            elif (len(written) == 1 or "," in written) and self.take("?"):
                mode = "lazy"
            if not least == most == 1:
                part = Repeat(self.as_node(part), least, most, mode)

    # Classes.

    def class_node(self, points: CodePoints, negated: bool) -> Node:
        points = any_case(points) if "i" in self.flags else points
        if negated or "i" not in self.flags:
            return Characters(~points if negated else points)
        several = _several_in(points)
        return Choice((Characters(points), *several)) if several else Characters(points)

    def class_start(self, start: int) -> list[CodePoints]:
        if self.peek() != "]":
            return []
        if not re.match(r"]([^]\\]|\\.)*]", self.text[self.offset :], re.DOTALL):
            raise self.wrong("empty class", start)
        return [self.range_or_item(start)]

    def range_or_item(self, start: int) -> CodePoints:
        first = self.class_item(start)
        if not self._at_range():
            return CodePoints.of(first) if isinstance(first, str) else first
        self.offset += 1
        if not isinstance(first, str):
            raise self.wrong("range must begin with a character", fix=_ESCAPE_DASH)
        if not self.peek():
            raise self.wrong("unclosed class", start)
        last: CodePoints | str | None
        if self.peek() == "[":
            last = self._posix_set()
            if last is None:
                return self.nested_class(start)  # the start of the range does not count
        else:
            last = self.class_item(start)
        if not isinstance(last, str):
            raise self.wrong("range must end with a character", fix=_ESCAPE_DASH)
        if first > last:
            raise self.wrong("range must be ascending", start)
        return CodePoints.of((ord(first), ord(last) + 1))

    def _at_range(self) -> bool:
        return self.peek() == "-" and not self.text.startswith(("]", "&&"), self.offset + 1)

    def posix(self) -> CodePoints | None:
        points = self._posix_set()
        if points is not None and self._at_range():
            self.offset += 1
            raise self.wrong("range must begin with a character", fix=_ESCAPE_DASH)
        return points

    def _posix_set(self) -> CodePoints | None:
        found = _POSIX.match(self.text, self.offset)
        if not found:
            return None
        points = named("oniguruma", f"[:{found[2]}:]")
        if points is None:
            raise self.wrong("unknown POSIX bracket")
        self.offset = found.end()
        return ~points if found[1] else points


# Full case folding of literal text and classes under (?i), such as "ss" for "ß".


def _first_folded(text: str, looks_behind: bool) -> tuple[int, Node]:
    """Return (number of folded characters, node) for the start of a text, like get_case_fold_codes_by_str of unicode.c.

    looks_behind: whether this is in a lookbehind, where each character is folded separately.
    """
    for length in () if looks_behind else (3, 2):
        folded = "".join(map(_fold_key, text[:length]))
        if len(folded) == length and folded in several_for_one():
            return length, _several(folded)
    for folded, ones in () if looks_behind else several_for_one().items():
        if ord(text[0]) in ones:
            return 1, _several(folded)
    return 1, Characters(_folded(text[0]))


def _folded(character: str) -> CodePoints:
    return any_case(CodePoints.of(character))


def _fold_key(character: str) -> str:
    """Return the form of a character in the table of several_for_one."""
    alike = case_classes().get(ord(character), (ord(character),))
    return next((chr(each) for each in alike if chr(each) in _fold_letters()), character)


@cache
def _fold_letters() -> frozenset[str]:
    return frozenset(each for folded in several_for_one() for each in folded)


def _several(folded: str) -> Node:
    """Match the characters in any case, or a single character that equals them."""
    ones = CodePoints.of(*((one, one + 1) for one in several_for_one()[folded]))
    return Choice((Characters(ones), Sequence(tuple(Characters(_folded(each)) for each in folded))))


def _several_in(points: CodePoints) -> list[Node]:
    """Return nodes for the texts that equal one of the points, shorter ones first. Equal endings share a node."""
    firsts: dict[str, list[CodePoints]] = {}
    for folded, ones in sorted(several_for_one().items(), key=lambda item: len(item[0])):
        if any(one in points for one in ones):
            firsts.setdefault(folded[1:], []).append(_folded(folded[0]))
    return [
        Sequence((Characters(CodePoints.union(first)), *(Characters(_folded(each)) for each in rest)))
        for rest, first in firsts.items()
    ]
