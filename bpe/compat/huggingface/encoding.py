"""`Encoding`: what a text or a pair became. As that of tokenizers; its columns are computed when they are asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, Protocol

from bpe import _core
from bpe.compat.huggingface.arguments import count, id_number, one_of, text, warn_unknown
from bpe.compat.huggingface.columns import Columns, Offsets, Segment, Source
from bpe.errors import BadArgument

Range = tuple[int, int]
_DIRECTIONS: Final = ("left", "right")


class Finish(Protocol):
    """How an encoding is made of the ids of one text."""

    front: list[int]  # put before them
    back: list[int]
    added: int  # how many these are

    def encoding(self, text: str, ids: Any, start: int, stop: int) -> Encoding:
        """The encoding of a text whose ids are ids[start:stop]."""


class Encoding:
    """Segments, one after the other. Each call of a property gives a new list."""

    __slots__ = (
        "__weakref__",
        "_finish",
        "_ids",
        "_overflowing",
        "_ranges",
        "_segments",
        "_start",
        "_stop",
        "_text",
    )

    _segments: list[Segment]
    _ranges: dict[int, Range]  # of each sequence, its tokens; none: one sequence of all tokens
    _overflowing: list[Encoding]

    def __init__(
        self,
        segments: Iterable[Segment] = (),
        finish: Finish | None = None,
        text: str = "",
        ids: Any = None,
        start: int = 0,
        stop: int = 0,
    ) -> None:
        """finish: the encoding is that of a text of which the ids alone are known: a list, or [start, stop) of a buffer
        of uint32. All else is made by it once somebody looks at it."""
        self._finish = finish
        if finish is None:
            self._segments = [segment for segment in segments if len(segment)]
            self._ranges = {}
            self._overflowing = []
        else:
            self._text = text
            self._ids = ids
            self._start = start
            self._stop = stop

    def __getattr__(self, name: str) -> Any:
        # Reached where a slot is empty: of the encoding the ids alone are known.
        finish = self._finish
        if name not in ("_segments", "_ranges", "_overflowing") or finish is None:
            raise AttributeError(f"Encoding has no attribute {name!r}")
        self._take(finish.encoding(self._text, self._ids, self._start, self._stop))
        return getattr(self, name)

    def _take(self, other: Encoding) -> None:
        self._segments, self._ranges, self._overflowing = other._segments, other._ranges, other._overflowing
        self._finish = None

    def copy(self) -> Encoding:
        """The same, to be changed, its overflowing parts too."""
        made = Encoding(self._segments)
        made._ranges = dict(self._ranges)
        made._overflowing = [part.copy() for part in self._overflowing]
        return made

    def __len__(self) -> int:
        finish = self._finish
        return sum(map(len, self._segments)) if finish is None else self._stop - self._start + finish.added

    # -- columns -------------------------------------------------------------------------------------------------

    @property
    def ids(self) -> list[int]:
        """The ids."""
        finish = self._finish
        if finish is None:
            return self._column(lambda segment: segment.ids)
        ids = self._ids
        own: list[int] = ids[:] if type(ids) is list else _core.id_list(ids, self._start, self._stop)
        return [*finish.front, *own, *finish.back] if finish.added else own

    @property
    def tokens(self) -> list[str]:
        """The tokens as the tokenizer spells them."""
        return self._column(lambda segment: segment.tokens)

    @property
    def offsets(self) -> list[Offsets]:
        """[start, stop) of each token in characters of its text."""
        return self._column(lambda segment: segment.offsets)

    @property
    def word_ids(self) -> list[int | None]:
        """The pretoken that each token is of, or the word of a text that was given in words; None for no text."""
        return self._column(lambda segment: segment.words)

    @property
    def words(self) -> list[int | None]:
        """The old name of word_ids."""
        warnings.warn("Encoding.words: deprecated. Use word_ids.", DeprecationWarning, stacklevel=2)
        return self.word_ids

    @property
    def type_ids(self) -> list[int]:
        """The type of each token, by which models tell the sequences of a pair apart."""
        return self._column(lambda segment: [segment.type_id] * len(segment))

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for tokens that the post-processor or padding added."""
        return self._column(lambda segment: [segment.special] * len(segment))

    @property
    def attention_mask(self) -> list[int]:
        """0 for padding."""
        return self._column(lambda segment: [segment.attention] * len(segment))

    @property
    def overflowing(self) -> list[Encoding]:
        """The parts that truncation cut off, as encodings of their own."""
        return [part.copy() for part in self._overflowing]

    def _column(self, of: Callable[[Segment], Iterable[Any]]) -> list[Any]:
        return list(chain.from_iterable(map(of, self._segments)))

    # -- sequences, words, characters ----------------------------------------------------------------------------

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return len(self._ranges) or 1

    @property
    def sequence_ids(self) -> list[int | None]:
        """The sequence of each token, None for tokens of none."""
        ids: list[int | None] = [None] * len(self)
        for sequence in range(self.n_sequences):
            start, stop = self._range(sequence)
            ids[start:stop] = [sequence] * (stop - start)
        return ids

    def set_sequence_id(self, sequence_id: int) -> None:
        """All tokens are of this sequence."""
        self._ranges[count("sequence_id", sequence_id)] = (0, len(self))

    def _range(self, sequence: int) -> Range:
        return self._ranges.get(sequence, (0, len(self)))

    def token_to_sequence(self, token_index: int) -> int | None:
        """The sequence of a token."""
        token_index = count("token_index", token_index)
        if token_index > len(self):
            return None
        if not self._ranges:
            return 0
        return next(
            (each for each, (start, stop) in self._ranges.items() if start <= token_index < stop), None
        )

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> Range | None:
        """[start, stop) of the tokens of a word."""
        word_index = id_number("word_index", word_index)
        start, stop = self._range(count("sequence_index", sequence_index))
        found = []
        for place, word in enumerate(self.word_ids[start:stop], start):
            if word is not None and word > word_index:
                break
            if word == word_index:
                found.append(place)
        return (found[0], found[-1] + 1) if found else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> Offsets | None:
        """[start, stop) of a word in characters."""
        tokens = self.word_to_tokens(word_index, sequence_index)
        if tokens is None:
            return None
        offsets = self.offsets
        return offsets[tokens[0]][0], offsets[tokens[1] - 1][1]

    def token_to_chars(self, token_index: int) -> Offsets | None:
        """[start, stop) of a token of a sequence, in characters."""
        token_index = count("token_index", token_index)
        if token_index >= len(self) or self.token_to_sequence(token_index) is None:
            return None
        return self.offsets[token_index]

    def token_to_word(self, token_index: int) -> int | None:
        """The word of a token of a sequence."""
        token_index = count("token_index", token_index)
        if token_index >= len(self) or self.token_to_sequence(token_index) is None:
            return None
        return self.word_ids[token_index]

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The first token that holds a character."""
        char_pos = count("char_pos", char_pos)
        first, last = self._range(count("sequence_index", sequence_index))
        return next(
            (
                place
                for place, (start, stop) in enumerate(self.offsets[first:last], first)
                if start <= char_pos < stop
            ),
            None,
        )

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The word that holds a character."""
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.token_to_word(token)

    # -- changes -------------------------------------------------------------------------------------------------

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """At most max_length tokens stay; the rest becomes `overflowing`, parts that share `stride` tokens.

        direction: "right" cuts off the end, "left" the beginning. Which token is of which sequence is forgotten.
        ValueError for a stride that is not below max_length.
        """
        max_length, stride = count("max_length", max_length), count("stride", stride)
        if text("direction", direction) not in _DIRECTIONS:
            raise ValueError(f"Invalid truncation direction value : {direction}")
        length = len(self)
        if max_length >= length:
            return
        if max_length == 0:
            whole = self.copy()
            self._take(Encoding())
            self._overflowing.append(whole)
            return
        if stride >= max_length:
            raise BadArgument(f"stride: must be below {max_length}, the tokens per part (got {stride})")
        step = max_length - stride
        if direction == "right":
            starts = range(0, length, step)
            parts = [(start, min(start + max_length, length)) for start in starts]
            last = next(at for at, (_, stop) in enumerate(parts) if stop == length)
        else:
            parts = [(max(0, stop - max_length), stop) for stop in range(length, 0, -step)]
            last = next(at for at, (start, _) in enumerate(parts) if start == 0)
        made = [Encoding(self._part(start, stop)) for start, stop in parts[: last + 1]]
        made[0]._overflowing = made[1:]
        self._take(made[0])

    def _part(self, start: int, stop: int) -> list[Segment]:
        """The segments of tokens [start, stop)."""
        parts = []
        at = 0
        for segment in self._segments:
            first, last = max(start - at, 0), min(stop - at, len(segment))
            if first < last:
                parts.append(segment.part(first, last))
            at += len(segment)
        return parts

    def pad(
        self,
        length: int,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        **unknown: Any,
    ) -> None:
        """At least `length` tokens, padding at the end or (direction "left") the beginning; overflowing parts too."""
        warn_unknown(unknown)
        length = count("length", length)
        pad_id, pad_type_id = id_number("pad_id", pad_id), id_number("pad_type_id", pad_type_id)
        one_of("direction", direction, _DIRECTIONS)
        text("pad_token", pad_token)
        for part in self._overflowing:
            part.pad(length, direction, pad_id, pad_type_id, pad_token)
        missing = length - len(self)
        if missing <= 0:
            return
        source = Source.special([pad_id] * missing, [pad_token] * missing)
        padding = Segment(source, 0, missing, pad_type_id, special=1, attention=0)
        if direction == "right":
            self._segments = [*self._segments, padding]
            return
        self._segments = [padding, *self._segments]
        self._ranges = {
            sequence: (start + missing, stop + missing) for sequence, (start, stop) in self._ranges.items()
        }

    @staticmethod
    def merge(encodings: Sequence[Encoding], growing_offsets: bool = True) -> Encoding:
        """The encodings one after the other; growing_offsets: each one's offsets begin where those before end."""
        merged = Encoding()
        for encoding in encodings:
            merged = merged._with(encoding, growing_offsets)
        return merged

    def _with(self, other: Encoding, growing_offsets: bool) -> Encoding:
        """Both, and as overflowing parts all ways to join a part of one with the other or a part of it."""
        made = self._joined(other, growing_offsets)
        made._overflowing = [
            *(
                part._with(each, growing_offsets)
                for part in self._overflowing
                for each in (other, *other._overflowing)
            ),
            *(self._with(part, growing_offsets) for part in other._overflowing),
        ]
        return made

    def _joined(self, other: Encoding, growing_offsets: bool) -> Encoding:
        length = len(self)
        segments = other._segments
        if growing_offsets and self._segments:
            end = self._segments[-1].offsets[-1][1]
            segments = [segment.shifted(end) for segment in segments]
        made = Encoding([*self._segments, *segments])
        made._ranges = self._ranges | {
            sequence: (start + length, stop + length) for sequence, (start, stop) in other._ranges.items()
        }
        return made

    # -- as an object --------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, attention_mask, "
            "special_tokens_mask, overflowing])"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoding) and self.__getstate__() == other.__getstate__()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> tuple[Any, ...]:
        segments = [
            (
                segment.ids,
                segment.tokens,
                segment.offsets,
                segment.words,
                segment.type_id,
                segment.special,
                segment.attention,
            )
            for segment in self._segments
        ]
        return segments, self._ranges, [part.__getstate__() for part in self._overflowing]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        segments, ranges, overflowing = state
        self.__init__(  # type: ignore[misc]
            Segment(Source.of(Columns(ids, tokens, offsets, words)), 0, len(ids), *rest)
            for ids, tokens, offsets, words, *rest in segments
        )
        self._ranges = dict(ranges)
        for part in overflowing:
            made = Encoding.__new__(Encoding)
            made.__setstate__(part)
            self._overflowing.append(made)
