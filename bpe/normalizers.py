"""The normalizers of a tokenizer.json, which change each section before it is split into pretokens.

A `Normalizer` is a sequence of components with the names and the results of Hugging Face tokenizers, including its
Unicode versions. The core applies them (bpe/native/normalize). Only a Replace of an empty text, or of an expression
that cannot be compiled, runs here with the `regex` package.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from bpe import _core
from bpe.errors import BadArgument, BadTokenizer, shown
from bpe.pretokenization import read_oniguruma
from bpe.pretokenization.regex_matches import expression_of, parts_of
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    import regex

# The start of a text: inside a section, at the start of a section, or at the start of the input.
INSIDE, SECTION, INPUT = range(3)

FormName: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]
_Step: TypeAlias = tuple[str, bytes | _core.Automaton, bytes]  # `_core.NormalizerStep`


@dataclass(frozen=True)
class Form:
    """A normal form of Unicode Annex 15."""

    name: FormName

    def steps(self) -> list[_Step]:
        return [(self.name.lower(), b"", b"")]


@dataclass(frozen=True)
class Lowercase:
    """Convert each character to lower case, independent of its context."""

    def steps(self) -> list[_Step]:
        return [("lowercase", b"", b"")]


@dataclass(frozen=True)
class Strip:
    """Remove white space at the start (left) or at the end (right)."""

    left: bool = True
    right: bool = True

    def steps(self) -> list[_Step]:
        side = "both" if self.left and self.right else "left" if self.left else "right"
        return [(f"strip_{side}", b"", b"")] if self.left or self.right else []


@dataclass(frozen=True)
class StripAccents:
    """Remove combining marks; precomposed letters stay."""

    def steps(self) -> list[_Step]:
        return [("strip_accents", b"", b"")]


@dataclass(frozen=True)
class Nmt:
    """Remove control characters and replace some characters by spaces, as in Google's neural machine translation."""

    def steps(self) -> list[_Step]:
        return [("nmt", b"", b"")]


@dataclass(frozen=True)
class ByteLevel:
    """Replace each byte by its character in GPT-2's byte alphabet."""

    def steps(self) -> list[_Step]:
        return [("byte_level", b"", b"")]


@dataclass(frozen=True)
class Prepend:
    """Put `text` before a non-empty section."""

    text: str

    def steps(self) -> list[_Step]:
        return [("prepend", self.text.encode(), b"")]


@dataclass(frozen=True)
class DummyPrefix(Prepend):
    """The dummy prefix of SentencePiece: a Prepend that does not apply to added tokens."""


@dataclass(frozen=True)
class Prefix:
    """Put `text` before a non-empty section that does not start with it, like pre-tokenizers do.

    input_only: only at the start of the input.
    """

    text: str
    input_only: bool = False

    def steps(self) -> list[_Step]:
        return [("input_prefix" if self.input_only else "prefix", self.text.encode(), b"")]


@dataclass(frozen=True)
class Replace:
    """Replace each occurrence of a text, or each match of an Oniguruma expression, by `content`."""

    pattern: str
    content: str
    is_expression: bool = False

    def __reduce__(self) -> tuple[type[Replace], tuple[str, str, bool]]:
        return Replace, (self.pattern, self.content, self.is_expression)  # without the compiled form

    def steps(self) -> list[_Step]:
        if self._automaton is not None:
            return [("replace_matches", self._automaton, self.content.encode())]
        return [("replace", self.pattern.encode(), self.content.encode())]

    @property
    def in_core(self) -> bool:
        """Whether the core can apply it."""
        return self._automaton is not None if self.is_expression else bool(self.pattern)

    @cached_property
    def _automaton(self) -> _core.Automaton | None:
        """The automaton that drops the matches, or None if it cannot be compiled or a match may be empty."""
        from bpe.pretokenization.compiled import dropping  # deferred: importing this takes 10 ms

        return dropping(read_oniguruma.read(self.pattern)) if self.is_expression else None

    @cached_property
    def _expression(self) -> regex.Pattern[str]:
        import regex  # deferred: slow import, rarely needed

        if not self.is_expression:
            return regex.compile(regex.escape(self.pattern))
        return regex.compile(expression_of(read_oniguruma.read(self.pattern)))

    def check(self) -> None:
        """Raise UnsupportedTokenizer or BadTokenizer if the expression cannot be used."""
        if not self.in_core:
            _ = self._expression  # raises for invalid expressions

    def parts(self, text: str) -> Iterable[tuple[int, int, bool]]:
        """Return (start, stop, whether it is a match) of matches and gaps, in characters."""
        return parts_of(text, self._expression) if text else ()

    def apply(self, text: str) -> str:
        """Return the text with the matches replaced."""
        parts = self.parts(text)
        return "".join(self.content if is_match else text[start:stop] for start, stop, is_match in parts)


@dataclass(frozen=True)
class Precompiled:
    """SentencePiece's charsmap, applied to short grapheme clusters and to characters. Raise BadTokenizer if damaged."""

    charsmap: bytes

    def __post_init__(self) -> None:
        try:
            _core.Normalizer(self.steps())
        except ValueError as error:
            raise BadTokenizer(str(error)) from None

    def steps(self) -> list[_Step]:
        return [("precompiled", self.charsmap, b"")]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.charsmap)} bytes)"


@dataclass(frozen=True, repr=False)
class Charsmap(Precompiled):
    """The charsmap as SentencePiece applies it: the longest key at each offset is replaced.

    Hugging Face tokenizers has no such component. Its Precompiled loses the text after the shortest key of a grapheme
    cluster ("e" with two accents).
    """

    def steps(self) -> list[_Step]:
        return [("charsmap", self.charsmap, b"")]


@dataclass(frozen=True)
class Bert:
    """BertNormalizer. strip_accents: None means the value of lowercase."""

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True

    def steps(self) -> list[_Step]:
        strips = self.lowercase if self.strip_accents is None else self.strip_accents
        cleaned = ["bert_clean"] * self.clean_text + ["bert_ideographs"] * self.handle_chinese_chars
        lowered = ["bert_accents"] * strips + ["lowercase"] * self.lowercase
        # Adjacent maps are merged.
        first = "bert_clean_ideographs" if len(cleaned) == 2 else "".join(cleaned)
        last = "bert_accents_lowercase" if len(lowered) == 2 else "".join(lowered)
        return [(name, b"", b"") for name in (first, "nfd" if strips else "", last) if name]


Component: TypeAlias = (
    Form
    | Lowercase
    | Strip
    | StripAccents
    | Nmt
    | ByteLevel
    | Prepend
    | Prefix
    | Replace
    | Precompiled
    | Bert
)
NFC: Final = Form("NFC")


@dataclass(frozen=True)
class Normalizer:
    """A sequence of components."""

    components: tuple[Component, ...]

    def __reduce__(self) -> tuple[type[Normalizer], tuple[tuple[Component, ...]]]:
        return Normalizer, (self.components,)  # without the compiled form

    def __str__(self) -> str:
        """Return the names of the components, such as "NFC" or "NFD, StripAccents"."""
        return ", ".join(
            each.name if isinstance(each, Form) else type(each).__name__ for each in self.components
        )

    def apply(self, text: bytes, start: int = SECTION) -> bytes:
        """Return the normalized section; the same object if nothing changes.

        text: valid UTF-8.
        start: INPUT for the section at the start of the input.
        """
        for stage in self._stages:
            text = (
                stage.apply(str(text, "utf-8")).encode()
                if isinstance(stage, Replace)
                else stage.apply(text, start)
            )
        return text

    def apply_to_text(self, text: str) -> str:
        """Return the normalized section for str."""
        return self.apply(text.encode()).decode()

    @cached_property
    def of_tokens(self) -> Normalizer:
        """The normalizer for the content of added tokens that match normalized text."""
        return Normalizer(tuple(each for each in self.components if not isinstance(each, DummyPrefix)))

    def then(self, changes: Normalizer | None) -> Normalizer:
        """Return this normalizer followed by another."""
        return self if changes is None else Normalizer(self.components + changes.components)

    @property
    def may_remove_first(self) -> bool:
        """Whether a text can lose its first character and keep others."""
        return any(
            isinstance(each, (Strip, StripAccents, Nmt, Bert, Precompiled))
            or (isinstance(each, Replace) and not each.content)
            for each in self.components
        )

    @cached_property
    def core(self) -> _core.Normalizer | None:
        """The compiled form, or None if the core cannot apply all components."""
        return (
            self._stages[0] if len(self._stages) == 1 and not isinstance(self._stages[0], Replace) else None
        )

    def place_before(self, text: bytes, place: int) -> int:
        """Return the start of the part of `text` that becomes the byte at `place` of `apply(text)`."""
        return self.core.place_before(text, place) if self.core is not None else 0

    @cached_property
    def _stages(self) -> list[_core.Normalizer | Replace]:
        """Adjacent components for the core are one stage."""
        stages: list[_core.Normalizer | Replace] = []
        for outside, group in itertools.groupby(
            self.components, lambda each: isinstance(each, Replace) and not each.in_core
        ):
            if outside:
                stages += [each for each in group if isinstance(each, Replace)]
            else:
                stages.append(_core.Normalizer([step for each in group for step in each.steps()]))
        return stages


def core_steps(normalizer: Normalizer | None) -> list[_Step]:
    """Return the steps of a normalizer that the core can apply."""
    return [] if normalizer is None else [step for each in normalizer.components for step in each.steps()]


def make_normalizer(value: Normalizer | str | None) -> Normalizer | None:
    """Return the normalizer of an argument: a Normalizer, "NFC" or None. Raise BadArgument for other values."""
    if value is None or isinstance(value, Normalizer):
        return value if value is None or value.components else None
    if value == "NFC":
        return Normalizer((NFC,))
    raise BadArgument(f'normalizer: must be None, "NFC" or a Normalizer (got {shown(value)})')
