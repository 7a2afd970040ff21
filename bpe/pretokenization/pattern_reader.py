"""The grammar that all pattern dialects share: alternatives, sequences, groups, flags, classes and size limits.

A dialect (read_rust.py, read_oniguruma.py) sets the attributes of `PatternReader` and adds its escapes, repeats and
ranges. Literal text stays `LiteralText` until the parser knows its neighbors, because "ss" matches "ß" under (?i) in
Oniguruma.
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
Bounds: TypeAlias = tuple[int, int | None]
NEWLINE: Final = CodePoints.of("\n")
ANY: Final = ~CodePoints()
EMPTY: Final = Sequence(())
LINE_START: Final = Choice((TextStart(), Look(Characters(NEWLINE), behind=True)))
LINE_END: Final = Choice((TextEnd(), Look(Characters(NEWLINE))))
# opening: (is lookbehind, is negated)
LOOKS: Final = {"?=": (False, False), "?!": (False, True), "?<=": (True, False), "?<!": (True, True)}
CONTROLS: Final = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OPERATORS: Final[dict[str, Bounds]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_COMMON_ESCAPES: Final[dict[str, Node]] = {
    "A": TextStart(),
    "z": TextEnd(),
    "O": Characters(ANY),
    "N": Characters(~NEWLINE),
    "R": Atomic(
        Choice(
            (
                Sequence((Characters(CodePoints.of("\r")), Characters(NEWLINE))),
                Characters(CodePoints.of("\n\v\f\r\x85\u2028\u2029")),
            )
        )
    ),
}


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
    sets: how the expression writes its sets.
    """

    dialect: ClassVar[Dialect]
    blanks: ClassVar[str]  # ignored under (?x)
    known_flags: ClassVar[str]
    unsupported_flags: ClassVar[str]
    flags_reach_on: ClassVar[
        bool
    ]  # whether `(?i)` ends with the enclosing `(?flags:...)`, not with its group
    unsupported_groups: ClassVar[tuple[tuple[str, str], ...]]  # openings after the bracket, descriptions
    named_groups: ClassVar[tuple[str, ...]]  # openings of named groups
    operations: ClassVar[tuple[str, ...]]  # on sets, in classes
    skips_in_tokens: ClassVar[bool]  # whether comments and blanks are ignored within openings and intervals

    def __init__(self, expression: str) -> None:
        self.text = expression
        self.offset = 0
        self.flags: frozenset[str] = frozenset()
        self.looks_behind = 0  # open lookbehinds
        self.sets: list[str] = []
        self._groups = 0

    def read(self) -> Node:
        """Return the tree. Raise BadTokenizer for invalid syntax, UnsupportedPattern for unsupported syntax."""
        node = self.as_node(self.alternatives())
        if self.offset < len(self.text):
            raise self.wrong("unmatched )", fix="Escape it as \\).")
        if self._positions(node) > MAX_POSITIONS:
            raise BadTokenizer(
                f"pattern: more than {MAX_POSITIONS:,} characters once its repeats are expanded (got "
                f"{shown(self.text, 80)}). Use smaller repeats."
            )
        return node

    # Dialects implement these.

    @abstractmethod
    def literal_node(self, letters: LiteralText) -> Node:
        """Return the node that matches the literal text."""

    @abstractmethod
    def operator(self, character: str) -> Node | None:
        """Return the meaning of an unescaped `.`, `^` or `$`, None for other characters."""

    @abstractmethod
    def own_escape(self, letter: str, start: int) -> Part | None:
        """Return the meaning of an escape outside classes, None if it is the same in classes."""

    @abstractmethod
    def set_escape(self, letter: str, start: int, in_class: bool) -> CodePoints | str:
        """Parse the rest of an escape of a character or set."""

    @abstractmethod
    def repeated(self, part: Part) -> Part:
        """Apply the repeats that follow to the part."""

    @abstractmethod
    def class_node(self, points: CodePoints, negated: bool) -> Node:
        """Return the node of a class outside other classes."""

    @abstractmethod
    def class_start(self, start: int) -> list[CodePoints]:
        """Parse the first items of a class if they have a special meaning there."""

    @abstractmethod
    def range_or_item(self, start: int) -> CodePoints:
        """Parse a range or item of the class that opened at `start`."""

    @abstractmethod
    def posix(self) -> CodePoints | None:
        """Parse a POSIX bracket, or return None and stay."""

    # The shared grammar.

    def skip_ignored(self) -> None:
        """Skip comments, and blanks under (?x)."""
        while True:
            if self.text.startswith("(?#", self.offset):
                start = self.offset
                while self.peek() != ")":
                    self.offset += 2 if self.peek() == "\\" else 1
                    if self.offset >= len(self.text):
                        raise self.wrong("unclosed comment", start)
                self.offset += 1
            elif "x" in self.flags and self.peek() == "#":
                stop = self.text.find("\n", self.offset)
                self.offset = stop + 1 if stop >= 0 else len(self.text)
            elif "x" in self.flags and self.peek() and self.peek() in self.blanks:
                self.offset += 1
            else:
                return

    def alternatives(self) -> Part:
        """Parse up to the end or the next `)`, which stays unread."""
        options = [self._branch()]
        while self.take("|"):
            options.append(self._branch())
        return options[0] if len(options) == 1 else Choice(tuple(map(self.as_node, options)))

    def _branch(self) -> Part:
        parts: list[Part] = []
        while True:
            self.skip_ignored()
            if self.offset >= len(self.text) or self.text[self.offset] in "|)":
                break
            part, last = self.repeated(self._atom()), parts[-1] if parts else None
            if not isinstance(part, LiteralText) or not isinstance(last, LiteralText):
                parts += [part] if part != EMPTY else []
            elif part.any_case == last.any_case:
                parts[-1] = LiteralText(last.text + part.text, part.any_case)
            else:
                parts.append(part)
        if len(parts) == 1:
            return parts[0]
        nodes: list[Node] = []
        for node in map(self.as_node, parts):
            nodes += node.parts if isinstance(node, Sequence) else [node]
        return Sequence(tuple(nodes))

    def _atom(self) -> Part:
        """Parse one item without its repeats."""
        start = self.offset
        character = self.peek()
        if character == "(":
            return self._group()
        if character in ("[", "\\"):
            part = self.class_node(*self._class()) if character == "[" else self._escape()
            if isinstance(part, Characters):
                self.sets.append(self.text[start : self.offset])
            return part
        if character in _OPERATORS or (character == "{" and self.dialect != "rust" and self.bounds()):
            raise self.wrong("nothing to repeat", start)
        self.offset += 1
        return self.operator(character) or self.letters(character)

    def letters(self, text: str) -> LiteralText:
        return LiteralText(text, "i" in self.flags)

    def _escape(self) -> Part:
        start = self.offset
        letter = self.peek(1)
        self.offset += 2
        if not letter:
            raise self.wrong("backslash at the end of the pattern", start)
        part = _COMMON_ESCAPES.get(letter) or self.own_escape(letter, start)
        if part is not None:
            return part
        found = self.set_escape(letter, start, in_class=False)
        return self.letters(found) if isinstance(found, str) else Characters(found)

    def word_boundary(self, negated: bool) -> Choice:
        r"""Return the node of `\b`, or of `\B` if negated."""
        word = Characters(required(self.dialect, "\\w"))
        before, after = ([Look(word, behind, no) for no in (False, True)] for behind in (True, False))
        pairs = zip(before, after if negated else reversed(after), strict=True)
        return Choice(tuple(Sequence(pair) for pair in pairs))

    # Groups.

    def _group(self) -> Part:
        start = self.offset
        self.offset += 1
        if self.skips_in_tokens:
            self.skip_ignored()
        for opening, what in self.unsupported_groups:
            if self.text.startswith(opening, self.offset):
                raise self.unsupported(what, start)
        for opening, (behind, negated) in LOOKS.items():
            if self.take(opening):
                self.looks_behind += behind
                body = self.as_node(self._closed_group(start))
                self.looks_behind -= behind
                return Look(body, behind, negated)
        if self.take("?>"):
            return Atomic(self.as_node(self._closed_group(start)))
        if self.text.startswith(self.named_groups, self.offset) or not self.take("?"):
            raise self.unsupported("capturing group", start, "Write (?:...).")
        if not self.flags_reach_on and self.take(":"):
            return self._closed_group(start)
        return self._flag_group(start)

    def _flag_group(self, start: int) -> Part:
        """Parse flags after `(?`, and the group that they apply to."""
        before = flags = self.flags
        sign, is_empty = True, True
        while True:
            if self.skips_in_tokens:
                self.skip_ignored()
            letter = self.peek()
            self.offset += 1
            if letter == "-" and (sign or not self.flags_reach_on):
                sign, is_empty = False, is_empty and self.flags_reach_on
            elif letter and letter in self.known_flags:
                flags, is_empty = flags | {letter} if sign else flags - {letter}, False
            elif letter == "u" and sign and self.dialect == "rust":  # Unicode, the default
                is_empty = False
            elif letter and letter in self.unsupported_flags:
                raise self.unsupported(f"flag {letter}", start)
            elif (letter == ")" and not is_empty) or (letter == ":" and not (is_empty and not sign)):
                break
            else:
                raise self.wrong("unknown group or flag", start)
            if self.flags_reach_on:
                self.flags = flags  # (?x) holds at once
        self.flags = flags
        if letter == ":":
            part = self._closed_group(start)
        elif self.flags_reach_on:
            return EMPTY
        else:
            with self._nested(start):
                part = self.alternatives()
        self.flags = before
        if self.flags_reach_on:
            return part
        node = self.as_node(part)  # a repeat that follows applies to all of it
        return Sequence((node,)) if is_anchor(node) or isinstance(node, Repeat) else node

    def _closed_group(self, start: int) -> Part:
        """Parse a group that opened at `start`, with its `)`."""
        with self._nested(start):
            part = self.alternatives()
        if not self.take(")"):
            raise self.wrong("unclosed group", start)
        return part

    @contextmanager
    def _nested(self, start: int) -> Iterator[None]:
        """Enter a nested group or class. Raise BadTokenizer if the nesting is too deep."""
        self._groups += 1
        if self._groups > MAX_GROUPS:
            raise self.wrong(f"more than {MAX_GROUPS} nested groups", start)
        yield
        self._groups -= 1

    # Classes.

    def _class(self) -> tuple[CodePoints, bool]:
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
        with self._nested(start):
            points, negated = self._class()
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
        return self.set_escape(letter, start, in_class=True)

    # Repeats.

    def bounds(self) -> Bounds | None:
        """Read `?`, `*`, `+`, `{n,m}`, `{n}`, `{n,}` or `{,m}` as (least, most), or return None and stay."""
        start = self.offset
        if found := _OPERATORS.get(self.peek()):
            self.offset += 1
            return found
        if self.take("{"):
            least = self._number()
            comma = self.take(",")
            most = self._number() if comma else least
            is_given = least is not None or (comma and (most is not None or self.skips_in_tokens))
            if self.take("}") and is_given:
                return least or 0, most
        self.offset = start
        return None

    def _number(self) -> int | None:
        if self.skips_in_tokens:
            self.skip_ignored()
        start = self.offset
        while self.peek().isascii() and self.peek().isdigit():
            self.offset += 1
        digits = self.text[start : self.offset]
        if self.skips_in_tokens:
            self.skip_ignored()
        return int(digits.lstrip("0")[:20] or "0") if digits else None

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

    def scalar(self, digits: str, start: int) -> str:
        value = int(digits, 16)
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

    def as_node(self, part: Part) -> Node:
        return self.literal_node(part) if isinstance(part, LiteralText) else part

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

    def _positions(self, node: Node, depth: int = 1) -> int:
        """Return the number of characters with repeats expanded. Raise BadTokenizer if the tree is too deep."""
        if depth > MAX_DEPTH:
            raise BadTokenizer(
                f"pattern: repeats and groups nested deeper than {MAX_DEPTH} (got {shown(self.text, 80)})"
            )
        match node:
            case Characters():
                return 1
            case Sequence(parts) | Choice(parts):
                return sum(self._positions(part, depth + 1) for part in parts)
            case Repeat(body, least, most):
                return max(1, self._positions(body, depth + 1)) * max(least, most or 1, 1)
            case Atomic(body) | Look(body):
                return self._positions(body, depth + 1)
        return 0


def is_anchor(part: Part) -> bool:
    """Return whether the part only tests a condition, which Oniguruma cannot repeat."""
    if isinstance(part, Choice):
        return any(map(is_anchor, part.options)) or all(
            isinstance(option, Sequence) and option.parts and all(map(is_anchor, option.parts))
            for option in part.options
        )
    return isinstance(part, TextStart | TextEnd | Look)


def one_or_all(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))
