"""What the dialects of patterns have in common: alternatives, sequences, repeats, and the limits of size.

A dialect (read_rust.py, read_oniguruma.py) adds its escapes, classes, groups and flags. Literal text stays `Letters`
until it is known what stands next to it: under (?i) Oniguruma takes "ss" for "ß".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

from bpe.errors import BadTokenizer, UnsupportedPattern, shown
from bpe.pretokenization.capturing_groups import BadReferenceError, CapturingGroups, check_references
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.syntax import (
    Atomic,
    Capture,
    Characters,
    Choice,
    Look,
    Node,
    Reference,
    Repeat,
    Sequence,
    TextEnd,
    TextStart,
)
from bpe.pretokenization.unicode_tables import Dialect, required

MAX_POSITIONS: Final = 2_000  # characters of the expression with its repeats written out
MAX_GROUPS: Final = 64  # one in the other; fancy-regex ends there as well
MAX_DEPTH: Final = 200  # of the syntax tree

Mode: TypeAlias = Literal["greedy", "lazy", "possessive"]
NEWLINE: Final = CodePoints.of("\n")
_GENERAL_NEWLINES: Final = CodePoints.of("\n\v\f\r\x85\u2028\u2029")  # of \R, beside CR LF
ANY: Final = ~CodePoints()
EMPTY: Final = Sequence(())
# Whether it looks behind, and is negated.
_LOOKS: Final = {"?=": (False, False), "?!": (False, True), "?<=": (True, False), "?<!": (True, True)}
_ESCAPED: Final = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OPERATORS: Final = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True)
class Letters:
    """Characters one behind the other that stand for themselves. any_case: whether (?i) holds for them."""

    text: str
    any_case: bool


Part: TypeAlias = Node | Letters


class PatternReader(ABC):
    """One reading of one expression. `flags`: the letters of the flags that hold at `place`."""

    dialect: ClassVar[Dialect]
    blanks: ClassVar[str]  # what (?x) makes nothing
    unsupported_groups: ClassVar[dict[str, str]]  # how they begin behind the bracket -> what they are
    name_openings: ClassVar[tuple[str, ...]]  # of groups with a name
    skips_in_openings: ClassVar[bool] = False  # comments and blanks between the bracket and what group it is

    def __init__(self, expression: str, groups: CapturingGroups | None = None) -> None:
        self.text = expression
        self.place = 0
        self.flags: frozenset[str] = frozenset()
        self.captures = groups or CapturingGroups()
        self.looks_behind = 0  # that are open
        self._groups = 0
        self._atoms = 0

    def read(self) -> Node:
        """The syntax tree; BadTokenizer for wrong syntax, UnsupportedPattern for what it can't say."""
        node = self.settled(self.alternatives())
        if self.place < len(self.text):
            raise self.wrong("unmatched )", fix="Escape it as \\).")
        if self.captures.mixes_names_and_numbers():
            raise self.wrong("numbered backreference in a pattern with named groups")
        if (referred := self.captures.newly_referred()) is not None:
            return type(self)(self.text, CapturingGroups(referred)).read()
        self._check_size(node)
        try:
            check_references(node)
        except BadReferenceError as error:
            raise self.unsupported(str(error), 0) from None
        return node

    # What a dialect adds.

    @abstractmethod
    def character(self, character: str) -> Part:
        """What a character that is neither bracket, backslash nor repeat means; `place` is behind it."""

    @abstractmethod
    def top_class(self) -> Node:
        """The class at `place`."""

    @abstractmethod
    def own_escape(self, letter: str, start: int) -> Part:
        """The escape that `place` is behind, which `_escape` does not know."""

    @abstractmethod
    def flag_group(self, start: int) -> Part:
        """The flags, and the group that they may be for; `place` is behind `(?`."""

    @abstractmethod
    def captured(self, node: Node) -> Node:
        """A capturing group with this in it."""

    @abstractmethod
    def repeated(self, part: Part) -> Part:
        """The part with the repeats that stand at `place`."""

    @abstractmethod
    def settled_letters(self, letters: Letters) -> Node:
        """What the letters match."""

    # The grammar of all.

    def skip_ignored(self) -> None:
        """Move behind comments, and behind blanks under (?x)."""
        while True:
            if self.text.startswith("(?#", self.place):
                self._skip_comment()
            elif "x" in self.flags and self.peek() == "#":
                stop = self.text.find("\n", self.place)
                self.place = stop + 1 if stop >= 0 else len(self.text)
            elif "x" in self.flags and self.peek() and self.peek() in self.blanks:
                self.place += 1
            else:
                return

    def _skip_comment(self) -> None:
        start = self.place
        while self.peek() != ")":
            self.place += 2 if self.peek() == "\\" else 1
            if self.place >= len(self.text):
                raise self.wrong("unclosed comment", start)
        self.place += 1

    def alternatives(self) -> Part:
        """What stands up to the end or to a `)`, which is left."""
        options = [self.branch()]
        while self.take("|"):
            options.append(self.branch())
        return options[0] if len(options) == 1 else Choice(tuple(map(self.settled, options)))

    def branch(self) -> Part:
        parts: list[Part] = []
        while True:
            self.skip_ignored()
            if self.place >= len(self.text) or self.text[self.place] in "|)":
                return self._joined(parts)
            self._atoms += 1
            if self._atoms > MAX_POSITIONS:
                raise self._too_large()
            parts.append(self.repeated(self.atom()))

    def atom(self) -> Part:
        """What stands at `place`, without the repeats behind it."""
        start = self.place
        character = self.peek()
        if character == "(":
            return self._group()
        if character == "[":
            return self.top_class()
        if character == "\\":
            return self._escape()
        if self.at_repeat():
            raise self.wrong("nothing to repeat", start)
        self.place += 1
        return self.character(character)

    def at_repeat(self) -> bool:
        """Whether a repeat stands at `place`, with nothing before it."""
        return self.peek() in _OPERATORS

    def _group(self) -> Part:
        start = self.place
        self.place += 1
        if self.skips_in_openings:
            self.skip_ignored()
        for opening, what in self.unsupported_groups.items():
            if self.text.startswith(opening, self.place):
                raise self.unsupported(what, start)
        for opening, (behind, negated) in _LOOKS.items():
            if self.take(opening):
                return Look(self.look_body(start, behind), behind, negated)
        if self.take("?>"):
            return Atomic(self.settled(self.closed_group(start)))
        for opening in self.name_openings:
            if self.take(opening):
                return self._capturing_group(self._name_opened_by(opening[-1], start), start)
        return self.flag_group(start) if self.take("?") else self._capturing_group("", start)

    def _capturing_group(self, name: str, start: int) -> Node:
        number = self.captures.begin()
        node = self.captured(self.settled(self.closed_group(start)))
        try:
            return self.captures.end(number, name, node)
        except BadReferenceError as error:
            raise self.unsupported(str(error), start) from None

    def look_body(self, start: int, behind: bool) -> Node:
        self.looks_behind += behind
        body = self.settled(self.closed_group(start))
        self.looks_behind -= behind
        return body

    def named_reference(self, closing: str, start: int) -> Reference:
        """The backreference whose name stands at `place`, up to `closing`."""
        stop = self.text.find(closing, self.place)
        name, self.place = self.text[self.place : stop], stop + 1
        if stop < 0 or not name.isidentifier():
            raise self.unsupported("backreference without a plain name", start)
        return self._reference(name, start)

    def numbered_reference(self, start: int) -> Reference:
        """The backreference whose digits stand behind the backslash at `start`."""
        stop = start + 1
        while self.text[stop : stop + 1] in _DIGITS:
            stop += 1
        self.place = stop
        return self._reference(self.text[start + 1 : stop], start)

    def _reference(self, group: str, start: int) -> Reference:
        if self.looks_behind:
            raise self.unsupported("backreference in a lookbehind", start)
        if "i" in self.flags:
            raise self.unsupported("backreference under (?i)", start)
        try:
            return self.captures.refer(group)
        except BadReferenceError as error:
            raise self.unsupported(str(error), start) from None

    def _escape(self) -> Part:
        start = self.place
        letter = self.peek(1)
        self.place += 2
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

    def _joined(self, parts: list[Part]) -> Part:
        joined: list[Part] = []
        for part in parts:
            last = joined[-1] if joined else None
            if isinstance(part, Letters) and isinstance(last, Letters) and part.any_case == last.any_case:
                joined[-1] = Letters(last.text + part.text, part.any_case)
            elif part != EMPTY:
                joined.append(part)
        if len(joined) == 1:
            return joined[0]
        nodes: list[Node] = []
        for part in joined:
            node = self.settled(part)
            nodes += node.parts if isinstance(node, Sequence) else [node]
        return Sequence(tuple(nodes))

    def settled(self, part: Part) -> Node:
        return self.settled_letters(part) if isinstance(part, Letters) else part

    def closed_group(self, start: int) -> Part:
        """The alternatives up to the `)` and that; start: where the group began."""
        with self.nested(start):
            part = self.alternatives()
        if not self.take(")"):
            raise self.wrong("unclosed group", start)
        return part

    @contextmanager
    def nested(self, start: int) -> Iterator[None]:
        """One group or class further in; BadTokenizer where there are too many."""
        self._groups += 1
        if self._groups > MAX_GROUPS:
            raise self.wrong(f"more than {MAX_GROUPS} nested groups", start)
        yield
        self._groups -= 1

    def operator(self) -> tuple[int, int | None] | None:
        """(least, most) of the `?`, `*` or `+` at `place`, which is taken; None where there is none."""
        found = _OPERATORS.get(self.peek())
        if found:
            self.place += 1
        return found

    def interval(self, skip: bool) -> tuple[int, int | None] | None:
        """(least, most) of the `{n,m}`, `{n}`, `{n,}` or `{,m}` at `place`, which is taken; None where there is none.

        skip: whether comments and blanks may stand between.
        """
        start = self.place
        least: int | None = None
        most: int | None = None
        if self.take("{"):
            least = self._number(skip)
            comma = self.take(",")
            most = self._number(skip) if comma else least
            closed = self.take("}")
            if closed and (least is not None or (comma and (most is not None or skip))):
                return least or 0, most
        self.place = start
        return None

    def _number(self, skip: bool) -> int | None:
        if skip:
            self.skip_ignored()
        start = self.place
        while self.peek().isascii() and self.peek().isdigit():
            self.place += 1
        digits = self.text[start : self.place].lstrip("0") or "0"
        found = None if self.place == start else int(digits[:20])
        if skip:
            self.skip_ignored()
        return found

    def repeat(self, part: Part, least: int, most: int | None, mode: Mode) -> Node:
        return Repeat(self.settled(part), least, most, mode)

    # Pieces of syntax.

    def peek(self, ahead: int = 0) -> str:
        """The character so far behind `place`, "" at the end."""
        return self.text[self.place + ahead : self.place + ahead + 1]

    def take(self, what: str) -> bool:
        """Whether it stands at `place`, which moves behind it."""
        found = self.text.startswith(what, self.place)
        self.place += len(what) if found else 0
        return found

    def take_hex(self, least: int, most: int) -> str | None:
        """So many hexadecimal digits at `place`, or None."""
        stop = self.place
        while stop < len(self.text) and stop - self.place < most and self.text[stop] in _HEX:
            stop += 1
        if stop - self.place < least:
            return None
        digits = self.text[self.place : stop]
        self.place = stop
        return digits

    def escaped(self, letter: str) -> str | None:
        """The control character that `\\n` and the like are in all dialects, or None."""
        return _ESCAPED.get(letter)

    def scalar(self, value: int, start: int) -> str:
        if value >= 0x110000 or 0xD800 <= value < 0xE000:
            raise self.wrong(f"U+{value:X} is not a character", start)
        return chr(value)

    def _name_opened_by(self, opening: str, start: int) -> str:
        """The name of a group that a quote or `<` opened, which `place` moves behind."""
        stop = self.text.find(">" if opening == "<" else opening, self.place)
        if stop <= self.place:
            raise self.wrong("empty or unclosed group name", start)
        name, self.place = self.text[self.place : stop], stop + 1
        return name

    def property_text(self, start: int) -> str:
        """What stands between the braces of a property; `place` is behind the opening one."""
        stop = self.text.find("}", self.place)
        if stop < 0:
            raise self.wrong("unclosed property name", start)
        name, self.place = self.text[self.place : stop], stop + 1
        return name

    # Shorthands that are looks.

    def line_start(self) -> Node:
        return Choice((TextStart(), Look(Characters(NEWLINE), behind=True)))

    def line_end(self) -> Node:
        return Choice((TextEnd(), Look(Characters(NEWLINE))))

    def word(self, negated: bool = False) -> Choice:
        r"""`\b`, or `\B`."""
        return word_boundary(required(self.dialect, "\\w"), negated)

    # Errors.

    def wrong(self, what: str, place: int | None = None, fix: str = "") -> BadTokenizer:
        return BadTokenizer(self._message(what, place, fix))

    def unsupported(self, what: str, place: int) -> UnsupportedPattern:
        fix = "Use a pattern without it, or a named pattern."
        return UnsupportedPattern(self._message(f"{what} is not supported", place, fix))

    def _message(self, what: str, place: int | None, fix: str) -> str:
        at = self.place if place is None else place
        found = shown(self.text, 80)
        if (part := shown(self.text[at : at + 12])) != found:
            found = f"{part} in {found}"
        return f"pattern, character {at}: {what} (got {found}){fix and f'. {fix}'}"

    def _check_size(self, root: Node) -> None:
        """Raise BadTokenizer for a tree that is too large or too deep."""
        total = 0
        left: list[tuple[Node, int, int]] = [(root, 1, 1)]  # a node, how often it is written out, its depth
        while left:
            node, times, depth = left.pop()
            if depth > MAX_DEPTH:
                raise BadTokenizer(
                    f"pattern: repeats and groups nested deeper than {MAX_DEPTH} (got {shown(self.text, 80)})"
                )
            match node:
                case Characters() | Reference():
                    total += times
                case Sequence(parts):
                    left += [(part, times, depth + 1) for part in parts]
                case Choice(options):
                    left += [(option, times, depth + 1) for option in options]
                case Repeat(body, least, most):
                    left.append((body, times * max(least, most or 1, 1), depth + 1))
                case Atomic(body) | Look(body) | Capture(_, body):
                    left.append((body, times, depth + 1))
            if total > MAX_POSITIONS or times > MAX_POSITIONS:
                raise self._too_large()

    def _too_large(self) -> BadTokenizer:
        return BadTokenizer(
            f"pattern: more than {MAX_POSITIONS:,} characters once its repeats are expanded (got "
            f"{shown(self.text, 80)}). Use smaller repeats."
        )


def word_boundary(word: CodePoints, negated: bool) -> Choice:
    """Between a word character and none, or elsewhere."""
    inside = Characters(word)
    before, after = Look(inside, behind=True), Look(inside)
    not_before, not_after = Look(inside, behind=True, negated=True), Look(inside, negated=True)
    pairs = (
        ((before, after), (not_before, not_after)) if negated else ((before, not_after), (not_before, after))
    )
    return Choice(tuple(Sequence(pair) for pair in pairs))
