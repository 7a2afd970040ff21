"""Outputs that overlap inputs: publishing would replace an input, or the next run would read the output as one.

`<output>.partial` counts as part of the output, because a run works and deletes there. Symbolic links are resolved.
"""

# ruff: noqa: PTH113, PTH114, PTH115, PTH118 - a Path costs more than the check, and turns "./a" into "a"
from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tokenmill.errors import BadArgument, printable
from tokenmill.stores.url import is_url

_STANDARD_INPUT = "/proc/self/fd/0"


def overlap(output: str, inputs: Iterable[str]) -> str | None:
    """Return the first problem of an output, or None.

    inputs: files, folders, URLs, and "-" for standard input. A URL may contain wildcards.
    """
    target = os.path.realpath(output)
    places = [f"{place}/" for place in (target, os.path.realpath(f"{output.rstrip('/')}.partial"))]
    resolved = cache(os.path.realpath)  # of folders, since a million files have few
    for path in inputs:
        if is_url(path):
            if is_url(output) and f"{output.rstrip('/')}/".startswith(_listed_folder(path)):
                return f"{output}: is inside the input {path}. Choose an --output outside it."
            continue
        folder, name = os.path.split(path)
        if path == "-" and os.path.isfile(_STANDARD_INPUT):
            found = os.readlink(_STANDARD_INPUT)
        elif name in ("", ".", "..") or os.path.islink(path):
            found = os.path.realpath(path)
        else:
            found = os.path.join(resolved(folder), name)
        if any(f"{found}/".startswith(place) for place in places):
            shown = "standard input" if path == "-" else f"the input {path}"
            return f"{output}: would replace {shown}. Choose another --output."
        if target.startswith(f"{found}/") and not is_url(output):
            return f"{output}: is inside the input {path}. Choose an --output outside it."
    return None


def check_apart(output: Path, inputs: Iterable[object]) -> None:
    """Raise BadArgument if an output and an input overlap. Inputs that are not paths are ignored."""
    if problem := overlap(str(output), (str(path) for path in inputs if isinstance(path, str | Path))):
        raise BadArgument(printable(problem))


def _listed_folder(url: str) -> str:
    """Return the URL, with a final slash, of the folder that is read at all depths; for other patterns, the pattern."""
    return (url[: url.index("**")].rpartition("/")[0] if "**" in url else url.rstrip("/")) + "/"
