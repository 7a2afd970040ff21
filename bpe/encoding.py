"""Text to ids.

Text is cut at added tokens (`bpe.added_tokens`), normalized if the tokenizer says so, pretokenized by the pattern, and
each pretoken is encoded by the merges (`bpe.reference` is the specification). The loops run in the core, except for
patterns and normalizers outside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.added_tokens import NO_TOKENS, core_tokens, cut_at
from bpe.buffers import check_bytes, check_out, not_text, offsets_from, separator_bytes, text_bytes
from bpe.description import Description, Parts
from bpe.errors import BadArgument, UncoveredText, shown
from bpe.normalizers import INPUT, INSIDE, SECTION, Normalizer
from bpe.ragged import Ragged
from bpe.streaming import BLOCK_BYTES, blocks_of
from bpe.text_form import exchange
from bpe.threads import thread_count
from tokenmill.inputs import utf8
from tokenmill.inputs._core import find_separators

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.normalizers import Normalizer

AllowedSpecial = Literal["all"] | Collection[str]
Recognised = bool | _core.AddedTokens

END_OF_TEXT: Final = "<|endoftext|>"
_MOST_SETS: Final = 64  # of allowed special tokens that are kept ready for the core
_SETS: Final = (tuple, frozenset, set, list)


class Encoding(Description):
    """What a `Tokenizer` makes of text."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._some_tokens: dict[frozenset[str], _core.AddedTokens] = {}
        self._pretokens_in_core = parts.pretokenizer.automaton is not None
        # If not, Python normalizes and cuts the text by expressions.
        self._in_core = self._pretokens_in_core and (
            parts.preparation is None or parts.preparation.core is not None
        )

    def encode(
        self, text: str, allowed_special: AllowedSpecial = "all", *, add_special_tokens: bool = False
    ) -> list[int]:
        """Return the token IDs of a text.

        text: str without lone surrogates.
        allowed_special: special tokens to recognize: "all" (default), or a collection of their texts. () encodes all of
            them as ordinary text.
        add_special_tokens: True adds the begin and end tokens of the file's post_processor. FALSE IS THE DEFAULT,
            unlike in Hugging Face tokenizers. Truncation and padding are never applied.

        Cost: about 1 µs per call besides the work. Raise InvalidText for a lone surrogate, and UncoveredText if the
            pattern
        does not match all of the text.
        """
        try:
            tokens = True if allowed_special == "all" else self.recognised(allowed_special)
            if self._in_core:
                ids = self._encoder.encode(text, tokens)
            else:
                ids = self._ids_of(text_bytes(text, "text"), tokens).tolist()
        except (TypeError, UnicodeError):
            raise not_text(text, "text") from None
        if add_special_tokens and self._parts.post_processor is not None:
            return self._parts.post_processor.around(ids)
        return ids

    def encode_batch(
        self,
        texts: Sequence[str],
        threads: int | None = None,
        allowed_special: AllowedSpecial = "all",
        *,
        add_special_tokens: bool = False,
    ) -> Ragged:
        """Return the token IDs of several texts, one row per text, as `encode` returns them.

        texts: list of str.
        threads: number of threads, at least 1 (default: None for all cores).
        allowed_special, add_special_tokens: as for `encode`.

        Raise InvalidText for a lone surrogate, BadArgument for a single text instead of a list.
        """
        if isinstance(texts, (str, bytes)):
            raise BadArgument("texts: must be a list of texts (got one text). Pass a single text to encode.")
        if not isinstance(texts, Iterable):
            raise BadArgument(f"encode_batch takes a list of texts, got {shown(texts)}")
        texts = texts if isinstance(texts, (list, tuple)) else list(texts)
        rows = self._encode_batch(texts, thread_count(threads), self.recognised(allowed_special))
        if add_special_tokens and self._parts.post_processor is not None:
            return self._parts.post_processor.around_rows(rows)
        return rows

    def _encode_batch(self, texts: Sequence[str], threads: int, tokens: Recognised) -> Ragged:
        try:
            if self._in_core:
                return Ragged(*self._encoder.encode_batch(texts, threads, tokens))
        except (TypeError, UnicodeError):
            for index, text in enumerate(texts):
                text_bytes(text, f"texts[{index}]")
            raise
        return Ragged.from_rows(
            [
                self._ids_of(text_bytes(text, f"texts[{index}]"), tokens, f"texts[{index}]")
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
        """Return the token IDs of the documents in a UTF-8 buffer, one row per document. Separators are not encoded.

        buffer: bytes-like. n separators, found from the left, make n + 1 rows; rows may be empty: b"a<s><s>b" has 3.
        separator: text between documents, not empty (default: "<|endoftext|>").
        threads: number of threads, at least 1 (default: 1; None for all cores).
        allowed_special: as for `encode`.
        checked: True skips the check that the buffer is valid UTF-8 (default: False).
        out: uint32 array of at least len(buffer) + 2048 elements, reused across calls (default: None). Where the core
            can, the returned tokens are a view of it, which avoids new memory.

        Raise InvalidText for invalid UTF-8, BadArgument for an invalid separator or array, ValueError for a small
        `out`.
        """
        check_bytes(buffer)
        check_out(out)
        separator = separator_bytes(separator)
        tokens = self.recognised(allowed_special)
        threads = thread_count(threads)
        if self._in_core:
            try:
                return Ragged(
                    *self._encoder.encode_documents(buffer, separator, threads, tokens, not checked, out)
                )
            except ValueError:
                utf8.check(buffer)  # names the offset
                raise
        if not checked:
            utf8.check(buffer)
        view = memoryview(buffer).cast("B")
        stops = np.append(find_separators(buffer, separator), np.uint64(len(view)))
        starts = np.append(np.uint64(0), stops[:-1] + np.uint64(len(separator)))
        return self._encode_rows(view, starts, stops, tokens)

    def encode_ragged(
        self,
        buffer: Buffer,
        offsets: NDArray[np.uint64],
        threads: int | None = 1,
        *,
        allowed_special: AllowedSpecial = "all",
        checked: bool = False,
        out: NDArray[np.uint32] | None = None,
    ) -> Ragged:
        """The ids of documents that lie end to end in a UTF-8 buffer, a row a document.

        Document i is [offsets[i], offsets[i + 1]): b"abc", [0, 2, 2, 3] are "ab", "" and "c". allowed_special, out: as
        for encode_documents. checked: each document is known to be valid UTF-8, which is not checked again. ValueError
        for offsets that fall or leave the buffer, InvalidText for a document that is not UTF-8; with checked, for one
        that is cut inside a character.
        """
        check_bytes(buffer)
        check_out(out)
        offsets = offsets_from(offsets)
        tokens = self.recognised(allowed_special)
        threads = thread_count(threads)
        if not checked:
            utf8.check_rows(buffer, offsets)

        if self._in_core:
            try:
                return Ragged(*self._encoder.encode_ragged(buffer, offsets, threads, tokens, out))
            except ValueError:
                utf8.check_rows(buffer, offsets)  # names the offset
                raise
        return self._encode_rows(memoryview(buffer).cast("B"), offsets[:-1], offsets[1:], tokens)

    def _encode_rows(
        self,
        view: memoryview,
        starts: NDArray[np.uint64],
        stops: NDArray[np.uint64],
        tokens: Recognised,
    ) -> Ragged:
        """A row for each [starts[i], stops[i]), here."""
        return Ragged.from_rows(
            [
                self._ids_of(bytes(view[start:stop]), tokens, f"document {row}, buffer", start)
                for row, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True))
            ]
        )

    def encode_iterable(self, texts: Iterable[str], allowed_special: AllowedSpecial = "all") -> Iterator[int]:
        """Yield the token IDs of the joined texts, one by one and lazily. ["Hel", "lo"] yields the IDs of "Hello".

        texts: iterable of str. Boundaries between texts do not matter.
        allowed_special: as for `encode`.

        Memory is bounded by the longest section that cannot be cut, about one pretoken. The whole text is held in
        memory where the core cannot cut it: with a pattern or normalizer that cannot be compiled, with a normalizer
        that depends on the whole text (such as Strip), and with normalized added tokens next to a normalizer.
        """
        return chain.from_iterable(self.encode_in_parts(texts, allowed_special))

    def encode_in_parts(
        self, texts: Iterable[str], allowed_special: AllowedSpecial = "all"
    ) -> Iterator[list[int]]:
        """The ids of the texts joined, as by `encode_iterable`, some at a time."""
        blocks = self.encode_blocks(blocks_of(texts), allowed_special)
        return (_core.id_list(ids.data, 0, len(ids)) for ids in blocks)

    def encode_blocks(
        self,
        blocks: Iterable[Buffer],
        allowed_special: AllowedSpecial = "all",
        least_bytes: int = BLOCK_BYTES,
    ) -> Iterator[NDArray[np.uint32]]:
        """Yield the token IDs of the joined blocks, uint32[n] at a time.

        blocks: iterable of bytes-like, valid UTF-8, cut between characters.
        allowed_special: as for `encode`.
        least_bytes: bytes to hold before encoding (default: 64 KiB).

        Text is held until there are `least_bytes` and the core finds an offset at which any continuation allows a cut.
        If it finds none, it tries again at twice the length, so that all tries take linear time.
        """
        return self._encode_blocks(blocks, self.recognised(allowed_special), least_bytes)

    def _encode_blocks(
        self, blocks: Iterable[Buffer], tokens: Recognised, least_bytes: int
    ) -> Iterator[NDArray[np.uint32]]:
        held, start = bytearray(), INPUT
        try_at_bytes = least_bytes
        for block in blocks:
            held += block
            del block  # its buffer may be reused
            if len(held) < try_at_bytes or not self._in_core:
                continue
            if cut := self._encoder.last_cut(held, tokens):
                yield self._encoder.encode_part(held[:cut], tokens, start)
                del held[:cut]
                start = INSIDE
            try_at_bytes = max(least_bytes, 2 * len(held))
        if self._in_core:
            yield self._encoder.encode_part(held, tokens, start)
        else:
            yield self._ids_of(bytes(held), tokens)

    @property
    def automaton(self) -> _core.Automaton | None:
        """How the core cuts texts, once `preparation` was done."""
        return self._parts.automaton

    @property
    def preparation(self) -> Normalizer | None:
        """What is done to the text between added tokens before the core cuts it."""
        return self._parts.preparation

    def normalize(self, text: bytes) -> bytes:
        """The UTF-8 of a text between two special tokens after the normalizer."""
        normalizer = self._parts.normalizer
        return text if normalizer is None else normalizer.apply(text)

    def _encode_prepared(self, text: bytes, start: int) -> NDArray[np.uint32]:
        """The ids of UTF-8 as `preparation` leaves it, in which no special token is recognised."""
        if self._pretokens_in_core:
            return self._encoder.encode_part(text, False, start, normalize=False)
        return self._encoder.encode_pretokens(*self.pretokenizer.pretoken_spans(str(text, "utf-8")))

    def encode_pretokens(self, text: Buffer, ends: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The ids of given pretokens, end to end in `text`: number i is [ends[i - 1], ends[i]), uint64[pretokens]."""
        if self._parts.has_spaces:
            view = memoryview(text).cast("B")
            pretokens = [exchange(bytes(view[start:end])) for start, end in pairwise([0, *ends.tolist()])]
            text, ends = b"".join(pretokens), np.cumsum([*map(len, pretokens)], dtype=np.uint64)
        return self._encoder.encode_pretokens(text, ends)

    def _ids_of(
        self, text: bytes, recognised: Recognised, where: str = "text", base_bytes: int = 0
    ) -> NDArray[np.uint32]:
        """The ids, cutting the text at added tokens here and encoding what lies between.

        where, base_bytes: what errors call the source, and where in it the text begins.
        """
        tokens = self._tokens_of(recognised)
        parts: list[NDArray[np.uint32]] = []
        for start, stop, id_ in cut_at(tokens, text, normalized=False):
            if id_ is None:
                begin = SECTION if start else INPUT
                parts += self._parts_between(text[start:stop], tokens, begin, where, base_bytes + start)
            else:
                parts.append(np.array([id_], np.uint32))
        return np.concatenate(parts) if parts else np.empty(0, np.uint32)

    def _parts_between(
        self, text: bytes, tokens: _core.AddedTokens, begin: int, where: str, base_bytes: int
    ) -> Iterator[NDArray[np.uint32]]:
        normalized = self.normalize(text)
        for start, stop, id_ in cut_at(tokens, normalized, normalized=True):
            if id_ is not None:
                yield np.array([id_], np.uint32)
                continue
            section = normalized[start:stop]
            section_start = SECTION if start else begin
            if (changes := self.pretokenizer.changes) is not None:
                section = changes.apply(section, section_start)
            try:
                yield self._encode_prepared(section, section_start)
            except UncoveredText as error:
                normalizer, place = self._parts.normalizer, start + error.place
                if normalizer is not None:
                    place = normalizer.place_before(text, place)
                raise error.moved(base_bytes + place - error.place, where) from None

    def finds_by_bytes(self, allowed_special: AllowedSpecial = "all") -> bool:
        """Whether the special tokens to recognise are found by their bytes alone, whatever stands beside them."""
        allowed = self._allowed(allowed_special)
        tokens = [token for token in self._parts.tokens if token.text in allowed]
        if self.normalizer is None and all(token.normalized for token in tokens):
            tokens = [replace(token, normalized=False) for token in tokens]
        return all(token.is_plain for token in tokens)

    def recognised(self, allowed_special: AllowedSpecial) -> Recognised:
        """The special tokens to recognise as the core takes them: all (True), none (False) or some."""
        if type(allowed_special) in _SETS and not allowed_special:
            return False  # at once: it is what short texts are mostly encoded with
        if isinstance(allowed_special, str) and allowed_special == "all":
            return True
        allowed = self._allowed(allowed_special)
        if len(allowed) in (0, len(self._parts.tokens)):
            return bool(allowed)
        if (found := self._some_tokens.get(allowed)) is None:
            chosen = [token for token in self._parts.tokens if token.text in allowed]
            found = core_tokens(chosen, self._parts.core_normalizer)
            if len(self._some_tokens) >= _MOST_SETS:
                self._some_tokens.clear()
            self._some_tokens[allowed] = found
        return found

    def _tokens_of(self, recognised: Recognised) -> _core.AddedTokens:
        if isinstance(recognised, bool):
            return self._parts.core_tokens if recognised else NO_TOKENS
        return recognised

    def _allowed(self, allowed_special: AllowedSpecial) -> frozenset[str]:
        if isinstance(allowed_special, str) and allowed_special == "all":
            return frozenset(self._vocabulary.special_tokens)
        if isinstance(allowed_special, (str, bytes)) or not isinstance(allowed_special, Collection):
            raise BadArgument(
                f'allowed_special: must be "all" or a collection such as {{"<s>"}} (got {shown(allowed_special)})'
            )
        for token in allowed_special:
            if not isinstance(token, str) or token not in self._vocabulary.special_tokens:
                raise BadArgument(
                    f"allowed_special: not a special token (got {shown(token)}). Choose from special_tokens."
                )
        return frozenset(allowed_special)
