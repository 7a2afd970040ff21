"""`Encoding`, as in tiktoken, for a tokenizer of this package."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from bpe.compat.tiktoken.registry import ENCODINGS, get_encoding
from bpe.errors import BadArgument, InvalidText, shown
from bpe.patterns import PATTERNS
from bpe.threads import available_threads
from bpe.tokenizer import Tokenizer
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    from numpy.typing import NDArray

All = Literal["all"]
_NONE: Final[frozenset[str]] = frozenset()
_MAX_IDS: Final = 1 << 32


class Encoding:
    """A rank file, a pattern and special tokens. Immutable; threads may share it."""

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        """Build an encoding. Raise BadTokenizer, a ValueError, if one of the 256 bytes has no rank or the pattern is
        invalid.

        explicit_n_vocab: the expected number of IDs, without gaps; raise ValueError for another number.
        """
        vocab = {rank: entry for entry, rank in mergeable_ranks.items()}
        tokenizer = Tokenizer(vocab, None, special_tokens, pat_str)
        if explicit_n_vocab:
            count, max_id = len(mergeable_ranks) + len(special_tokens), tokenizer.max_token_id
            if (count, max_id) != (explicit_n_vocab, explicit_n_vocab - 1):
                raise BadArgument(
                    f"explicit_n_vocab: must match the {count} tokens up to ID {max_id} (got {explicit_n_vocab})"
                )
        self._set(name, tokenizer)

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, name: str = "tokenizer") -> Encoding:
        """Return the encoding of any byte-level tokenizer of this package. Listed merges are kept."""
        encoding = cls.__new__(cls)
        encoding._set(name, tokenizer)
        return encoding

    def _set(self, name: str, tokenizer: Tokenizer) -> None:
        self.name = name
        self.max_token_value = tokenizer.max_token_id
        self._tokenizer = tokenizer
        self._special_tokens = tokenizer.special_tokens

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def __getstate__(self) -> object:
        # A registered encoding is pickled by name.
        return self.name if self is ENCODINGS.get(self.name) else (self.name, self._tokenizer)

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, str):
            self.__dict__ = get_encoding(state).__dict__
        else:
            self._set(*state)

    # -- encoding ------------------------------------------------------------------------------------------------

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the IDs of the text. Special tokens in it are ordinary text."""
        return self._encode(text, _NONE)

    def encode(
        self,
        text: str,
        *,
        allowed_special: All | AbstractSet[str] = _NONE,
        disallowed_special: All | Collection[str] = "all",
    ) -> list[int]:
        """Return the IDs of the text. Surrogate pairs become their character, lone surrogates U+FFFD.

        allowed_special: special tokens to recognize.
        disallowed_special: raise ValueError if the text contains one of them ("all": those not allowed; () for no
            check).
        """
        return self._encode(text, self._allowed([text], allowed_special, disallowed_special))

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: All | AbstractSet[str] = _NONE,
        disallowed_special: All | Collection[str] = "all",
    ) -> NDArray[np.uint32]:
        """Return the IDs that `encode` returns as uint32[n]."""
        allowed = self._allowed([text], allowed_special, disallowed_special)
        return self._tokenizer.encode_batch([_without_surrogates(text)], 1, allowed)[0]

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int = 8) -> list[list[int]]:
        """Return the IDs of each text. Special tokens in them are ordinary text."""
        return self._encode_batch(text, num_threads, _NONE)

    def encode_batch(
        self,
        text: list[str],
        *,
        num_threads: int = 8,
        allowed_special: All | AbstractSet[str] = _NONE,
        disallowed_special: All | Collection[str] = "all",
    ) -> list[list[int]]:
        """Return the IDs of each text, as `encode` returns them."""
        texts = list(text)
        return self._encode_batch(
            texts, num_threads, self._allowed(texts, allowed_special, disallowed_special)
        )

    def encode_with_unstable(self, text: str, **_: Any) -> tuple[list[int], list[list[int]]]:
        """Raise NotImplementedError: completions are not supported."""
        raise NotImplementedError("encode_with_unstable: not supported. Use tiktoken.")

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Return the ID of an entry or special token. Raise KeyError if there is none."""
        entry = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        if not isinstance(entry, bytes):
            raise TypeError(f"token: must be str or bytes (got {shown(entry)})")
        id_ = self._tokenizer.token_to_id(entry)
        if id_ is None:
            return {text.encode(): id_ for text, id_ in self._special_tokens.items()}[entry]
        return id_

    def _encode(self, text: str, allowed: All | AbstractSet[str]) -> list[int]:
        try:
            return self._tokenizer.encode(text, allowed)
        except InvalidText:
            return self._tokenizer.encode(_without_surrogates(text), allowed)

    def _encode_batch(
        self, texts: Sequence[str], num_threads: int, allowed: All | AbstractSet[str]
    ) -> list[list[int]]:
        threads = max(1, min(num_threads, available_threads()))
        try:
            return self._tokenizer.encode_batch(texts, threads, allowed).tolist()
        except InvalidText:
            return self._encode_batch(list(map(_without_surrogates, texts)), threads, allowed)

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        """Return the IDs of a pretoken."""
        piece = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        ends = np.array([len(piece)] if piece else [], np.uint64)
        ids: list[int] = self._tokenizer.encode_pretokens(piece, ends).tolist()
        return ids

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        """Return the IDs of the text, encoding one pretoken after the other."""
        pieces = self._tokenizer.pretokenizer.pretokens(text)
        return [id_ for piece in pieces for id_ in self._encode_single_piece(piece)]

    def _encode_bytes(self, text: bytes) -> list[int]:
        """Return the IDs of bytes. The last pretoken before invalid UTF-8 is encoded together with all that follows,
        and so is the whitespace around it."""
        try:
            return self.encode_ordinary(text.decode())
        except UnicodeDecodeError as error:
            valid, rest = text[: error.start].decode(), text[error.start :]
        ids = self.encode_ordinary(valid)
        count = 0
        if ids:
            count = len(self._encode_single_piece(self._tokenizer.pretokenizer.pretokens(valid)[-1]))
            if self._is_space(ids[-count]):
                while count < len(ids) and self._is_space(ids[-count - 1]):
                    count += 1
        kept = ids[: len(ids) - count]
        return kept + self._encode_single_piece(self.decode_bytes(ids[len(kept) :]) + rest)

    def _is_space(self, id_: int) -> bool:
        entry = self._tokenizer.core_encoder.entry(id_)
        return entry is not None and not entry.strip(b" \n\t")

    # -- decoding ------------------------------------------------------------------------------------------------

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Return the bytes of the IDs. Raise KeyError for an unknown ID, OverflowError for an ID out of range."""
        try:
            return self._tokenizer.decode_bytes(tokens)
        except (BadArgument, TypeError) as error:
            raise _unknown_ids(tokens, error) from None

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Return the text of the IDs. errors: as for bytes.decode."""
        try:
            return self._tokenizer.decode(tokens, errors)
        except (BadArgument, TypeError) as error:
            raise _unknown_ids(tokens, error) from None

    def decode_single_token_bytes(self, token: Any) -> bytes:
        """Return the bytes of an entry or special token. Raises as `decode_bytes` does."""
        entry = self._tokenizer.id_to_token(token) if isinstance(token, int) else None
        if entry is None:
            raise _unknown_ids((token,), KeyError(str(token)))
        return entry

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """Return the bytes of each ID."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """Return the text and, for each ID, the index of the character in which its bytes start.

        Raise UnicodeDecodeError if the bytes are not valid UTF-8.
        """
        data = self.decode_bytes(tokens)
        lengths = self._lengths[np.asarray(tokens, np.int64)]
        is_start = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
        characters = np.maximum(np.cumsum(is_start, dtype=np.int64) - 1, 0)
        return data.decode(), characters[np.cumsum(lengths) - lengths].tolist()

    def decode_batch(
        self, batch: Sequence[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """Return the text of each list of IDs. num_threads is ignored."""
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(self, batch: Sequence[Sequence[int]], *, num_threads: int = 8) -> list[bytes]:
        """Return the bytes of each list of IDs. num_threads is ignored."""
        return [self.decode_bytes(tokens) for tokens in batch]

    # -- vocabulary ----------------------------------------------------------------------------------------------

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of all ordinary entries, sorted."""
        return sorted(self._mergeable_ranks)

    @property
    def eot_token(self) -> int:
        """The ID of <|endoftext|>. Raises KeyError if there is none."""
        return self._special_tokens["<|endoftext|>"]

    @cached_property
    def special_tokens_set(self) -> set[str]:
        """The texts of the special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Return whether the ID belongs to a special token."""
        return token in self._special_tokens.values()

    @property
    def n_vocab(self) -> int:
        """The highest ID plus 1."""
        return self.max_token_value + 1

    @cached_property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        return {entry: id_ for id_, entry in self._tokenizer.ordinary_entries.items()}

    @property
    def _pat_str(self) -> str:
        return PATTERNS.get(self._tokenizer.pattern, self._tokenizer.pattern)

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        """The bytes of each ID."""
        lengths = np.zeros(self.n_vocab, np.int64)
        ordinary = self._tokenizer.entry_lengths[: self.n_vocab]
        lengths[: len(ordinary)] = ordinary
        for text, id_ in self._special_tokens.items():
            lengths[id_] = len(text.encode())
        return lengths

    # -- special tokens in the text ------------------------------------------------------------------------------

    def _allowed(
        self, texts: Iterable[str], allowed: Any, disallowed: All | Collection[str]
    ) -> All | AbstractSet[str]:
        """Return the special tokens to recognize. Raise ValueError if a text contains a disallowed one."""
        if allowed is None:
            raise TypeError('allowed_special: must be "all" or a set (got None)')
        if allowed != "all":
            allowed = self.special_tokens_set & allowed if allowed else _NONE
        if isinstance(disallowed, str) and disallowed == "all":
            forbidden = _NONE if allowed == "all" else self._special_tokens.keys() - allowed
        else:
            forbidden = frozenset(disallowed)
        if forbidden:
            prefix, expression = _finder(frozenset(forbidden))
            for text in texts:
                if prefix in text and (match := expression.search(text)):
                    raise_disallowed_special_token(match.group())
        recognized: All | AbstractSet[str] = allowed
        return recognized


@lru_cache(maxsize=128)
def _finder(tokens: frozenset[str]) -> tuple[str, re.Pattern[str]]:
    """Return the common prefix of the tokens, which most texts lack, and an expression for any of them."""
    low, high = min(tokens), max(tokens)
    common = next((index for index, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:common], re.compile("|".join(map(re.escape, tokens)))


def raise_disallowed_special_token(token: str) -> None:
    """Raise ValueError for a disallowed special token in a text."""
    raise ValueError(
        f"text: contains the disallowed special token {token!r}. Add it to allowed_special to "
        "encode it as its ID, or pass disallowed_special=() to encode it as text."
    )


def _unknown_ids(tokens: Any, error: Exception) -> Exception:
    """Return the error for IDs that cannot be decoded: TypeError, OverflowError or KeyError, as in tiktoken."""
    if isinstance(tokens, str):
        return TypeError(f"ids: must be a list of IDs (got {shown(tokens)})")
    for token in tokens:
        if not 0 <= operator.index(token) < _MAX_IDS:
            return OverflowError(f"ids: must be at least 0 and below {_MAX_IDS} (got {token})")
    return KeyError(str(error))


def _without_surrogates(text: Any) -> str:
    """Return the text with surrogate pairs as characters and lone surrogates as U+FFFD."""
    if not isinstance(text, str):
        raise TypeError(f"text: must be a str (got {shown(text)})")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
