"""The normalizers of a tokenizer.json: what is done to the text between special tokens before it is pretokenized.

A `Normalizer` is a sequence of components, each named and meant as in Hugging Face tokenizers, and gives what that
library gives for every text (tests/bpe/test_normalizers.py): by the Unicode versions it has, not by this Python's. The
core applies them (bpe/native/normalize); only a Replace by an expression, or of an empty text, is done here, by the
`regex` package, and takes the text between special tokens out of the core.
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

# Where a text begins that is normalized: within the text between two special tokens, as such a text, or as the first
# of a whole input.
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
    """Each character in lower case, whatever stands around it."""

    def steps(self) -> list[_Step]:
        return [("lowercase", b"", b"")]


@dataclass(frozen=True)
class Strip:
    """White space at the beginning or the end of the text goes."""

    left: bool = True
    right: bool = True

    def steps(self) -> list[_Step]:
        side = "both" if self.left and self.right else "left" if self.left else "right"
        return [(f"strip_{side}", b"", b"")] if self.left or self.right else []


@dataclass(frozen=True)
class StripAccents:
    """Combining marks go; letters that hold one stay."""

    def steps(self) -> list[_Step]:
        return [("strip_accents", b"", b"")]


@dataclass(frozen=True)
class Nmt:
    """Control characters go, some other characters become spaces, as in Google's neural machine translation."""

    def steps(self) -> list[_Step]:
        return [("nmt", b"", b"")]


@dataclass(frozen=True)
class ByteLevel:
    """Each byte becomes the character that stands for it in GPT-2's byte alphabet."""

    def steps(self) -> list[_Step]:
        return [("byte_level", b"", b"")]


@dataclass(frozen=True)
class Prepend:
    """A text that is not empty gets something in front."""

    text: str

    def steps(self) -> list[_Step]:
        return [("prepend", self.text.encode(), b"")]


@dataclass(frozen=True)
class DummyPrefix(Prepend):
    """SentencePiece's: the same, but added tokens are looked for without it."""


@dataclass(frozen=True)
class Prefix:
    """A text that is not empty and does not begin with it gets something in front: what pre-tokenizers do.

    input_only: only the first text of an input does.
    """

    text: str
    input_only: bool = False

    def steps(self) -> list[_Step]:
        return [("input_prefix" if self.input_only else "prefix", self.text.encode(), b"")]


@dataclass(frozen=True)
class Replace:
    """Each match of an expression as Oniguruma reads it, or each occurrence of a text, becomes another text."""

    pattern: str
    content: str
    is_expression: bool = False

    def __reduce__(self) -> tuple[type[Replace], tuple[str, str, bool]]:
        return Replace, (self.pattern, self.content, self.is_expression)  # without the core's form

    def steps(self) -> list[_Step]:
        if self._automaton is not None:
            return [("replace_matches", self._automaton, self.content.encode())]
        return [("replace", self.pattern.encode(), self.content.encode())]

    @property
    def in_core(self) -> bool:
        """Whether the core can do it."""
        return self._automaton is not None if self.is_expression else bool(self.pattern)

    @cached_property
    def _automaton(self) -> _core.Automaton | None:
        """What drops the matches, if that can be compiled and no match is empty."""
        from bpe.pretokenization.compiled import dropping  # 10 ms that the usual files need not pay

        return dropping(read_oniguruma.read(self.pattern)) if self.is_expression else None

    @cached_property
    def _expression(self) -> regex.Pattern[str]:
        import regex  # slow to import, and the usual files need it not

        if not self.is_expression:
            return regex.compile(regex.escape(self.pattern))
        return regex.compile(expression_of(read_oniguruma.read(self.pattern)))

    def check(self) -> None:
        """Raise UnsupportedTokenizer or BadTokenizer if the expression cannot be used."""
        if not self.in_core:
            _ = self._expression  # what is wrong with it is told by reading it

    def parts(self, text: str) -> Iterable[tuple[int, int, bool]]:
        """[start, stop) in characters of the matches and of what lies between them, and whether it is a match."""
        return parts_of(text, self._expression) if text else ()

    def apply(self, text: str) -> str:
        """The text with the matches replaced."""
        parts = self.parts(text)
        return "".join(self.content if is_match else text[start:stop] for start, stop, is_match in parts)


@dataclass(frozen=True)
class Precompiled:
    """SentencePiece's charsmap, applied to short grapheme clusters and to characters. BadTokenizer if damaged."""

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
    """The same charsmap as SentencePiece itself applies it: at each place the longest key gives way to its text.

    No component of Hugging Face tokenizers, whose Precompiled loses what follows the shortest key in a grapheme
    cluster ("e" with two accents).
    """

    def steps(self) -> list[_Step]:
        return [("charsmap", self.charsmap, b"")]


@dataclass(frozen=True)
class Bert:
    """BertNormalizer. strip_accents: None for the value of lowercase."""

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True

    def steps(self) -> list[_Step]:
        strips = self.lowercase if self.strip_accents is None else self.strip_accents
        cleaned = ["bert_clean"] * self.clean_text + ["bert_ideographs"] * self.handle_chinese_chars
        lowered = ["bert_accents"] * strips + ["lowercase"] * self.lowercase
        # Two maps in one where there are both.
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
    """What is done to a text, component after component."""

    components: tuple[Component, ...]

    def __reduce__(self) -> tuple[type[Normalizer], tuple[tuple[Component, ...]]]:
        return Normalizer, (self.components,)  # without the core's form

    def __str__(self) -> str:
        """The names of the components, such as "NFC" or "NFD, StripAccents"."""
        return ", ".join(
            each.name if isinstance(each, Form) else type(each).__name__ for each in self.components
        )

    def apply(self, text: bytes, start: int = SECTION) -> bytes:
        """The UTF-8 of a text between two special tokens after the normalizer; the same object if nothing changes.

        text: valid UTF-8. start: INPUT for one that an input begins with.
        """
        for stage in self._stages:
            text = (
                stage.apply(str(text, "utf-8")).encode()
                if isinstance(stage, Replace)
                else stage.apply(text, start)
            )
        return text

    def apply_to_text(self, text: str) -> str:
        """The same of a text and as one."""
        return self.apply(text.encode()).decode()

    @cached_property
    def of_tokens(self) -> Normalizer:
        """The normalizer of added tokens, by which they are found in normalized texts."""
        return Normalizer(tuple(each for each in self.components if not isinstance(each, DummyPrefix)))

    def then(self, changes: Normalizer | None) -> Normalizer:
        """This one, then another."""
        return self if changes is None else Normalizer(self.components + changes.components)

    @property
    def may_remove_first(self) -> bool:
        """Whether a text may lose its first character and keep others."""
        return any(
            isinstance(each, (Strip, StripAccents, Nmt, Bert, Precompiled))
            or (isinstance(each, Replace) and not each.content)
            for each in self.components
        )

    @cached_property
    def core(self) -> _core.Normalizer | None:
        """The core's form, None if it can't do all components."""
        return (
            self._stages[0] if len(self._stages) == 1 and not isinstance(self._stages[0], Replace) else None
        )

    def place_before(self, text: bytes, place: int) -> int:
        """Where the byte at `place` of `apply(text)` comes from: the start of what was normalized with it."""
        return self.core.place_before(text, place) if self.core is not None else 0

    @cached_property
    def _stages(self) -> list[_core.Normalizer | Replace]:
        """Neighbours that the core can do are one stage."""
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
    """The normalizer that an argument says: a Normalizer, "NFC", or None; BadArgument for anything else."""
    if value is None or isinstance(value, Normalizer):
        return value if value is None or value.components else None
    if value == "NFC":
        return Normalizer((NFC,))
    raise BadArgument(f'normalizer: must be None, "NFC" or a Normalizer (got {shown(value)})')
