r"""The dialect of tiktoken's patterns: fancy-regex, with the classes of Rust's regex-syntax.

- Without (?m), `^` and `$` match at the ends of the text.
- `\Z` matches before any number of newlines at the end.
- A flag set inside a lookaround also holds after it, up to the end of the enclosing `(?flags:...)`.
- An escaped literal character ignores (?i).
- Letter case follows Unicode's simple folding.
"""

from __future__ import annotations

from typing import Final

from bpe.errors import shown
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.pattern_reader import (
    ANY,
    CONTROLS,
    EMPTY,
    LINE_END,
    LINE_START,
    NEWLINE,
    LiteralText,
    Mode,
    Part,
    PatternReader,
    one_or_all,
)
from bpe.pretokenization.syntax import Atomic, Characters, Look, Node, Repeat, Sequence, TextEnd, TextStart
from bpe.pretokenization.unicode_tables import any_case, named, required

_HEX_DIGITS: Final = CodePoints.of("0123456789abcdefABCDEF")
_LETTERS: Final = CodePoints.of((0x41, 0x5B), (0x61, 0x7B))
_ALNUM: Final = _LETTERS | CodePoints.of((0x30, 0x3A))
_LITERAL_IN_CLASS: Final = frozenset("kAzBKGR")
# fancy-regex inserts && before the second of these in a class.
_JOINED_IN_CLASS: Final = {("alnum", True), ("blank", True), ("graph", False), ("print", False)}
_POSIX: Final = {
    "alnum": _ALNUM,
    "alpha": _LETTERS,
    "ascii": CodePoints.of((0, 0x80)),
    "blank": CodePoints.of("\t "),
    "cntrl": CodePoints.of((0, 0x20), (0x7F, 0x80)),
    "digit": CodePoints.of((0x30, 0x3A)),
    "graph": CodePoints.of((0x21, 0x7F)),
    "lower": CodePoints.of((0x61, 0x7B)),
    "print": CodePoints.of((0x20, 0x7F)),
    "punct": CodePoints.of((0x21, 0x7F)) - _ALNUM,
    "space": CodePoints.of("\t\n\v\f\r "),
    "upper": CodePoints.of((0x41, 0x5B)),
    "word": _ALNUM | CodePoints.of("_"),
    "xdigit": _HEX_DIGITS,
}
_KEYS: Final = {"generalcategory": "gc", "script": "sc", "scriptextensions": "scx"}


def read(expression: str) -> Node:
    """Return the syntax tree of the expression as tiktoken reads it.

    Raise BadTokenizer for invalid syntax and UnsupportedPattern for syntax that a tree cannot represent.
    """
    return RustReader(expression).read()


class RustReader(PatternReader):
    dialect = "rust"
    blanks = " \t\n\r"
    known_flags = "imsxU"
    unsupported_flags = "Ru"
    flags_reach_on = True
    unsupported_groups = (
        ("?(", "condition, (?("),
        ("?~", "absent operator, (?~"),
        ("?P>", "call of a group, (?P>"),
        ("?P=", "backreference"),
        ("*", "backtracking verb, (*"),
    )
    named_groups = ("?P<", "?<", "?'")
    operations = ("&&", "--", "~~")
    skips_in_tokens = True

    def literal_node(self, letters: LiteralText) -> Node:
        points = [CodePoints.of(each) for each in letters.text]
        return one_or_all([Characters(any_case(each) if letters.any_case else each) for each in points])

    def operator(self, character: str) -> Node | None:
        match character:
            case ".":
                return Characters(ANY if "s" in self.flags else ~NEWLINE)
            case "^":
                return LINE_START if "m" in self.flags else TextStart()
            case "$":
                return LINE_END if "m" in self.flags else TextEnd()
        return None

    def own_escape(self, letter: str, start: int) -> Part | None:
        match letter:
            case "Z":
                return Sequence((Look(Sequence((Repeat(Characters(NEWLINE), 0, None), TextEnd()))),))
            case "b" | "B":
                self.skip_ignored()
                if self.peek() == "{" and not self.peek(1).isdigit() and self.peek(1) != ",":
                    raise self.unsupported(f"\\{letter}{{", start)
                return self.word_boundary(negated=letter == "B")
            case "K" | "G" | "<" | ">":
                raise self.unsupported(f"\\{letter}", start)
            case "g":
                raise self.unsupported("call of a group, \\g", start)
        if letter in "0123456789" or (letter == "k" and self.peek() in ("<", "'")):
            raise self.unsupported("backreference", start)
        if letter in "xuU":
            return None
        found = self.set_escape(letter, start, in_class=False)
        return LiteralText(found, any_case=False) if isinstance(found, str) else Characters(found)

    def set_escape(self, letter: str, start: int, in_class: bool) -> CodePoints | str:
        if letter in "dswDSW":
            points = required("rust", "\\" + letter.lower())
            return points if letter.islower() else ~points
        if letter in "hH":
            return _HEX_DIGITS if letter == "h" else ~_HEX_DIGITS
        if letter in "pP":
            return self._property(letter == "P", start, in_class)
        if letter in "xuU":
            return self._hexadecimal({"x": 2, "u": 4, "U": 8}[letter], start)
        if letter == "b":
            return "\b"
        if control := CONTROLS.get(letter):
            return control
        if letter.isascii() and letter.isalnum() and not (in_class and letter in _LITERAL_IN_CLASS):
            raise self.wrong(f"unknown escape, \\{letter}", start)
        return letter

    def _hexadecimal(self, digits: int, start: int) -> str:
        self.skip_ignored()
        found = self.take_hex(digits, digits)
        if found is None and self.take("{"):
            found = self.take_hex(1, 8)
            if not self.take("}"):
                found = None
        if found is None:
            raise self.wrong("escape must be followed by hexadecimal digits", start)
        return self.scalar(found, start)

    def _property(self, negated: bool, start: int, in_class: bool) -> CodePoints:
        if self.take("{"):
            text = self.property_text(start)
            if text.startswith("^"):
                negated, text = not negated, text[1:]
        else:
            text = self.peek()
            self.offset += 1
        name = _normalized(text)
        if "!=" in text:
            negated = not negated
        points = named("rust", name)
        if points is None or (in_class and (name, negated) in _JOINED_IN_CLASS):
            raise self.unsupported(f"property {shown(text)}{' in a class' * (points is not None)}", start)
        folded = self.folded(points)
        return ~folded if negated else folded

    def repeated(self, part: Part) -> Part:
        self.skip_ignored()
        offset = self.offset
        bounds = self.bounds()
        if bounds is None:
            return part
        least, most = bounds
        if part == EMPTY or isinstance(part, Look):
            raise self.wrong("nothing to repeat", offset)
        if most is not None and most < least:
            raise self.wrong("maximum of the repeat is below its minimum", offset)
        self.skip_ignored()
        is_lazy = self.take("?") != ("U" in self.flags)
        is_atomic = self.take("+")
        mode: Mode = "lazy" if is_lazy else "possessive" if is_atomic else "greedy"
        repeat = Repeat(self.as_node(part), least, most, mode)
        return Atomic(repeat) if is_lazy and is_atomic else repeat

    def folded(self, points: CodePoints) -> CodePoints:
        return any_case(points) if "i" in self.flags else points

    def class_node(self, points: CodePoints, negated: bool) -> Node:
        points = self.folded(points)
        return Characters(~points if negated else points)

    def class_start(self, start: int) -> list[CodePoints]:
        first: list[CodePoints] = []
        while self.take("-"):
            first.append(CodePoints.of("-"))
        if not first and self.take("]"):
            first.append(CodePoints.of("]"))
        return first

    def range_or_item(self, start: int) -> CodePoints:
        offset = self.offset
        first = self.class_item(offset)
        if self.peek() != "-" or self.peek(1) in ("]", "-", ""):
            return CodePoints.of(first) if isinstance(first, str) else first
        self.offset += 1
        last = self.class_item(self.offset)
        if not isinstance(first, str) or not isinstance(last, str):
            raise self.wrong("range must go from a character to a character", offset)
        if first > last:
            raise self.wrong("range must be ascending", offset)
        return CodePoints.of((ord(first), ord(last) + 1))

    def posix(self) -> CodePoints | None:
        start = self.offset
        if self.take("[:"):
            negated = self.take("^")
            stop = self.text.find(":]", self.offset)
            points = _POSIX.get(self.text[self.offset : stop]) if stop >= 0 else None
            if points is not None:
                self.offset = stop + 2
                folded = self.folded(points)
                return ~folded if negated else folded
        self.offset = start
        return None


def _normalized(text: str) -> str:
    """Return the name of a property as in the tables: "Script = Han" -> "sc=han"."""
    for sign in ("!=", ":", "="):
        if sign in text:
            key, _, value = text.partition(sign)
            key = _loose(key)
            return f"{_KEYS.get(key, key)}={_loose(value)}"
    return _loose(text)


def _loose(name: str) -> str:
    """Match loosely by rule UAX44-LM3, like regex-syntax."""
    lowered = name.lower()
    loose = "".join(each for each in lowered.removeprefix("is") if each not in " _-" and each < "\x80")
    return "isc" if loose == "c" and lowered.startswith("is") else loose
