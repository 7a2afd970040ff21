r"""The dialect of tokenizers' patterns: Oniguruma with its own syntax, on text of UTF-8.

- `^` and `$` match at the ends of lines. `\Z` matches before a final newline.
- `(?m)` is (?s) of other dialects. `(?i)` holds up to the end of its group, across `|`.
- `{n,m}+` repeats a repeat, `{n}?` is an optional repeat, and `{n,m}` with n > m is a possessive `{m,n}`.
- `\w` has a different meaning in classes. `\pL` is the literal text pL.
- Under (?i), literal text and classes match by full case folding, so "ss" matches "ß". Properties and `\w` only fold
  inside classes. `[^...]` folds before it is negated, and a nested class does not fold.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from bpe.errors import shown
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.pattern_reader import (
    ANY,
    NEWLINE,
    LiteralText,
    Mode,
    Part,
    PatternReader,
)
from bpe.pretokenization.syntax import (
    Characters,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    TextEnd,
    TextStart,
)
from bpe.pretokenization.unicode_tables import any_case, case_classes, named, required, several_for_one

_FLAGS: Final = frozenset("imx")
_OTHER_FLAGS: Final = frozenset("WDSPyCIL")
_GREATEST_REPEAT: Final = 100_000
_ESCAPE_DASH: Final = "Escape the dash as \\-."
_UNSUPPORTED_GROUPS: Final = {
    "?(": "condition, (?(",
    "?~": "absent operator, (?~",
    "?{": "callout, (?{",
    "*": "callout, (*",
}
_UNSUPPORTED_ESCAPES: Final = {
    "G": "\\G",
    "K": "\\K",
    "X": "grapheme cluster, \\X",
    "y": "boundary of grapheme clusters, \\y",
    "Y": "\\Y",
    "M": "\\M-x",
}
_OCTAL_DIGITS: Final = "01234567"
_POSIX: Final = re.compile(r"\[:(\^?)([^\W\d_]+):]")
_HEX_DIGITS: Final = "0123456789abcdefABCDEF"


def read(expression: str) -> Node:
    """Return the syntax tree of the expression as tokenizers reads it.

    Raise BadTokenizer for invalid syntax and UnsupportedPattern for syntax that a tree cannot represent.
    """
    return _OnigurumaReader(expression).read()


class _OnigurumaReader(PatternReader):
    dialect = "oniguruma"
    blanks = " \t\n\r\f"
    unsupported_groups = _UNSUPPORTED_GROUPS
    named_groups = ("?<", "?'")
    operations = ("&&",)

    # Repeats.

    def repeated(self, part: Part) -> Part:
        count = 0
        while True:
            self.skip_ignored()
            offset = self.offset
            is_interval = self.peek() == "{"
            bounds = self.operator() or self.interval(skip=False)
            if bounds is None:
                return part
            if is_anchor(part):
                raise self.wrong("nothing to repeat", offset)
            count += 1
            part = self._repeated_once(part, *bounds, is_interval, offset)

    def _repeated_once(
        self, part: Part, least: int, most: int | None, is_interval: bool, offset: int
    ) -> Part:
        if max(least, most or 0) > _GREATEST_REPEAT:
            raise self.wrong(f"repeat of more than {_GREATEST_REPEAT:,} times", offset)
        mode: Mode = "greedy"
        if is_interval and most is not None and most < least:
            least, most, mode = most, least, "possessive"
        elif not is_interval and self.take("+"):
            mode = "possessive"
        elif not (is_interval and "," not in self.text[offset : self.offset]) and self.take("?"):
            mode = "lazy"
        if least == most == 1:
            return part
        return self.repeat(part, least, most, mode)

    # Literal text.

    def literal_node(self, letters: LiteralText) -> Node:
        if not letters.any_case:
            return _one_or_all([Characters(CodePoints.of(each)) for each in letters.text])
        nodes: list[Node] = []
        rest = letters.text
        while rest:
            length, node = _first_folded(rest, bool(self.looks_behind))
            nodes.append(node)
            rest = rest[length:]
        return _one_or_all(nodes)

    # Atoms.

    def at_repeat(self) -> bool:
        return super().at_repeat() or (self.peek() == "{" and self.interval(skip=False) is not None)

    def character(self, character: str) -> Part:
        if character == ".":
            return Characters(ANY if "m" in self.flags else ~NEWLINE)
        if character == "^":
            not_at_end = Look(TextEnd(), negated=True)
            behind = Look(Characters(NEWLINE), behind=True)
            return Choice((TextStart(), Sequence((behind, not_at_end))))
        if character == "$":
            return self.line_end()
        return self._letters(character)

    def _letters(self, text: str) -> LiteralText:
        return LiteralText(text, "i" in self.flags)

    def look_body(self, start: int, behind: bool) -> Node:
        flags = self.flags
        body = super().look_body(start, behind)
        self.flags = flags
        return body

    def flag_group(self, start: int) -> Part:
        if self.take(":"):
            return self.closed_group(start)
        before = self.flags
        flags = before
        sign = True
        while True:
            letter = self.peek()
            self.offset += 1
            if letter == "-":
                sign = False
            elif letter and letter in _FLAGS:
                flags = flags | {letter} if sign else flags - {letter}
            elif letter and letter in _OTHER_FLAGS:
                raise self.unsupported(f"flag {letter}", start)
            elif letter and letter in ":)" and self.offset > start + 3:
                break
            else:
                raise self.wrong("unknown group or flag", start)
        self.flags = flags
        if letter == ":":
            part = self.closed_group(start)
        else:
            with self.nested(start):
                part = self.alternatives()
        node = self.as_node(part)
        self.flags = before
        return _enclosed(node)

    def own_escape(self, letter: str, start: int) -> Part:
        match letter:
            case "Z":
                newline = Repeat(Characters(NEWLINE), 0, 1)
                return Look(Sequence((newline, TextEnd())))
            case "b" | "B":
                return self.word(negated=letter == "B")
            case "k" if self.peek() in ("<", "'"):
                raise self.backreference(start)
            case "g" if self.peek() in ("<", "'"):
                raise self.unsupported("call of a group, \\g", start)
        if letter in _UNSUPPORTED_ESCAPES:
            raise self.unsupported(_UNSUPPORTED_ESCAPES[letter], start)
        if letter in "123456789" and self.peek() not in tuple("0123456789"):  # else a byte such as \303
            raise self.backreference(start)
        found = self.common_escape(letter, start, in_class=False)
        return self._letters(found) if isinstance(found, str) else Characters(found)

    def common_escape(self, letter: str, start: int, in_class: bool) -> CodePoints | str:
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
            return self.scalar(int(digits, 16), start)
        if letter in "xo" and self.peek() == "{":
            return self._braced_code_point(letter, start)
        if (letter == "x" and self.peek()) or letter in _OCTAL_DIGITS:
            self.offset = start
            return self._byte_character(start)
        if letter == "c" or (letter == "C" and self.take("-")):
            return self._control(start)
        if letter in "CM":
            raise self.unsupported(f"\\{letter}", start)
        if in_class and letter == "b":
            return "\b"
        return self.escaped(letter) or letter

    def _braced_code_point(self, letter: str, start: int) -> str:
        """Read a code point in braces. Without a digit, the letter is literal."""
        base, digits = (16, _HEX_DIGITS) if letter == "x" else (8, _OCTAL_DIGITS)
        first = self.offset + 1
        stop = first
        while self.text[stop : stop + 1] and self.text[stop] in digits:
            stop += 1
        if stop == first:
            return letter
        self.offset = stop
        if self.peek() in (" ", "\n"):
            raise self.unsupported("list of code points", start)
        if stop - first > 11 or not self.take("}"):
            raise self.wrong("code point must be one number in braces", start)
        return self.scalar(int(self.text[first:stop], base), start)

    def _byte_character(self, start: int) -> str:
        r"""Read the UTF-8 bytes of a character, written as `\xHH` or `\nnn` each."""
        value = self._byte(start)
        length = 1 + (value >= 0xC0) + (value >= 0xE0) + (value >= 0xF0)
        values = [value]
        while len(values) < length:
            if not (self.text.startswith("\\x", self.offset) or self.peek(1) in tuple(_OCTAL_DIGITS)):
                raise self.wrong("incomplete bytes of a character", start)
            values.append(self._byte(start))
        try:
            return bytes(values).decode()
        except UnicodeDecodeError:
            raise self.wrong("bytes are not valid UTF-8", start) from None

    def _byte(self, start: int) -> int:
        if self.take("\\x"):
            return int(self.take_hex(0, 2) or "0", 16)
        self.offset += 1
        first = self.offset
        while self.offset - first < 3 and self.peek() and self.peek() in _OCTAL_DIGITS:
            self.offset += 1
        value = int(self.text[first : self.offset] or "0", 8)
        if value > 255:
            raise self.wrong("octal number of more than one byte", start)
        return value

    def _control(self, start: int) -> str:
        letter = self.peek()
        if letter in ("", "\\"):
            raise self.unsupported("control character", start)
        self.offset += 1
        return "\x7f" if letter == "?" else self.scalar(ord(letter) & 0x9F, start)

    def _property(self, negated: bool, start: int, in_class: bool) -> CodePoints:
        text = self.property_text(start)
        if text.startswith("^"):
            negated, text = not negated, text[1:]
        name = "".join(each for each in text.lower() if each not in " _-")
        points = named("oniguruma", r"[\w]" if in_class and name == "word" else name)
        if points is None or any(each in text for each in "[]\\"):
            raise self.unsupported(f"property {shown(text)}", start)
        return ~points if negated else points

    # Classes.

    def top_class(self) -> Node:
        points, negated = self.class_parts()
        if "i" not in self.flags:
            return Characters(~points if negated else points)
        points = any_case(points)
        if negated:
            return Characters(~points)
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


def is_anchor(part: Part) -> bool:
    """Return whether the part only tests a condition, so it cannot be repeated."""
    if isinstance(part, Choice):
        return any(map(is_anchor, part.options)) or all(
            isinstance(option, Sequence) and option.parts and all(map(is_anchor, option.parts))
            for option in part.options
        )
    return isinstance(part, TextStart | TextEnd | Look)


def _enclosed(node: Node) -> Node:
    """Wrap a node so that a following repeat applies to all of it."""
    return Sequence((node,)) if is_anchor(node) or isinstance(node, Repeat) else node


def _one_or_all(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))


# Full case folding of literal text and classes under (?i), such as "ss" for "ß".


def _first_folded(text: str, looks_behind: bool) -> tuple[int, Node]:
    """Return (number of folded characters, node) for the start of a text, like get_case_fold_codes_by_str of unicode.c.

    looks_behind: whether this is in a lookbehind, where each character is folded separately.
    """
    first = _folded(text[0])
    if looks_behind:
        return 1, Characters(first)
    for length in (3, 2):
        folded = "".join(map(_fold_key, text[:length]))
        if len(folded) == length and folded in several_for_one():
            return length, _several(folded)
    for folded, ones in several_for_one().items():
        if ord(text[0]) in ones:
            return 1, _several(folded)
    return 1, Characters(first)


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
