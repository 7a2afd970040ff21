"""A slow, plainly correct matcher of syntax trees: the oracle for the readers and the compiler.

The possible ends of a node at an offset are listed in the order in which a backtracking engine tries them. The rest
of the match depends only on the end, so each end is listed once, at its first occurrence.
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
    """Match one tree against one text."""

    def __init__(self, root: Node, text: str) -> None:
        self._root = root
        self._text = text
        self._known: dict[tuple[int, int], tuple[int, ...]] = {}

    def matches(self) -> list[tuple[int, int]]:
        """Return [start, stop) of all matches, including empty ones, found as tiktoken and tokenizers do."""
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
        """Return the offsets where a node that starts at `place` can end, preferred first."""
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
        """An iteration that matches nothing ends the repeat."""
        more: list[int] = []
        if node.most is None or count < node.most:
            for end in self.ends(node.body, place):
                more += [end] if end == place else self._repeat_ends(node, count + 1, end)
        enough = [place] if count >= node.least else []
        return list(dict.fromkeys([*enough, *more] if node.mode == "lazy" else [*more, *enough]))


def pieces(root: Node, text: str) -> list[str]:
    """Return the non-empty matches and the text between them, like a Split with behavior "isolated"."""
    edges = sorted({0, len(text), *(edge for span in Matcher(root, text).matches() for edge in span)})
    return [text[start:stop] for start, stop in pairwise(edges)]


def matched(root: Node, text: str) -> list[str]:
    """Return the matches, which tiktoken encodes."""
    return [text[start:stop] for start, stop in Matcher(root, text).matches()]
