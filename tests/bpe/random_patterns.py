"""Seeded random expressions of both dialects.

Most constructs exist in both dialects; _ONLY_SETS and _ONLY_GROUPS hold the exceptions. Repeated expressions always
consume text, so that an engine's rule for empty iterations does not matter.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

Dialect = Literal["rust", "oniguruma"]

LETTERS = "abcABCstzéßſKıǅ 1２.,'-_/漢字かナ😀"
TEXT = LETTERS + "ssdDtT\n\r\t\u00a0\u0301\u0345²½0789١٢[]{}()|^$*+?\\&~:ªʰαΑςΣk\u200d\u2028"
_ESCAPES = [r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\h", r"\H"]
_PROPERTIES = (
    "L N P S M Z C Lu Ll Lt Lm Lo Nd Han Hiragana Alphabetic White_Space Greek Emoji Uppercase".split()
)
_CHARACTERS = r"\n \t \r \. \\ \- \[ \] \/ \' \x41 \x{e9} \x{1F600}".split()
_ONLY_SETS = {
    "rust": r"\pL \PN [a-z--[aeiou]] [\w~~\d] \p{scx=Hira} \p{gc=Lu} [[:alpha:]] (?s:.)".split(),
    "oniguruma": r"\R (?m:.) [[:alpha:]] [[:^punct:]] [[:word:]] \p{Punct} \u00e9 [\w-]".split(),
}
_ONLY_GROUPS = {
    "rust": ["(?s:", "(?m:", "(?U:"],
    "oniguruma": ["(?m:", "(?i-m:", "(?x:", "(?i)(?:"],
}


def random_text(generator: random.Random, length: int) -> str:
    return "".join(generator.choices(TEXT, k=length))


def random_pattern(generator: random.Random, dialect: Dialect, depth: int = 3) -> str:
    """Return an expression that the dialect's engine accepts, with groups nested at most `depth` deep."""
    return _Generator(generator, dialect).alternatives(depth)


class _Generator:
    def __init__(self, generator: random.Random, dialect: Dialect) -> None:
        self._random = generator
        self._dialect = dialect

    def alternatives(self, depth: int) -> str:
        return "|".join(self._sequence(depth) for _ in range(self._random.choice([1, 1, 2, 3])))

    def _sequence(self, depth: int) -> str:
        return "".join(self._item(depth) for _ in range(self._random.choice([1, 2, 2, 3, 4])))

    def _item(self, depth: int) -> str:
        kinds: list[Callable[[int], str]] = [
            self._character,
            self._character,
            self._class,
            self._set,
            self._repeat,
        ]
        kinds.append(self._repeat)
        if depth > 0:
            kinds += [self._group, self._look, self._anchor]
        return self._random.choice(kinds)(depth)

    def _character(self, depth: int) -> str:
        if self._random.random() < 0.15:
            return self._random.choice(_CHARACTERS)
        letter = self._random.choice(LETTERS)
        return "\\" + letter if letter in ".+*?()[]{}|^$" else letter

    def _set(self, depth: int) -> str:
        choice = self._random.random()
        if choice < 0.4:
            return self._random.choice(_ESCAPES)
        if choice < 0.5:
            return "."
        if choice < 0.6:
            return self._random.choice(_ONLY_SETS[self._dialect])
        return self._property()

    def _property(self) -> str:
        name = self._random.choice(_PROPERTIES)
        return self._random.choice([r"\p{%s}", r"\p{%s}", r"\P{%s}", r"\p{^%s}"]) % name

    def _class(self, depth: int) -> str:
        parts = [self._class_item(depth) for _ in range(self._random.randint(1, 4))]
        operation = ""
        if self._random.random() < 0.2:
            operation = "&&" + self._random.choice(
                [self._class(depth - 1) if depth > 0 else "[^a]", r"\p{L}", "a-zé"]
            )
        return "[" + self._random.choice(["", "", "^"]) + "".join(parts) + operation + "]"

    def _class_item(self, depth: int) -> str:
        choice = self._random.random()
        if choice < 0.35:
            letter = self._random.choice(LETTERS.replace("-", "").replace("&", ""))
            return letter
        if choice < 0.45:
            return self._random.choice(_CHARACTERS)
        if choice < 0.6:
            first, last = sorted(self._random.choices("abcxyzABZ019éßαω一龥", k=2))
            return f"{first}-{last}"
        if choice < 0.75:
            return self._random.choice(_ESCAPES)
        if choice < 0.9 or depth <= 0:
            return self._property()
        return self._class(depth - 1)

    def _repeat(self, depth: int) -> str:
        body = self._random.choice([self._character, self._class, self._set])(depth)
        if depth > 0 and self._random.random() < 0.3:
            body = f"(?:{self._character(depth)}{self._sequence(depth - 1)}|{self._class(depth)})"
        bounds = self._random.choice(["?", "*", "+", "+", "{2}", "{1,3}", "{0,2}", "{2,}", "{,2}"])
        mode = self._random.choice(["", "", "", "?", "+"])
        if self._dialect == "oniguruma" and bounds[0] == "{" and mode == "+":
            mode = ""
        return body + bounds + mode

    def _group(self, depth: int) -> str:
        both = ["(?:", "(?:", "(?>", "(?i:", "(?i:", "(?-i:"]
        opening = self._random.choice([*both, self._random.choice(_ONLY_GROUPS[self._dialect])])
        return f"{opening}{self.alternatives(depth - 1)})"

    def _look(self, depth: int) -> str:
        opening = self._random.choice(["(?=", "(?!", "(?=", "(?!", "(?<=", "(?<!"])
        if "<" in opening:
            return f"{opening}{self._random.choice([self._character, self._class, self._set])(0)})"
        return f"{opening}{self.alternatives(depth - 1)})"

    def _anchor(self, depth: int) -> str:
        return self._random.choice(["^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"])
