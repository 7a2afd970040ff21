"""The tokenizer: text to ids and back, exactly as tiktoken and Hugging Face tokenizers do it.

Text is cut at special tokens (leftmost first, of those at one place the longest), normalized if the tokenizer says
so, pretokenized by the pattern, and each pretoken is encoded by the merges (`bpe.reference` is the specification).
A `Tokenizer` never changes; it may be shared by threads and pickled to worker processes. The loops run in the core,
except for patterns outside it and for text that NFC changes. What it consists of, by name, is in `bpe.description`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bpe import _core, utf8
from bpe.buffers import bad_ids, check_bytes, check_out, offsets_from, separator_bytes
from bpe.compiled import compile_parts, load_cached, read_compiled
from bpe.description import Description, Parts, make_parts
from bpe.errors import BadArgument, InvalidText, check_whole, shown
from bpe.formats import by_path, gpt2, huggingface, tiktoken
from bpe.normalization import stretches_to_change, to_nfc
from bpe.output_file import write_file
from bpe.pretokenizer import Pretokenizer
from bpe.ragged import Ragged
from bpe.streaming import encode_stretches
from bpe.vocabulary import SpecialTokens

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.pretoken_counts.counts import PretokenCounts

AllowedSpecial = Literal["all"] | Collection[str]

END_OF_TEXT: Final = "<|endoftext|>"
_NO_SEPARATOR: Final = b"\xff"  # in no UTF-8
_NO_STRETCHES: Final = np.empty((0, 2), np.uint64)


class Tokenizer(Description):
    """An immutable byte-level BPE tokenizer."""

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Iterable[tuple[bytes, bytes]] | None,
        special_tokens: SpecialTokens = None,
        pattern: str | Pretokenizer = "gpt2",
        *,
        whole_pretokens: bool | None = None,
        normalizer: Literal["NFC"] | None = None,
        plain_added_tokens: Collection[str] = (),
        template: Mapping[str, Any] | None = None,
    ) -> None:
        """A tokenizer of these entries and merges; BadTokenizer names the first thing that is wrong with them.

        vocab: id -> bytes, with or without the special tokens. merges: lowest rank first; None for a rank file,
        where the id is the rank and every adjacent pair whose bytes together are an entry may merge. special_tokens:
        as a list they have the id of the entry of their bytes, or the next free ids. pattern: gpt2, cl100k, o200k,
        llama3, qwen2, or an expression for the `regex` package; text that it leaves between matches is dropped.
        whole_pretokens: a pretoken that is an entry is emitted at once (default: for rank files only).
        normalizer: "NFC" is applied to the text between special tokens, with this Python's Unicode tables.
        plain_added_tokens: those special tokens which Hugging Face keeps when it decodes without special tokens.
        template: Hugging Face's TemplateProcessing, kept for `save` and not applied: encoding adds no token of its own.
        """
        self._set_parts(
            make_parts(
                vocab,
                merges,
                special_tokens,
                pattern,
                whole_pretokens=whole_pretokens,
                normalizer=normalizer,
                plain_added_tokens=plain_added_tokens,
                template=template,
            )
        )

    @classmethod
    def from_parts(cls, parts: Parts) -> Tokenizer:
        """The tokenizer of what a reader gave."""
        tokenizer = cls.__new__(cls)
        tokenizer._set_parts(parts)
        return tokenizer

    def _set_parts(self, parts: Parts) -> None:
        super().__init__(parts)
        # Python need look at the text only to normalize it or to cut it by an expression.
        self._pattern_in_core = parts.pretokenizer.core_pattern is not None
        self._all_in_core = self._pattern_in_core and parts.normalizer is None

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer.from_compiled, (self.compiled(),)

    def __eq__(self, other: object) -> bool:
        """Whether both are the same tokenizer.json; a rank file equals the list of its merges."""
        if self is other:
            return True
        return isinstance(other, Tokenizer) and self.canonical_json == other.canonical_json

    def __hash__(self) -> int:
        return hash((self.vocab_size, self.pattern))

    @cached_property
    def canonical_json(self) -> bytes:
        """The tokenizer.json that `save` writes; equal tokenizers have equal ones."""
        return huggingface.to_json(self)

    def fingerprint(self) -> str:
        """The SHA-256 of the canonical tokenizer.json, the bytes that `save` writes, in hexadecimal."""
        return hashlib.sha256(self.canonical_json).hexdigest()

    # -- files ---------------------------------------------------------------------------------------------------

    @staticmethod
    def load(
        path: str | Path,
        pattern: str | Pretokenizer | None = None,
        special_tokens: SpecialTokens = None,
        *,
        cache: bool = False,
        warm_with: Buffer | PretokenCounts | None = None,
    ) -> Tokenizer:
        """The tokenizer in a file: tokenizer.json; vocab.json, merges.txt or the folder of both; *.tiktoken.

        A tokenizer.json says all itself. For the two others, pattern (default gpt2 for vocab.json, needed for
        *.tiktoken) and special_tokens are to be given. About 1 µs an entry.
        cache: keep its compiled form beside it (tokenizer.json.compiled), with which this and all later loads take a
        quarter of the time; it is made anew when the file, the arguments or this package's form have changed, and
        left out where the folder can't be written. Without cache a compiled form that is there is used if it fits.
        warm_with: UTF-8 text (some MB of the corpus), or the counts that training has, whose 21,000 commonest
        pretokens are kept there with their ids: caches of all processes that load it start with them. Needs cache.
        BadTokenizer or UnsupportedTokenizer name file and place.
        """
        if warm_with is not None and not cache:
            raise BadArgument("warm_with is kept in the compiled form beside the file; give cache=True too")
        if not (cache or Path(f"{path}.compiled").exists()):
            return Tokenizer.from_parts(by_path.load(Path(path), pattern, special_tokens))
        return Tokenizer.from_parts(load_cached(Path(path), pattern, special_tokens, cache, warm_with))

    @staticmethod
    def from_compiled(image: Buffer) -> Tokenizer:
        """The tokenizer of what `compiled` gave, 20 to 40 ms for 200,000 entries.

        BadTokenizer if it was cut short or changed, or is another version's or another kind of machine's.
        """
        return Tokenizer.from_parts(read_compiled(image))

    def compiled(self, warm_with: Buffer | PretokenCounts | None = None) -> bytes:
        """All of this tokenizer as one image that `from_compiled` reads fast: for worker processes and caches.

        warm_with: UTF-8 text, or counts, whose commonest pretokens go with it, so that caches start with them.
        About 50 bytes an entry. No file format to keep: another version of this package may refuse it. Pickling
        uses it.
        """
        return compile_parts(self._parts, warm_with=warm_with)

    def save(self, path: str | Path, legacy_merges: bool = False) -> None:
        """Write tokenizer.json, which Hugging Face tokenizers reads; the file appears complete or not at all.

        legacy_merges: merges as "a b" texts, which readers from before 2024 need, not as pairs.
        """
        write_file(
            path, huggingface.to_json(self, legacy_merges=True) if legacy_merges else self.canonical_json
        )

    def export_tiktoken(self, path: str | Path) -> None:
        """Write a rank file, a line `base64(bytes) rank` an entry; it holds no special tokens and no pattern.

        BadTokenizer if ranks can't express this tokenizer's merges (see bpe.formats.tiktoken).
        """
        write_file(path, tiktoken.to_ranks(self))

    def export_gpt2(self, folder: str | Path) -> None:
        """Write GPT-2's vocab.json and merges.txt; they hold no pattern.

        BadTokenizer if they can't express this tokenizer (see bpe.formats.gpt2).
        """
        gpt2.export(self, Path(folder))

    # -- encoding ------------------------------------------------------------------------------------------------

    def encode(self, text: str, allowed_special: AllowedSpecial = "all") -> list[int]:
        """The ids of the text; special tokens in it are recognised.

        allowed_special: () takes all of them as plain text, a collection recognises just those in it.
        No begin or end token is added. InvalidText if the text holds a lone surrogate. A short text costs about 1 µs
        and its work.
        """
        try:
            in_core = self._all_in_core or (self._pattern_in_core and _core.surely_nfc(text))
            if allowed_special == "all":
                if in_core:
                    return self._encoder.encode(text)
                allowed: Collection[str] = self._vocabulary.special_tokens
            else:
                allowed = self._allowed(allowed_special)
                if in_core:
                    if len(allowed) == len(self._vocabulary.special_tokens) and isinstance(
                        allowed, (set, frozenset)
                    ):
                        return self._encoder.encode(text)
                    if not any(token in text for token in allowed):
                        return self._encoder.encode(text, special=False)
        except (TypeError, UnicodeError):
            raise _not_text(text, "text") from None
        ids: list[int] = self._ids_of(_check_text(text, "text"), allowed).tolist()
        return ids

    def encode_batch(
        self, texts: Sequence[str], threads: int | None = None, allowed_special: AllowedSpecial = "all"
    ) -> Ragged:
        """The ids of each text, a row a text, as `encode` gives them. threads: None for all cores."""
        if isinstance(texts, str):
            raise BadArgument("encode_batch takes a list of texts, got one text")
        texts = texts if isinstance(texts, (list, tuple)) else list(texts)
        allowed = self._allowed(allowed_special)
        threads = thread_count(threads)
        every = isinstance(allowed_special, str)
        try:
            in_core = self._pattern_in_core and (every or not allowed)
            if in_core and (self.normalizer is None or all(map(_core.surely_nfc, texts))):
                return Ragged(*self._encoder.encode_batch(texts, threads, every))
        except (TypeError, UnicodeError):
            for index, text in enumerate(texts):
                _check_text(text, f"texts[{index}]")
            raise
        return Ragged.from_rows(
            [self._ids_of(_check_text(text, f"texts[{index}]"), allowed) for index, text in enumerate(texts)]
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
        every = isinstance(allowed_special, str)
        allowed = self._allowed(allowed_special)
        threads = thread_count(threads)
        in_core_too = self._pattern_in_core and (every or not allowed)

        def in_core(part: Buffer, check: bool, out: NDArray[np.uint32] | None = None) -> Ragged:
            return Ragged(*self._encoder.encode_documents(part, separator, threads, every, check, out))

        if in_core_too and not self.normalizer:
            try:
                return in_core(buffer, not checked, out)
            except ValueError:
                utf8.check(buffer)  # tells where it is not valid
                if checked or _core.validate_utf8(separator) < 0:
                    raise
                return in_core(buffer, False, out)  # a separator that cuts characters apart
        if not checked:
            utf8.check(buffer)
        changing = stretches_to_change(buffer) if self.normalizer else _NO_STRETCHES
        if in_core_too and not len(changing):
            return in_core(buffer, False, out)
        view = memoryview(buffer).cast("B")
        stops = np.append(_core.find_separators(buffer, separator), np.uint64(len(view)))
        starts = np.append(np.uint64(0), stops[:-1] + np.uint64(len(separator)))
        return self._encode_rows(
            view,
            starts,
            stops,
            changing if in_core_too else None,
            lambda first, last: in_core(view[starts[first] : stops[last - 1]], False),
            allowed,
        )

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
        every = isinstance(allowed_special, str)
        allowed = self._allowed(allowed_special)
        threads = thread_count(threads)

        def in_core(offsets: NDArray[np.uint64], out: NDArray[np.uint32] | None = None) -> Ragged:
            return Ragged(*self._encoder.encode_ragged(buffer, offsets, threads, every, out))

        in_core_too = self._pattern_in_core and (every or not allowed)
        changing = stretches_to_change(buffer) if self.normalizer else _NO_STRETCHES
        if in_core_too and not len(changing):
            return in_core(offsets, out)
        return self._encode_rows(
            memoryview(buffer).cast("B"),
            offsets[:-1],
            offsets[1:],
            changing if in_core_too else None,
            lambda first, last: in_core(offsets[first : last + 1]),
            allowed,
        )

    def _encode_rows(
        self,
        view: memoryview,
        starts: NDArray[np.uint64],
        stops: NDArray[np.uint64],
        changing: NDArray[np.uint64] | None,
        in_core: Callable[[int, int], Ragged],
        allowed: Collection[str],
    ) -> Ragged:
        """A row for each [starts[i], stops[i]): here if a stretch that normalization changes touches it, or all if
        changing is None; the others by in_core(first, last), as many neighbours as there are."""
        if changing is None:
            here = np.ones(len(starts), np.bool_)
        else:
            # A stretch may reach over a border: a mark behind it composes with the last character before it.
            first = np.searchsorted(starts, changing[:, 0], side="right") - 1
            last = np.searchsorted(starts, changing[:, 1], side="left") - 1
            here = np.zeros(len(starts), np.bool_)
            for row, last_row in zip(np.maximum(first, 0).tolist(), last.tolist(), strict=True):
                here[row : last_row + 1] = True
        parts: list[Ragged] = []
        done = 0
        for row in np.flatnonzero(here).tolist():
            if row > done:
                parts.append(in_core(done, row))
            parts.append(Ragged.from_rows([self._ids_of(bytes(view[starts[row] : stops[row]]), allowed)]))
            done = row + 1
        if done < len(starts):
            parts.append(in_core(done, len(starts)))
        return Ragged.concatenate(parts)

    def encode_iterable(self, texts: Iterable[str], allowed_special: AllowedSpecial = "all") -> Iterator[int]:
        """The ids of the texts joined, one by one and lazily; where one ends and the next begins does not matter.

        ["Hel", "lo"] gives the ids of "Hello". Memory is bounded by the longest stretch that can't be cut, a
        pretoken or so; with an expression as pattern, by the longest stretch between special tokens.
        """
        return chain.from_iterable(encode_stretches(self, texts, self._allowed(allowed_special)))

    def normalize(self, text: bytes) -> bytes:
        """The UTF-8 of a text between two special tokens after the normalizer."""
        return text if self.normalizer is None else to_nfc(text)

    def encode_normalized(self, text: Buffer) -> NDArray[np.uint32]:
        """The ids of normalized UTF-8 in which no special token is recognised."""
        if self._pattern_in_core:
            return self._encoder.encode_documents(text, _NO_SEPARATOR, 1, special=False)[0]
        return self._encoder.encode_pretokens(*self.pretokenizer.pretoken_spans(str(text, "utf-8")))

    def encode_pretokens(self, text: Buffer, ends: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The ids of given pretokens, end to end in `text`: number i is [ends[i - 1], ends[i]), uint64[pretokens]."""
        return self._encoder.encode_pretokens(text, ends)

    @cached_property
    def entry_lengths(self) -> NDArray[np.uint32]:
        """uint32[highest id + 1]: the bytes of each ordinary entry, 0 for an id that is none."""
        return self._encoder.entry_lengths()

    def _ids_of(self, text: bytes, allowed: Collection[str]) -> NDArray[np.uint32]:
        """The ids, cutting the text at the allowed special tokens here and encoding what lies between."""
        parts: list[NDArray[np.uint32]] = []
        start = 0
        for stop, token in self.find_special_tokens(text, allowed):
            if stop > start:
                parts.append(self.encode_normalized(self.normalize(text[start:stop])))
            parts.append(np.array([self._vocabulary.special_tokens[token]], np.uint32))
            start = stop + len(token.encode())
        if start < len(text):
            parts.append(self.encode_normalized(self.normalize(text[start:])))
        return np.concatenate(parts) if parts else np.empty(0, np.uint32)

    @staticmethod
    def find_special_tokens(buffer: bytes, allowed: Collection[str]) -> list[tuple[int, str]]:
        """(byte offset, special token) of each that is recognised in the buffer, in order."""
        if not allowed or not buffer:
            return []
        tokens = list(allowed)
        starts, which = _core.find_special_tokens(buffer, [token.encode() for token in tokens])
        return [(start, tokens[index]) for start, index in zip(starts.tolist(), which.tolist(), strict=True)]

    def _allowed(self, allowed_special: AllowedSpecial) -> Collection[str]:
        if isinstance(allowed_special, str) and allowed_special == "all":
            return self._vocabulary.special_tokens
        if isinstance(allowed_special, (str, bytes)) or not isinstance(allowed_special, Collection):
            raise BadArgument(f'allowed_special must be "all" or a collection, got {shown(allowed_special)}')
        for token in allowed_special:
            if token not in self._vocabulary.special_tokens:
                raise BadArgument(f"allowed_special holds {shown(token)}, which is not a special token")
        return allowed_special

    # -- decoding ------------------------------------------------------------------------------------------------

    def decode_bytes(self, ids: Iterable[int] | NDArray[Any]) -> bytes:
        """The bytes of the ids, special tokens included; BadArgument names the first id that is not an entry."""
        try:
            return self._encoder.decode(ids if isinstance(ids, (list, np.ndarray)) else list(ids))
        except (ValueError, TypeError, OverflowError) as error:
            raise bad_ids(ids, error) from None

    def decode(self, ids: Iterable[int] | NDArray[Any], errors: str = "replace") -> str:
        """The text of the ids; bytes that are no UTF-8, such as a cut character, become U+FFFD.

        errors: as for bytes.decode; "strict" raises UnicodeDecodeError.
        """
        try:
            return self._encoder.decode_text(
                ids if isinstance(ids, (list, np.ndarray)) else list(ids), errors
            )
        except UnicodeDecodeError:
            raise
        except (ValueError, TypeError, OverflowError) as error:
            raise bad_ids(ids, error) from None

    def decode_batch(
        self, rows: Ragged | Iterable[Iterable[int] | NDArray[Any]], errors: str = "replace"
    ) -> list[str]:
        """The text of each row, as `decode` gives it; rows: what `encode_batch` gave, or lists or arrays of ids."""
        if not isinstance(rows, Ragged):
            return [self.decode(row, errors) for row in rows]
        try:
            return self._encoder.decode_rows(rows.tokens, rows.offsets, errors)
        except UnicodeDecodeError:
            raise
        except (ValueError, TypeError) as error:
            raise BadArgument(str(error).splitlines()[0]) from None


def thread_count(threads: int | None) -> int:
    """The threads to use: None for the cores this process may run on. BadArgument if below 1."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    check_whole("threads", threads)
    if threads < 1:
        raise BadArgument(f"threads must be at least 1, got {threads}")
    return min(threads, 4096)  # no machine has more cores, and the core counts in 32 bits


def _check_text(text: object, where: str) -> bytes:
    """The UTF-8 of a text, or InvalidText for a lone surrogate, TypeError for what is no text."""
    if not isinstance(text, str):
        raise TypeError(f"{where} must be a str, got {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidText(
            f"{where}: character {error.start} ({shown(text[error.start])}) is a lone surrogate, which UTF-8 can't hold"
        ) from None


def _not_text(text: object, where: str) -> Exception:
    """The error for what the core did not take as a text."""
    try:
        _check_text(text, where)
    except (InvalidText, TypeError) as error:
        return error
    return BadArgument(f"{where} could not be encoded")
