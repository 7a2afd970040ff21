"""The grammar that all pattern dialects share: alternatives, sequences, repeats and size limits.

A dialect (read_rust.py, read_oniguruma.py) adds its escapes, classes, groups and flags. Literal text stays
`LiteralText` until the parser knows its neighbors, because "ss" matches "ß" under (?i) in Oniguruma.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

from bpe.errors import BadTokenizer, UnsupportedPattern, shown
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.syntax import (
    Atomic,
    Characters,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    TextEnd,
    TextStart,
)
from bpe.pretokenization.unicode_tables import Dialect, required

MAX_POSITIONS: Final = 2_000  # characters of the expression with its repeats expanded
MAX_GROUPS: Final = 64  # nesting depth, as in fancy-regex
MAX_DEPTH: Final = 200  # of the syntax tree

Mode: TypeAlias = Literal["greedy", "lazy", "possessive"]
NEWLINE: Final = CodePoints.of("\n")
_GENERAL_NEWLINES: Final = CodePoints.of("\n\v\f\r\x85\u2028\u2029")  # \R also matches CR LF
ANY: Final = ~CodePoints()
EMPTY: Final = Sequence(())
# opening: (is lookbehind, is negated)
_LOOKS: Final = {"?=": (False, False), "?!": (False, True), "?<=": (True, False), "?<!": (True, True)}
_ESCAPED: Final = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OPERATORS: Final = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True)
class LiteralText:
    """Literal text. any_case: whether (?i) applies to it."""

    text: str
    any_case: bool


Part: TypeAlias = Node | LiteralText


class PatternReader(ABC):
    """A parser of one expression.

    offset: offset of the next character.
    flags: letters of the active flags.
    """

    dialect: ClassVar[Dialect]
    blanks: ClassVar[str]  # ignored under (?x)
    unsupported_groups: ClassVar[dict[str, str]]  # opening after the bracket -> description
    named_groups: ClassVar[tuple[str, ...]]  # openings of named groups
    operations: ClassVar[tuple[str, ...]]  # on sets, in classes
    skips_in_openings: ClassVar[bool] = False  # whether (?x) also holds between the bracket and "?"

    def __init__(self, expression: str) -> None:
        self.text = expression
        self.offset = 0
        self.flags: frozenset[str] = frozenset()
        self.looks_behind = 0  # open lookbehinds
        self.sets: list[str] = []  # how the expression writes sets
        self._groups = 0
        self._atoms = 0

    def read(self) -> Node:
        """Return the tree. Raise BadTokenizer for invalid syntax, UnsupportedPattern for unsupported syntax."""
        node = self.as_node(self.alternatives())
        if self.offset < len(self.text):
            raise self.wrong("unmatched )", fix="Escape it as \\).")
        self._check_size(node)
        return node

    # Dialects implement these.

    @abstractmethod
    def character(self, character: str) -> Part:
        """Return the meaning of an ordinary character, which has been read."""

    @abstractmethod
    def top_class(self) -> Node:
        """Parse a class outside other classes."""

    @abstractmethod
    def class_start(self, start: int) -> list[CodePoints]:
        """Parse the first items of a class if they have a special meaning there."""

    @abstractmethod
    def posix(self) -> CodePoints | None:
        """Parse a POSIX bracket, or return None and stay."""

    @abstractmethod
    def range_or_item(self, start: int) -> CodePoints:
        """Parse a range or item of the class that opened at `start`."""

    @abstractmethod
    def common_escape(self, letter: str, start: int, in_class: bool) -> CodePoints | str:
        """Parse the rest of an escape that also exists in classes."""

    @abstractmethod
    def own_escape(self, letter: str, start: int) -> Part:
        """Parse the rest of an escape that differs between dialects."""

    @abstractmethod
    def flag_group(self, start: int) -> Part:
        """Parse flags after `(?`, and the group that they apply to."""

    @abstractmethod
    def repeated(self, part: Part) -> Part:
        """Apply the repeats that follow to the part."""

    @abstractmethod
    def literal_node(self, letters: LiteralText) -> Node:
        """Return the node that matches the literal text."""

    # The shared grammar.

    def skip_ignored(self) -> None:
        """Skip comments, and blanks under (?x)."""
        while True:
            if self.text.startswith("(?#", self.offset):
                self._skip_comment()
            elif "x" in self.flags and self.peek() == "#":
                stop = self.text.find("\n", self.offset)
                self.offset = stop + 1 if stop >= 0 else len(self.text)
            elif "x" in self.flags and self.peek() and self.peek() in self.blanks:
                self.offset += 1
            else:
                return

    def _skip_comment(self) -> None:
        start = self.offset
        while self.peek() != ")":
            self.offset += 2 if self.peek() == "\\" else 1
            if self.offset >= len(self.text):
                raise self.wrong("unclosed comment", start)
        self.offset += 1

    def alternatives(self) -> Part:
        """Parse up to the end or the next `)`, which stays unread."""
        options = [self.branch()]
        while self.take("|"):
            options.append(self.branch())
        return options[0] if len(options) == 1 else Choice(tuple(map(self.as_node, options)))

    def branch(self) -> Part:
        parts: list[Part] = []
        while True:
            self.skip_ignored()
            if self.offset >= len(self.text) or self.text[self.offset] in "|)":
                return self._joined(parts)
            self._atoms += 1
            if self._atoms > MAX_POSITIONS:
                raise self._too_large()
            parts.append(self.repeated(self.atom()))

    def atom(self) -> Part:
        """Parse one item without its repeats."""
        start = self.offset
        character = self.peek()
        if character == "(":
            return self._group()
        if character in ("[", "\\"):
            part = self.top_class() if character == "[" else self._escape()
            if isinstance(part, Characters):
                self.sets.append(self.text[start : self.offset])
            return part
        if self.at_repeat():
            raise self.wrong("nothing to repeat", start)
        self.offset += 1
        return self.character(character)

    def at_repeat(self) -> bool:
        """Return whether a repeat follows."""
        return self.peek() in _OPERATORS

    def _group(self) -> Part:
        start = self.offset
        self.offset += 1
        if self.skips_in_openings:
            self.skip_ignored()
        for opening, what in self.unsupported_groups.items():
            if self.text.startswith(opening, self.offset):
                raise self.unsupported(what, start)
        for opening, (behind, negated) in _LOOKS.items():
            if self.take(opening):
                return Look(self.look_body(start, behind), behind, negated)
        if self.take("?>"):
            return Atomic(self.as_node(self.closed_group(start)))
        if self.text.startswith(self.named_groups, self.offset) or not self.take("?"):
            raise self.unsupported("capturing group", start, "Write (?:...).")
        return self.flag_group(start)

    def look_body(self, start: int, behind: bool) -> Node:
        self.looks_behind += behind
        body = self.as_node(self.closed_group(start))
        self.looks_behind -= behind
        return body

    def backreference(self, start: int) -> UnsupportedPattern:
        return self.unsupported("backreference", start)

    def _escape(self) -> Part:
        start = self.offset
        letter = self.peek(1)
        self.offset += 2
        match letter:
            case "":
                raise self.wrong("backslash at the end of the pattern", start)
            case "A":
                return TextStart()
            case "z":
                return TextEnd()
            case "R":
                pair = Sequence((Characters(CodePoints.of("\r")), Characters(NEWLINE)))
                return Atomic(Choice((pair, Characters(_GENERAL_NEWLINES))))
            case "O":
                return Characters(ANY)
            case "N":
                return Characters(~NEWLINE)
        return self.own_escape(letter, start)

    # Classes.

    def class_parts(self) -> tuple[CodePoints, bool]:
        """Parse a class and return (its points, whether it is negated)."""
        start = self.offset
        self.offset += 1
        negated = self.take("^")
        union = self.class_start(start)
        joined: CodePoints | None = None
        operation = ""
        while True:
            character = self.peek()
            if not character:
                raise self.wrong("unclosed class", start)
            if character == "[":
                union.append(self.nested_class(start) if (posix := self.posix()) is None else posix)
            elif character == "]" or self.text.startswith(self.operations, self.offset):
                listed = CodePoints.union(union)
                joined = listed if joined is None else self._combined(joined, operation, listed)
                operation, union = character, []
                self.offset += 1 if character == "]" else 2
                if character == "]":
                    return joined, negated
            else:
                union.append(self.range_or_item(start))

    def nested_class(self, start: int) -> CodePoints:
        with self.nested(start):
            points, negated = self.class_parts()
        points = self.folded(points)
        return ~points if negated else points

    def folded(self, points: CodePoints) -> CodePoints:
        """Add letter case to a part of a class, in the dialects that do so before a class is complete."""
        return points

    def _combined(self, left: CodePoints, operation: str, right: CodePoints) -> CodePoints:
        left, right = self.folded(left), self.folded(right)
        if operation == "&":
            return left & right
        return left - right if operation == "-" else (left | right) - (left & right)

    def class_item(self, error_at: int) -> str | CodePoints:
        """Read a character or escape of a class. error_at: offset that the error of a final backslash names."""
        start = self.offset
        self.offset += 1
        if self.text[start] != "\\":
            return self.text[start]
        letter = self.peek()
        if not letter:
            raise self.wrong("backslash at the end of the pattern", error_at)
        self.offset += 1
        return self.common_escape(letter, start, in_class=True)

    def _joined(self, parts: list[Part]) -> Part:
        joined: list[Part] = []
        for part in parts:
            last = joined[-1] if joined else None
            if (
                isinstance(part, LiteralText)
                and isinstance(last, LiteralText)
                and part.any_case == last.any_case
            ):
                joined[-1] = LiteralText(last.text + part.text, part.any_case)
            elif part != EMPTY:
                joined.append(part)
        if len(joined) == 1:
            return joined[0]
        nodes: list[Node] = []
        for part in joined:
            node = self.as_node(part)
            nodes += node.parts if isinstance(node, Sequence) else [node]
        return Sequence(tuple(nodes))

    def as_node(self, part: Part) -> Node:
        return self.literal_node(part) if isinstance(part, LiteralText) else part

    def closed_group(self, start: int) -> Part:
        """Parse a group that opened at `start`, with its `)`."""
        with self.nested(start):
            part = self.alternatives()
        if not self.take(")"):
            raise self.wrong("unclosed group", start)
        return part

    @contextmanager
    def nested(self, start: int) -> Iterator[None]:
        """Enter a nested group or class. Raise BadTokenizer if the nesting is too deep."""
        self._groups += 1
        if self._groups > MAX_GROUPS:
            raise self.wrong(f"more than {MAX_GROUPS} nested groups", start)
        yield
        self._groups -= 1

    def operator(self) -> tuple[int, int | None] | None:
        """Read `?`, `*` or `+` and return (least, most), or return None and stay."""
        found = _OPERATORS.get(self.peek())
        if found:
            self.offset += 1
        return found

    def interval(self, skip: bool) -> tuple[int, int | None] | None:
        """Read `{n,m}`, `{n}`, `{n,}` or `{,m}` and return (least, most), or return None and stay.

        skip: whether comments and blanks are allowed inside.
        """
        start = self.offset
        least: int | None = None
        most: int | None = None
        if self.take("{"):
            least = self._number(skip)
            comma = self.take(",")
            most = self._number(skip) if comma else least
            closed = self.take("}")
            if closed and (least is not None or (comma and (most is not None or skip))):
                return least or 0, most
        self.offset = start
        return None

    def _number(self, skip: bool) -> int | None:
        if skip:
            self.skip_ignored()
        start = self.offset
        while self.peek().isascii() and self.peek().isdigit():
            self.offset += 1
        digits = self.text[start : self.offset].lstrip("0") or "0"
        found = None if self.offset == start else int(digits[:20])
        if skip:
            self.skip_ignored()
        return found

    def repeat(self, part: Part, least: int, most: int | None, mode: Mode) -> Node:
        return Repeat(self.as_node(part), least, most, mode)

    # Lexing.

    def peek(self, ahead: int = 0) -> str:
        """Return the character `ahead` characters from here, "" after the end."""
        return self.text[self.offset + ahead : self.offset + ahead + 1]

    def take(self, what: str) -> bool:
        """Read the text and return True, or return False and stay."""
        found = self.text.startswith(what, self.offset)
        self.offset += len(what) if found else 0
        return found

    def take_hex(self, least: int, most: int) -> str | None:
        """Read `least` to `most` hexadecimal digits, or return None and stay."""
        stop = self.offset
        while stop < len(self.text) and stop - self.offset < most and self.text[stop] in _HEX:
            stop += 1
        if stop - self.offset < least:
            return None
        digits = self.text[self.offset : stop]
        self.offset = stop
        return digits

    def escaped(self, letter: str) -> str | None:
        """Return the control character of an escape such as `\\n`, or None."""
        return _ESCAPED.get(letter)

    def scalar(self, value: int, start: int) -> str:
        if value >= 0x110000 or 0xD800 <= value < 0xE000:
            raise self.wrong(f"U+{value:X} is not a character", start)
        return chr(value)

    def property_text(self, start: int) -> str:
        """Read the name of a property up to the closing brace."""
        stop = self.text.find("}", self.offset)
        if stop < 0:
            raise self.wrong("unclosed property name", start)
        name, self.offset = self.text[self.offset : stop], stop + 1
        return name

    # Shorthands that become lookarounds.

    def line_start(self) -> Node:
        return Choice((TextStart(), Look(Characters(NEWLINE), behind=True)))

    def line_end(self) -> Node:
        return Choice((TextEnd(), Look(Characters(NEWLINE))))

    def word(self, negated: bool = False) -> Choice:
        r"""Return the node of `\b` or `\B`."""
        return word_boundary(required(self.dialect, "\\w"), negated)

    # Errors.

    def wrong(self, what: str, offset: int | None = None, fix: str = "") -> BadTokenizer:
        return BadTokenizer(self._message(what, offset, fix))

    def unsupported(
        self, what: str, offset: int, fix: str = "Use a pattern without it, or a named pattern."
    ) -> UnsupportedPattern:
        return UnsupportedPattern(self._message(f"{what} is not supported", offset, fix))

    def _message(self, what: str, offset: int | None, fix: str) -> str:
        at = self.offset if offset is None else offset
        found = shown(self.text, 80)
        if (part := shown(self.text[at : at + 12])) != found:
            found = f"{part} in {found}"
        return f"pattern, character {at}: {what} (got {found}){fix and f'. {fix}'}"

    def _check_size(self, root: Node) -> None:
        """Raise BadTokenizer if the tree is too large or too deep."""
        total = 0
        left: list[tuple[Node, int, int]] = [(root, 1, 1)]  # node, copies after expansion, depth
        while left:
            node, times, depth = left.pop()
            if depth > MAX_DEPTH:
                raise BadTokenizer(
                    f"pattern: repeats and groups nested deeper than {MAX_DEPTH} (got {shown(self.text, 80)})"
                )
            match node:
                case Characters():
                    total += times
                case Sequence(parts):
                    left += [(part, times, depth + 1) for part in parts]
                case Choice(options):
                    left += [(option, times, depth + 1) for option in options]
                case Repeat(body, least, most):
                    left.append((body, times * max(least, most or 1, 1), depth + 1))
                case Atomic(body) | Look(body):
                    left.append((body, times, depth + 1))
            if total > MAX_POSITIONS or times > MAX_POSITIONS:
                raise self._too_large()

    def _too_large(self) -> BadTokenizer:
        return BadTokenizer(
            f"pattern: more than {MAX_POSITIONS:,} characters once its repeats are expanded (got "
            f"{shown(self.text, 80)}). Use smaller repeats."
        )


def word_boundary(word: CodePoints, negated: bool) -> Choice:
    """Match between a word character and a non-word character, or elsewhere if negated."""
    inside = Characters(word)
    before, after = Look(inside, behind=True), Look(inside)
    not_before, not_after = Look(inside, behind=True, negated=True), Look(inside, negated=True)
    pairs = (
        ((before, after), (not_before, not_after)) if negated else ((before, not_after), (not_before, after))
    )
    return Choice(tuple(Sequence(pair) for pair in pairs))
