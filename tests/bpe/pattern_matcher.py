"""A matcher of syntax trees that is slow and plainly right: the oracle of the readers and of the compiler.

Where a node can end, from a place of the text, is a list in the order in which a backtracking engine tries it. What
follows depends on the end alone, so an end counts once, where it comes first.
"""

from __future__ import annotations

from itertools import pairwise

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


class Matcher:
    """Of one tree on one text."""

    def __init__(self, root: Node, text: str) -> None:
        self._root = root
        self._text = text
        self._known: dict[tuple[int, int], tuple[int, ...]] = {}

    def matches(self) -> list[tuple[int, int]]:
        """[start, stop) of all matches, found as tiktoken and tokenizers do, empty ones too."""
        found: list[tuple[int, int]] = []
        place = 0
        while place <= len(self._text):
            ends = self.ends(self._root, place)
            if not ends:
                place += 1
            elif ends[0] > place:
                found.append((place, ends[0]))
                place = ends[0]
            else:
                if not found or found[-1][1] != place:
                    found.append((place, place))
                place += 1
        return found

    def ends(self, node: Node, place: int) -> tuple[int, ...]:
        """The places where the node can end that begins at `place`, the preferred first."""
        key = (id(node), place)
        if key not in self._known:
            self._known[key] = tuple(dict.fromkeys(self._ends(node, place)))
        return self._known[key]

    def _ends(self, node: Node, place: int) -> list[int]:
        match node:
            case Characters(points):
                text = self._text
                return [place + 1] if place < len(text) and ord(text[place]) in points else []
            case Sequence(parts):
                ends = [place]
                for part in parts:
                    ends = list(dict.fromkeys(end for start in ends for end in self.ends(part, start)))
                return ends
            case Choice(options):
                return [end for option in options for end in self.ends(option, place)]
            case Repeat():
                ends = self._repeat_ends(node, 0, place)
                return ends[:1] if node.mode == "possessive" else ends
            case Atomic(body):
                return list(self.ends(body, place)[:1])
            case Look(body, behind, negated):
                if behind:
                    holds = any(place in self.ends(body, start) for start in range(place + 1))
                else:
                    holds = bool(self.ends(body, place))
                return [place] if holds != negated else []
            case TextStart():
                return [place] if place == 0 else []
            case TextEnd():
                return [place] if place == len(self._text) else []

    def _repeat_ends(self, node: Repeat, count: int, place: int) -> list[int]:
        """A round that takes no text ends the repeat."""
        more: list[int] = []
        if node.most is None or count < node.most:
            for end in self.ends(node.body, place):
                more += [end] if end == place else self._repeat_ends(node, count + 1, end)
        enough = [place] if count >= node.least else []
        return list(dict.fromkeys([*enough, *more] if node.mode == "lazy" else [*more, *enough]))


def pieces(root: Node, text: str) -> list[str]:
    """The matches and what lies between them, without empty ones: what a Split keeps that isolates them."""
    edges = sorted({0, len(text), *(edge for span in Matcher(root, text).matches() for edge in span)})
    return [text[start:stop] for start, stop in pairwise(edges)]


def matched(root: Node, text: str) -> list[str]:
    """The matches: what tiktoken encodes."""
    return [text[start:stop] for start, stop in Matcher(root, text).matches()]
