"""The IDs of a document too long to be held, in bounded memory: the IDs of the whole.

Text is held until the core finds an offset at which it may be cut, whatever follows. All before the cut is encoded and
forgotten (`Tokenizer.encode_blocks`). A pretoken of any length is held, except for a byte-level tokenizer without a
normalizer. For such a tokenizer, where there is no cut for a while, the core scans the text as a stream: pretokens that
are certain are encoded, and one that is itself too long to be held is encoded in windows (long_pretoken.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.long_text.long_pretoken import LongPretoken
from bpe.normalizers import INSIDE
from bpe.tokenizer import AllowedSpecial, Tokenizer
from tokenmill.inputs._core import find_special_tokens

if TYPE_CHECKING:
    from typing_extensions import Buffer

TRY_BYTES = 4 << 20


def encode_pieces(
    tokenizer: Tokenizer,
    pieces: Iterable[Buffer],
    allowed_special: AllowedSpecial = "all",
    try_bytes: int = TRY_BYTES,
) -> Iterator[NDArray[np.uint32]]:
    """The IDs of the pieces joined, some at a time.

    pieces: valid UTF-8, cut between characters. allowed_special: as for Tokenizer.encode. try_bytes: how much is
    gathered before a cut is tried.
    """
    automaton = tokenizer.automaton
    if (
        automaton is None
        or not automaton.streams
        or tokenizer.text_rules is not None  # a window is no whole pretoken, which affixes depend on
        or tokenizer.preparation is not None
        or tokenizer.pretokenizer.asks_for_input
        or not tokenizer.finds_by_bytes(allowed_special)
    ):
        return tokenizer.encode_blocks(pieces, allowed_special, try_bytes)
    return _Pieces(tokenizer, automaton, allowed_special, try_bytes).encode(pieces)


class _Pieces:
    """Text that is held and, where it goes through the core as a stream, what is known of its pretokens."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        automaton: _core.Automaton,
        allowed_special: AllowedSpecial,
        try_bytes: int,
    ) -> None:
        self._tokenizer, self._automaton = tokenizer, automaton
        self._tokens = tokenizer.recognised(allowed_special)
        every = isinstance(allowed_special, str) and allowed_special == "all"
        self._special = [token.encode() for token in (tokenizer.special_tokens if every else allowed_special)]
        self._try_bytes = try_bytes
        self._held = bytearray()
        self._stream: _core.PieceStream | None = None
        self._base = 0  # bytes of the stream before what is held
        self._fed = 0  # bytes of what is held that the stream has seen
        self._dropped = False  # whether the pretoken that is held is left out
        self._long: LongPretoken | None = None  # which it is the rest of

    def encode(self, pieces: Iterable[Buffer]) -> Iterator[NDArray[np.uint32]]:
        for piece in pieces:
            self._held += piece
            del piece
            if self._stream is not None:
                yield from self._go_on(final=False)
            if self._stream is None and len(self._held) >= self._try_bytes:
                yield from self._give()
        if self._stream is not None:
            yield from self._go_on(final=True)
        yield self._encoded(len(self._held))

    def _give(self) -> Iterator[NDArray[np.uint32]]:
        """The ids of what may be cut off; without such a place the text becomes a stream."""
        if cut := self._tokenizer.core_encoder.last_cut(self._held, self._tokens):
            yield self._encoded(cut)
            del self._held[:cut]
            return
        self._stream = _core.PieceStream(self._automaton)
        self._base = self._fed = 0
        yield from self._go_on(final=False)

    def _go_on(self, final: bool) -> Iterator[NDArray[np.uint32]]:
        """What the stream makes certain of the text that came; it ends at a special token, and where it may be cut."""
        held = self._held
        assert self._stream is not None
        stop = len(held) if final else max(_decided(held, self._special), self._fed)
        with memoryview(held) as view, view[self._fed :] as rest:
            special = self._fed + _first_special(rest, self._special)
        over = final or special < stop
        stop = min(stop, special)
        cut = 0
        with memoryview(held) as view, view[self._fed : stop] as rest:
            starts, drops, settled = self._stream.feed(rest, over)
            if not over and (found := _core.last_safe_cut(self._automaton, rest)):
                cut = self._fed + found
        self._fed = stop
        places = starts.astype(np.int64) - self._base
        if cut:  # all before it is certain, and it is one of the places
            known = np.count_nonzero(places <= cut)
            places, drops = places[:known], drops[:known]
        yield from self._pieces(places.tolist(), drops.tolist())
        if over or cut:
            self._stream = None
        else:
            yield from self._settle(int(settled) - self._base)

    def _pieces(self, places: list[int], drops: list[int]) -> Iterator[NDArray[np.uint32]]:
        """The pretokens that end at the places, but for those behind which the others start."""
        texts: list[bytes] = []
        start = 0
        for place, next_drops in zip(places, drops, strict=True):
            if place > start or self._long is not None:
                text = bytes(self._held[start:place])
                if self._long is not None or (place - start > self._try_bytes and not self._dropped):
                    yield self._ids_of(texts)
                    texts.clear()
                    long = self._long or LongPretoken(self._tokenizer, self._try_bytes)
                    yield from long.take(text)
                    yield long.finish()
                    self._long = None
                elif not self._dropped:
                    texts.append(text)
            start, self._dropped = place, bool(next_drops)
        yield self._ids_of(texts)
        self._forget(start)

    def _ids_of(self, pretokens: list[bytes]) -> NDArray[np.uint32]:
        ends = np.cumsum([len(each) for each in pretokens], dtype=np.uint64)
        return self._tokenizer.encode_pretokens(b"".join(pretokens), ends)

    def _settle(self, settled: int) -> Iterator[NDArray[np.uint32]]:
        """Of a pretoken too long to be held, what is certain to belong to it."""
        if settled < self._try_bytes // 2 and self._long is None:
            return
        if not self._dropped:
            self._long = self._long or LongPretoken(self._tokenizer, self._try_bytes)
            yield from self._long.take(bytes(self._held[:settled]))
        self._forget(settled)

    def _forget(self, stop: int) -> None:
        del self._held[:stop]
        self._base += stop
        self._fed -= stop

    def _encoded(self, stop: int) -> NDArray[np.uint32]:
        return self._tokenizer.core_encoder.encode_part(self._held[:stop], self._tokens, INSIDE)


def _decided(text: bytearray, special_tokens: Collection[bytes]) -> int:
    """A special token that begins before this place, the start of a character, ends within the text."""
    longest = max(map(len, special_tokens), default=1)
    decided = max(0, len(text) - longest + 1)
    while 0 < decided < len(text) and text[decided] & 0xC0 == 0x80:
        decided -= 1
    return decided


def _first_special(text: Buffer, special_tokens: list[bytes]) -> int:
    """The offset of the first special token in the text, or the length of the text."""
    starts, _ = find_special_tokens(text, special_tokens)
    return int(starts[0]) if len(starts) else memoryview(text).nbytes
