"""`Regex`: an expression where a text would be taken as it is."""

from __future__ import annotations

from typing import Any

from bpe.errors import shown


class Regex:
    """An expression of Oniguruma."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern


def pattern(name: str, value: Any) -> Any:
    """A text or a Regex, this one or that of tokenizers; TypeError for others."""
    if not isinstance(value, str) and not isinstance(getattr(value, "pattern", None), str):
        raise TypeError(f"{name}: must be a str or a Regex (got {shown(value)})")
    return value


def pattern_to_json(pattern: Any) -> dict[str, str]:
    """tokenizer.json's spelling of a text or a Regex."""
    return {"String": pattern} if isinstance(pattern, str) else {"Regex": pattern.pattern}


def pattern_from_json(value: Any) -> Any:
    """What tokenizer.json spells."""
    return Regex(value["Regex"]) if "Regex" in value else value["String"]
