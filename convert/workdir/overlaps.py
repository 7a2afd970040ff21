"""Outputs that overlap inputs: publishing would replace an input, or the next run would read the output as one.

Symbolic links are resolved. `<output>.partial` counts as part of the output, because a run works and deletes there.
"""

# ruff: noqa: PTH112, PTH115 - Path would turn "./a" into "a"
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from tokenmill.inputs.source_list import Source
from tokenmill.stores import is_url

_STANDARD_INPUT = Path("/proc/self/fd/0")


def overlaps(arguments: Iterable[str], sources: Iterable[Source], output: str) -> Iterator[str]:
    """Yield each problem of an output. arguments: the inputs without "-". sources: the files in them."""
    target = os.path.realpath(output)
    for argument in arguments:
        path = os.path.realpath(argument)
        if is_url(argument):
            is_inside = is_url(output) and f"{output.rstrip('/')}/".startswith(_listed_folder(argument))
        elif path == target:
            yield f"{output}: would replace the input {argument}. Choose another --output."
            continue
        else:
            is_inside = os.path.isdir(path) and _is_inside(target, path)
        if is_inside:
            yield f"{output}: is inside the input {argument}. Choose an --output outside it."
    for name, folder in _existing_folders(output):
        for inputs, _ in groupby(_local_paths(sources), os.path.dirname):
            inputs = os.path.realpath(inputs or ".")
            if inputs == folder or _is_inside(inputs, folder):
                yield f"{name}: contains the input folder {inputs}. Choose another --output."
                break
    yield from overlaps_of_files("the input", filter(os.path.islink, _local_paths(sources)), output)


def overlaps_of_files(what: str, paths: Iterable[str | Path], output: str) -> Iterator[str]:
    """Yield each problem of an output with single files. what: names them, such as "the tokenizer"."""
    folders = _existing_folders(output)
    for path in paths:
        resolved = os.path.realpath(path)
        if resolved == os.path.realpath(output):
            yield f"{output}: would replace {what} {path}. Choose another --output."
        for name, folder in folders:
            if _is_inside(resolved, folder):
                yield f"{name}: contains {what} {path}. Choose another --output."


def standard_input_file() -> str | None:
    """Return the path of the file that standard input was redirected from, or None."""
    with suppress(OSError):
        if _STANDARD_INPUT.is_file():
            return os.readlink(_STANDARD_INPUT)
    return None


def _existing_folders(output: str) -> list[tuple[str, str]]:
    """Return (name, resolved path) of the output and its work folder, as far as they exist."""
    names = (output, f"{output.rstrip('/')}.partial")
    return [(name, os.path.realpath(name)) for name in names if os.path.isdir(name)]


def _local_paths(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the paths of local sources, except the copy of standard input in the work folder."""
    return (source.path for source in sources if source.digest is None and not source.version)


def _listed_folder(url: str) -> str:
    """Return the URL, with a final slash, of the folder that is read at all depths; for other patterns, the pattern."""
    return (url[: url.index("**")].rpartition("/")[0] if "**" in url else url.rstrip("/")) + "/"


def _is_inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)
