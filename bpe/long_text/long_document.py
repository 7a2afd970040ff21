"""The ids of a document too long to be held at once, in bounded memory: the ids of the whole.

Text is gathered until it may be cut, whatever follows: in front of the place where a special token could still begin,
and there where the core knows that no pretoken can cross, or right behind a special token. What lies before the cut is
encoded and forgotten. Where there is no such place for a while, the core goes through the text as a stream: pretokens
that are certain are given out, and one that is itself too long to be held is encoded bit by bit (long_pretoken.py).
Memory is a few stretches, and what waits for the text behind it: spaces after a line break belong to it if another one
follows them. Where the core does not cut the texts, no place is known but special tokens, and all between them is held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.long_text.long_pretoken import LongPretoken
from bpe.long_text.normalized_pieces import Stretches, first_special, normalized
from bpe.normalizers import INPUT, SECTION
from bpe.streaming import encode_by_cuts
from bpe.tokenizer import AllowedSpecial, Tokenizer
from corpus._core import find_special_tokens

if TYPE_CHECKING:
    from typing_extensions import Buffer

TRY_BYTES = 4 << 20


def encode_pieces(
    tokenizer: Tokenizer,
    pieces: Iterable[Buffer],
    allowed_special: AllowedSpecial = "all",
    try_bytes: int = TRY_BYTES,
) -> Iterator[NDArray[np.uint32]]:
    """The ids of the pieces joined, some at a time, each array valid until the next is asked for.

    pieces: valid UTF-8, cut between characters. allowed_special: as for Tokenizer.encode. try_bytes: how much is
    gathered before a cut is tried.
    """
    automaton = tokenizer.pretokenizer.automaton
    by_cuts = automaton is not None and (not automaton.streams or tokenizer.pretokenizer.asks_for_input)
    if by_cuts or not tokenizer.finds_by_bytes(allowed_special):
        # Where pretokens or such tokens begin and end depends on what stands around them.
        yield from encode_by_cuts(tokenizer, pieces, allowed_special, try_bytes)
        return
    every = isinstance(allowed_special, str) and allowed_special == "all"
    allowed = tokenizer.special_tokens if every else allowed_special
    if automaton is None:
        yield from _encode_as_text(tokenizer, pieces, allowed)
        return
    if tokenizer.preparation is not None:
        stretches = Stretches(pieces, [token.encode() for token in allowed])
        ids = [tokenizer.special_tokens[token] for token in allowed]
        start = INPUT
        while True:
            texts = normalized(tokenizer.preparation, stretches.next(), start)
            start = SECTION
            yield from _Pieces(tokenizer, automaton, (), (), try_bytes).encode(texts)
            if stretches.special < 0:
                return
            yield np.array([ids[stretches.special]], np.uint32)
    yield from _Pieces(tokenizer, automaton, allowed_special, allowed, try_bytes).encode(pieces)


class _Pieces:
    """Text that is held and, where it goes through the core as a stream, what is known of its pretokens."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        automaton: _core.Automaton,
        allowed_special: AllowedSpecial,
        allowed: Collection[str],
        try_bytes: int,
    ) -> None:
        self._tokenizer, self._automaton = tokenizer, automaton
        self._allowed_special = allowed_special
        self._special = [token.encode() for token in allowed]
        self._try_bytes = try_bytes
        self._held = bytearray()
        self._stream: _core.PieceStream | None = None
        self._base = 0  # bytes of the stream before what is held
        self._fed = 0  # bytes of what is held that the stream has seen
        self._dropped = False  # whether the pretoken that is held is left out
        self._long: LongPretoken | None = None  # which it is the rest of
        self._out = np.empty(0, np.uint32)

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
        if cut := safe_cut(self._held, self._automaton, self._special):
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
            special = self._fed + first_special(rest, self._special)[0]
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
        if len(self._out) < _core.TokenizerCore.out_tokens(stop):
            self._out = np.empty(_core.TokenizerCore.out_tokens(stop), np.uint32)
        part = self._held[
            :stop
        ]  # a copy: who sees a bytearray keeps it from growing, were it a profiler's frames
        if self._tokenizer.preparation is not None:  # the text is in its form already
            return self._tokenizer.encode_prepared(part)
        # 0xff is in no text: the whole of it is one document.
        return self._tokenizer.encode_documents(
            part, b"\xff", threads=1, checked=True, out=self._out, allowed_special=self._allowed_special
        ).tokens


def _decided(text: bytearray, special_tokens: Collection[bytes]) -> int:
    """A special token that begins before this place, the start of a character, ends within the text."""
    longest = max(map(len, special_tokens), default=1)
    decided = max(0, len(text) - longest + 1)
    while 0 < decided < len(text) and text[decided] & 0xC0 == 0x80:
        decided -= 1
    return decided


def safe_cut(text: bytearray, automaton: _core.Automaton, special_tokens: Collection[bytes]) -> int:
    """The last place found at which the text may be cut whatever follows it, 0 if there is none.

    "a<s>bc de<" with "<s>" for GPT-2 -> 6, before " de"; a special token may begin with the last byte.
    """
    decided = _decided(text, special_tokens)
    cut = 0
    if special_tokens:
        starts, which = find_special_tokens(text, list(special_tokens))
        lengths = [len(token) for token in special_tokens]
        before = int(np.searchsorted(starts, np.uint64(decided)))
        if before:
            cut = int(starts[before - 1]) + lengths[int(which[before - 1])]
    if cut >= decided:
        return cut
    with memoryview(text) as view, view[cut:decided] as rest:
        return cut + _core.last_safe_cut(automaton, rest)


def _encode_as_text(
    tokenizer: Tokenizer, pieces: Iterable[Buffer], allowed: Collection[str]
) -> Iterator[NDArray[np.uint32]]:
    from bpe.streaming import encode_stretches

    for ids in encode_stretches(tokenizer, (str(piece, "utf-8") for piece in pieces), allowed):
        if len(ids):
            yield np.asarray(ids, dtype=np.uint32)
