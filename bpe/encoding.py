"""Text to ids.

Text is cut at special tokens (leftmost first, of those at one place the longest), normalized if the tokenizer says
so, pretokenized by the pattern, and each pretoken is encoded by the merges (`bpe.reference` is the specification).
The loops run in the core, except for patterns and normalizers outside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bpe import _core, utf8
from bpe.buffers import check_bytes, check_out, not_text, offsets_from, separator_bytes, text_bytes
from bpe.description import Description, Parts
from bpe.errors import BadArgument, UncoveredText, shown
from bpe.ragged import Ragged
from bpe.streaming import encode_stretches
from bpe.threads import thread_count

if TYPE_CHECKING:
    from typing_extensions import Buffer

AllowedSpecial = Literal["all"] | Collection[str]

END_OF_TEXT: Final = "<|endoftext|>"
_NO_SEPARATOR: Final = b"\xff"  # in no UTF-8


class Encoding(Description):
    """What a `Tokenizer` makes of text."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._pattern_in_core = parts.pretokenizer.core_pattern is not None
        # If not, Python normalizes and cuts the text by expressions.
        self._in_core = self._pattern_in_core and (
            parts.normalizer is None or parts.normalizer.core is not None
        )

    def encode(self, text: str, allowed_special: AllowedSpecial = "all") -> list[int]:
        """The ids of the text; special tokens in it are recognised.

        allowed_special: () takes all of them as plain text, a collection recognises just those in it.
        No begin or end token is added. InvalidText if the text holds a lone surrogate. A short text costs about 1 µs
        and its work.
        """
        try:
            if allowed_special == "all":
                if self._in_core:
                    return self._encoder.encode(text)
                allowed: Collection[str] = self._vocabulary.special_tokens
            else:
                allowed = self._allowed(allowed_special)
                if self._in_core:
                    if len(allowed) == len(self._vocabulary.special_tokens) and isinstance(
                        allowed, (set, frozenset)
                    ):
                        return self._encoder.encode(text)
                    if not any(token in text for token in allowed):
                        return self._encoder.encode(text, special=False)
        except (TypeError, UnicodeError):
            raise not_text(text, "text") from None
        ids: list[int] = self._ids_of(text_bytes(text, "text"), allowed).tolist()
        return ids

    def encode_batch(
        self, texts: Sequence[str], threads: int | None = None, allowed_special: AllowedSpecial = "all"
    ) -> Ragged:
        """The ids of each text, a row a text, as `encode` gives them. threads: None for all cores."""
        if isinstance(texts, str):
            raise BadArgument("encode_batch takes a list of texts, got one text")
        texts = texts if isinstance(texts, (list, tuple)) else list(texts)
        allowed, every, in_core = self._recognised(allowed_special)
        threads = thread_count(threads)
        try:
            if in_core:
                return Ragged(*self._encoder.encode_batch(texts, threads, every))
        except (TypeError, UnicodeError):
            for index, text in enumerate(texts):
                text_bytes(text, f"texts[{index}]")
            raise
        return Ragged.from_rows(
            [
                self._ids_of(text_bytes(text, f"texts[{index}]"), allowed, f"texts[{index}]")
                for index, text in enumerate(texts)
            ]
        )

    def encode_documents(
        self,
        buffer: Buffer,
        separator: str | bytes = END_OF_TEXT,
        threads: int | None = 1,
        *,
        allowed_special: AllowedSpecial = "all",
        checked: bool = False,
        out: NDArray[np.uint32] | None = None,
    ) -> Ragged:
        """The ids of the documents in a UTF-8 buffer, a row a document; the separators are not encoded.

        n separators, found leftmost first, make n + 1 rows, of which some may be empty: b"a<s><s>b" has 3. Special
        tokens within a document are recognised. checked: the buffer is known to be valid UTF-8, not checked again.
        out: an array of len(buffer) + 2048 or more, reused from call to call; where the core can, the tokens are a view
        of it and no fresh memory is touched. ValueError if it is smaller.
        """
        check_bytes(buffer)
        check_out(out)
        separator = separator_bytes(separator)
        allowed, every, in_core = self._recognised(allowed_special)
        threads = thread_count(threads)

        if in_core:
            try:
                return Ragged(
                    *self._encoder.encode_documents(buffer, separator, threads, every, not checked, out)
                )
            except ValueError:
                utf8.check(buffer)  # tells where it is not valid
                if checked or _core.validate_utf8(separator) < 0:
                    raise
                # A separator that cuts characters apart.
                return Ragged(*self._encoder.encode_documents(buffer, separator, threads, every, False, out))
        if not checked:
            utf8.check(buffer)
        view = memoryview(buffer).cast("B")
        stops = np.append(_core.find_separators(buffer, separator), np.uint64(len(view)))
        starts = np.append(np.uint64(0), stops[:-1] + np.uint64(len(separator)))
        return self._encode_rows(view, starts, stops, allowed)

    def encode_ragged(
        self,
        buffer: Buffer,
        offsets: NDArray[np.uint64],
        threads: int | None = 1,
        *,
        allowed_special: AllowedSpecial = "all",
        out: NDArray[np.uint32] | None = None,
    ) -> Ragged:
        """The ids of documents that lie end to end in a buffer of valid UTF-8, a row a document.

        Document i is [offsets[i], offsets[i + 1]): b"abc", [0, 2, 2, 3] are "ab", "" and "c". allowed_special, out: as
        for encode_documents. ValueError for offsets that fall or leave the buffer.
        """
        check_bytes(buffer)
        check_out(out)
        offsets = offsets_from(offsets)
        allowed, every, in_core = self._recognised(allowed_special)
        threads = thread_count(threads)

        if in_core:
            return Ragged(*self._encoder.encode_ragged(buffer, offsets, threads, every, out))
        return self._encode_rows(memoryview(buffer).cast("B"), offsets[:-1], offsets[1:], allowed)

    def _encode_rows(
        self,
        view: memoryview,
        starts: NDArray[np.uint64],
        stops: NDArray[np.uint64],
        allowed: Collection[str],
    ) -> Ragged:
        """A row for each [starts[i], stops[i]), here."""
        return Ragged.from_rows(
            [
                self._ids_of(bytes(view[start:stop]), allowed, f"document {row}, buffer", start)
                for row, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True))
            ]
        )

    def encode_iterable(self, texts: Iterable[str], allowed_special: AllowedSpecial = "all") -> Iterator[int]:
        """The ids of the texts joined, one by one and lazily; where one ends and the next begins does not matter.

        ["Hel", "lo"] gives the ids of "Hello". Memory is bounded by the longest stretch that can't be cut, a
        pretoken or so; with an expression as pattern, by the longest stretch between special tokens.
        """
        return chain.from_iterable(encode_stretches(self, texts, self._allowed(allowed_special)))

    def normalize(self, text: bytes) -> bytes:
        """The UTF-8 of a text between two special tokens after the normalizer."""
        normalizer = self._parts.normalizer
        return text if normalizer is None else normalizer.apply(text)

    def encode_normalized(self, text: Buffer) -> NDArray[np.uint32]:
        """The ids of normalized UTF-8 in which no special token is recognised."""
        if self._pattern_in_core:
            return self._encoder.encode_documents(text, _NO_SEPARATOR, 1, special=False, normalize=False)[0]
        return self._encoder.encode_pretokens(*self.pretokenizer.pretoken_spans(str(text, "utf-8")))

    def encode_pretokens(self, text: Buffer, ends: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The ids of given pretokens, end to end in `text`: number i is [ends[i - 1], ends[i]), uint64[pretokens]."""
        return self._encoder.encode_pretokens(text, ends)

    def _ids_of(
        self, text: bytes, allowed: Collection[str], where: str = "text", base_bytes: int = 0
    ) -> NDArray[np.uint32]:
        """The ids, cutting the text at the allowed special tokens here and encoding what lies between.

        where, base_bytes: what errors call the source, and where in it the text begins.
        """
        parts: list[NDArray[np.uint32]] = []
        start = 0
        for stop, token in self.find_special_tokens(text, allowed):
            if stop > start:
                parts.append(self._ids_between(text[start:stop], where, base_bytes + start))
            parts.append(np.array([self._vocabulary.special_tokens[token]], np.uint32))
            start = stop + len(token.encode())
        if start < len(text):
            parts.append(self._ids_between(text[start:], where, base_bytes + start))
        return np.concatenate(parts) if parts else np.empty(0, np.uint32)

    def _ids_between(self, text: bytes, where: str, base_bytes: int) -> NDArray[np.uint32]:
        normalized = self.normalize(text)
        try:
            return self.encode_normalized(normalized)
        except UncoveredText as error:
            normalizer = self._parts.normalizer
            place = error.place if normalizer is None else normalizer.place_before(text, error.place)
            raise error.moved(base_bytes + place - error.place, where) from None

    @staticmethod
    def find_special_tokens(buffer: bytes, allowed: Collection[str]) -> list[tuple[int, str]]:
        """(byte offset, special token) of each that is recognised in the buffer, in order."""
        if not allowed or not buffer:
            return []
        tokens = list(dict.fromkeys(allowed))
        starts, which = _core.find_special_tokens(buffer, [token.encode() for token in tokens])
        return [(start, tokens[index]) for start, index in zip(starts.tolist(), which.tolist(), strict=True)]

    def _recognised(self, allowed_special: AllowedSpecial) -> tuple[Collection[str], bool, bool]:
        """The special tokens to recognise, whether these are all, and whether the core can do it: all of them or none,
        by a pattern and a normalizer of its own."""
        allowed, every = self._allowed(allowed_special), isinstance(allowed_special, str)
        return allowed, every, self._in_core and (every or not allowed)

    def _allowed(self, allowed_special: AllowedSpecial) -> Collection[str]:
        if isinstance(allowed_special, str) and allowed_special == "all":
            return self._vocabulary.special_tokens
        if isinstance(allowed_special, (str, bytes)) or not isinstance(allowed_special, Collection):
            raise BadArgument(f'allowed_special must be "all" or a collection, got {shown(allowed_special)}')
        for token in allowed_special:
            if not isinstance(token, str) or token not in self._vocabulary.special_tokens:
                raise BadArgument(f"allowed_special holds {shown(token)}, which is not a special token")
        return allowed_special
