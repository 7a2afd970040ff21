"""The tokenizer: text to IDs and back, exactly as tiktoken and Hugging Face tokenizers do it; from files and to files.

Text is cut at added tokens (`bpe.added_tokens`), normalized, and cut into pretokens by the pattern. Merges encode each
pretoken (`bpe.reference` is the specification). The loops run in the core. Only patterns and normalizers that cannot be
compiled run in Python (`bpe.regex_encoding`).

A `Tokenizer` is immutable: threads may share it, and it can be pickled.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise, repeat
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bpe import _core, regex_encoding
from bpe.added_tokens import AddedToken, AllowedSpecial, allowed_texts, decoded_texts
from bpe.buffers import (
    bad_ids,
    check_bytes,
    check_out,
    not_text,
    offsets_from,
    separator_bytes,
    text_bytes,
    tokens_from,
)
from bpe.decoders import Decoder
from bpe.end_tokens import PostProcessor
from bpe.errors import BadArgument, InvalidText, shown
from bpe.formats import by_path, gpt2, huggingface, sentencepiece, tiktoken
from bpe.hub import locate
from bpe.normalizers import NFC, Normalizer
from bpe.output_file import open_output_file, write_file
from bpe.parts import Parts, make_parts, runs_in_core
from bpe.pretokenizer import Pretokenizer
from bpe.ragged import Ragged
from bpe.threads import thread_count
from bpe.vocabulary import MAX_ID, SpecialTokens, TextRules, exchange_spaces, warning_of_missing_bytes
from tokenmill.inputs import utf8
from tokenmill.inputs.sizes import counted
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["END_OF_TEXT", "AddedToken", "AllowedSpecial", "Tokenizer"]

Recognised = bool | _core.AddedTokens  # tokens to recognize: all, none, or some

END_OF_TEXT: Final = "<|endoftext|>"
BLOCK_BYTES: Final = 64 << 10  # text per call of the core; makes its fixed cost negligible
_MAX_SETS: Final = 64  # sets of allowed special tokens that are cached for the core
_SETS: Final = (tuple, frozenset, set, list)


def _texts_bytes(texts: Iterable[object]) -> list[bytes]:
    return [text_bytes(text, f"texts[{index}]") for index, text in enumerate(texts)]


class Tokenizer:
    """An immutable BPE tokenizer.

    is_rank_file: whether the ID of an entry is its rank and all pairs that make an entry merge.
    ignore_merges: whether a pretoken that is an entry is emitted at once, even if merges do not produce it.
    text_rules: how to read entries that are text; None for a byte-level vocabulary.
    added_tokens: the added tokens with their flags, by ascending ID.
    max_token_id: the highest ID; -1 for an empty vocabulary.
    pretokenizer: cuts the text between special tokens into pretokens.
    decoder: decodes text entries; None for a byte-level vocabulary.
    post_processor: begin and end tokens that `encode` adds with add_special_tokens=True.
    truncation, padding: fields of tokenizer.json, kept for `save` and never applied.
    parts: the components of the tokenizer.
    core_encoder: the tokenizer in the core.
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Iterable[tuple[bytes, bytes]] | None,
        special_tokens: SpecialTokens | Iterable[AddedToken] = None,
        pattern: str | Pretokenizer = "gpt2",
        *,
        ignore_merges: bool | None = None,
        normalizer: Normalizer | Literal["NFC"] | None = None,
        post_processor: PostProcessor | None = None,
        text_rules: TextRules | None = None,
        decoder: Decoder | None = None,
    ) -> None:
        """Build a tokenizer from entries and merges. Raise BadTokenizer for the first fault in them.

        vocab: ID -> bytes, with or without the special tokens.
        merges: lowest rank first. None for a rank file: two adjacent entries may merge if their joined bytes are an
            entry, and the ID of that entry is the rank.
        special_tokens: texts get the ID of the entry with their bytes, or the next free IDs. {text: ID} and AddedTokens
            have IDs.
        pattern: gpt2, cl100k, o200k, llama3, qwen2, or an expression for the `regex` package. Text between its matches
            raises UncoveredText.
        ignore_merges: emit a pretoken that is an entry at once (default: for rank files only).
        normalizer: applied to the text between special tokens, as Hugging Face tokenizers does it: a
            `bpe.normalizers.Normalizer`, or "NFC".
        post_processor: begin and end tokens that `encode` adds on request.
        text_rules: how to read entries that are text. None for a byte-level vocabulary.
        decoder: how to decode entries. None: they are bytes.
        """
        self._set(
            make_parts(
                vocab,
                merges,
                special_tokens,
                pattern,
                ignore_merges=ignore_merges,
                normalizer=normalizer,
                post_processor=post_processor,
                text_rules=text_rules,
                decoder=decoder,
            )
        )

    @classmethod
    def from_parts(cls, parts: Parts) -> Tokenizer:
        """Return the tokenizer of the parts that a reader returned."""
        tokenizer = cls.__new__(cls)
        tokenizer._set(parts)
        return tokenizer

    def _set(self, parts: Parts) -> None:
        self.parts, self._vocabulary, self._core = parts, parts.vocabulary, parts.core
        self.core_encoder = parts.core
        self.is_rank_file, self.ignore_merges = parts.core.is_rank_file, parts.vocabulary.ignore_merges
        self.text_rules, self.decoder = parts.vocabulary.text_rules, parts.decoder
        self.added_tokens, self.max_token_id = parts.tokens, parts.vocabulary.max_id
        self.pretokenizer, self.post_processor = parts.pretokenizer, parts.post_processor
        self.truncation, self.padding = parts.truncation, parts.padding
        self._in_core = runs_in_core(parts.pretokenizer, parts.normalizer)
        ids = parts.vocabulary.special_tokens
        self._some_tokens = lru_cache(_MAX_SETS)(
            lambda allowed: parts.core.some_tokens([ids[text] for text in allowed])
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer.from_parts, (self.parts,)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same tokenizer.json. A rank file equals the list of its merges."""
        if self is other:
            return True
        return isinstance(other, Tokenizer) and self.canonical_json == other.canonical_json

    def __hash__(self) -> int:
        return hash((self.vocab_size, self.pattern))

    def __len__(self) -> int:
        return self.vocab_size

    def __repr__(self) -> str:
        rule = "rank file" if self.is_rank_file else counted(self._vocabulary.merge_count, "merge")
        return (
            f"<Tokenizer {self.vocab_size:,} entries, {rule}, "
            f"{counted(len(self._vocabulary.special_tokens), 'special token')}, pattern {shown(self.pattern)}>"
        )

    # -- entries and options -------------------------------------------------------------------------------------

    @property
    def vocab(self) -> Mapping[int, bytes]:
        """ID -> bytes of every entry, special tokens included, by ascending ID; read-only."""
        return MappingProxyType(self._vocabulary.all_entries)

    @property
    def ordinary_entries(self) -> dict[int, bytes]:
        """ID -> bytes of the entries that encode the text between special tokens; a copy."""
        return dict(self._vocabulary.entries)

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The pairs that merge, lowest rank first. For a rank file every split of every entry, about 1 µs per entry."""
        return self._vocabulary.listed_merges

    @property
    def special_tokens(self) -> dict[str, int]:
        """Text -> ID of the added tokens, including those that are not special to Hugging Face."""
        return dict(self._vocabulary.special_tokens)

    @property
    def non_special_added_tokens(self) -> frozenset[str]:
        """Added tokens that Hugging Face keeps when it decodes without special tokens."""
        return frozenset(token.text for token in self.added_tokens if not token.special)

    @property
    def vocab_size(self) -> int:
        """The number of entries, special tokens included. With gaps in the IDs it is below max_token_id + 1."""
        return self._vocabulary.entry_count

    @property
    def pattern(self) -> str:
        """The name of the pattern, or its expression. " then " joins several stages."""
        return self.parts.pretokenizer.description

    @property
    def normalizer(self) -> Normalizer | Literal["NFC"] | None:
        """The normalizer of the text between special tokens: "NFC" if it is NFC alone, else a `Normalizer`."""
        normalizer = self.parts.normalizer
        return "NFC" if normalizer is not None and normalizer.components == (NFC,) else normalizer

    def token_to_id(self, token: bytes | str) -> int | None:
        """Return the ID of a special token (str) or of an ordinary entry (bytes), or None."""
        if isinstance(token, str):
            return self._vocabulary.special_tokens.get(token)
        if not isinstance(token, bytes):
            raise BadArgument(
                f"token: must be the text of a special token or the bytes of an entry (got {shown(token)})"
            )
        if not token:
            return next((id_ for id_, text in self._vocabulary.decoded_only.items() if not text), None)
        return self._core.find(token)

    def id_to_token(self, id_: int) -> bytes | None:
        """Return the bytes of an entry, or None."""
        if not hasattr(id_, "__index__"):
            raise BadArgument(f"id: must be an integer (got {shown(id_)})")
        if id_ in self._special_by_id:
            return self._special_by_id[id_]
        return self._core.entry(id_) if 0 <= id_ <= MAX_ID else None

    @cached_property
    def _special_by_id(self) -> dict[int, bytes]:
        special = {id_: text.encode() for text, id_ in self._vocabulary.special_tokens.items()}
        return special | {id_: text.encode() for id_, text in self._vocabulary.decoded_only.items()}

    @cached_property
    def entry_lengths(self) -> NDArray[np.uint32]:
        """uint32[highest ID + 1]: bytes of each ordinary entry, 0 for IDs without one."""
        return self._core.entry_lengths()

    # -- encoding ------------------------------------------------------------------------------------------------

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
        pattern does not match all of the text.
        """
        try:
            tokens = True if allowed_special == "all" else self.recognised(allowed_special)
            if self._in_core:
                ids = self._core.encode(text, tokens)
            else:
                ids = self._encode_in_python(text_bytes(text, "text"), tokens).tolist()
        except (TypeError, UnicodeError):
            raise not_text(text, "text") from None
        if add_special_tokens and self.post_processor is not None:
            return self.post_processor.around(ids)
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
        tokens = self.recognised(allowed_special)
        threads = thread_count(threads)
        try:
            if self._in_core:
                rows = Ragged(*self._core.encode_batch(texts, threads, tokens))
            else:
                rows = self._rows_in_python(_texts_bytes(texts), tokens, "texts[{}]")
        except (TypeError, UnicodeError):
            _texts_bytes(texts)  # names the text
            raise
        if add_special_tokens and self.post_processor is not None:
            return self.post_processor.around_rows(rows)
        return rows

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
        try:
            if self._in_core:
                return Ragged(
                    *self._core.encode_documents(buffer, separator, threads, tokens, not checked, out)
                )
        except ValueError:
            utf8.check(buffer)  # names the offset
            raise
        if not checked:
            utf8.check(buffer)
        texts = bytes(buffer).split(separator)
        starts = accumulate((len(text) + len(separator) for text in texts), initial=0)
        return self._rows_in_python(texts, tokens, "document {}, buffer", starts)

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
        """Return the token IDs of documents stored end to end in a UTF-8 buffer, one row per document.

        buffer: bytes-like.
        offsets: uint64[documents + 1]. Document i is [offsets[i], offsets[i + 1]): b"abc" with [0, 2, 2, 3] holds "ab",
            "" and "c".
        threads: number of threads, at least 1 (default: 1; None for all cores).
        allowed_special, out: as for `encode_documents`.
        checked: True skips the check that each document is valid UTF-8 (default: False).

        Raise ValueError for offsets that descend or leave the buffer, InvalidText for a document that is not valid
        UTF-8. With `checked`, InvalidText for a document that begins or ends inside a character.
        """
        check_bytes(buffer)
        check_out(out)
        offsets = offsets_from(offsets)
        tokens = self.recognised(allowed_special)
        threads = thread_count(threads)
        if not checked:
            utf8.check_rows(buffer, offsets)
        try:
            if self._in_core:
                return Ragged(*self._core.encode_ragged(buffer, offsets, threads, tokens, out))
        except ValueError:
            utf8.check_rows(buffer, offsets)  # names the offset
            raise
        starts, view = offsets.tolist(), memoryview(buffer).cast("B")
        texts = (bytes(view[start:stop]) for start, stop in pairwise(starts))
        return self._rows_in_python(texts, tokens, "document {}, buffer", starts)

    def _rows_in_python(
        self, texts: Iterable[bytes], tokens: Recognised, where: str, starts: Iterable[int] = repeat(0)
    ) -> Ragged:
        """Return a row per text. where: names text {} in errors. starts: offsets of the texts in their source."""
        numbered = enumerate(zip(texts, starts, strict=False))
        return Ragged.from_rows(
            [
                self._encode_in_python(text, tokens, where.format(row), start)
                for row, (text, start) in numbered
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
        """Yield the token IDs of the joined texts, as `encode_iterable` does, in lists."""
        blocks = (text_bytes(text, f"text {number}") for number, text in enumerate(texts))
        return (_core.id_list(ids.data, 0, len(ids)) for ids in self.encode_blocks(blocks, allowed_special))

    def encode_blocks(
        self,
        blocks: Iterable[Buffer],
        allowed_special: AllowedSpecial = "all",
        min_bytes: int = BLOCK_BYTES,
    ) -> Iterator[NDArray[np.uint32]]:
        """Yield the token IDs of the joined blocks, uint32[n] at a time.

        blocks: iterable of bytes-like, valid UTF-8, cut between characters.
        allowed_special: as for `encode`.
        min_bytes: bytes to hold before text is encoded, at least 1 (default: 64 KiB).

        Memory is bounded as for `encode_iterable`. For a byte-level tokenizer without a normalizer and
        with a pattern that needs one pass, it is constant: even a pretoken of any length is encoded in windows.
        Raise InvalidText for such a pretoken if its merges span too much text for that.
        """
        return self._encode_blocks(blocks, self.recognised(allowed_special), min_bytes)

    def _encode_blocks(
        self, blocks: Iterable[Buffer], tokens: Recognised, min_bytes: int
    ) -> Iterator[NDArray[np.uint32]]:
        if not self._in_core:
            held = bytearray()
            for each in blocks:
                held += each  # at once, because its buffer may be reused
            yield self._encode_in_python(bytes(held), tokens)
            return
        session = _core.Session(self._core, tokens, min_bytes)
        for block in chain(blocks, [None]):
            try:
                ids = session.finish() if block is None else session.feed(block)
            except ValueError as error:
                raise InvalidText(f"text: {error}") from None
            del block  # its buffer may be reused
            if ids is not None:
                yield ids

    def encode_pretokens(self, text: Buffer, ends: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the token IDs of given pretokens, uint32[n].

        text: bytes-like, the pretokens end to end.
        ends: uint64[pretokens]. Pretoken i is [ends[i - 1], ends[i]).
        """
        if self._core.has_spaces:
            view = memoryview(text).cast("B")
            pretokens = [
                exchange_spaces(bytes(view[start:end])) for start, end in pairwise([0, *ends.tolist()])
            ]
            text, ends = b"".join(pretokens), np.cumsum([*map(len, pretokens)], dtype=np.uint64)
        return self._core.encode_pretokens(text, ends)

    def _encode_in_python(
        self, text: bytes, recognised: Recognised, where: str = "text", base_bytes: int = 0
    ) -> NDArray[np.uint32]:
        if isinstance(recognised, bool):
            recognised = self._some_tokens(frozenset(self._vocabulary.special_tokens if recognised else ()))
        return regex_encoding.encode(self.parts, text, recognised, where, base_bytes)

    def recognised(self, allowed_special: AllowedSpecial) -> Recognised:
        """Return the special tokens to recognize in the form of the core: all (True), none (False) or some."""
        if type(allowed_special) in _SETS and not allowed_special:
            return False  # fast path: most short texts use this value
        if isinstance(allowed_special, str) and allowed_special == "all":
            return True
        allowed = allowed_texts(allowed_special, self._vocabulary.special_tokens)
        if len(allowed) in (0, len(self.added_tokens)):
            return bool(allowed)
        return self._some_tokens(allowed)

    # -- decoding ------------------------------------------------------------------------------------------------

    def decode_bytes(self, ids: Iterable[int] | NDArray[Any]) -> bytes:
        """Return the bytes of the IDs, special tokens included. Raise BadArgument for the first ID without an entry.

        With a `decoder`, return the UTF-8 of the decoded text, where an entry of a single byte stays that byte.
        """
        if self._decodes_in_python:
            return self._decode_in_python(ids).encode()
        try:
            return self._core.decode(ids if isinstance(ids, (list, np.ndarray)) else list(ids))
        except (ValueError, TypeError, OverflowError) as error:
            raise bad_ids(ids, error) from None

    def decode(self, ids: Iterable[int] | NDArray[Any], errors: str = "replace") -> str:
        """Return the text of the IDs. Bytes that are not valid UTF-8, such as part of a character, become U+FFFD.

        ids: list or one-dimensional array of integers.
        errors: as for bytes.decode (default: "replace"). "strict" raises UnicodeDecodeError.
        """
        if self._decodes_in_python:
            return self._decode_in_python(ids)
        try:
            return self._core.decode_text(ids if isinstance(ids, (list, np.ndarray)) else list(ids), errors)
        except (ValueError, TypeError, OverflowError) as error:
            raise bad_ids(ids, error, errors) from None

    def decode_batch(
        self, rows: Ragged | Iterable[Iterable[int] | NDArray[Any]], errors: str = "replace"
    ) -> list[str]:
        """Return the text of each row, as `decode` returns it.

        rows: result of `encode_batch`, or lists or arrays of IDs.
        """
        if not isinstance(rows, Iterable):
            raise BadArgument(
                f"rows: must be rows of IDs (got {shown(rows)}). Call decode for the IDs of one text."
            )
        if not isinstance(rows, Ragged) or self._decodes_in_python:
            return [self.decode(row, errors) for row in rows]
        tokens, offsets = tokens_from(rows.tokens), offsets_from(rows.offsets)
        try:
            return self._core.decode_rows(tokens, offsets, errors)
        except (ValueError, TypeError) as error:
            raise bad_ids(tokens, error, errors) from None

    @property
    def _decodes_in_python(self) -> bool:
        """Whether the core cannot apply the decoder. Only text entries have decoders."""
        return self.decoder is not None and not (
            TextRules.of_text(self.text_rules) and self.decoder.core_rule
        )

    def _decode_in_python(self, ids: Iterable[int] | NDArray[Any]) -> str:
        assert self.decoder is not None
        is_text = TextRules.of_text(self.text_rules)
        return self.decoder.decode(ids, self._decoded_texts, self.id_to_token, is_text)

    @cached_property
    def _decoded_texts(self) -> dict[int, str]:
        parts = self.parts
        return decoded_texts(parts.tokens, parts.normalizer, parts.vocabulary.decoded_only)

    # -- files ---------------------------------------------------------------------------------------------------

    @cached_property
    def canonical_json(self) -> bytes:
        """Return the tokenizer.json that `save` writes. It is equal for equal tokenizers."""
        return huggingface.to_json(self)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical tokenizer.json, the bytes that `save` writes, in hexadecimal."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for piece in huggingface.json_pieces(self):
            digest.update(piece)
        return digest.hexdigest()

    @staticmethod
    def load(
        path: str | Path,
        pattern: str | Pretokenizer | None = None,
        special_tokens: SpecialTokens = None,
        *,
        revision: str | None = None,
    ) -> Tokenizer:
        """Load a tokenizer. Cost: about 1 µs per entry.

        path: tokenizer.json, tekken.json, vocab.json with merges.txt, *.tiktoken, a SentencePiece model, or a folder
            with one of them. "org/model" or "org/model@revision" is a repository of the Hugging Face Hub, unless such a
            path exists; see `bpe.hub` for downloads and variables.
        pattern: needed for *.tiktoken. For vocab.json it replaces the class that tokenizer_config.json names (see
            `bpe.formats.folder`; default: gpt2). Other files are complete and accept neither this nor special_tokens.
        special_tokens: with a pattern, or for vocab.json without configuration.
        revision: branch, tag or commit on the Hub.

        A UserWarning lists the bytes that a byte-level vocabulary lacks. Raise BadTokenizer or UnsupportedTokenizer,
        which name the file and the field, and EnvironmentFailure if the server is unreachable.
        """
        parts = by_path.load(locate(path, revision).path, pattern, special_tokens)
        if warning := warning_of_missing_bytes(parts.vocabulary):
            warnings.warn(f"{path}: {warning}", stacklevel=2)
        return Tokenizer.from_parts(parts)

    def save(self, path: str | Path, legacy_merges: bool = False) -> None:
        """Write tokenizer.json. The file appears complete or not at all.

        Hugging Face tokenizers reads the file unless it holds a component of this package: the normalizers
        `SentencePiecePrefix` and `SentencePieceCharsmap`, which only come from SentencePiece models with user-defined
        symbols or a charsmap.
        legacy_merges: True writes merges as "a b" texts instead of pairs, for readers from before 2024.
        """
        with open_output_file(path) as file:
            for piece in huggingface.json_pieces(self, legacy_merges):
                file.write(piece)

    def export_tiktoken(self, path: str | Path) -> None:
        """Write a rank file: one line `base64(bytes) rank` per entry, without special tokens and pattern.

        Raise BadTokenizer if ranks cannot express the merges (see bpe.formats.tiktoken).
        """
        write_file(path, tiktoken.to_ranks(self))

    def export_gpt2(self, folder: str | Path) -> None:
        """Write GPT-2's vocab.json and merges.txt, which hold no pattern.

        Raise BadTokenizer if they cannot express this tokenizer (see bpe.formats.gpt2).
        """
        gpt2.export(self, Path(folder))

    def export_sentencepiece(self, path: str | Path) -> None:
        """Write a SentencePiece model of type BPE. Special tokens become control pieces, never found in text.

        Raise UnsupportedTokenizer if such a model cannot express this tokenizer (see bpe.formats.sentencepiece).
        """
        write_file(path, sentencepiece.to_model(self))
