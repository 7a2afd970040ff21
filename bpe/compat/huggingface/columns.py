"""What one text became, column by column: ids at once, the rest when it is asked for.

An encoding is a list of segments of such sources; cutting, padding and joining encodings cuts and joins segments, so
none of them computes what nobody looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Offsets = tuple[int, int]


class Columns(NamedTuple):
    """A row a token. offsets: [start, stop) in characters of the text; words: the pretoken, None for special tokens."""

    ids: Sequence[int]
    tokens: Sequence[str]
    offsets: Sequence[Offsets]
    words: Sequence[int | None]


class Source:
    """The columns of a text, computed when they are first asked for."""

    __slots__ = ("_columns", "_compute", "_ids", "length")

    def __init__(
        self, ids: Callable[[], list[int]], length: int, compute: Callable[[], Columns] | None = None
    ) -> None:
        """ids, compute: give the ids, of which there are `length`, and all columns."""
        self._ids = ids
        self._compute = compute
        self._columns: Columns | None = None
        self.length = length

    @staticmethod
    def of(columns: Columns) -> Source:
        """Columns that are known."""
        source = Source(lambda: list(columns.ids), len(columns.ids))
        source._columns = columns
        return source

    @staticmethod
    def special(ids: Sequence[int], tokens: Sequence[str]) -> Source:
        """Tokens that stand for no text."""
        return Source.of(Columns(ids, tokens, [(0, 0)] * len(ids), [None] * len(ids)))

    @property
    def ids(self) -> Sequence[int]:
        """The ids."""
        return self._ids() if self._columns is None else self._columns.ids

    @property
    def columns(self) -> Columns:
        """All columns."""
        if self._columns is None:
            assert self._compute is not None
            self._columns = self._compute()
        return self._columns


class Segment:
    """Rows [start, stop) of a source, with what is one value for all of them.

    trims: how offsets were trimmed, in order: (add_prefix_space, the row of the source that was an encoding's first).
    shift: what is added to offsets. Never changed.
    """

    __slots__ = ("attention", "shift", "source", "special", "start", "stop", "trims", "type_id")

    def __init__(
        self,
        source: Source,
        start: int,
        stop: int,
        type_id: int = 0,
        special: int = 0,
        attention: int = 1,
        trims: tuple[tuple[bool, int], ...] = (),
        shift: int = 0,
    ) -> None:
        self.source = source
        self.start = start
        self.stop = stop
        self.type_id = type_id
        self.special = special
        self.attention = attention
        self.trims = trims
        self.shift = shift

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Segment:
        """Rows [start, stop) of these."""
        return Segment(
            self.source,
            self.start + start,
            self.start + stop,
            self.type_id,
            self.special,
            self.attention,
            self.trims,
            self.shift,
        )

    def with_type(self, type_id: int) -> Segment:
        """The same of another type."""
        changed = self.part(0, len(self))
        changed.type_id = type_id
        return changed

    def of_text(self, type_id: int | None) -> Segment:
        """The same as tokens of a text, whatever they were; of another type unless that is None."""
        changed = self.part(0, len(self)) if type_id is None else self.with_type(type_id)
        changed.special, changed.attention = 0, 1
        return changed

    def trimmed(self, add_prefix_space: bool, is_first: bool) -> Segment:
        """The same, whitespace taken from its offsets; is_first: it begins its encoding."""
        changed = self.part(0, len(self))
        changed.trims = (*self.trims, (add_prefix_space, self.start if is_first else -1))
        return changed

    def shifted(self, shift: int) -> Segment:
        """The same with all offsets moved."""
        changed = self.part(0, len(self))
        changed.shift += shift
        return changed

    @property
    def ids(self) -> Sequence[int]:
        """The ids."""
        ids = self.source.ids
        return ids if len(ids) == len(self) else ids[self.start : self.stop]

    @property
    def tokens(self) -> Sequence[str]:
        """The tokens' texts."""
        return self.source.columns.tokens[self.start : self.stop]

    @property
    def words(self) -> Sequence[int | None]:
        """The words."""
        return self.source.columns.words[self.start : self.stop]

    @property
    def offsets(self) -> list[Offsets]:
        """The offsets, trimmed and moved."""
        columns = self.source.columns
        offsets = list(columns.offsets[self.start : self.stop])
        for add_prefix_space, first in self.trims:
            offsets = [
                _trimmed(columns.tokens[row], each, add_prefix_space, row == first)
                for row, each in enumerate(offsets, self.start)
            ]
        return [(start + self.shift, stop + self.shift) for start, stop in offsets] if self.shift else offsets


_SPACE = "\u0120"  # in the byte alphabet


def _trimmed(token: str, offsets: Offsets, add_prefix_space: bool, is_first: bool) -> Offsets:
    """Without the whitespace that begins and ends the token, but for one space that was put before the text."""
    start, stop = offsets
    leading = len(token) - len(token.lstrip(_WHITE))
    trailing = len(token) - len(token.rstrip(_WHITE))
    if leading:
        if (is_first or start == 0) and add_prefix_space and leading == 1:
            leading = 0
        start = min(start + leading, stop)
    if trailing and stop >= trailing:
        stop = max(stop - trailing, start)
    return start, stop


# Unicode's White_Space, which does not change any more.
WHITE_SPACE = "".join(
    map(
        chr,
        [
            *range(9, 14),
            0x20,
            0x85,
            0xA0,
            0x1680,
            *range(0x2000, 0x200B),
            0x2028,
            0x2029,
            0x202F,
            0x205F,
            0x3000,
        ],
    )
)
_WHITE = _SPACE + WHITE_SPACE
