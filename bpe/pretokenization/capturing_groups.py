r"""The capturing groups of an expression, and what refers back to them: `(["'])[^"']*\1`.

An expression is read twice where it has backreferences: only then is it known which groups they are to, and the others
leave no trace in the tree.
"""

from __future__ import annotations

from bpe.pretokenization.syntax import Atomic, Capture, Choice, Look, Node, Reference, Repeat, Sequence


class BadReferenceError(Exception):
    """str(error): what kind of reference is not read."""


class CapturingGroups:
    """Those of one reading. referred: the numbers of the groups that are referred to, once they are known."""

    def __init__(self, referred: frozenset[int] = frozenset()) -> None:
        self.count = 0  # that began
        self._known = referred
        self._ended: dict[str, int] = {}  # by name, or by number without one; 0: two have the name
        self._references: dict[str, int] = {}

    def begin(self) -> int:
        """The number of the group that begins."""
        self.count += 1
        return self.count

    def end(self, number: int, name: str, body: Node) -> Node:
        """What the group is in the tree."""
        if name in self._references:
            raise BadReferenceError(f"backreference to {name}, the name of two groups,")
        self._ended[name or str(number)] = 0 if name in self._ended else number
        return Capture(number, body) if number in self._known else body

    def refer(self, group: str) -> Reference:
        """The backreference to a group by its name or number."""
        number = self._ended.get(group)
        if not number:
            raise BadReferenceError(f"backreference to {group}, which is not one group closed before it,")
        self._references[group] = number
        return Reference(number)

    def mixes_names_and_numbers(self) -> bool:
        """Whether a reference is by number and a group has a name, which no dialect reads."""
        return any(map(str.isdigit, self._references)) and not all(map(str.isdigit, self._ended))

    def newly_referred(self) -> frozenset[int] | None:
        """The numbers to read with once more; None where the reading had them."""
        found = frozenset(self._references.values())
        return None if found == self._known else found


def check_references(tree: Node) -> None:
    """Raise BadReferenceError if a group may have matched nothing, or in an earlier round of a repeat only.

    Engines differ in what such a group holds once they have gone back to before it.
    """
    _matched_behind(tree, frozenset())


def _matched_behind(node: Node, before: frozenset[int]) -> frozenset[int]:
    """The groups that certainly matched behind the node, of those before it and its own."""
    match node:
        case Sequence(parts):
            for part in parts:
                before = _matched_behind(part, before)
        case Capture(number, body):
            return _matched_behind(body, before) | {number}
        case Atomic(body):
            return _matched_behind(body, before)
        case Choice(options):
            for option in options:
                _matched_behind(option, before)
        case Repeat(body) | Look(body):
            _matched_behind(body, before)
        case Reference(number) if number not in before:
            raise BadReferenceError("backreference to a group that may have matched nothing")
    return before
