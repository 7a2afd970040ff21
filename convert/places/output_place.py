"""What is wrong with the place of an output among what is read: the one would be replaced by, or read as, the other.

Links are resolved. Work is done in `<output>.partial`, so what lies there is not read either.
"""

# ruff: noqa: PTH112, PTH115 - paths stay as they were given; Path would make "./a" and "a" one
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
    """What is wrong with an output, given the arguments, without "-", and the files that they stand for."""
    target = os.path.realpath(output)
    for argument in arguments:
        if is_url(argument):
            if is_url(output) and f"{output.rstrip('/')}/".startswith(_read_below(argument)):
                yield _inside(output, argument)
            continue
        place = os.path.realpath(argument)
        if place == target:
            yield _replaces(output, "the input", argument)
        elif os.path.isdir(place) and _is_inside(target, place):
            yield _inside(output, argument)
    folders = list(_folders(output))
    if not folders:
        return  # nothing lies in them
    for name, target in folders:
        for folder, _ in groupby(_files(sources), os.path.dirname):
            folder = os.path.realpath(folder or ".")
            if folder == target or _is_inside(folder, target):
                yield _contains(name, "the input folder", folder)
                break
    yield from overlaps_of_files("the input", filter(os.path.islink, _files(sources)), output)


def _inside(output: str, argument: str) -> str:
    return f"{output}: is inside the input {argument}. Choose an --output outside it."


def _replaces(output: str, what: str, path: object) -> str:
    return f"{output}: would replace {what} {path}. Choose another --output."


def _contains(folder: str, what: str, path: object) -> str:
    return f"{folder}: contains {what} {path}. Choose another --output."


def _read_below(url: str) -> str:
    """The URL, with a slash behind it, of the folder of which everything is read, however deep it lies; for a pattern
    that goes no deeper the pattern, in which nothing lies."""
    return url[: url.index("**")].rpartition("/")[0] + "/" if "**" in url else url.rstrip("/") + "/"


def _files(sources: Iterable[Source]) -> Iterator[str]:
    """The local paths, without that of standard input, which is put into the partial folder."""
    return (source.path for source in sources if source.digest is None and not source.version)


def overlaps_of_files(what: str, paths: Iterable[str | Path], output: str) -> Iterator[str]:
    """The same of single files; what: "the tokenizer"."""
    folders = list(_folders(output))
    for path in paths:
        place = os.path.realpath(path)
        if place == os.path.realpath(output):
            yield _replaces(output, what, path)
        for name, target in folders:
            if _is_inside(place, target):
                yield _contains(name, what, path)


def standard_input_file() -> str | None:
    """The file that the shell made standard input of, where the system says it; None: a pipe, or not known."""
    with suppress(OSError):
        if _STANDARD_INPUT.is_file():
            return os.readlink(_STANDARD_INPUT)
    return None


def _folders(output: str) -> Iterator[tuple[str, str]]:
    """(what it is called, where it is) of the folders that there are already, in which things would be replaced."""
    for name in (output, f"{output.rstrip('/')}.partial"):
        if os.path.isdir(name):
            yield name, os.path.realpath(name)


def _is_inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)
