"""The matches of an expression of the `regex` package as the engines of the dialects find them.

One that backtracks without end is stopped: plain work takes time in proportion to the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bpe.errors import BadTokenizer

# Seconds for a text, and for each of its characters: more than a hundred times what plain work takes.
TIMEOUT_SECONDS: Final = 60
TIMEOUT_SECONDS_EACH: Final = 1e-4


def parts_of(text: str, expression: Any) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, whether it is a match) of the matches and of what lies between them, which is not empty.

    Behind an empty match the search goes on a character further, as in the engines of the dialects,
    where no other alternative is tried: "12ab", [0-9]*|[a-z]+ -> "12", "a", "b".
    """
    start = place = 0
    last = -1  # the end of the match before
    timeout = TIMEOUT_SECONDS + TIMEOUT_SECONDS_EACH * len(text)
    try:
        while place <= len(text):
            matches = expression.finditer(text, place, timeout=timeout)
            place = len(text) + 1
            for match in matches:
                first = match.start()
                if first > start:
                    yield start, first, False
                start = match.end()
                if start > first or start != last:  # no empty match stands where another one ends
                    yield first, start, True
                last = start
                if start == first:
                    place = start + 1
                    break
    except TimeoutError:
        raise BadTokenizer(
            f"pattern: took over {timeout:.0f} s on a text of {len(text)} characters because it backtracks. "
            "Simplify its "
            "repeats and lookarounds."
        ) from None
    if start < len(text):
        yield start, len(text), False
