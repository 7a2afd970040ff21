"""All small changes of a C++ file, from its tokens. clang-format puts spaces around operators, which distinguishes them
from the brackets of a template. Changes that do not compile are discarded.
"""

from __future__ import annotations

import re

from mutants.change import Change, with_keys

OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "+=": "-=", "-=": "+=", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|",
}  # fmt: skip
PATTERNS = [
    ("operator", re.compile(r"(?<= )(<=|>=|==|!=|&&|\|\||\+=|-=|<<|>>|[<>+\-&|^])(?= [^&*>]|\n)")),
    ("number", re.compile(r"(?<![\w.'])(\d+)(?![\w.'])")),
    ("switch", re.compile(r"\b(true|false)\b")),
    ("condition", re.compile(r"(?<=\bif )(\([^;{}\n]*\))(?= (?:\{|return|continue|break))")),
    ("dropped call", re.compile(r"(?<=\n)[ \t]+((?!return|throw|using|delete)[\w:.>\-]+\([^;{}]*\);)(?=\n)")),
    ("dropped check", re.compile(r"(?<=\n)[ \t]+((?:if \([^;{}\n]*\) )?throw [^;]*;)(?=\n)")),
    ("loop", re.compile(r"\b(break|continue)(?=;)")),
]
LEFT_ALONE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#[^\n]*|static_assert[^;]*;|alignas\(\d+\)',
    re.S | re.M,
)
FUNCTION = re.compile(r"^[A-Za-z][^\n;]*?([\w~:]+)\([^;]*?\)[^;{]*\{$", re.M)


def native_changes(path: str, text: str) -> list[Change]:
    """Return the changes of one file, in the order of the text."""
    bare = LEFT_ALONE.sub(lambda match: re.sub(r"[^\n]", "\1", match[0]), text)
    functions = [(match.start(), match[1]) for match in FUNCTION.finditer(bare)]
    changes = []
    for kind, pattern in PATTERNS:
        for match in pattern.finditer(bare):
            start, stop = match.span(1)
            before = text[start:stop]
            scope = next((name for place, name in reversed(functions) if place <= start), "")
            line = text.count("\n", 0, start) + 1
            changes.append(Change(path, scope, line, kind, start, stop, before, _after(kind, before)))
    return with_keys(sorted(changes, key=lambda change: (change.start, change.stop)))


def _after(kind: str, before: str) -> str:
    match kind:
        case "operator":
            return OPERATORS[before]
        case "number":
            return "0" if before == "1" else str(int(before) + 1)
        case "switch":
            return "false" if before == "true" else "true"
        case "condition":
            return f"(!{before})"
        case "loop":
            return "continue" if before == "break" else "break"
    return ";"
