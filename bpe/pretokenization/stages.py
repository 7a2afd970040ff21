"""The components of a pre-tokenizer as patterns and changes of text.

A component that changes text (a prefix, the byte alphabet) starts a *phase* unless it comes first. A phase changes each
piece of the previous phase and splits the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from bpe import normalizers
from bpe.errors import UnsupportedTokenizer, shown
from bpe.formats.byte_alphabet import to_bytes
from bpe.pretokenization import read_oniguruma, read_rust
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.components import (
    BertPreTokenizer,
    ByteLevel,
    CharDelimiterSplit,
    Component,
    Digits,
    FixedLength,
    Metaspace,
    Punctuation,
    Split,
    UnicodeScripts,
    Whitespace,
    WhitespaceSplit,
)
from bpe.pretokenization.stage import Cut, Stage
from bpe.pretokenization.syntax import Characters, Choice, Node, Repeat, Sequence
from bpe.pretokenization.unicode_tables import numeric, punctuation, required, scripts

BYTE_LEVEL: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_ANY: Final = Characters(~CodePoints())


@dataclass(frozen=True)
class Phase:
    """Changes, then cuts, of a text or of each piece of the previous phase."""

    changes: tuple[normalizers.Component, ...] = ()
    cuts: tuple[Cut, ...] = ()

    @property
    def change(self) -> normalizers.Normalizer | None:
        return normalizers.Normalizer(self.changes) if self.changes else None

    def stages(self) -> list[Stage]:
        """Return the stages of the cuts. Without cuts, the text is one piece."""
        return list(map(Stage, self.cuts or (Cut(Repeat(_ANY, 1, None)),)))

    @property
    def asks_for_input(self) -> bool:
        """Whether the result differs at the start of the input."""
        return any(isinstance(each, normalizers.Prefix) and each.input_only for each in self.changes)


class Phases(NamedTuple):
    """phases: at least one. from_alphabet: the final pieces are in the byte alphabet."""

    phases: tuple[Phase, ...]
    from_alphabet: bool


def phases_of(components: Iterable[Component]) -> Phases:
    """Return the phases of components. Raise UnsupportedTokenizer for pieces that are not bytes."""
    made: list[tuple[list[normalizers.Component], list[Cut]]] = [([], [])]
    from_alphabet = False
    for component in components:
        first, then, last = _parts_of(component)
        if isinstance(component, Metaspace) and from_alphabet and component.prepend_scheme != "never":
            _check_in_alphabet(component)
        changes, cuts = made[-1]
        apart = isinstance(component, UnicodeScripts) or any(cut.by_scripts for cut in cuts)
        if cuts and (first or (then and apart)):
            made.append(([], []))
        made[-1][0].extend(first)
        made[-1][1].extend(then)
        if last:
            if made[-1][1]:
                made.append(([], []))
            made[-1][0].extend(last)
            from_alphabet = True
    changes, cuts = made[-1]
    if changes and not cuts and changes[-1] == normalizers.ByteLevel():
        changes.pop()  # the result is bytes
        from_alphabet = False
    if len(made) > 1 and not changes and not cuts:
        made.pop()
    phases = [Phase(tuple(changes), tuple(cuts)) for changes, cuts in made]
    if any(phase.asks_for_input for phase in phases[1:]):
        phases.insert(0, Phase())  # so that later phases know the first piece
    return Phases(tuple(phases), from_alphabet)


_Parts = tuple[list[normalizers.Component], list[Cut], list[normalizers.Component]]


def _parts_of(component: Component) -> _Parts:
    """Return the changes before the cuts, the cuts, and the changes after them."""
    match component:
        case ByteLevel():
            cut = [Cut(read_rust.read(BYTE_LEVEL))] if component.use_regex else []
            return [normalizers.Prefix(" ")] * component.add_prefix_space, cut, [normalizers.ByteLevel()]
        case Metaspace(replacement, scheme, split):
            changes: list[normalizers.Component] = [normalizers.Replace(" ", replacement)]
            if scheme != "never":
                changes.append(normalizers.Prefix(replacement, scheme == "first"))
            mark = Characters(CodePoints.of(replacement))
            return changes, [Cut(mark, "MergedWithNext")] if split else [], []
    return [], _cuts_of(component), []


def _check_in_alphabet(component: Metaspace) -> None:
    if to_bytes(component.replacement) is None:
        raise UnsupportedTokenizer(
            "pre_tokenizer: replacement of Metaspace after ByteLevel must be a byte (got "
            f"{shown(component.replacement)})"
        )


def _cuts_of(component: Component) -> list[Cut]:
    match component:
        case Split(_, _, behavior, invert, gaps_are_errors):
            return [Cut(tree_of(component), behavior, invert, gaps_are_errors, component.expression)]
        case Digits():
            behavior = "Isolated" if component.individual_digits else "Contiguous"
            return [Cut(Characters(numeric()), behavior)]
        case Punctuation():
            return [Cut(Characters(punctuation()), component.behavior)]
        case Whitespace():
            return [Cut(read_rust.read(r"\w+|[^\w\s]+"), "Removed", invert=True)]
        case WhitespaceSplit():
            return [Cut(_space(), "Removed")]
        case BertPreTokenizer():
            return [Cut(_space(), "Removed"), Cut(Characters(punctuation()))]
        case CharDelimiterSplit():
            return [Cut(Characters(CodePoints.of(component.delimiter)), "Removed")]
        case FixedLength():
            return [Cut(Repeat(_ANY, 1, component.length))]
        case UnicodeScripts():
            return [Cut(_script_runs(), "Removed", invert=True, by_scripts=True)]
    raise TypeError(component)


def tree_of(split: Split) -> Node:
    """Return the syntax tree of the expression of a split."""
    match split.dialect:
        case "rust":
            return read_rust.read(split.expression)
        case "oniguruma":
            return read_oniguruma.read(split.expression)
        case "text":
            return Sequence(tuple(Characters(CodePoints.of(character)) for character in split.expression))


def _space() -> Node:
    return Characters(required("rust", r"\s"))


@cache
def _script_runs() -> Node:
    """Match runs of one script. Characters without a script continue a run."""
    known = scripts()
    none = ~CodePoints.union(known)
    return Choice(
        tuple(Sequence((Characters(script), Repeat(Characters(script | none), 0, None))) for script in known)
    )
