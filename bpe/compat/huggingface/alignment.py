"""Normalizing and pre-tokenizing with alignment: each character of the result has a span of the original text.

The texts are those of `bpe.normalizers` and of the pre-tokenizers of the core. The spans follow `NormalizedString` of
tokenizers: a new character has the span of the character that it replaces, or of the character before it where it is
inserted. Where combining marks are reordered, a character can have the span of its neighbor, as in tokenizers.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final, NamedTuple

import regex

from bpe import _core, normalizers
from bpe.errors import UnsupportedTokenizer
from bpe.normalizers import Normalizer
from bpe.pretokenization.components import Behavior, ByteLevel, Component, Metaspace, UnicodeScripts
from bpe.pretokenization.regex_matches import expression_of, parts_of
from bpe.pretokenization.stage import Cut
from bpe.pretokenization.stages import phases_of

_MAX_CLUSTER_BYTES: Final = 5  # of a grapheme cluster that Precompiled looks up as a whole


class AlignedText(NamedTuple):
    """text; starts, stops: [start, stop) in the original for each character."""

    text: str
    starts: Sequence[int]
    stops: Sequence[int]

    @staticmethod
    def original(text: str) -> AlignedText:
        """Return an unchanged text."""
        return AlignedText(text, range(len(text)), range(1, len(text) + 1))

    def part(self, start: int, stop: int) -> AlignedText:
        """Return the characters [start, stop)."""
        return AlignedText(self.text[start:stop], self.starts[start:stop], self.stops[start:stop])

    def from_sources(self, text: str, sources: Iterable[int]) -> AlignedText:
        """Return another text. sources: for each of its characters, the index here of the character with its span."""
        sources = list(sources)
        return AlignedText(text, [self.starts[at] for at in sources], [self.stops[at] for at in sources])

    def mapped(self, change: Callable[[str], str]) -> AlignedText:
        """Replace each character."""
        parts = [change(character) for character in self.text]
        return self.from_sources("".join(parts), [at for at, part in enumerate(parts) for _ in part])

    def changed(self, characters: list[tuple[str, int]]) -> AlignedText:
        """Apply (character, change) in order: 1: inserted; 0: replaces one; -n: replaces n + 1."""
        sources = []
        at = 0
        for _, change in characters:
            sources.append(max(at - 1, 0) if change > 0 else min(at, len(self.text) - 1))
            at += max(0, 1 - change)
        return self.from_sources("".join(character for character, _ in characters), sources)

    def prepended(self, text: str) -> AlignedText:
        """Put a text before a non-empty one, with the span of its first character."""
        if not self.text:
            return self
        return self.from_sources(text + self.text, [0] * len(text) + list(range(len(self.text))))


# -- normalizing ---------------------------------------------------------------------------------------------------


def normalized(text: AlignedText, normalizer: Normalizer | None) -> AlignedText:
    """Return the text that `normalizer.apply` returns, with spans."""
    for component in normalizer.components if normalizer is not None else ():
        text = _apply(text, component)
    return text


def _apply(text: AlignedText, component: normalizers.Component) -> AlignedText:
    match component:
        case normalizers.Form():
            return _form(text, component.name.lower())
        case normalizers.Strip():
            return _strip(text, component)
        case normalizers.Prefix() if text.text.startswith(component.text):
            return text
        case normalizers.Prepend() | normalizers.Prefix():
            return text.prepended(component.text)
        case normalizers.Replace():
            return _replace(text, component)
        case normalizers.Precompiled():
            return _precompiled(text, component)
    for name, _, _ in component.steps():
        text = _form(text, name) if name == "nfd" else text.mapped(_step(name).__getitem__)
    return text


class _Step(dict[str, str]):
    """A step of the core that changes each character independently: character -> text."""

    def __init__(self, name: str, argument: bytes = b"") -> None:
        self._core = _core.Normalizer([(name, argument, b"")])

    def __missing__(self, character: str) -> str:
        made = self[character] = self.apply(character)
        return made

    def apply(self, text: str) -> str:
        """Return the changed text."""
        return self._core.apply(text.encode()).decode()


_step = cache(_Step)


def _form(text: AlignedText, name: str) -> AlignedText:
    made = _step(name).apply(text.text)
    if made == text.text:
        return text
    decomposition = _step(name[:-1] + "d")
    # (character, 1 if it was inserted); marks are reordered, equal ones in their order
    waiting: defaultdict[str, deque[int]] = defaultdict(deque)
    for character in text.text:
        for index, part in enumerate(decomposition[character]):
            waiting[part].append(int(index > 0))
    parts = [(part, waiting[part].popleft()) for part in decomposition.apply(text.text)]
    return text.changed(parts if name.endswith("d") else _composed(parts, made))


def _composed(parts: list[tuple[str, int]], composed: str) -> list[tuple[str, int]]:
    """Return (character, change) of the composed text."""
    decompose = _step("nfd")
    result: list[tuple[str, int]] = []
    is_used = [False] * len(parts)
    first = 0
    for character in composed:
        while is_used[first]:
            first += 1
        change, at = parts[first][1], first
        if parts[first][0] == character:
            is_used[first] = True
        else:
            for part in decompose[character]:
                while is_used[at] or parts[at][0] != part:
                    at += 1
                is_used[at] = True
                change += at != first and parts[at][1] - 1
        result.append((character, change))
    return result


def _strip(text: AlignedText, component: normalizers.Strip) -> AlignedText:
    start, stop = 0, len(text.text)
    if component.left:
        start = stop - len(_step("strip_left").apply(text.text))
    if component.right and start < stop:
        stop = len(_step("strip_right").apply(text.text))
    return text.part(start, stop)


def _replace(text: AlignedText, component: normalizers.Replace) -> AlignedText:
    """Replace the matches; the content has the span of the last character of a match."""
    made: list[str] = []
    sources: list[int] = []
    for start, stop, is_match in component.parts(text.text):
        made.append(component.content if is_match else text.text[start:stop])
        sources += [max(stop - 1, 0)] * len(component.content) if is_match else range(start, stop)
    return text.from_sources("".join(made), sources)


def _precompiled(text: AlignedText, component: normalizers.Precompiled) -> AlignedText:
    step = _Step("precompiled", component.charsmap)
    characters: list[tuple[str, int]] = []
    for cluster in regex.findall(r"\X", text.text):
        whole = step.apply(cluster)
        is_looked_up = len(cluster.encode()) <= _MAX_CLUSTER_BYTES and whole != "".join(
            map(step.__getitem__, cluster)
        )
        for old, new in [(cluster, whole)] if is_looked_up else [(each, step[each]) for each in cluster]:
            characters += [(character, int(index >= len(old))) for index, character in enumerate(new)]
            if len(new) < len(old) and characters:
                last, change = characters[-1]
                characters[-1] = last, change + len(new) - len(old)
    if "".join(character for character, _ in characters) == text.text:
        return text
    return text.changed(characters)


# -- pre-tokenizing ------------------------------------------------------------------------------------------------

_BYTE_ALPHABET: Final = Normalizer((normalizers.ByteLevel(),))


def pretokens(text: AlignedText, components: Iterable[Component]) -> list[AlignedText]:
    """Return the non-empty pretokens. Raise UnsupportedTokenizer for UnicodeScripts."""
    pieces = [text] if text.text else []
    for component in components:
        pieces = [part for piece in pieces for part in _cut(piece, component) if part.text]
    return pieces


def _cut(text: AlignedText, component: Component) -> Iterable[AlignedText]:
    match component:
        case Metaspace():
            return _metaspace(text, component)
        case ByteLevel():
            if component.add_prefix_space and not text.text.startswith(" "):
                text = text.prepended(" ")
            parts = _split(text, replace(component, add_prefix_space=False))
            return [normalized(part, _BYTE_ALPHABET) for part in parts]
        case UnicodeScripts():
            raise UnsupportedTokenizer("pre_tokenizer: UnicodeScripts is not supported")
    return _split(text, component)


def _metaspace(text: AlignedText, component: Metaspace) -> Iterator[AlignedText]:
    sign, scheme = component.replacement, component.prepend_scheme
    text = text._replace(text=text.text.replace(" ", sign))
    is_prepended = scheme == "always" or (scheme == "first" and text.starts[0] == 0)
    if is_prepended and not text.text.startswith(sign):
        text = text.prepended(sign)
    later = [index for index in range(1, len(text.text)) if text.text[index] == sign]
    starts = [0, *(later if component.split else ())]
    for start, stop in zip(starts, [*starts[1:], len(text.text)], strict=True):
        yield text.part(start, stop)


@lru_cache(maxsize=64)
def _cuts(component: Component) -> list[tuple[Cut, regex.Pattern[str]]]:
    cuts = phases_of([component]).phases[0].cuts
    return [(cut, regex.compile(expression_of(cut.tree))) for cut in cuts]


def _split(text: AlignedText, component: Component) -> list[AlignedText]:
    parts = [text]
    for cut, expression in _cuts(component):
        parts = [
            part.part(start, stop)
            for part in parts
            for start, stop in _kept(
                [
                    (start, stop, match != cut.invert)
                    for start, stop, match in parts_of(part.text, expression)
                ],
                cut.behavior,
            )
        ]
    return parts


def _kept(parts: list[tuple[int, int, bool]], behavior: Behavior) -> list[tuple[int, int]]:
    """Return the spans to keep. parts: (start, stop, whether it is a match)."""
    if behavior == "Isolated":
        return [(start, stop) for start, stop, _ in parts]
    if behavior == "Removed":
        return [(start, stop) for start, stop, is_match in parts if not is_match]
    backwards = behavior == "MergedWithNext"
    kept: list[tuple[int, int]] = []
    was_match = False
    for start, stop, is_match in reversed(parts) if backwards else parts:
        joins = is_match == was_match if behavior == "Contiguous" else is_match and not was_match
        was_match = is_match
        if joins and kept:
            start, stop = min(start, kept[-1][0]), max(stop, kept[-1][1])
            kept.pop()
        kept.append((start, stop))
    return kept[::-1] if backwards else kept
