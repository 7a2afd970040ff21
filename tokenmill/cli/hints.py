"""Suggestions for a misspelled word: the known word that is closest in spelling."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from tokenmill.errors import shown


def nearest(word: str, known: Iterable[str]) -> str:
    """("--ouput", ["--output"]) -> ". Did you mean --output?"; "" if no known word is close."""
    by_name = {name.lstrip("-"): name for name in known}  # leading hyphens would make all options similar
    found = get_close_matches(word.lstrip("-").replace("_", "-"), by_name, 1, 0.6)
    return f". Did you mean {by_name[found[0]]}?" if found else ""


def unknown_command(word: str, known: Collection[str]) -> str:
    """Return the message for a command that does not exist."""
    advice = nearest(word, known) or f". Choose one of {', '.join(known)}."
    return f"unknown command: {shown(word)}{advice}"
