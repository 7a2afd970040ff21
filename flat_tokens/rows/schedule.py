"""Values that change at given steps."""

from __future__ import annotations

from typing import Any

from flat_tokens.arguments import integer, invalid

Entries = list[tuple[int, Any]]


def entries_of(name: str, value: Any) -> Entries:
    """[(first_step, item), ...] as given, or a value for all steps as [(0, value)]. ArgumentError unless the steps rise
    from 0."""
    is_schedule = isinstance(value, list | tuple) and all(
        isinstance(entry, list | tuple) and len(entry) == 2 for entry in value
    )
    if not is_schedule or not value:
        return [(0, value)]
    entries = [(integer(f"first step of {name}", first, 0), item) for first, item in value]
    firsts = [first for first, _ in entries]
    if firsts[0] or sorted(set(firsts)) != firsts:
        raise invalid(name, "steps of a schedule must rise from 0", firsts)
    return entries
