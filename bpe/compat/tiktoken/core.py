"""`Encoding`: tiktoken's, over a tokenizer of this package."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from bpe.compat.tiktoken.registry import ENCODINGS, get_encoding
from bpe.compat.tiktoken.special import finder_of, raise_disallowed_special_token
from bpe.errors import BadArgument, InvalidText, shown
from bpe.patterns import PATTERNS
from bpe.threads import available_threads
from bpe.tokenizer import Tokenizer
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    from numpy.typing import NDArray

All = Literal["all"]
_NONE: Final[frozenset[str]] = frozenset()
_IDS: Final = 1 << 32


class Encoding:
    """A rank file, a pattern and special tokens. It never changes and may be shared by threads."""

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        """explicit_n_vocab: how many ids there are, without gaps, or ValueError. BadTokenizer, which is a ValueError,
        for ranks that lack one of the 256 bytes or a pattern that can't be read."""
        vocab = {rank: entry for entry, rank in mergeable_ranks.items()}
        tokenizer = Tokenizer(vocab, None, special_tokens, pat_str)
        if explicit_n_vocab:
            count, most = len(mergeable_ranks) + len(special_tokens), tokenizer.max_token_id
            if (count, most) != (explicit_n_vocab, explicit_n_vocab - 1):
                raise BadArgument(
                    f"explicit_n_vocab: must match the {count} tokens up to ID {most} (got {explicit_n_vocab})"
                )
        self._take(name, tokenizer)
        self.__dict__["_mergeable_ranks"] = mergeable_ranks  # what the cached property would gather anew

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, name: str = "tokenizer") -> Encoding:
        """The encoding of any byte-level tokenizer of this package; listed merges stay what they are."""
        encoding = cls.__new__(cls)
        encoding._take(name, tokenizer)
        return encoding

    def _take(self, name: str, tokenizer: Tokenizer) -> None:
        self.name = name
        self.max_token_value = tokenizer.max_token_id
        self._tokenizer = tokenizer
        self._special_tokens = tokenizer.special_tokens

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # -- encoding ------------------------------------------------------------------------------------------------

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of the text, special tokens in it taken for text."""
        try:
            return self._tokenizer.encode(text, ())
        except InvalidText:
            return self._tokenizer.encode(_without_surrogates(text), ())

    def encode(
        self,
        text: str,
        *,
        allowed_special: All | AbstractSet[str] = _NONE,
        disallowed_special: All | Collection[str] = "all",
    ) -> list[int]:
        """The ids of the text, recognising the special tokens in allowed_special.

        ValueError if one of disallowed_special is in the text ("all": those not allowed; () for no check). Surrogate
        pairs become their character, lone surrogates U+FFFD.
        """
        allowed = self._allowed(text, allowed_special, disallowed_special)
        try:
            return self._tokenizer.encode(text, allowed)
        except InvalidText:
            return self._tokenizer.encode(_without_surrogates(text), allowed)

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: All | AbstractSet[str] = _NONE,
        disallowed_special: All | Collection[str] = "all",
    ) -> NDArray[np.uint32]:
        """The same as uint32[n]."""
        allowed = self._allowed(text, allowed_special, disallowed_special)
        return self._tokenizer.encode_batch([_without_surrogates(text)], 1, allowed)[0]

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int = 8) -> list[list[int]]:
        """The ids of each text, special tokens taken for text."""
        return self._encode_batch(text, num_threads, _NONE)

    def encode_batch(
        self,
        text: list[str],
        *,
        num_threads: int = 8,
        allowed_special: All | AbstractSet[str] = _NONE,
        disallowed_special: All | Collection[str] = "all",
    ) -> list[list[int]]:
        """The ids of each text, as `encode` gives them."""
        texts = list(text)
        allowed = self._allowed_of(allowed_special)
        self._check(texts, allowed, disallowed_special)
        return self._encode_batch(texts, num_threads, allowed)

    def _encode_batch(
        self, texts: Sequence[str], num_threads: int, allowed: All | AbstractSet[str]
    ) -> list[list[int]]:
        threads = max(1, min(num_threads, available_threads()))
        try:
            return self._tokenizer.encode_batch(texts, threads, allowed).tolist()
        except InvalidText:
            return self._tokenizer.encode_batch(
                [_without_surrogates(text) for text in texts], threads, allowed
            ).tolist()

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: All | AbstractSet[str] = _NONE,
        disallowed_special: All | Collection[str] = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """NotImplementedError: this package does not list the ways in which text may continue."""
        raise NotImplementedError("encode_with_unstable: not supported. Use tiktoken.")

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of a special token or an entry; KeyError if there is none."""
        entry = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        if not isinstance(entry, bytes):
            raise TypeError(f"token: must be str or bytes (got {shown(entry)})")
        id_ = self._tokenizer.token_to_id(entry)
        if id_ is None:
            id_ = self._special_bytes.get(entry)
        if id_ is None:
            raise KeyError(entry)
        return id_

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        """The ids of a pretoken."""
        piece = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        ends = np.array([len(piece)] if piece else [], np.uint64)
        ids: list[int] = self._tokenizer.encode_pretokens(piece, ends).tolist()
        return ids

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        """The ids, the text cut apart first."""
        return [
            id_
            for piece in self._tokenizer.pretokenizer.pretokens(text)
            for id_ in self._encode_single_piece(piece)
        ]

    def _encode_bytes(self, text: bytes) -> list[int]:
        """The IDs of bytes. From the pretoken before the first invalid UTF-8, merges alone make them."""
        try:
            return self.encode_ordinary(text.decode())
        except UnicodeDecodeError as error:
            ids, held_back = self._stable(text[: error.start].decode())
            return ids + self._encode_single_piece(held_back + text[error.start :])

    def _stable(self, text: str) -> tuple[list[int], bytes]:
        """(IDs before the last pretoken and the whitespace around it, the bytes from there on)."""
        ids = self.encode_ordinary(text)
        if not ids:
            return ids, b""
        count = len(self._encode_single_piece(self._tokenizer.pretokenizer.pretokens(text)[-1]))
        if self._is_space(ids[-count]):
            while count < len(ids) and self._is_space(ids[-count - 1]):
                count += 1
        return ids[:-count], self.decode_bytes(ids[-count:])

    def _is_space(self, id_: int) -> bool:
        entry = self._tokenizer.core_encoder.entry(id_)
        return entry is not None and not entry.strip(b" \n\t")

    # -- decoding ------------------------------------------------------------------------------------------------

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of the ids; KeyError for what is no id, OverflowError for what can be none."""
        try:
            return self._tokenizer.decode_bytes(tokens)
        except (BadArgument, TypeError) as error:
            raise _no_ids(tokens, error) from None

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """The text of the ids; errors: as for bytes.decode."""
        try:
            return self._tokenizer.decode(tokens, errors)
        except (BadArgument, TypeError) as error:
            raise _no_ids(tokens, error) from None

    def decode_single_token_bytes(self, token: Any) -> bytes:
        """The bytes of an entry or special token; KeyError for what is no id, OverflowError for what can be none."""
        entry = self._tokenizer.id_to_token(token) if isinstance(token, int) else None
        if entry is None:
            raise _no_ids((token,), KeyError(str(token)))
        return entry

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """The bytes of each id."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """(the text, for each id the character in which its bytes begin). UnicodeDecodeError if that is no text."""
        entries = self.decode_tokens_bytes(tokens)
        starts: list[int] = []
        characters = 0
        for entry in entries:
            goes_on = 0x80 <= entry[0] < 0xC0  # in the character before
            starts.append(max(0, characters - goes_on))
            characters += sum(not 0x80 <= byte < 0xC0 for byte in entry)
        return b"".join(entries).decode(), starts

    def decode_batch(
        self, batch: Sequence[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """The text of each list of ids; num_threads changes nothing."""
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(self, batch: Sequence[Sequence[int]], *, num_threads: int = 8) -> list[bytes]:
        """The bytes of each list of ids; num_threads changes nothing."""
        return [self.decode_bytes(tokens) for tokens in batch]

    # -- what it is ----------------------------------------------------------------------------------------------

    def token_byte_values(self) -> list[bytes]:
        """The bytes of all entries but the special tokens, sorted."""
        return sorted(self._mergeable_ranks)

    @property
    def eot_token(self) -> int:
        """The id of <|endoftext|>; KeyError if there is none."""
        return self._special_tokens["<|endoftext|>"]

    @cached_property
    def special_tokens_set(self) -> set[str]:
        """The texts of the special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether the id is a special token's."""
        return token in self._special_values

    @property
    def n_vocab(self) -> int:
        """The highest id and one."""
        return self.max_token_value + 1

    @cached_property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        return {entry: id_ for id_, entry in self._tokenizer.ordinary_entries.items()}

    @property
    def _pat_str(self) -> str:
        return PATTERNS.get(self._tokenizer.pattern, self._tokenizer.pattern)

    @cached_property
    def _special_values(self) -> frozenset[int]:
        return frozenset(self._special_tokens.values())

    @cached_property
    def _special_bytes(self) -> dict[bytes, int]:
        return {text.encode(): id_ for text, id_ in self._special_tokens.items()}

    def __getstate__(self) -> object:
        if self is ENCODINGS.get(self.name):
            return self.name  # a registered one is pickled by its name
        return self.name, self._tokenizer

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, str):
            self.__dict__ = get_encoding(state).__dict__
        else:
            self._take(*state)

    # -- special tokens in the text ------------------------------------------------------------------------------

    def _allowed(self, text: str, allowed: Any, disallowed: All | Collection[str]) -> All | AbstractSet[str]:
        """What to recognise, once it is known that nothing in the text is disallowed."""
        if allowed is None:
            raise TypeError('allowed_special: must be "all" or a set (got None)')
        if allowed:
            allowed = self._allowed_of(allowed)
        if disallowed:
            self._check((text,), allowed, disallowed)
        found: All | AbstractSet[str] = allowed
        return found

    def _allowed_of(self, allowed: All | AbstractSet[str]) -> All | AbstractSet[str]:
        return "all" if isinstance(allowed, str) and allowed == "all" else self.special_tokens_set & allowed

    def _check(
        self,
        texts: Iterable[str],
        allowed: All | AbstractSet[str],
        disallowed: All | Collection[str],
    ) -> None:
        if isinstance(disallowed, str) and disallowed == "all":
            if allowed == "all" or not self._special_tokens:
                return
            forbidden = self._all_special if not allowed else frozenset(self.special_tokens_set - allowed)
        else:
            forbidden = frozenset(disallowed)
        if not forbidden:
            return
        prefix, expression = finder_of(forbidden)
        for text in texts:
            # Few texts hold what all begin with, and that is found fast.
            if prefix in text and (match := expression.search(text)):
                raise_disallowed_special_token(match.group())

    @cached_property
    def _all_special(self) -> frozenset[str]:
        return frozenset(self._special_tokens)


def _no_ids(tokens: Any, error: Exception) -> Exception:
    """The error for ids that can't be decoded: TypeError, OverflowError or KeyError, as in tiktoken."""
    if isinstance(tokens, str):
        return TypeError(f"ids must be a list of ids, got {shown(tokens)}")
    for token in tokens:
        if not 0 <= operator.index(token) < _IDS:
            return OverflowError(f"{token} is no id: ids are 0 or more, and less than {_IDS}")
    return KeyError(str(error))


def _without_surrogates(text: Any) -> str:
    """The text, pairs of surrogates as their characters and lone ones as U+FFFD."""
    if not isinstance(text, str):
        raise TypeError(f"text: must be a str (got {shown(text)})")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
