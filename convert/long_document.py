"""The ids of a document too long to be held at once, in bounded memory: the ids of the whole.

Text is gathered until it may be cut, whatever follows: in front of the place where a special token could still begin,
and there where the core knows that no pretoken can cross, or right behind a special token. What lies before the cut is
encoded and forgotten. Memory is a few stretches, or a few times the longest stretch without such a place: one pretoken
of a gigabyte is one pretoken. With an expression as pattern no place is known but special tokens.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core, utf8
from bpe.tokenizer import AllowedSpecial, Tokenizer

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
    gathered before a cut is tried, doubled after each failure, so a giant pretoken costs linear time.
    """
    every = isinstance(allowed_special, str) and allowed_special == "all"
    allowed = tokenizer.special_tokens if every else allowed_special
    pattern = tokenizer.pretokenizer.core_pattern
    if tokenizer.normalizer is not None or pattern is None:
        yield from _encode_as_text(tokenizer, pieces, allowed)
        return
    special = [token.encode() for token in allowed]
    held = bytearray()
    try_at = try_bytes
    out = np.empty(0, np.uint32)

    def encode(stop: int) -> NDArray[np.uint32]:
        nonlocal out
        if len(out) < _core.Encoder.out_tokens(stop):
            out = np.empty(_core.Encoder.out_tokens(stop), np.uint32)
        with memoryview(held) as view, view[:stop] as part:
            # 0xff is in no text: the whole of it is one document.
            return tokenizer.encode_documents(
                part, b"\xff", threads=1, checked=True, out=out, allowed_special=allowed_special
            ).tokens

    for piece in pieces:
        held += piece
        if len(held) < try_at:
            continue
        if cut := safe_cut(held, pattern, special):
            yield encode(cut)
            del held[:cut]
        try_at = max(try_bytes, 2 * len(held))
    if held:
        yield encode(len(held))


def safe_cut(text: bytearray, pattern: str, special_tokens: Collection[bytes]) -> int:
    """The last place found at which the text may be cut whatever follows it, 0 if there is none.

    "a<s>bc de<" with "<s>" for gpt2 -> 6, before " de"; a special token may begin with the last byte.
    """
    longest = max(map(len, special_tokens), default=1)
    # A special token that begins before `decided` ends within the text.
    decided = max(0, len(text) - longest + 1)
    cut = 0
    if special_tokens:
        starts, which = _core.find_special_tokens(text, list(special_tokens))
        lengths = [len(token) for token in special_tokens]
        before = int(np.searchsorted(starts, np.uint64(decided)))
        if before:
            cut = int(starts[before - 1]) + lengths[int(which[before - 1])]
    while cut < decided < len(text) and text[decided] & 0xC0 == 0x80:
        decided -= 1
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
