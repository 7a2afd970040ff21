"""The ids of a document too long to be held at once, in bounded memory: the ids of the whole.

Text is gathered until it may be cut, whatever follows: in front of the place where a special token could still begin,
and there where the core knows that no pretoken can cross, or right behind a special token. What lies before the cut is
encoded and forgotten. Where there is no such place for a while, the pretokens that are certain are given out, and one
that is itself too long to be held is encoded bit by bit (convert/long_pretoken.py). Memory is a few stretches. With an
expression as pattern no place is known but special tokens, and all between them is held.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core, utf8
from bpe.normalizers import make_normalizer
from bpe.streaming import encode_by_cuts
from bpe.tokenizer import AllowedSpecial, Tokenizer
from convert.long_pretoken import LongPretoken
from convert.normalized_pieces import Stretches, first_special, normalized

if TYPE_CHECKING:
    from typing_extensions import Buffer

TRY_BYTES = 4 << 20


def encode_pieces(
    tokenizer: Tokenizer,
    pieces: Iterable[Buffer],
    allowed_special: AllowedSpecial = "all",
    try_bytes: int = TRY_BYTES,
    folder: Path | None = None,
) -> Iterator[NDArray[np.uint32]]:
    """The ids of the pieces joined, some at a time, each array valid until the next is asked for.

    pieces: valid UTF-8, cut between characters. allowed_special: as for Tokenizer.encode. try_bytes: how much is
    gathered before a cut is tried. folder: see convert/long_pretoken.py; None for the system's.
    """
    if not tokenizer.finds_by_bytes(allowed_special):
        # Where such tokens begin and end depends on what stands around them.
        yield from encode_by_cuts(tokenizer, pieces, allowed_special, try_bytes)
        return
    every = isinstance(allowed_special, str) and allowed_special == "all"
    allowed = tokenizer.special_tokens if every else allowed_special
    pattern = tokenizer.pretokenizer.core_pattern
    if pattern is None:
        yield from _encode_as_text(tokenizer, pieces, allowed)
        return
    normalizer = make_normalizer(tokenizer.normalizer)
    if normalizer is not None:
        stretches = Stretches(pieces, [token.encode() for token in allowed])
        ids = [tokenizer.special_tokens[token] for token in allowed]
        while True:
            texts = normalized(normalizer, stretches.next())
            yield from _Pieces(tokenizer, pattern, (), (), try_bytes, folder).encode(texts)
            if stretches.special < 0:
                return
            yield np.array([ids[stretches.special]], np.uint32)
    yield from _Pieces(tokenizer, pattern, allowed_special, allowed, try_bytes, folder).encode(pieces)


class _Pieces:
    """Text that is held and what became of the text before it: ids, or the beginning of a long pretoken."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        pattern: str,
        allowed_special: AllowedSpecial,
        allowed: Collection[str],
        try_bytes: int,
        folder: Path | None,
    ) -> None:
        self._tokenizer, self._pattern = tokenizer, pattern
        self._allowed_special = allowed_special
        self._special = [token.encode() for token in allowed]
        self._try_bytes, self._folder = try_bytes, folder
        self._held = bytearray()
        self._long: LongPretoken | None = None
        self._out = np.empty(0, np.uint32)

    def encode(self, pieces: Iterable[Buffer]) -> Iterator[NDArray[np.uint32]]:
        coming = iter(pieces)
        final = False
        while not final:
            piece = next(coming, None)
            final = piece is None
            if piece is not None:
                self._held += piece
                del piece
            if self._long is not None:
                yield from self._go_on(self._long, final)
                if self._long.over:
                    if self._long.waiting is not None:
                        # It stands before all that is held, and is looked at anew.
                        coming = chain(self._long.waiting, [bytes(self._held)], coming)
                        self._held.clear()
                        final = False
                    self._long = None
            if self._long is None and (final or len(self._held) >= self._try_bytes):
                yield from self._give(final)

    def _give(self, final: bool) -> Iterator[NDArray[np.uint32]]:
        """The ids of what is certain of the text that is held; a pretoken that is too long for that becomes `_long`."""
        held = self._held
        if final:
            yield self._encoded(len(held))
            return
        if cut := safe_cut(held, self._pattern, self._special):
            yield self._encoded(cut)
            del held[:cut]
            return
        stop = _decided(held, self._special)
        with memoryview(held) as view, view[:stop] as part:
            start, _, _ = _core.open_pretoken(part, self._pattern)
            if start:
                # By themselves they might end otherwise: spaces at the end of a text are one pretoken.
                ends = _core.pretokenize(part, self._pattern)
                ends = ends[: int(np.searchsorted(ends, np.uint64(start))) + 1]
                yield self._tokenizer.encode_pretokens(held[:start], ends)
        del held[:start]
        if stop - start >= self._try_bytes // 2:
            long = LongPretoken(
                self._tokenizer, self._pattern, self._folder, self._try_bytes, 4 * self._try_bytes
            )
            yield from long.take(held, stop - start)
            self._long = long if long.taken else None

    def _go_on(self, long: LongPretoken, final: bool) -> Iterator[NDArray[np.uint32]]:
        held = self._held
        stop = len(held) if final else _decided(held, self._special)
        with memoryview(held) as view, view[long.taken :] as rest:
            special = long.taken + first_special(rest, self._special)[0]
        if special < stop:
            yield from long.end(held, special)
        elif final:
            yield from long.end(held, stop)
        else:
            yield from long.take(held, stop)

    def _encoded(self, stop: int) -> NDArray[np.uint32]:
        if len(self._out) < _core.Encoder.out_tokens(stop):
            self._out = np.empty(_core.Encoder.out_tokens(stop), np.uint32)
        part = self._held[
            :stop
        ]  # a copy: what sees a bytearray keeps it from growing, were it a profiler's frames
        if self._tokenizer.normalizer is not None:  # the text is in its form already
            return self._tokenizer.encode_normalized(part)
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


def safe_cut(text: bytearray, pattern: str, special_tokens: Collection[bytes]) -> int:
    """The last place found at which the text may be cut whatever follows it, 0 if there is none.

    "a<s>bc de<" with "<s>" for gpt2 -> 6, before " de"; a special token may begin with the last byte.
    """
    decided = _decided(text, special_tokens)
    cut = 0
    if special_tokens:
        starts, which = _core.find_special_tokens(text, list(special_tokens))
        lengths = [len(token) for token in special_tokens]
        before = int(np.searchsorted(starts, np.uint64(decided)))
        if before:
            cut = int(starts[before - 1]) + lengths[int(which[before - 1])]
    if cut >= decided:
        return cut
    with memoryview(text) as view, view[cut:decided] as rest:
        return cut + _core.last_safe_cut(rest, pattern)


def _encode_as_text(
    tokenizer: Tokenizer, pieces: Iterable[Buffer], allowed: Collection[str]
) -> Iterator[NDArray[np.uint32]]:
    from bpe.streaming import encode_stretches

    for ids in encode_stretches(tokenizer, (str(piece, "utf-8") for piece in pieces), allowed):
        if len(ids):
            yield np.asarray(ids, dtype=np.uint32)


class ValidPieces:
    """Checks or mends the UTF-8 of a text that comes in pieces, and cuts it between characters.

    where, base_bytes: what errors call the source, and where in it the text begins. `replaced`: how many U+FFFD were
    put in, the same as for the whole at once. bad_place, bad_byte: of InvalidText, where in the source and what.
    """

    def __init__(self, where: str, invalid: utf8.Invalid, base_bytes: int) -> None:
        self._where = where
        self._place = base_bytes  # of the first byte that is held
        self._held = b""
        self._decoder = utf8.TextDecoder(where, invalid, base_bytes) if invalid == "replace" else None
        self.bad_place = self.bad_byte = -1

    @property
    def replaced(self) -> int:
        return self._decoder.replaced if self._decoder is not None else 0

    def take(self, piece: Buffer, final: bool) -> Buffer:
        """The text that is whole with this piece; InvalidText names the byte."""
        if self._decoder is not None:
            return self._decoder.decode(bytes(piece), final).encode()
        data = self._held + bytes(piece) if self._held else piece
        view = memoryview(data)
        bad = _core.validate_utf8(data)
        # A character that is cut looks like a wrong one: its bytes wait for the next piece.
        if bad >= 0 and (final or not _may_go_on(bytes(view[bad:]))):
            self.bad_place, self.bad_byte = self._place + bad, view[bad]
            raise utf8.invalid_text(data, bad, self._where, self._place)
        stop = bad if bad >= 0 else len(view)
        self._held = bytes(view[stop:])
        self._place += stop
        return view[:stop]


def _may_go_on(tail: bytes) -> bool:
    """Whether the bytes are the beginning of a character."""
    if len(tail) > 3:
        return False
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        return decoder.decode(tail) == ""
    except UnicodeDecodeError:
        return False
