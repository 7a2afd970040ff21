"""Added tokens: texts that always become one ID, regardless of the pattern and the merges.

The search follows Hugging Face's `AddedVocabulary`. The first pass finds tokens with `normalized` false in the original
text. The second pass finds the other tokens, in normalized form, in the normalized text between the matches of the
first. The leftmost match wins, and the longest at one offset. `single_word` then drops a match next to a word
character. `lstrip` and `rstrip` extend a match over the whitespace before and after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from bpe import _core
from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer, shown

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.normalizers import Normalizer


@dataclass(frozen=True)
class AddedToken:
    """A text that always becomes one ID.

    special: decoding without special tokens leaves it out.
    Other flags: see the module.
    """

    text: str
    id: int
    special: bool = True
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


AllowedSpecial = Literal["all"] | Collection[str]


def allowed_texts(allowed_special: AllowedSpecial, special_tokens: Mapping[str, int]) -> frozenset[str]:
    """Return the texts of the special tokens to recognize. Raise BadArgument for a text that is not one of them."""
    if isinstance(allowed_special, str) and allowed_special == "all":
        return frozenset(special_tokens)
    if isinstance(allowed_special, (str, bytes)) or not isinstance(allowed_special, Collection):
        raise BadArgument(
            f'allowed_special: must be "all" or a collection such as {{"<s>"}} (got {shown(allowed_special)})'
        )
    for token in allowed_special:
        if not isinstance(token, str) or token not in special_tokens:
            raise BadArgument(
                f"allowed_special: not a special token (got {shown(token)}). Choose from special_tokens."
            )
    return frozenset(allowed_special)


def core_tokens(
    tokens: Iterable[AddedToken],
    normalizer: Normalizer | None,
    decoded_only: Mapping[int, str] = MappingProxyType({}),
) -> _core.AddedTokens:
    """Return the tokens in the form of the core.

    Raise UnsupportedTokenizer for two tokens with the same text after normalization.

    decoded_only: ID -> text of entries that are never found in text.
    """
    rows: list[tuple[bytes, int, bytes | None, bool, bool, bool]] = []
    owners: dict[bytes, AddedToken] = {}
    for token in tokens:
        text = token.text.encode()
        normalized = None
        if token.normalized:
            normalized = normalizer.of_tokens.apply(text) if normalizer is not None else text
            if not normalized:
                raise BadTokenizer(f"added token {shown(token.text)}: empty after normalization")
            if (other := owners.setdefault(normalized, token)) is not token:
                raise UnsupportedTokenizer(
                    f"added tokens {shown(other.text)} and {shown(token.text)}: identical after normalization. "
                    "Set normalized to false for one of them."
                )
        rows.append((text, token.id, normalized, token.lstrip, token.rstrip, token.single_word))
    return _core.AddedTokens(rows, [(text.encode(), id_) for id_, text in decoded_only.items()])


def decoded_texts(
    tokens: Iterable[AddedToken], normalizer: Normalizer | None, decoded_only: Mapping[int, str]
) -> dict[int, str]:
    """Return ID -> text for the decoder: the normalized text of each added token, as in Hugging Face tokenizers."""
    texts = dict(decoded_only)
    for token in tokens:
        texts.setdefault(
            token.id,
            normalizer.of_tokens.apply_to_text(token.text)
            if token.normalized and normalizer is not None
            else token.text,
        )
    return texts


def cut_at(
    tokens: _core.AddedTokens, text: Buffer, normalized: bool
) -> Iterator[tuple[int, int, int | None]]:
    """Yield (start, stop, ID) of the tokens that one of the two passes finds and, with ID None, of the text between.

    Spans are in order, but whitespace after an `rstrip` token can occur twice if it contains tokens. Hugging Face
    tokenizers does the same.
    """
    size = memoryview(text).nbytes
    spans, ids = tokens.find(text, normalized)
    done = 0
    for start, stop, id_ in zip(spans[::2].tolist(), spans[1::2].tolist(), ids.tolist(), strict=True):
        if done < start:
            yield done, start, None
        if start < stop:
            yield start, stop, id_
        done = stop
    if done < size:
        yield done, size, None
