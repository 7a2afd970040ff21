"""`AddedToken`, and the added tokens of a tokenizer with the IDs that tokenizers gives them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bpe.added_tokens import AddedToken as CoreToken
from bpe.compat.huggingface import arguments
from bpe.compat.huggingface.models import BPE
from bpe.errors import shown

FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")


class AddedToken:
    """A text that always becomes one token; see bpe.added_tokens for the flags.

    normalized: by default, True unless the token is special. Changing content and special does not change the
    tokenizers that have the token.
    """

    def __init__(
        self,
        content: str = "",
        *,
        single_word: bool = False,
        lstrip: bool = False,
        rstrip: bool = False,
        normalized: bool | None = None,
        special: bool = False,
        **unknown: Any,
    ) -> None:
        arguments.warn_unknown(unknown)
        self.content = arguments.text("content", content)
        self.single_word = arguments.flag("single_word", single_word)
        self.lstrip = arguments.flag("lstrip", lstrip)
        self.rstrip = arguments.flag("rstrip", rstrip)
        self.special = arguments.flag("special", special)
        self._normalized = None if normalized is None else arguments.flag("normalized", normalized)

    @property
    def normalized(self) -> bool:
        """Whether the token matches normalized text."""
        return not self.special if self._normalized is None else self._normalized

    def to_json(self) -> dict[str, Any]:
        """Return content and flags as in tokenizer.json."""
        return {"content": self.content} | {flag: getattr(self, flag) for flag in FLAGS}

    def __getstate__(self) -> dict[str, Any]:
        return self.to_json()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AddedToken) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.content)

    def __str__(self) -> str:
        return self.content

    def __repr__(self) -> str:
        names = ("rstrip", "lstrip", "single_word", "normalized", "special")
        flags = ", ".join(f"{flag}={getattr(self, flag)}" for flag in names)
        return f'AddedToken("{self.content}", {flags})'


def added_token(token: Any, special: bool = False) -> AddedToken:
    """Return the AddedToken for a str or an AddedToken of this package or of tokenizers; a copy."""
    if isinstance(token, str):
        return AddedToken(token, special=special)
    try:
        if special:
            token.special = True
        return AddedToken(token.content, **{flag: getattr(token, flag) for flag in FLAGS})
    except AttributeError:
        raise TypeError(f"token: must be a str or an AddedToken (got {shown(token)})") from None


class AddedVocabulary:
    """tokens: ID -> token. ids: text -> ID. special: the texts that decoding skips."""

    def __init__(self, tokens: Iterable[CoreToken] = ()) -> None:
        self.tokens: dict[int, AddedToken] = {}
        self.ids: dict[str, int] = {}
        self.special: set[str] = set()
        for token in tokens:
            flags = {flag: getattr(token, flag) for flag in FLAGS}
            self._put(token.id, AddedToken(token.text, **flags))

    def add(self, tokens: Iterable[AddedToken], model: BPE) -> int:
        """Add tokens or change their flags. Return the number of new and changed ones.

        A token gets the ID of an entry or token with its text, else the next ID after the model and the added tokens.
        """
        size = len(model)
        highest = max(self.tokens, default=-1)
        next_id = highest + 1 if self.tokens and (highest >= size or size == 0) else size
        count = 0
        for token in tokens:
            known = self.ids.get(token.content)
            if not token.content or (known is not None and self.tokens[known] == token):
                continue
            if known is None:
                known = model.token_to_id(token.content)
            if known is None:
                known, next_id = next_id, next_id + 1
            self._put(known, token)
            count += 1
        return count

    def _put(self, id_: int, token: AddedToken) -> None:
        self.tokens[id_] = token
        self.ids[token.content] = id_
        if token.special:
            self.special.add(token.content)

    def copy(self) -> AddedVocabulary:
        """Return a copy, as if read from a file: `special` has no tokens that have ceased to be special."""
        return AddedVocabulary(self.for_core())

    def for_core(self) -> tuple[CoreToken, ...]:
        """Return the tokens of the core, by ascending ID."""
        return tuple(
            CoreToken(token.content, id_, **{flag: getattr(token, flag) for flag in FLAGS})
            for id_, token in sorted(self.tokens.items())
        )
