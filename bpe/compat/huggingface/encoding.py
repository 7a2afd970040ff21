"""`Encoding`: the IDs of a text or a pair, with tokens, offsets and masks.

An encoding is seven lists of equal length. Those of an encoded text are computed when one of them is first read; its
IDs are known before.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final, Protocol, Self

from bpe.compat.huggingface.arguments import count, id_number, one_of, text, warn_unknown
from bpe.errors import BadArgument

Span = tuple[int, int]
_DIRECTIONS: Final = ("left", "right")
_IDS, _TYPES, _TOKENS, _WORDS, _OFFSETS, _SPECIAL, _ATTENTION = range(7)
# Unicode's White_Space
WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + ("\u2028\u2029\u202f\u205f\u3000")
)
_TRIMMED: Final = "\u0120" + WHITE_SPACE  # with the space of the byte alphabet


class Source(Protocol):
    """Encoded texts. Their encodings are made on demand."""

    def ids(self, index: int) -> list[int]: ...
    def length(self, index: int) -> int: ...
    def encoding(self, index: int) -> Encoding: ...


def _column(index: int, about: str) -> Any:
    return property(lambda encoding: encoding._columns[index][:], doc=about)


class Encoding:
    """Tokens of one or more sequences. Each property returns a new list."""

    __slots__ = ("__weakref__", "_columns", "_index", "_ranges", "_source", "parts")

    parts: list[Encoding]  # what truncation cut off
    _columns: list[list[Any]]
    _ranges: dict[int, Span]  # the tokens of each sequence; empty: one sequence of all tokens
    _source: Source | None  # of a deferred encoding
    _index: int

    def __init__(self) -> None:
        self._set([[] for _ in range(7)])

    def _set(
        self,
        columns: list[list[Any]],
        ranges: dict[int, Span] | None = None,
        parts: Sequence[Encoding] = (),
    ) -> Self:
        self._ranges, self.parts, self._columns = ranges or {}, list(parts), columns
        self._source = None
        return self

    @classmethod
    def of(
        cls,
        ids: list[int],
        tokens: list[str],
        offsets: list[Span],
        words: list[int | None],
        type_id: int = 0,
        special: int = 0,
        attention: int = 1,
    ) -> Encoding:
        """Return the encoding with these lists and constants."""
        count = len(ids)
        masks = [special] * count, [attention] * count
        return cls.__new__(cls)._set([ids, [type_id] * count, tokens, words, offsets, *masks])

    @classmethod
    def special(cls, ids: list[int], tokens: list[str], type_id: int = 0, attention: int = 1) -> Encoding:
        """Return the encoding of tokens that are not in the text."""
        nothing = [(0, 0)] * len(ids)
        return cls.of(list(ids), list(tokens), nothing, [None] * len(ids), type_id, 1, attention)

    @classmethod
    def deferred(cls, source: Source, index: int) -> Encoding:
        """Return encoding `index` of a source, which is made when anything except its IDs is read."""
        encoding = cls.__new__(cls)
        encoding._source, encoding._index = source, index
        return encoding

    def __getattr__(self, name: str) -> Any:
        # Called for slots that are not set yet.
        if name not in ("_columns", "_ranges", "parts") or (source := self._source) is None:
            raise AttributeError(f"Encoding has no attribute {name!r}")
        made = source.encoding(self._index)
        self._set(made._columns, made._ranges, made.parts)
        return getattr(self, name)

    def copy(self) -> Encoding:
        """Return a copy that can be changed, with copies of the parts."""
        return Encoding()._set(
            [column[:] for column in self._columns], dict(self._ranges), [part.copy() for part in self.parts]
        )

    def __len__(self) -> int:
        return len(self._columns[_IDS]) if self._source is None else self._source.length(self._index)

    # -- columns -------------------------------------------------------------------------------------------------

    @property
    def ids(self) -> list[int]:
        """The IDs."""
        source = self._source
        return self._columns[_IDS][:] if source is None else source.ids(self._index)

    tokens = _column(_TOKENS, "The tokens as tokenizer.json spells them.")
    offsets = _column(_OFFSETS, "[start, stop) of each token in characters of its text.")
    word_ids = _column(
        _WORDS, "The pretoken of each token, or its word in pre-tokenized input; None for added tokens."
    )
    type_ids = _column(_TYPES, "The type of each token. The sequences of a pair have different types.")
    special_tokens_mask = _column(_SPECIAL, "1 for tokens of the post-processor and padding.")
    attention_mask = _column(_ATTENTION, "0 for padding.")

    @property
    def words(self) -> list[int | None]:
        """The former name of word_ids."""
        warnings.warn("Encoding.words: deprecated. Use word_ids.", DeprecationWarning, stacklevel=2)
        words: list[int | None] = self.word_ids
        return words

    @property
    def overflowing(self) -> list[Encoding]:
        """The parts that truncation cut off."""
        return [part.copy() for part in self.parts]

    # -- sequences, words, characters ----------------------------------------------------------------------------

    @property
    def n_sequences(self) -> int:
        """The number of sequences."""
        return len(self._ranges) or 1

    @property
    def sequence_ids(self) -> list[int | None]:
        """The sequence of each token, None for tokens outside of all sequences."""
        ids: list[int | None] = [None] * len(self)
        for sequence in range(self.n_sequences):
            start, stop = self._range(sequence)
            ids[start:stop] = [sequence] * (stop - start)
        return ids

    def set_sequence_id(self, sequence_id: int) -> None:
        """Assign all tokens to a sequence."""
        self._ranges[count("sequence_id", sequence_id)] = (0, len(self))

    def _range(self, sequence: int) -> Span:
        return self._ranges.get(sequence, (0, len(self)))

    def token_to_sequence(self, token_index: int) -> int | None:
        """Return the sequence of a token."""
        token_index = count("token_index", token_index)
        if token_index > len(self):
            return None
        if not self._ranges:
            return 0
        ranges = self._ranges.items()
        return next((each for each, (start, stop) in ranges if start <= token_index < stop), None)

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """Return [start, stop) of the tokens of a word."""
        word_index = id_number("word_index", word_index)
        start, stop = self._range(count("sequence_index", sequence_index))
        found = []
        for index, word in enumerate(self._columns[_WORDS][start:stop], start):
            if word is not None and word > word_index:
                break
            if word == word_index:
                found.append(index)
        return (found[0], found[-1] + 1) if found else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """Return [start, stop) of a word in characters."""
        tokens = self.word_to_tokens(word_index, sequence_index)
        if tokens is None:
            return None
        offsets = self._columns[_OFFSETS]
        return offsets[tokens[0]][0], offsets[tokens[1] - 1][1]

    def token_to_chars(self, token_index: int) -> Span | None:
        """Return [start, stop) of a token in characters."""
        span: Span | None = self._of_token(token_index, _OFFSETS)
        return span

    def token_to_word(self, token_index: int) -> int | None:
        """Return the word of a token."""
        word: int | None = self._of_token(token_index, _WORDS)
        return word

    def _of_token(self, token_index: int, column: int) -> Any:
        token_index = count("token_index", token_index)
        if token_index >= len(self) or self.token_to_sequence(token_index) is None:
            return None
        return self._columns[column][token_index]

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """Return the first token that contains a character."""
        char_pos = count("char_pos", char_pos)
        first, last = self._range(count("sequence_index", sequence_index))
        offsets = enumerate(self._columns[_OFFSETS][first:last], first)
        return next((index for index, (start, stop) in offsets if start <= char_pos < stop), None)

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """Return the word that contains a character."""
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.token_to_word(token)

    # -- changes -------------------------------------------------------------------------------------------------

    def set_type_id(self, type_id: int) -> None:
        """Assign a type to all tokens."""
        self._columns[_TYPES] = [type_id] * len(self)

    def as_text(self) -> Encoding:
        """Return the tokens as tokens of a text, without parts."""
        made = Encoding()._set([column[:] for column in self._columns])
        made._columns[_SPECIAL], made._columns[_ATTENTION] = [0] * len(self), [1] * len(self)
        return made

    def trim_offsets(self, add_prefix_space: bool) -> None:
        """Remove white space from the offsets, except for one space that a pre-tokenizer added."""
        offsets = self._columns[_OFFSETS]
        for index, token in enumerate(self._columns[_TOKENS]):
            if token and token[0] not in _TRIMMED and token[-1] not in _TRIMMED:
                continue
            start, stop = offsets[index]
            leading = len(token) - len(token.lstrip(_TRIMMED))
            trailing = len(token) - len(token.rstrip(_TRIMMED))
            if leading == 1 and add_prefix_space and (index == 0 or start == 0):
                leading = 0
            start = min(start + leading, stop) if leading else start
            stop = max(stop - trailing, start) if trailing and stop >= trailing else stop
            offsets[index] = start, stop

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """Keep at most max_length tokens. The others go to `overflowing`, in parts that overlap by `stride` tokens.

        direction: "right" cuts off the end, "left" the beginning. Sequence IDs are lost. Raise ValueError unless
        stride < max_length.
        """
        max_length, stride = count("max_length", max_length), count("stride", stride)
        if text("direction", direction) not in _DIRECTIONS:
            raise ValueError(f"Invalid truncation direction value : {direction}")
        length = len(self)
        if max_length >= length:
            return
        if max_length == 0:
            self._set([[] for _ in range(7)], parts=[self.copy()])
            return
        if stride >= max_length:
            raise BadArgument(f"stride: must be below {max_length}, the tokens per part (got {stride})")
        step = max_length - stride
        if direction == "right":
            spans = [(start, min(start + max_length, length)) for start in range(0, length, step)]
            last = next(index for index, (_, stop) in enumerate(spans) if stop == length)
        else:
            spans = [(max(0, stop - max_length), stop) for stop in range(length, 0, -step)]
            last = next(index for index, (start, _) in enumerate(spans) if start == 0)
        kept, *cut_off = (
            [column[start:stop] for column in self._columns] for start, stop in spans[: last + 1]
        )
        self._set(kept, parts=[Encoding()._set(columns) for columns in cut_off])

    def pad(
        self,
        length: int,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        **unknown: Any,
    ) -> None:
        """Pad to `length` tokens at the end or (direction "left") at the beginning, also the overflowing parts."""
        warn_unknown(unknown)
        length = count("length", length)
        pad_id, pad_type_id = id_number("pad_id", pad_id), id_number("pad_type_id", pad_type_id)
        one_of("direction", direction, _DIRECTIONS)
        text("pad_token", pad_token)
        for part in self.parts:
            part.pad(length, direction, pad_id, pad_type_id, pad_token)
        missing = length - len(self)
        if missing <= 0:
            return
        padding = Encoding.special([pad_id] * missing, [pad_token] * missing, pad_type_id, attention=0)
        first, last = (self, padding) if direction == "right" else (padding, self)
        shift = missing if direction == "left" else 0
        ranges = {each: (start + shift, stop + shift) for each, (start, stop) in self._ranges.items()}
        columns = [a + b for a, b in zip(first._columns, last._columns, strict=True)]
        self._set(columns, ranges, self.parts)

    @staticmethod
    def merge(encodings: Sequence[Encoding], growing_offsets: bool = True) -> Encoding:
        """Concatenate encodings. growing_offsets: add the end of the previous encoding to the offsets."""
        merged = Encoding()
        for encoding in encodings:
            merged = merged._with(encoding, growing_offsets)
        return merged

    def _with(self, other: Encoding, growing_offsets: bool) -> Encoding:
        """Concatenate two encodings. The parts are all other pairs of the encodings and their parts."""
        length, columns = len(self), other._columns
        if growing_offsets and length:
            end = self._columns[_OFFSETS][-1][1]
            columns = columns[:]
            columns[_OFFSETS] = [(start + end, stop + end) for start, stop in columns[_OFFSETS]]
        moved = {each: (start + length, stop + length) for each, (start, stop) in other._ranges.items()}
        parts = [
            *(part._with(each, growing_offsets) for part in self.parts for each in (other, *other.parts)),
            *(self._with(part, growing_offsets) for part in other.parts),
        ]
        both = [a + b for a, b in zip(self._columns, columns, strict=True)]
        return Encoding()._set(both, self._ranges | moved, parts)

    # -- comparison and pickling ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, attention_mask, "
            "special_tokens_mask, overflowing])"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoding) and self.__getstate__() == other.__getstate__()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> tuple[Any, ...]:
        return self._columns, self._ranges, self.parts

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._set(*state)
