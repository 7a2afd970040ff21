"""`AddedToken` with the names and defaults of tokenizers."""

from __future__ import annotations

from typing import Any, Final

from bpe.compat.huggingface import arguments
from bpe.errors import shown

FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")


class AddedToken:
    """A text that is one token wherever it stands; see bpe.added_tokens for the flags.

    normalized is True unless it is given or the token is special. content and special may be changed, which changes
    no tokenizer that has the token already.
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
        """Whether it is looked for in the normalized text."""
        return not self.special if self._normalized is None else self._normalized

    def to_json(self) -> dict[str, Any]:
        """content and flags, as tokenizer.json has them."""
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
        flags = ", ".join(
            f"{flag}={getattr(self, flag)}"
            for flag in ("rstrip", "lstrip", "single_word", "normalized", "special")
        )
        return f'AddedToken("{self.content}", {flags})'


def added_token(token: Any, special: bool = False) -> AddedToken:
    """The token that a text or an AddedToken, this one or that of tokenizers, says: a copy. TypeError for others."""
    if isinstance(token, str):
        return AddedToken(token, special=special)
    try:
        if special:
            token.special = True
        return AddedToken(token.content, **{flag: getattr(token, flag) for flag in FLAGS})
    except AttributeError:
        raise TypeError(f"token: must be a str or an AddedToken (got {shown(token)})") from None


def check_tokens(tokens: Any) -> None:
    """Raise TypeError for a single text instead of a list."""
    if isinstance(tokens, str):
        raise TypeError(f"tokens: must be a list (got {shown(tokens)})")
