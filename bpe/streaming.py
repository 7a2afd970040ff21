"""Encode a text that arrives in parts, in bounded memory, with the ids of the whole.

Invariant: joined, the stretches that are encoded one by one are the text, and each border between two of them is one
at which the text may be cut whatever follows it. Such borders are: a special token that is decided (no longer one can
still begin at its place or before it), and in the text between special tokens a place that the core calls safe for
the pattern. Text that is to be normalized is held back to the last place that its normalizer can be cut at.
With an expression as pattern no place is known to be safe, so text is held back to the next special token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from bpe import _core
from bpe.errors import InvalidText, UncoveredText, shown
from bpe.normalized_parts import NormalizedParts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from bpe.encoding import AllowedSpecial, Encoding
    from bpe.normalizers import Normalizer

# Parts are joined up to here before the core is asked: 64 KiB makes a call's fixed cost invisible.
BLOCK_BYTES: Final = 64 << 10


class Encodes(Protocol):
    """What is asked of the tokenizer."""

    @property
    def special_tokens(self) -> dict[str, int]: ...
    @property
    def automaton(self) -> _core.Automaton | None: ...
    @property
    def core_normalizer(self) -> Normalizer | None: ...
    def find_special_tokens(self, buffer: bytes, allowed: Collection[str]) -> list[tuple[int, str]]: ...
    def encode_normalized(self, text: Buffer) -> NDArray[np.uint32]: ...


def encode_stretches(
    tokenizer: Encodes, texts: Iterable[str], allowed: Collection[str], block_bytes: int = BLOCK_BYTES
) -> Iterator[list[int]]:
    """The ids of the texts joined, some at a time; a special token comes alone. See Tokenizer.encode_iterable."""
    encoder = _StretchEncoder(tokenizer, block_bytes)
    before = 0  # bytes of text before what is pending
    special_ids = tokenizer.special_tokens
    longest = max((len(token.encode()) for token in allowed), default=0)
    pending = b""
    for block in blocks_of(texts, block_bytes):
        pending += block
        # A special token may begin at any of the last bytes and end in a part to come; those before are decided.
        decided = len(pending) - longest + 1 if longest else len(pending)
        start = 0
        for place, token in tokenizer.find_special_tokens(pending, allowed):
            if place >= decided:
                break
            yield encoder.finish(pending[start:place])
            yield [special_ids[token]]
            start = place + len(token.encode())
            encoder.begins_at = before + start
        stop = _character_start(pending, max(start, decided))
        yield encoder.feed(pending[start:stop])
        pending = pending[stop:]
        before += stop
    start = 0
    for place, token in tokenizer.find_special_tokens(pending, allowed):
        yield encoder.finish(pending[start:place])
        yield [special_ids[token]]
        start = place + len(token.encode())
        encoder.begins_at = before + start
    yield encoder.finish(pending[start:])


def encode_by_cuts(
    tokenizer: Encoding,
    pieces: Iterable[Buffer],
    allowed_special: AllowedSpecial,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[NDArray[np.uint32]]:
    """The ids of UTF-8 in pieces, some at a time, for tokens of any kind: what may be cut off is encoded by itself.

    Where no place to cut is found, ever more is held before the next try, so that all of it costs linear time.
    """
    held = bytearray()
    try_at_bytes = block_bytes
    for piece in pieces:
        held += piece
        if len(held) < try_at_bytes:
            continue
        if cut := tokenizer.last_cut(held, allowed_special):
            yield _encode_whole(tokenizer, bytes(held[:cut]), allowed_special)
            del held[:cut]
        try_at_bytes = max(block_bytes, 2 * len(held))
    yield _encode_whole(tokenizer, bytes(held), allowed_special)


def _encode_whole(tokenizer: Encoding, text: bytes, allowed_special: AllowedSpecial) -> NDArray[np.uint32]:
    # 0xff is in no UTF-8: the text is one document.
    return tokenizer.encode_documents(text, b"\xff", checked=True, allowed_special=allowed_special).tokens


def blocks_of(texts: Iterable[str], block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The UTF-8 of the texts in blocks of at least `block_bytes`, the last one excepted, each of whole characters."""
    parts: list[bytes] = []
    gathered_bytes = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} must be a str, got {type(text).__name__}")
        try:
            part = text.encode()
        except UnicodeEncodeError as error:
            raise InvalidText(
                f"text {number}: character {error.start} ({shown(text[error.start])}) is a lone surrogate"
            ) from None
        parts.append(part)
        gathered_bytes += len(part)
        if gathered_bytes >= block_bytes:
            yield b"".join(parts)
            parts, gathered_bytes = [], 0
    if gathered_bytes:
        yield b"".join(parts)


def _character_start(text: bytes, place: int) -> int:
    """The start of the character that the byte at `place` belongs to."""
    while 0 < place < len(text) and text[place] & 0xC0 == 0x80:
        place -= 1
    return place


class _StretchEncoder:
    """Encodes the text between two special tokens as it comes, holding back what the next part may still change."""

    def __init__(self, tokenizer: Encodes, block_bytes: int) -> None:
        self._tokenizer = tokenizer
        self._automaton = tokenizer.automaton
        self._block_bytes = block_bytes
        normalizer = tokenizer.core_normalizer
        self._parts = NormalizedParts(normalizer) if normalizer is not None else None
        self._held = bytearray()  # normalized text of which the pretokens are not decided
        self.begins_at = 0  # byte of the whole text
        self._try_at_bytes = block_bytes  # doubled after a failure, so a giant pretoken costs linear time

    def feed(self, part: bytes) -> list[int]:
        """The ids that are decided once `part` is there and whatever follows."""
        self._held += self._parts.feed(part) if self._parts is not None else part
        if self._automaton is None or len(self._held) < self._try_at_bytes:
            return []
        cut = _core.last_safe_cut(self._automaton, self._held)
        ids = self._encode(memoryview(self._held)[:cut])
        del self._held[:cut]
        self._try_at_bytes = max(self._block_bytes, 2 * len(self._held))
        return ids

    def finish(self, part: bytes) -> list[int]:
        """The ids of what is held back and `part`, which a special token or the end of the text follows."""
        self._held += self._parts.feed(part) + self._parts.finish() if self._parts is not None else part
        ids = self._encode(self._held)
        self._held, self._try_at_bytes = bytearray(), self._block_bytes
        return ids

    def _encode(self, normalized: Buffer) -> list[int]:
        try:
            ids: list[int] = self._tokenizer.encode_normalized(normalized).tolist()
        except UncoveredText as error:
            if self._parts is None:
                raise error.moved(self.begins_at) from None
            raise error.moved(0, f"normalized text from byte {self.begins_at} on") from None
        return ids
