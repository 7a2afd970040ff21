r"""Split sections into pretokens: the components of a pre-tokenizer, compiled for the core.

Text between the matches of a custom pattern is an error, because it would be lost. The pre-tokenizer of a file may keep
or drop it. Expressions in Python and on the command line have the syntax of tiktoken. Expressions in a tokenizer.json
have the syntax of Hugging Face tokenizers.

The `regex` package splits the text if an expression needs too many states for a table. This is about a hundred times
slower. `slow_because` gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bpe import _core, normalizers
from bpe.errors import BadArgument, UncoveredText, UnsupportedPattern, lone_surrogate, shown, with_sentence
from bpe.normalizers import INPUT, Normalizer
from bpe.patterns import PATTERNS, pattern_name
from bpe.pretokenization import components as known_components
from bpe.pretokenization.by_regex import RegexCutter
from bpe.pretokenization.compiled import Compiled, compiled_of
from bpe.pretokenization.components import ByteLevel, Component, Split
from bpe.pretokenization.stages import phases_of
from tokenmill.stores.system import cached_property

_BARE_WORD: Final = re.compile(r"[A-Za-z][\w.-]+")  # a mistyped name, such as gpt3


@dataclass(frozen=True)
class Pretokenizer:
    """The components in order. Equal pre-tokenizers give equal pretokens."""

    components: tuple[Component, ...]

    def __reduce__(self) -> tuple[type[Pretokenizer], tuple[tuple[Component, ...]]]:
        return Pretokenizer, (self.components,)  # without the compiled form

    @staticmethod
    def from_pattern(pattern: str | Pretokenizer) -> Pretokenizer:
        """Return the pre-tokenizer of a pattern.

        pattern: a name, an expression, or a Pretokenizer. A known spelling of a named pattern becomes that pattern.

        Raise BadTokenizer for an invalid expression and UnsupportedPattern for unsupported syntax.
        """
        if isinstance(pattern, Pretokenizer):
            return pattern
        if not isinstance(pattern, str) or not pattern:
            raise BadArgument(
                f"pattern: must be one of {', '.join(PATTERNS)} or a regular expression (got {shown(pattern)})"
            )
        try:
            pattern.encode()
        except UnicodeEncodeError as error:
            raise BadArgument(lone_surrogate("pattern", error)) from None
        name = pattern_name(pattern)
        if not name and _BARE_WORD.fullmatch(pattern):
            raise BadArgument(
                f"pattern: matches a single word, so all other text would be lost (got {shown(pattern)}). Use one of "
                f"{', '.join(PATTERNS)}, or an expression that matches all text."
            )
        if name:
            return named(name)
        return Pretokenizer((Split(pattern, "rust", gaps_are_errors=True),)).checked()

    def checked(self) -> Pretokenizer:
        """Return the pre-tokenizer, or raise an error if it cannot run."""
        if self._compiled is None:
            _ = self._cutter
        return self

    @property
    def name(self) -> str | None:
        """The name in PATTERNS, or None."""
        return next((name for name in PATTERNS if named(name) == self), None)

    @property
    def description(self) -> str:
        """The name, or the components joined by " then "."""
        return self.name or " then ".join(map(_described, self.components)) or "none"

    @property
    def automaton(self) -> _core.Automaton | None:
        """The automaton for normalized texts, or None if they are split in Python."""
        compiled = self._compiled
        return None if compiled is None or compiled.may_leave_out else compiled.automaton

    @cached_property
    def changes(self) -> Normalizer | None:
        """The changes to a section after the normalizer, before it is split."""
        return phases_of(self.components).phases[0].change

    @cached_property
    def changes_text(self) -> bool:
        """Whether pretokens differ from the text, such as by added prefixes."""
        phases = phases_of(self.components).phases
        return any(change != normalizers.ByteLevel() for phase in phases for change in phase.changes)

    def preparation(self, normalizer: Normalizer | None) -> Normalizer | None:
        """Return the normalizer followed by `changes`, or None for no change."""
        return normalizer.then(self.changes) if normalizer is not None else self.changes

    @cached_property
    def asks_for_input(self) -> bool:
        """Whether the pretokens differ at the start of the input."""
        return any(phase.asks_for_input for phase in phases_of(self.components).phases)

    @property
    def slow_because(self) -> str | None:
        """The reason for splitting with the `regex` package, or None."""
        found = self._compiled_or_why
        return found if isinstance(found, str) else None

    @property
    def slow_note(self) -> str | None:
        """A note for users on the slow path, or None."""
        why = self.slow_because
        return why and with_sentence(
            why, "The regex package splits the text instead, at 0.2 to 3 MB/s per process."
        )

    def pretokens(self, text: str) -> list[str]:
        """Return the non-empty pretokens of a section, in order.

        Pretokenizer.from_pattern("[a-z]+| ").pretokens("ab cd") -> ["ab", " ", "cd"].

        Raise UncoveredText if the pattern does not match some text. The bytes of a character that a component after
        ByteLevel splits become U+FFFD.
        """
        if self.changes is not None:
            text = self.changes.apply(text.encode(), INPUT).decode()
        return [pretoken.decode(errors="replace") for pretoken in self.iterate(text)]

    def iterate(self, text: str) -> Iterator[bytes]:
        """Yield the bytes of the pretokens of a normalized text."""
        if self._compiled is None:
            return self._cutter.cut(text)
        data, ends = self.pretoken_spans(text)
        starts = [0, *ends[:-1].tolist()] if len(ends) else []
        return (data[start:end] for start, end in zip(starts, ends.tolist(), strict=True))

    def pretoken_spans(self, text: str) -> tuple[bytes, NDArray[np.uint64]]:
        """Return (concatenated pretokens, uint64 end offset of each) of a normalized text."""
        data = text.encode()
        if self._compiled is None:
            pretokens = list(self._cutter.cut(text))
            return b"".join(pretokens), np.cumsum([len(each) for each in pretokens], dtype=np.uint64)
        if self._compiled.automaton.has_later_phases:
            return _core.pretokens(self._compiled.automaton, data)
        starts, dropped = _core.pieces(self._compiled.automaton, data)
        ends = np.append(starts[1:], np.uint64(len(data))) if len(starts) else starts
        left_out = np.flatnonzero(dropped)
        if not len(left_out):
            return data, ends
        if self._compiled.may_leave_out:
            place, stop = int(starts[left_out[0]]), int(ends[left_out[0]])
            raise UncoveredText(self.description, data[place:stop].decode()[:20], place)
        kept = [
            data[s:e]
            for s, e, drop in zip(starts.tolist(), ends.tolist(), dropped.tolist(), strict=True)
            if not drop
        ]
        return b"".join(kept), np.cumsum([len(each) for each in kept], dtype=np.uint64)

    def to_data(self) -> list[dict[str, Any]]:
        """Return the components as JSON data."""
        return [{"type": type(each).__name__} | asdict(each) for each in self.components]

    @staticmethod
    def from_data(data: Sequence[dict[str, Any]]) -> Pretokenizer:
        """Return the pre-tokenizer of `to_data`. Raise KeyError, TypeError or ValueError for other data."""
        components = []
        for each in data:
            fields = dict(each)
            kind = getattr(known_components, fields.pop("type"))
            component = kind(**fields)
            if not isinstance(component, Component):
                raise ValueError(fields)
            components.append(component)
        return Pretokenizer(tuple(components))

    @cached_property
    def _compiled_or_why(self) -> Compiled | str:
        """The compiled form, or the reason why there is none."""
        try:
            return compiled_of(self.components)
        except UnsupportedPattern as error:
            return str(error)

    @property
    def _compiled(self) -> Compiled | None:
        found = self._compiled_or_why
        return found if isinstance(found, Compiled) else None

    @cached_property
    def _cutter(self) -> RegexCutter:
        return RegexCutter(phases_of(self.components), str(self._compiled_or_why))


@cache
def named(name: str) -> Pretokenizer:
    """Return the pre-tokenizer of a name in PATTERNS."""
    return Pretokenizer((Split(PATTERNS[name], "rust", gaps_are_errors=True),))


def _described(component: Component) -> str:
    if isinstance(component, Split):
        return component.expression
    if isinstance(component, ByteLevel) and component.use_regex:
        return "gpt2"
    return type(component).__name__
