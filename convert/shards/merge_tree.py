"""Totals go up a balanced tree, offsets come down, while the shards still come in.

Each leaf is a shard with its (tokens, sequences, max id) of one split; an inner node holds the sum of its two children
as soon as both are known, a node without a right sibling goes up as it is. What lies before a leaf is the sum of the
left siblings on its way to the root. So the place of a shard in the arrays is known as soon as all shards before it are
encoded, in whatever order they come, and long before the last of them is.

    5, 7, 1 tokens:  [[5, 7, 1], [12, 1], [13]]  ->  before them lie 0, 5, 12
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Totals:
    """What a part of the shards holds of one split."""

    tokens: int = 0
    sequences: int = 0
    max_token_id: int = 0

    def __add__(self, other: Totals) -> Totals:
        """The totals of both parts together."""
        return Totals(
            self.tokens + other.tokens,
            self.sequences + other.sequences,
            max(self.max_token_id, other.max_token_id),
        )


class MergeTree:
    """The shards of one split. add: O(log leaves), offset: the same."""

    def __init__(self, leaf_count: int) -> None:
        self.leaf_count = leaf_count
        self._levels: list[list[Totals | None]] = [[None] * leaf_count] if leaf_count else [[Totals()]]
        while len(self._levels[-1]) > 1:
            self._levels.append([None] * -(-len(self._levels[-1]) // 2))

    @property
    def total(self) -> Totals | None:
        """The totals of all shards, None until the last has come; no shards: nothing."""
        return self._levels[-1][0]

    def add(self, index: int, totals: Totals) -> None:
        """Put the totals of a shard in, once."""
        node: Totals | None = totals
        for level, above in enumerate([*self._levels[1:], None]):
            nodes = self._levels[level]
            nodes[index] = node
            if above is None or node is None:
                return
            first = index & ~1
            left, right = nodes[first], nodes[first + 1] if first + 1 < len(nodes) else Totals()
            node = left + right if left is not None and right is not None else None
            index //= 2

    def offset(self, index: int) -> Totals | None:
        """What lies before a shard, None while some of it is not known."""
        before = Totals()
        for nodes in self._levels[:-1]:
            if index % 2:
                sibling = nodes[index - 1]
                if sibling is None:
                    return None
                before = sibling + before
            index //= 2
        return before
