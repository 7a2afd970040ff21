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
    EMPTY,
    NEWLINE,
    LiteralText,
    Mode,
    Part,
    PatternReader,
)
from bpe.pretokenization.syntax import (
    Atomic,
    Characters,
    Look,
    Node,
    Repeat,
    Sequence,
    TextEnd,
    TextStart,
)
from bpe.pretokenization.unicode_tables import any_case, named, required

_FLAGS: Final = frozenset("imsxU")
_HEX_DIGITS: Final = CodePoints.of("0123456789abcdefABCDEF")
_DIGITS: Final = frozenset("0123456789")
_LITERAL_IN_CLASS: Final = frozenset("kAzBKGR")
_UNSUPPORTED_GROUPS: Final = {
    "?(": "condition, (?(",
    "?~": "absent operator, (?~",
    "?P>": "call of a group, (?P>",
    "*": "backtracking verb, (*",
}
# fancy-regex inserts && before the second of these in a class.
_JOINED_IN_CLASS: Final = {("alnum", True), ("blank", True), ("graph", False), ("print", False)}
_POSIX: Final = {
    "alnum": CodePoints.of((0x30, 0x3A), (0x41, 0x5B), (0x61, 0x7B)),
    "alpha": CodePoints.of((0x41, 0x5B), (0x61, 0x7B)),
    "ascii": CodePoints.of((0, 0x80)),
    "blank": CodePoints.of("\t "),
    "cntrl": CodePoints.of((0, 0x20), (0x7F, 0x80)),
    "digit": CodePoints.of((0x30, 0x3A)),
    "graph": CodePoints.of((0x21, 0x7F)),
    "lower": CodePoints.of((0x61, 0x7B)),
    "print": CodePoints.of((0x20, 0x7F)),
    "punct": CodePoints.of((0x21, 0x30), (0x3A, 0x41), (0x5B, 0x61), (0x7B, 0x7F)),
    "space": CodePoints.of("\t\n\v\f\r "),
    "upper": CodePoints.of((0x41, 0x5B)),
    "word": CodePoints.of((0x30, 0x3A), (0x41, 0x5B), (0x61, 0x7B), "_"),
    "xdigit": _HEX_DIGITS,
}


def read(expression: str) -> Node:
    """Return the syntax tree of the expression as tiktoken reads it.

    Raise BadTokenizer for invalid syntax and UnsupportedPattern for syntax that a tree cannot represent.
    """
    return RustReader(expression).read()


class RustReader(PatternReader):
    dialect = "rust"
    blanks = " \t\n\r"
    unsupported_groups = _UNSUPPORTED_GROUPS
    named_groups = ("?P<", "?<", "?'")
    operations = ("&&", "--", "~~")
    skips_in_openings = True

    def __init__(self, expression: str) -> None:
        super().__init__(expression)
        self._joined_in_class = 0

    def literal_node(self, letters: LiteralText) -> Node:
        points = [CodePoints.of(each) for each in letters.text]
        nodes = tuple(Characters(any_case(each) if letters.any_case else each) for each in points)
        return nodes[0] if len(nodes) == 1 else Sequence(nodes)

    def folded(self, points: CodePoints) -> CodePoints:
        return any_case(points) if "i" in self.flags else points

    def repeated(self, part: Part) -> Part:
        self.skip_ignored()
        offset = self.offset
        bounds = self.operator() or self.interval(skip=True)
        if bounds is None:
            return part
        least, most = bounds
        if part == EMPTY or isinstance(part, Look):
            raise self.wrong("nothing to repeat", offset)
        if most is not None and most < least:
            raise self.wrong("maximum of the repeat is below its minimum", offset)
        self.skip_ignored()
        is_lazy = self.take("?") != ("U" in self.flags)
        mode: Mode = "lazy" if is_lazy else "greedy"
        if self.take("+"):
            if is_lazy:
                return Atomic(self.repeat(part, least, most, mode))
            mode = "possessive"
        return self.repeat(part, least, most, mode)

    def character(self, character: str) -> Part:
        if character == ".":
            return Characters(ANY if "s" in self.flags else ~NEWLINE)
        if character == "^":
            return self.line_start() if "m" in self.flags else TextStart()
        if character == "$":
            return self.line_end() if "m" in self.flags else TextEnd()
        return LiteralText(character, "i" in self.flags)

    def top_class(self) -> Node:
        self._joined_in_class = 0
        points, negated = self.class_parts()
        points = self.folded(points)
        return Characters(~points if negated else points)

    def flag_group(self, start: int) -> Part:
        if self.take("P="):
            raise self.backreference(start)
        before = self.flags
        sign = True
        letters = 0
        while True:
            self.skip_ignored()
            letter = self.peek()
            self.offset += 1
            if letter == "-" and sign:
                sign = False
            elif letter == "u" and sign:
                letters += 1
            elif letter in ("R", "u"):
                raise self.unsupported(f"flag {letter}", start)
            elif letter and letter in _FLAGS:
                letters += 1
                self.flags = self.flags | {letter} if sign else self.flags - {letter}
            elif letter == ")" and letters:
                return EMPTY
            elif letter == ":" and (letters or sign):
                break
            else:
                raise self.wrong("unknown group or flag", start)
        part = self.closed_group(start)
        self.flags = before
        return part

    def own_escape(self, letter: str, start: int) -> Part:
        match letter:
            case "Z":
                newlines = Repeat(Characters(NEWLINE), 0, None)
                return Sequence((Look(Sequence((newlines, TextEnd()))),))
            case "b" | "B":
                return self._boundary(letter, start)
            case "<":
                return self._word_start()
            case ">":
                return self._word_end()
            case "K" | "G":
                raise self.unsupported(f"\\{letter}", start)
            case "k" if self.peek() in ("<", "'"):
                raise self.backreference(start)
            case "g":
                raise self.unsupported("call of a group, \\g", start)
        if letter in _DIGITS:
            raise self.backreference(start)
        found = self.common_escape(letter, start, in_class=False)
        if isinstance(found, CodePoints):
            return Characters(found)
        return LiteralText(found, letter in "xuU" and "i" in self.flags)

    def _boundary(self, letter: str, start: int) -> Node:
        self.skip_ignored()
        if self.peek() != "{" or self.peek(1).isdigit() or self.peek(1) == ",":
            return self.word(negated=letter == "B")
        self.offset += 1
        name = self.property_text(start)
        word = Characters(required("rust", "\\w"))
        halves: dict[str, Node] = {
            "start": self._word_start(),
            "end": self._word_end(),
            "start-half": Sequence((Look(word, behind=True, negated=True),)),
            "end-half": Sequence((Look(word, negated=True),)),
        }
        if letter == "B" or name not in halves:
            raise self.wrong("unknown boundary", start)
        return halves[name]

    def _word_start(self) -> Node:
        word = Characters(required("rust", "\\w"))
        return Sequence((Look(word, behind=True, negated=True), Look(word)))

    def _word_end(self) -> Node:
        word = Characters(required("rust", "\\w"))
        return Sequence((Look(word, behind=True), Look(word, negated=True)))

    def common_escape(self, letter: str, start: int, in_class: bool) -> CodePoints | str:
        if letter in "dswDSW":
            points = required("rust", "\\" + letter.lower())
            return points if letter.islower() else ~points
        if letter in "hH":
            return _HEX_DIGITS if letter == "h" else ~_HEX_DIGITS
        if letter in "pP":
            return self._property(letter == "P", start, in_class)
        if letter in "xuU":
            return self._hexadecimal({"x": 2, "u": 4, "U": 8}[letter], start)
        if letter in _DIGITS:
            raise self.wrong(f"unknown escape in a class, \\{letter}", start)
        if letter == "b":
            return "\b"
        if control := self.escaped(letter):
            return control
        if letter.isascii() and letter.isalpha() and not (in_class and letter in _LITERAL_IN_CLASS):
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
        return self.scalar(int(found, 16), start)

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
        if points is None:
            raise self.unsupported(f"property {shown(text)}", start)
        if in_class and (name, negated) in _JOINED_IN_CLASS:
            self._joined_in_class += 1
            if self._joined_in_class > 1:
                raise self.unsupported("second property of this kind in a class", start)
        folded = self.folded(points)
        return ~folded if negated else folded

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
        """Parse a POSIX bracket, or return None and stay."""
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


_KEYS: Final = {"generalcategory": "gc", "script": "sc", "scriptextensions": "scx"}


def _loose(name: str) -> str:
    """Match loosely by rule UAX44-LM3, like regex-syntax."""
    lowered = name.lower()
    loose = "".join(each for each in lowered.removeprefix("is") if each not in " _-" and each < "\x80")
    return "isc" if loose == "c" and lowered.startswith("is") else loose
