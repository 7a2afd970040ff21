"""Texts to columns: what a tokenizer does with its parts as they are at a time.

The ids of a `CoreEngine` come from the core; what else an encoding has is computed by going through the text again, in
the steps of tokenizers: added tokens, normalizer, added tokens, pre-tokenizer, model. A `PlainEngine` has no core and
gets its ids so, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.added_tokens import AddedToken, cut_at
from bpe.compat.huggingface.aligned_text import AlignedText
from bpe.compat.huggingface.columns import WHITE_SPACE, Columns, Offsets
from bpe.compat.huggingface.ignored_tokens import NONE, hide_others, with_ignored
from bpe.compat.huggingface.inputs import check_text
from bpe.compat.huggingface.normalize import normalized
from bpe.compat.huggingface.plain_model import PlainModel
from bpe.compat.huggingface.pretokenize import pretokens
from bpe.formats.byte_alphabet import to_bytes, to_characters
from bpe.normalizers import Normalizer
from bpe.pretokenization.components import Component
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import TextRules

# (ids, tokens, offsets, how many words they are of, the word of each)
Rows = tuple[Sequence[int], Sequence[str], Sequence[Offsets], int, Sequence[int]]


class Preparation:
    """The steps before the model. components: those of the pre-tokenizer, as tokenizer.json has them.

    ignored_ids: of added tokens that are found and taken for text; others within them are not found. strips_before:
    where there are such, of those that take the whitespace before them.
    """

    def __init__(
        self,
        added: _core.AddedTokens,
        ignored_ids: frozenset[int],
        strips_before: frozenset[int],
        normalizer: Normalizer | None,
        components: tuple[Component, ...],
    ) -> None:
        self._added = added
        self._ignored_ids = ignored_ids
        self._strips_before = strips_before
        self._normalizer = normalizer
        self._components = components

    def holds_added_token(self, text: str) -> bool:
        """Whether an added token may occur in the text."""
        data = text.encode()
        changed = data if self._normalizer is None else self._normalizer.apply(data)
        return any(len(self._added.find(*each)[1]) for each in ((data, False), (changed, True)))

    def pretokens(self, text: str) -> Iterator[str]:
        """The pretokens of a text, added tokens among them."""
        for part, id_ in self._parts(text):
            if id_ is not None:
                yield part.text
            else:
                yield from (pretoken.text for pretoken in pretokens(part, self._components))

    def _parts(self, text: str) -> Iterator[tuple[AlignedText, int | None]]:
        """The added tokens of a text, each with its ID, and the normalized text between them."""
        for raw, raw_id in self._cut(AlignedText.original(text), normalized=False):
            if raw_id is not None:
                yield raw, raw_id
            else:
                yield from self._cut(normalized(raw, self._normalizer), normalized=True)

    def _cut(self, text: AlignedText, normalized: bool) -> Iterator[tuple[AlignedText, int | None]]:
        """The parts of a text, and of those that are added tokens the id."""
        data = text.text.encode()
        done = place = begun = (
            0  # in bytes, in characters; in characters, where text began that is not yet given
        )
        for start, stop, id_ in cut_at(self._added, data, normalized):
            # A token can begin within the whitespace that the one before took.
            first = place + _characters(data[done:start]) - _characters(data[start:done])
            place = first + _characters(data[start:stop])
            done = stop
            if id_ is None or id_ in self._ignored_ids:
                continue
            if id_ in self._strips_before:  # up to the last token that is one
                first = begun + len(text.text[begun:first].rstrip(WHITE_SPACE))
            if begun < first:
                yield text[begun:first], None
            yield text[first:place], id_
            begun = place
        if begun < place:
            yield text[begun:place], None


class _Engine(Preparation):
    def columns(self, text: str) -> Columns:
        """All columns of a text."""
        ids: list[int] = []
        tokens: list[str] = []
        offsets: list[Offsets] = []
        words: list[int | None] = []
        word = 0
        for part, id_ in self._parts(text):
            if id_ is not None:
                ids.append(id_)
                tokens.append(part.text)
                offsets.append((part.starts[0], part.stops[-1]))
                words.append(word)
                word += 1
                continue
            more_ids, more_tokens, more_offsets, count, more_words = self._rows(part)
            ids += more_ids
            tokens += more_tokens
            offsets += more_offsets
            words += [word + each for each in more_words]
            word += count
        return Columns(ids, tokens, offsets, words)

    def _rows(self, text: AlignedText) -> Rows:
        """The rows of a normalized text without added tokens."""
        raise NotImplementedError


def joined(rows: Iterable[list[int]]) -> tuple[memoryview, list[int]]:
    """(ids of all rows as uint32, where those of each begin and the last end)."""
    lists = list(rows)
    offsets = np.cumsum([0, *map(len, lists)]).tolist()
    return np.array([id_ for row in lists for id_ in row], np.uint32).data, offsets


def _characters(data: bytes) -> int:
    return len(data) if data.isascii() else len(data.decode())


class CoreEngine(_Engine):
    """A tokenizer of this package. ignored: added tokens that are taken for text."""

    def __init__(
        self, tokenizer: Tokenizer, components: tuple[Component, ...], ignored: frozenset[str] = frozenset()
    ) -> None:
        parts = tokenizer.parts
        # Of a vocabulary of text, the core's are not all, nor as they stand in the text.
        as_they_are = not ignored and tokenizer.text_rules is None
        found = (
            (tokenizer.core_encoder.some_tokens([token.id for token in parts.tokens]), NONE, NONE)
            if as_they_are
            else with_ignored(parts.tokens, ignored, parts.normalizer)
        )
        super().__init__(*found, parts.normalizer, components)
        self.tokenizer = tokenizer
        self._allowed = (
            tuple(token.text for token in parts.tokens if token.text not in ignored) if ignored else "all"
        )
        self._hides = hide_others(parts.tokens, ignored, parts.normalizer)
        self._texts = _EntryTexts(tokenizer)

    def ids(self, text: str) -> list[int]:
        """The ids of a text."""
        if self._hides:
            return list(self.columns(check_text(text)).ids)
        return self.tokenizer.encode(text, self._allowed)

    def batch(self, texts: Sequence[str], threads: int | None) -> tuple[memoryview, list[int]]:
        """(ids of all texts as uint32, where those of each begin and the last end)."""
        if self._hides:
            return joined(map(self.ids, texts))
        rows = self.tokenizer.encode_batch(texts, threads, self._allowed)
        return np.ascontiguousarray(rows.tokens).data, rows.offsets.tolist()

    def _rows(self, text: AlignedText) -> Rows:
        pretokenizer = self.tokenizer.pretokenizer
        starts, stops = text.ranges()
        automaton = pretokenizer.automaton
        if automaton is not None and pretokenizer.changes is None and not automaton.has_later_phases:
            data = text.text.encode()
            first, dropped = _core.pieces(automaton, data)
            ends = np.append(first[1:], np.uint64(len(data))) if len(first) else first
            character = character_of_byte(data)
            if dropped.any():
                kept = np.repeat(dropped == 0, (ends - first).astype(np.int64))
                data = np.frombuffer(data, np.uint8)[kept].tobytes()
                character = character[kept]
                ends = np.cumsum((ends - first)[dropped == 0], dtype=np.uint64)
            starts, stops = starts[character], stops[character]
        else:
            pieces = pretokens(text, self._components)
            data = b"".join(to_bytes(piece.text) or b"" for piece in pieces)
            ends = np.cumsum([len(piece) for piece in pieces], dtype=np.uint64)
            starts = np.concatenate([piece.ranges()[0] for piece in pieces] or [starts[:0]])
            stops = np.concatenate([piece.ranges()[1] for piece in pieces] or [stops[:0]])
        ids = self.tokenizer.encode_pretokens(data, ends)
        last = np.cumsum(self.tokenizer.entry_lengths[ids], dtype=np.int64)
        begin = np.append(np.int64(0), last[:-1]) if len(last) else last
        words = np.searchsorted(ends.astype(np.int64), begin, side="right")
        offsets = list(zip(starts[begin].tolist(), stops[last - 1].tolist(), strict=True))
        id_list = ids.tolist()
        return id_list, list(map(self._texts.__getitem__, id_list)), offsets, len(ends), words.tolist()


def character_of_byte(data: bytes) -> NDArray[np.int64]:
    if data.isascii():
        return np.arange(len(data))
    return np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80) - 1


class _EntryTexts(dict[int, str]):
    """id -> the entry as tokenizer.json spells it, made when it is asked for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._encoder = tokenizer.core_encoder
        self._spelled = spelling_of(tokenizer)
        # An added token that is the model's unknown token is no entry.
        self._special = {each: text for text, each in tokenizer.special_tokens.items()}

    def __missing__(self, id_: int) -> str:
        entry = self._encoder.entry(id_)
        text = self[id_] = self._special[id_] if entry is None else self._spelled(entry)
        return text


def spelling_of(tokenizer: Tokenizer) -> Callable[[bytes], str]:
    """How tokenizer.json spells an entry: as the text that it is, or in the byte alphabet."""
    return bytes.decode if TextRules.of_text(tokenizer.text_rules) else to_characters


class PlainEngine(_Engine):
    """A model in plain Python, at some 100 kB of text a second."""

    def __init__(
        self,
        model: PlainModel,
        tokens: Collection[AddedToken],
        ignored: frozenset[str],
        normalizer: Normalizer | None,
        components: tuple[Component, ...],
    ) -> None:
        super().__init__(*with_ignored(tokens, ignored, normalizer), normalizer, components)
        self._model = model

    def ids(self, text: str) -> list[int]:
        """The ids of a text."""
        return list(self.columns(check_text(text)).ids)

    def batch(self, texts: Sequence[str], threads: int | None) -> tuple[memoryview, list[int]]:
        """(ids of all texts as uint32, where those of each begin and the last end)."""
        return joined(map(self.ids, texts))

    def _rows(self, text: AlignedText) -> Rows:
        ids: list[int] = []
        tokens: list[str] = []
        offsets: list[Offsets] = []
        words: list[int] = []
        pieces = pretokens(text, self._components)
        for word, piece in enumerate(pieces):
            character = character_of_byte(piece.text.encode()).tolist()
            at = 0
            for token in self._model.tokens(piece.text):
                ids.append(token.id)
                tokens.append(token.text)
                # The bytes of a suffix, told one by one, are behind the text.
                first, last = (character[min(byte, len(character) - 1)] for byte in (at, at + token.size - 1))
                offsets.append((piece.starts[first], piece.stops[last]))
                words.append(word)
                at += token.size
        return ids, tokens, offsets, len(pieces), words


Engine = CoreEngine | PlainEngine
