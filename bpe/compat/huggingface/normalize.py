"""Normalizing with alignment: what `bpe.normalizers` gives, and where each character of it comes from.

The texts are the core's, character by character, so they are those that are encoded. The normal forms say for each
character how many of the decomposed ones it took, which is what tokenizers counts by: where marks change places, a
character's range can be its neighbour's.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from functools import cache

import regex

from bpe import _core
from bpe.compat.huggingface.aligned_text import AlignedText
from bpe.normalizers import (
    Bert,
    ByteLevel,
    Component,
    Form,
    Lowercase,
    Nmt,
    Normalizer,
    Precompiled,
    Prefix,
    Prepend,
    Replace,
    Strip,
    StripAccents,
)

_LONGEST_CLUSTER_BYTES = 5  # that SentencePiece's charsmap is asked for as a whole


def normalized(text: AlignedText, normalizer: Normalizer | None) -> AlignedText:
    """The text after all components; its `text` is `normalizer.apply`'s."""
    for component in normalizer.components if normalizer is not None else ():
        text = _apply(text, component)
    return text


def _apply(text: AlignedText, component: Component) -> AlignedText:
    match component:
        case Form():
            return _form(text, component.name.lower())
        case Strip():
            return _strip(text, component)
        case Prepend():
            return text.prepended(component.text)
        case Prefix():
            return text if text.text.startswith(component.text) else text.prepended(component.text)
        case Replace():
            return _replace(text, component)
        case Precompiled():
            return _precompiled(text, component)
        case Bert():
            for name, _, _ in component.steps():
                text = _form(text, name) if name == "nfd" else text.mapped(_character_map(name))
            return text
        case ByteLevel() | Lowercase() | Nmt() | StripAccents():
            ((name, _, _),) = component.steps()
            return text.mapped(_character_map(name))


class _CharacterMap(dict[str, str]):
    """What a step of the core makes of each character by itself."""

    def __init__(self, name: str, first: bytes = b"") -> None:
        self._core = _core.Normalizer([(name, first, b"")])

    def __missing__(self, character: str) -> str:
        made = self[character] = self._core.apply(character.encode()).decode()
        return made

    def of_text(self, text: str) -> str:
        """What it makes of a whole text."""
        return self._core.apply(text.encode()).decode()


@cache
def _map_of(name: str) -> _CharacterMap:
    return _CharacterMap(name)


def _character_map(name: str) -> Callable[[str], str]:
    return _map_of(name).__getitem__


# -- normal forms -----------------------------------------------------------------------------------------------------


def _form(text: AlignedText, name: str) -> AlignedText:
    if _map_of(name).of_text(text.text) == text.text:
        return text
    decomposed_name = name[:-1] + "d"
    decompose = _character_map(decomposed_name)
    # (character, whether it is more than the one whose place it takes), in the order of the text
    parts = [(part, place > 0) for character in text.text for place, part in enumerate(decompose(character))]
    ordered = _in_order(parts, _map_of(decomposed_name).of_text(text.text))
    if name.endswith("d"):
        return _moved(text, [(character, int(more)) for character, more in ordered])
    return _moved(text, _composed(ordered, _map_of(name).of_text(text.text)))


def _in_order(parts: list[tuple[str, bool]], ordered: str) -> list[tuple[str, bool]]:
    """The parts as they stand once marks are in order, which leaves equal ones in theirs."""
    waiting: defaultdict[str, deque[bool]] = defaultdict(deque)
    for character, more in parts:
        waiting[character].append(more)
    return [(character, waiting[character].popleft()) for character in ordered]


def _composed(parts: list[tuple[str, bool]], composed: str) -> list[tuple[str, int]]:
    """(character, how many of the original it is more than one) of the composed text."""
    decompose = _character_map("nfd")
    result: list[tuple[str, int]] = []
    taken = [False] * len(parts)
    first = 0
    for character in composed:
        while taken[first]:
            first += 1
        change, at = int(parts[first][1]), first
        if parts[first][0] == character:
            taken[first] = True
        else:
            for part in decompose(character):
                while taken[at] or parts[at][0] != part:
                    at += 1
                taken[at] = True
                change += at != first and parts[at][1] - 1
        result.append((character, change))
    return result


def _moved(text: AlignedText, characters: list[tuple[str, int]]) -> AlignedText:
    """1: inserted, it belongs to the one before; 0: takes the next one's place; -n: and n more are gone."""
    sources = []
    at = 0
    for _, change in characters:
        sources.append(max(at - 1, 0) if change > 0 else min(at, len(text) - 1))
        if change <= 0:
            at += 1 - change
    return text.taking("".join(character for character, _ in characters), sources)


# -- the others -------------------------------------------------------------------------------------------------------


def _strip(text: AlignedText, component: Strip) -> AlignedText:
    start, stop = 0, len(text)
    if component.left:
        start = stop - len(_map_of("strip_left").of_text(text.text))
    if component.right and start < stop:
        stop = len(_map_of("strip_right").of_text(text.text))
    return text[start:stop]


def _replace(text: AlignedText, component: Replace) -> AlignedText:
    """What replaces a match belongs to the last character of it."""
    made: list[str] = []
    sources: list[int] = []
    for start, stop, is_match in component.parts(text.text):
        if is_match:
            made.append(component.content)
            sources += [max(stop - 1, 0)] * len(component.content)
        else:
            made.append(text.text[start:stop])
            sources += range(start, stop)
    return text.taking("".join(made), sources)


def _precompiled(text: AlignedText, component: Precompiled) -> AlignedText:
    core = _CharacterMap("precompiled", component.charsmap)
    characters: list[tuple[str, int]] = []
    for cluster in regex.findall(r"\X", text.text):
        by_character = "".join(core[character] for character in cluster)
        whole = core.of_text(cluster)
        if whole != by_character and len(cluster.encode()) <= _LONGEST_CLUSTER_BYTES:
            _put(characters, cluster, whole)
        else:
            for character in cluster:
                _put(characters, character, core[character])
    if "".join(character for character, _ in characters) == text.text:
        return text
    return _moved(text, characters)


def _put(characters: list[tuple[str, int]], old: str, new: str) -> None:
    """Write down that `new` stands where `old` stood; what is missing is gone behind the last character."""
    characters += [(character, int(place >= len(old))) for place, character in enumerate(new)]
    if len(new) < len(old) and characters:
        last, change = characters[-1]
        characters[-1] = last, change + len(new) - len(old)
