"""Pre-tokenizing with alignment, in Python: for the components that change the text or drop parts of it.

Where the core cuts, `text_pieces` reads its cuts instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import regex

from bpe.compat.huggingface.aligned_text import AlignedText
from bpe.compat.huggingface.normalize import normalized
from bpe.errors import UnsupportedTokenizer
from bpe.normalizers import ByteLevel as ByteAlphabet
from bpe.normalizers import Normalizer
from bpe.pretokenization.by_regex import expression_of
from bpe.pretokenization.components import Behavior, ByteLevel, Component, Metaspace, UnicodeScripts
from bpe.pretokenization.stage import Stage
from bpe.pretokenization.stages import stages_of

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
            for stage in _stages(component) if component.use_regex else ():
                parts = [part for each in parts for part in _split(each, stage)]
            return [normalized(part, _IN_BYTES) for part in parts]
        case UnicodeScripts():
            raise UnsupportedTokenizer("pre_tokenizer UnicodeScripts is not supported")
    parts = [text]
    for stage in _stages(component):
        parts = [part for each in parts for part in _split(each, stage)]
    return parts


@lru_cache(maxsize=64)
def _stages(component: Component) -> list[Stage]:
    return stages_of([component])


@lru_cache(maxsize=64)
def _expression(stage: Stage) -> regex.Pattern[str]:
    return regex.compile(expression_of(stage.tree))


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


def _split(text: AlignedText, stage: Stage) -> Iterator[AlignedText]:
    """The parts that a split leaves, in order; some may be empty."""
    parts: list[tuple[int, int, bool]] = []  # [start, stop) and whether it is a match
    done = 0
    for match in _expression(stage).finditer(text.text):
        if done < match.start():
            parts.append((done, match.start(), stage.invert))
        parts.append((*match.span(), not stage.invert))
        done = match.end()
    if done < len(text):
        parts.append((done, len(text), stage.invert))
    for start, stop in _kept(parts, stage.behavior):
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
