"""Docstrings as the site shows them: what they say of each parameter is an entry of a list, pages are links.

f(array, seq_len): "array: a split. seq_len: tokens a row." -> "- `array`: a split.\\n- `seq_len`: tokens a row."
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import griffe

PAGE = re.compile(r"`?\bdocs/([\w-]+)\.md`?")
UP = "../../"  # from reference/python/
ERRORS = re.compile(
    r"(?<=\. )(?=[A-Z]\w*(?:Error|Failure|Argument|Counts|Tokenizer|Text|Input|Memory|Refused)\b)"
)


class Readable(griffe.Extension):
    """Griffe calls it for each object that it has read."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        self._change(func, [parameter.name for parameter in func.parameters])

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        names = [name for name, member in cls.members.items() if member.is_attribute]
        made = cls.members.get("__init__")
        if isinstance(made, griffe.Function):
            names += [parameter.name for parameter in made.parameters]
        self._change(cls, names)

    def on_module(self, *, mod: griffe.Module, **_: Any) -> None:
        self._change(mod, [])

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        self._change(attr, [])

    @staticmethod
    def _change(found: griffe.Object, names: Iterable[str]) -> None:
        if found.docstring is not None:
            text = with_lists(without_tags(found.docstring.value), names)
            found.docstring.value = PAGE.sub(rf"[docs/\1.md]({UP}\1.md)", text)


def without_tags(text: str) -> str:
    """ "<s>" as text, which Markdown would take for a tag; code stays as it is."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("    "):
            parts = re.split(r"(`[^`]*`)", line)
            parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
            lines[number] = "".join(parts)
    return "\n".join(lines)


def with_lists(text: str, names: Iterable[str]) -> str:
    """The text with a list in each paragraph that tells of parameters; code and lists stay as they are."""
    known = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    if not known:
        return text
    entry = re.compile(rf"(?:^|(?<=[.;] ))((?:{known})(?:,? (?:or |and )?(?:{known}))*): ")
    return "\n\n".join(listed(paragraph, entry) for paragraph in text.split("\n\n"))


def listed(paragraph: str, entry: re.Pattern[str]) -> str:
    if paragraph.startswith((" ", "-", "\t")):
        return paragraph
    line = " ".join(paragraph.split("\n"))
    found = list(entry.finditer(line))
    if not found:
        return paragraph
    ends = [*(one.start() for one in found[1:]), len(line)]
    lines = []
    if line[: found[0].start()].strip():
        lines += [line[: found[0].start()].strip(), ""]
    for one, end in zip(found, ends, strict=True):
        names = re.sub(r"\w+", lambda name: name[0] if name[0] in ("or", "and") else f"`{name[0]}`", one[1])
        said = line[one.end() : end].strip()
        rest = ""
        if end == len(line) and (errors := ERRORS.search(said)):
            said, rest = said[: errors.start()].strip(), said[errors.start() :]
        lines.append(f"- {names}: {said.rstrip(';')}")
        if rest:
            lines += ["", rest]
    return "\n".join(lines)
