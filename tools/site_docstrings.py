"""Griffe extension that renders docstrings as Markdown, with lists of parameters and links to pages of docs.

f(array, seq_len): "array: a split. seq_len: tokens." -> "- `array`: a split.\\n- `seq_len`: tokens."
"""

from __future__ import annotations

import re
from typing import Any

import griffe

PAGE = re.compile(r"`?\bdocs/([\w/-]+)\.md`?")
ERRORS = re.compile(
    r"(?<=\. )(?=[A-Z]\w*(?:Error|Failure|Argument|Counts|Tokenizer|Text|Input|Memory|Refused)\b)"
)


class Readable(griffe.Extension):
    """Rewrites the docstring of each object that griffe reads."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        self.on_object(obj=pkg)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None:
            return
        names = [name for name, member in obj.members.items() if obj.is_class and member.is_attribute]
        for function in (obj, obj.members.get("__init__")):
            if isinstance(function, griffe.Function):
                names += [parameter.name for parameter in function.parameters]
        text = with_lists(without_tags(obj.docstring.value), names)
        obj.docstring.value = PAGE.sub(r"[docs/\1.md](../../\1.md)", text)


def without_tags(text: str) -> str:
    """Escape tags such as "<s>" outside code."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("    "):
            parts = re.split(r"(`[^`]*`)", line)
            parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
            lines[number] = "".join(parts)
    return "\n".join(lines)


def with_lists(text: str, names: list[str]) -> str:
    """Turn descriptions of parameters into lists, outside code and lists."""
    known = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    entry = re.compile(rf"(?:^|(?<=[.;] ))((?:{known})(?:,? (?:or |and )?(?:{known}))*): ")
    return "\n\n".join(listed(paragraph, entry) if known else paragraph for paragraph in text.split("\n\n"))


def listed(paragraph: str, entry: re.Pattern[str]) -> str:
    line = " ".join(paragraph.split("\n"))
    intro, *found = entry.split(line)
    if paragraph.startswith((" ", "-", "\t")) or not found:
        return paragraph
    lines = [intro.strip(), ""] if intro.strip() else []
    rest = []
    for names, said in zip(found[::2], found[1::2], strict=True):
        code = re.sub(r"\b(?!or\b|and\b)\w+", r"`\g<0>`", names)
        if errors := ERRORS.search(said):
            said, rest = said[: errors.start()], ["", said[errors.start() :]]
        lines.append(f"- {code}: {said.strip().rstrip(';')}")
    return "\n".join([*lines, *rest])
