"""Pre-tokenizing with alignment, in Python: for the components that change the text or drop parts of it.

Where the core cuts, `text_pieces` reads its cuts instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

import regex

from bpe.compat.huggingface.aligned_text import AlignedText
from bpe.compat.huggingface.normalize import normalized
from bpe.errors import UnsupportedTokenizer
from bpe.normalizers import ByteLevel as ByteAlphabet
from bpe.normalizers import Normalizer
from bpe.pretokenization.components import Behavior, ByteLevel, Component, Metaspace, UnicodeScripts
from bpe.pretokenization.regex_matches import expression_of, parts_of
from bpe.pretokenization.stages import Cut, phases_of

_IN_BYTES = Normalizer((ByteAlphabet(),))


def pretokens(text: AlignedText, components: Iterable[Component]) -> list[AlignedText]:
    """The pretokens of a text, none of them empty. UnsupportedTokenizer for what can't be done."""
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
            parts = [text]
            for cut in _cuts(replace(component, add_prefix_space=False)):
                parts = [part for each in parts for part in _split(each, cut)]
            return [normalized(part, _IN_BYTES) for part in parts]
        case UnicodeScripts():
            raise UnsupportedTokenizer("pre_tokenizer: UnicodeScripts is not supported")
    parts = [text]
    for cut in _cuts(component):
        parts = [part for each in parts for part in _split(each, cut)]
    return parts


@lru_cache(maxsize=64)
def _cuts(component: Component) -> tuple[Cut, ...]:
    return phases_of([component]).phases[0].cuts


@lru_cache(maxsize=64)
def _expression(cut: Cut) -> regex.Pattern[str]:
    return regex.compile(expression_of(cut.tree))


def _metaspace(text: AlignedText, component: Metaspace) -> Iterator[AlignedText]:
    sign = component.replacement
    text = AlignedText(text.text.replace(" ", sign), text.starts, text.stops)
    first = component.prepend_scheme == "first" and text.starts[0] == 0
    if (component.prepend_scheme == "always" or first) and not text.text.startswith(sign):
        text = text.prepended(sign)
    if not component.split:
        yield text
        return
    start = 0
    for place in range(1, len(text)):
        if text.text[place] == sign:
            yield text[start:place]
            start = place
    yield text[start:]


def _split(text: AlignedText, cut: Cut) -> Iterator[AlignedText]:
    """The parts that a cut leaves, in order; some may be empty."""
    found = parts_of(text.text, _expression(cut))
    parts = [(start, stop, matches != cut.invert) for start, stop, matches in found]
    for start, stop in _kept(parts, cut.behavior):
        yield text[start:stop]


def _kept(parts: list[tuple[int, int, bool]], behavior: Behavior) -> list[tuple[int, int]]:
    if behavior == "Isolated":
        return [(start, stop) for start, stop, _ in parts]
    if behavior == "Removed":
        return [(start, stop) for start, stop, matches in parts if not matches]
    backwards = behavior == "MergedWithNext"
    kept: list[tuple[int, int]] = []
    before = False
    for start, stop, matches in reversed(parts) if backwards else parts:
        joins = matches == before if behavior == "Contiguous" else matches and not before
        before = matches
        if joins and kept:
            start, stop = min(start, kept[-1][0]), max(stop, kept[-1][1])
            kept.pop()
        kept.append((start, stop))
    return kept[::-1] if backwards else kept
