"""Texts to tokens with offsets and words.

IDs come from the core. The other columns follow the steps of tokenizers: added tokens in the text, normalizer, added
tokens in the normalized text, pre-tokenizer, model. A text that these steps do not change and that has no added tokens
is concatenated from its entries, so the offsets are the sums of their lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from bpe.added_tokens import AddedToken, core_tokens, cut_at
from bpe.compat.huggingface.alignment import AlignedText, normalized, pretokens
from bpe.compat.huggingface.encoding import WHITE_SPACE, Encoding, Span
from bpe.compat.huggingface.processors import PostProcessor, post_process
from bpe.errors import BadTokenizer, shown
from bpe.formats.byte_alphabet import to_bytes, to_characters
from bpe.normalizers import Normalizer
from bpe.pretokenization.components import Component
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import TextRules
from tokenmill.stores.system import cached_property

Array = NDArray[np.int64]


class Columns(NamedTuple):
    """One row per token. offsets: in characters of the text. words: index of the pretoken."""

    ids: list[int]
    tokens: list[str]
    offsets: list[Span]
    words: list[Any]


class Sections:
    """The added tokens of a text and the normalized sections between them.

    ignored: texts of added tokens that are ordinary text (`encode_special_tokens`). They are still found, and hide
    other added tokens that start in them, as in tokenizers.
    """

    def __init__(
        self, tokens: Collection[AddedToken], ignored: frozenset[str], normalizer: Normalizer | None
    ) -> None:
        found = [
            replace(token, lstrip=False, rstrip=False, single_word=False) if token.text in ignored else token
            for token in tokens
        ]
        self.normalizer = normalizer
        self._added = core_tokens(found, normalizer)
        self._ignored_ids = {token.id for token in tokens if token.text in ignored}
        # A match takes whitespace before it only after the last match that is not ignored.
        self._lstrip_ids = {token.id for token in found if token.lstrip} if self._ignored_ids else set()

    def has_added_token(self, text: str) -> bool:
        """Return whether an added token may occur in the text."""
        data = text.encode()
        changed = data if self.normalizer is None else self.normalizer.apply(data)
        return any(len(self._added.find(*each)[1]) for each in ((data, False), (changed, True)))

    def of(self, text: str) -> Iterator[tuple[AlignedText, int | None]]:
        """Yield the added tokens with their IDs, and the normalized sections with None."""
        for raw, raw_id in self._cut(AlignedText.original(text), in_normalized=False):
            if raw_id is not None:
                yield raw, raw_id
            else:
                yield from self._cut(normalized(raw, self.normalizer), in_normalized=True)

    def _cut(self, text: AlignedText, in_normalized: bool) -> Iterator[tuple[AlignedText, int | None]]:
        data = text.text.encode()
        byte_stop = stop = pending = 0  # pending: the character where the section starts
        for byte_start, next_stop, id_ in cut_at(self._added, data, in_normalized):
            # A match can start in the whitespace that the previous one took.
            start = stop + _count(data[byte_stop:byte_start]) - _count(data[byte_start:byte_stop])
            stop = start + _count(data[byte_start:next_stop])
            byte_stop = next_stop
            if id_ is None or id_ in self._ignored_ids:
                continue
            if id_ in self._lstrip_ids:
                start = pending + len(text.text[pending:start].rstrip(WHITE_SPACE))
            if pending < start:
                yield text.part(pending, start), None
            yield text.part(start, stop), id_
            pending = stop
        if pending < stop:
            yield text.part(pending, stop), None


def _count(data: bytes) -> int:
    return len(data) if data.isascii() else len(data.decode())


class Engine:
    """A tokenizer of the core.

    components: of the pre-tokenizer, as in tokenizer.json. vocab: returns text -> ID of the model.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        components: tuple[Component, ...],
        vocab: Callable[[], Mapping[str, int]],
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        parts = tokenizer.parts
        self.tokenizer = tokenizer
        self._components = components
        self._vocab = vocab
        self._sections = Sections(parts.tokens, ignored, parts.normalizer)
        self._has_ignored = bool(ignored)  # the core does not find tokens that are hidden in other tokens
        self._texts = _EntryTexts(tokenizer)
        self.is_direct = not (
            ignored or tokenizer.text_rules is not None or tokenizer.pretokenizer.changes_text
        )

    def batch(self, texts: Sequence[str], threads: int | None) -> Batch:
        """Encode texts."""
        if self._has_ignored:
            rows = [self.columns(text).ids for text in texts]
            ids = np.array([id_ for row in rows for id_ in row], np.uint32)
            return Batch(self, texts, ids, np.cumsum([0, *map(len, rows)]))
        encoded = self.tokenizer.encode_batch(texts, threads)
        return Batch(self, texts, np.ascontiguousarray(encoded.tokens), encoded.offsets.astype(np.int64))

    def columns(self, text: str) -> Columns:
        """Return all columns of a text."""
        made = Columns([], [], [], [])
        word = 0
        for section, id_ in self._sections.of(text):
            if id_ is not None:
                words, ids = [0], [id_]
                tokens, offsets, count = [section.text], [(section.starts[0], section.stops[-1])], 1
            else:
                cut = self._of_bytes if self.tokenizer.text_rules is None else self._of_text
                ids, offsets, words, count = cut(section)
                tokens = list(map(self._texts.__getitem__, ids))
            made.ids.extend(ids)
            made.tokens.extend(tokens)
            made.offsets.extend(offsets)
            made.words.extend(word + each for each in words)
            word += count
        return made

    # -- texts that are concatenated from their entries ------------------------------------------------------------

    def direct_columns(
        self, texts: Sequence[str], ids: NDArray[np.uint32], bounds: Array
    ) -> tuple[Columns, list[int]]:
        """Return the columns of the texts that are concatenated from their entries, end to end.

        The tokens of text i are ids[bounds[i] : bounds[i + 1]]. Also return the row where text i starts, -1 for the
        other texts.
        """
        data = [text.encode() for text in texts]
        sizes = np.array([len(each) for each in data], np.int64)
        lengths, counts = self._lengths[ids], np.diff(bounds)
        totals, added = (np.diff(np.append(0, np.cumsum(each))[bounds]) for each in (lengths, lengths == 0))
        is_direct = (totals == sizes) & (added == 0)
        normalizer = self.tokenizer.parts.normalizer
        if normalizer is not None:
            is_direct &= np.array([normalizer.apply(each) == each for each in data], bool)
        is_kept = np.repeat(is_direct, counts)
        ids, lengths = ids[is_kept], lengths[is_kept]
        data, sizes, counts = (
            [data[index] for index in np.flatnonzero(is_direct).tolist()],
            sizes[is_direct],
            counts[is_direct],
        )

        stops = np.cumsum(lengths)
        begins = stops - lengths
        text_starts = np.cumsum(sizes) - sizes
        starts_of_row = np.repeat(text_starts, counts)
        character = _character_of_byte(b"".join(data))
        first = character[starts_of_row]
        offsets = zip(
            (character[begins] - first).tolist(), (character[stops - 1] + 1 - first).tolist(), strict=True
        )
        cuts = [self._pretoken_starts(each) for each in data]
        word_starts = np.repeat(text_starts, [len(each) for each in cuts])
        word_starts += np.concatenate([text_starts[:0], *cuts]).astype(np.int64)
        words = np.searchsorted(word_starts, begins, "right") - np.searchsorted(
            word_starts, starts_of_row, "right"
        )
        id_list = ids.tolist()
        tokens = list(map(self._texts.__getitem__, id_list))
        rows = np.full(len(texts), -1)
        rows[is_direct] = np.cumsum(counts) - counts
        return Columns(id_list, tokens, list(offsets), words.tolist()), rows.tolist()

    def _pretoken_starts(self, data: bytes) -> NDArray[Any]:
        pretokenizer = self.tokenizer.pretokenizer
        automaton = pretokenizer.automaton
        if automaton is not None and not automaton.has_later_phases:
            return _core.pieces(automaton, data)[0]
        ends = pretokenizer.pretoken_spans(data.decode())[1]
        return np.append(np.uint64(0), ends[:-1]) if len(ends) else ends

    @cached_property
    def _lengths(self) -> Array:
        """The bytes of each ID, 0 for added tokens."""
        ordinary = self.tokenizer.entry_lengths
        added = [token.id for token in self.tokenizer.added_tokens]
        lengths = np.zeros(max(len(ordinary), max(added, default=-1) + 1), np.int64)
        lengths[: len(ordinary)] = ordinary
        lengths[added] = 0
        return lengths

    # -- other texts: (IDs, offsets, words, number of words) of a section -------------------------------------------

    def _of_bytes(self, text: AlignedText) -> tuple[list[int], list[Span], list[int], int]:
        raw = text.text.encode()
        data, ends = self.tokenizer.pretokenizer.pretoken_spans(text.text)
        starts, stops = np.array(text.starts, np.int64), np.array(text.stops, np.int64)
        if data == raw and not self.tokenizer.pretokenizer.changes_text:
            character = _character_of_byte(raw)
            starts, stops = starts[character], stops[character]
        else:
            pieces = pretokens(text, self._components)  # in the byte alphabet
            data = b"".join(to_bytes(piece.text) or b"" for piece in pieces)
            ends = np.cumsum([len(piece.text) for piece in pieces], dtype=np.uint64)
            starts = np.array([start for piece in pieces for start in piece.starts], np.int64)
            stops = np.array([stop for piece in pieces for stop in piece.stops], np.int64)
        ids = self.tokenizer.encode_pretokens(data, ends)
        last = np.cumsum(self.tokenizer.entry_lengths[ids], dtype=np.int64)
        begins = last - self.tokenizer.entry_lengths[ids]
        words = np.searchsorted(ends.astype(np.int64), begins, side="right")
        offsets = list(zip(starts[begins].tolist(), stops[last - 1].tolist(), strict=True))
        return ids.tolist(), offsets, words.tolist(), len(ends)

    def _of_text(self, text: AlignedText) -> tuple[list[int], list[Span], list[int], int]:
        ids: list[int] = []
        offsets: list[Span] = []
        words: list[int] = []
        pieces = pretokens(text, self._components)
        for word, piece in enumerate(pieces):
            own, sizes = self.encode_text_pretoken(piece.text)
            character = _character_of_byte(piece.text.encode()).tolist()
            at = 0
            for size in sizes:
                first, last = min(at, len(character) - 1), min(at + size, len(character)) - 1
                offsets.append((piece.starts[character[first]], piece.stops[character[last]]))
                at += size
            ids += own
            words += [word] * len(own)
        return ids, offsets, words, len(pieces)

    def encode_text_pretoken(self, piece: str) -> tuple[list[int], list[int]]:
        """Return the IDs of a pretoken of a vocabulary of text, and the bytes of the pretoken in each token.

        Dropped characters count as no bytes, so the following tokens are too far left, as in tokenizers.
        """
        rules = self.tokenizer.text_rules
        assert rules is not None
        data = (to_bytes(piece) or b"") if rules.byte_level else piece.encode()
        ids: list[int] = self.tokenizer.encode_pretokens(data, np.array([len(data)], np.uint64)).tolist()
        prefix = len(rules.continuing_subword_prefix.encode())
        sizes = [len(self._texts[id_].encode()) for id_ in ids]
        if not prefix and not rules.end_of_word_suffix and self._characters.issuperset(piece):
            return ids, sizes
        if self.tokenizer.ignore_merges and piece in self._vocab():
            return ids, [len(piece.encode())]
        symbols = iter(_symbols(piece, self._vocab(), rules))
        found = []
        for size in sizes:
            # A merge removes the prefix from its right part.
            missing, total = size + prefix, 0
            while missing > prefix:
                id_, covered = next(symbols)
                missing -= len(self._texts[id_].encode()) - prefix * bool(total)
                total += covered
            found.append(total)
        return ids, found

    @cached_property
    def _characters(self) -> frozenset[str]:
        """The entries of one character."""
        return frozenset(text for text in self._vocab() if len(text) == 1)


def _symbols(word: str, entries: Mapping[str, int], rules: TextRules) -> list[tuple[int, int]]:
    """Return (ID, bytes of the word) of the symbols before merging.

    A character without an entry becomes byte entries, the unknown token, or nothing. The unknown token comes after byte
    entries of characters that follow it, as in tokenizers.
    """
    symbols: list[tuple[int, int]] = []
    unknown: list[tuple[int, int]] = []  # at most one, which may still grow
    for index, character in enumerate(word):
        size = len(character.encode())
        text = rules.continuing_subword_prefix * (index > 0) + character
        text += rules.end_of_word_suffix * (index == len(word) - 1)
        spelled = [f"<0x{byte:02X}>" for byte in text.encode()]
        if text in entries:
            symbols += [*unknown, (entries[text], size)]
            unknown = []
        elif rules.byte_fallback and all(each in entries for each in spelled):
            symbols += [(entries[each], 1) for each in spelled]
        elif rules.unk_token is not None:
            if rules.unk_token not in entries:
                raise BadTokenizer(f"model.unk_token: not an entry (got {shown(rules.unk_token)})")
            if unknown and rules.fuse_unk:
                size += unknown.pop()[1]
            symbols += unknown
            unknown = [(entries[rules.unk_token], size)]
    return symbols + unknown


def _character_of_byte(data: bytes) -> Array:
    if data.isascii():
        return np.arange(len(data))
    return np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80) - 1


class _EntryTexts(dict[int, str]):
    """ID -> entry as tokenizer.json spells it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._encoder = tokenizer.core_encoder
        self._is_text = TextRules.of_text(tokenizer.text_rules)
        self._special = {each: text for text, each in tokenizer.special_tokens.items()}

    def __missing__(self, id_: int) -> str:
        entry = self._encoder.entry(id_)
        if entry is None:  # an added token that is the model's unknown token
            return self._special[id_]
        text = self[id_] = entry.decode() if self._is_text else to_characters(entry)
        return text


class Batch:
    """The encodings of texts. All columns except the IDs are computed when one of them is first needed.

    The IDs of text i are ids[bounds[i] : bounds[i + 1]].
    around: the IDs that the post-processor adds to a text. processor, add: for the other columns.
    """

    def __init__(self, engine: Engine, texts: Sequence[str], ids: NDArray[np.uint32], bounds: Array) -> None:
        self._engine = engine
        self._texts = texts
        self._ids = ids
        self._bounds: list[int] = bounds.tolist()
        self.around: tuple[list[int], list[int]] = [], []
        self.processor: PostProcessor | None = None
        self.add = False

    def ids(self, index: int) -> list[int]:
        """Return the IDs of an encoding."""
        ids: list[int] = _core.id_list(self._ids.data, self._bounds[index], self._bounds[index + 1])
        front, back = self.around
        return [*front, *ids, *back] if front or back else ids

    def length(self, index: int) -> int:
        """Return the number of tokens of an encoding."""
        return self._bounds[index + 1] - self._bounds[index] + sum(map(len, self.around))

    def encoding(self, index: int) -> Encoding:
        """Return an encoding with all columns."""
        return post_process(self.processor, [Encoding.of(*self.columns(index))], self.add)

    def columns(self, index: int) -> Columns:
        """Return all columns of a text, without post-processing, as new lists."""
        start = -1
        if self._direct is not None:
            columns, rows = self._direct
            start = rows[index]
        if start < 0:
            return self._engine.columns(self._texts[index])
        part = slice(start, start + self._bounds[index + 1] - self._bounds[index])
        return Columns(columns.ids[part], columns.tokens[part], columns.offsets[part], columns.words[part])

    @cached_property
    def _direct(self) -> tuple[Columns, list[int]] | None:
        if not self._engine.is_direct:
            return None
        return self._engine.direct_columns(self._texts, self._ids, np.array(self._bounds))


def encoding_of(columns: Sequence[Columns], type_id: int, are_words: bool) -> Encoding:
    """Return the encoding of a sequence. are_words: the columns belong to pre-tokenized words."""
    if not are_words:
        return Encoding.of(*columns[0], type_id)
    words: list[int | None] = [word for word, each in enumerate(columns) for _ in each.ids]
    whole = Columns([], [], [], [])
    for each in columns:
        whole.ids.extend(each.ids)
        whole.tokens.extend(each.tokens)
        whole.offsets.extend(each.offsets)
    return Encoding.of(whole.ids, whole.tokens, whole.offsets, words, type_id)
