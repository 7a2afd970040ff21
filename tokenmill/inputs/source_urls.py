"""Find the objects that a URL names: one object, all objects in a folder, or those that match a glob.

    s3://bucket/a.txt   s3://bucket/data/   s3://bucket/data   s3://bucket/**/*.jsonl.gz   https://host/a.parquet

Objects of folders and globs are sorted by the bytes of their keys. Of a folder written by `save_to_disk`, the files in
its list are read. Names that begin with a dot are skipped. `*` and `?` match within a name, and `**` matches any number
of folders. A web server has no listing, so each of its URLs is one file, and `*` and `?` are ordinary characters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from glob import has_magic

from tokenmill.errors import printable
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.hints import DATASET_WITHIN, ZARR_METADATA
from tokenmill.inputs.kinds import PLAIN_TEXT, Rank, kind_of, rank_in_folder
from tokenmill.inputs.saved_dataset import LISTS, is_list, listed
from tokenmill.inputs.source_list import Source
from tokenmill.stores import (
    Entry,
    StorageOptions,
    StoreNotFound,
    UnknownScheme,
    open_store,
    shown_url,
    split_key,
)
from tokenmill.stores.url import parse

_WEB = ("http://", "https://")


def find_objects(
    url: str,
    options: StorageOptions,
    input_format: str,
    problems: list[str],
    is_excluded: Callable[[str], bool] = lambda url: False,
) -> Iterator[tuple[Source, Rank]]:
    """Yield the objects of a URL as sources with ranks. Raise StoreError if the store does not answer.

    problems: receives the faults of the URL.
    """
    pairs = tuple(sorted(options.items()))
    is_empty, datasets = True, set[str]()
    try:
        parse(url)  # raises UnknownScheme
        for path, entry, inside in _entries(url, options):
            is_empty = False
            if is_excluded_below(url, path, is_excluded):
                continue
            folder, _, base = path.rpartition("/")
            if base == ZARR_METADATA:
                datasets.add(folder)
            rank = rank_in_folder(base, input_format, inside == base) if inside else Rank.NAMED
            try:
                kind = PLAIN_TEXT if rank == Rank.NO_DATA else kind_of(split_key(path)[1], input_format)
            except ValueError as error:
                problems.append(f"{shown_url(path)}: {error}")
                continue
            yield Source(path, entry.size, 0, kind=kind, version=entry.version, options=pairs), rank
    except (StoreNotFound, UnknownScheme, BadInput) as error:
        problems.append(str(error))
        return
    problems += [f"{shown_url(folder)}: {DATASET_WITHIN}" for folder in outermost(datasets)]
    if is_empty:
        problems.append(f"{printable(shown_url(url))}: no objects (names that begin with a dot are skipped)")


def is_excluded_below(argument: str, path: str, is_excluded: Callable[[str], bool]) -> bool:
    """Whether a path of an argument is excluded, or a folder between the argument and the path.

    ("in/**", "in/drafts/a.txt") checks "in/drafts" and "in/drafts/a.txt".
    """
    magic = re.search(r"[*?[]", argument)
    first = magic.start() if magic else len(argument)
    ends = [index for index in range(first, len(path)) if path[index] == "/"]
    return any(is_excluded(path[:end]) for end in (*ends, len(path)) if end)


def outermost(folders: Iterable[str]) -> list[str]:
    """Return the folders that are in none of the others, sorted."""
    found: list[str] = []
    for folder in sorted(folders):
        if not any(folder.startswith(f"{other}/") for other in found):
            found.append(folder)
    return found


def _entries(url: str, options: StorageOptions) -> Iterator[tuple[str, Entry, str]]:
    """Yield (URL, entry, path in the folder that the argument names) of objects; "" for an object it names itself."""
    scheme = url[: url.index("://") + 3].lower()
    path, missing = url[len(scheme) :], None
    if has_magic(path) and scheme not in _WEB:
        yield from _matching(scheme, path.split("/"), options)
        return
    if scheme in _WEB or ("/" in path and not path.endswith("/")):
        try:
            folder, key = split_key(url)
            yield url, open_store(folder, options).head(key), ""
            return
        except StoreNotFound as error:
            if scheme in _WEB:
                raise
            missing = error
    folder, is_empty = url.rstrip("/"), True
    for object_url, entry in _in_folder(folder, options):
        is_empty = False
        yield object_url, entry, object_url[len(folder) + 1 :]
    if is_empty and missing is not None:
        raise missing


def _in_folder(folder: str, options: StorageOptions) -> Iterator[tuple[str, Entry]]:
    """Yield (URL, entry) of the files in the list of `save_to_disk`, or of all visible objects."""
    store = open_store(folder, options)
    for name in LISTS:
        try:
            data = bytes(store.read(name))
        except StoreNotFound:
            continue
        entries = {entry.key: entry for entry in store.list()}
        names = {os.fsencode(key.partition("/")[0]) for key in entries}
        if is_list(name, names):
            for part in map(os.fsdecode, listed(shown_url(f"{folder}/{name}"), data, names)):
                if part in entries:
                    yield f"{folder}/{part}", entries[part]
                else:
                    yield from _in_folder(f"{folder}/{part}", options)
            return
    for entry in store.list():
        if not any(name.startswith(".") for name in entry.key.split("/")):
            yield f"{folder}/{entry.key}", entry


def _matching(scheme: str, names: list[str], options: StorageOptions) -> Iterator[tuple[str, Entry, str]]:
    first = next(index for index, name in enumerate(names) if has_magic(name))
    folder, patterns = scheme + "/".join(names[:first]), names[first:]
    for entry in open_store(folder, options).list():
        parts = entry.key.split("/")
        if _matches(parts, patterns, "**" in patterns):
            inside = "" if "**" in patterns else "/".join(parts[len(patterns) :])
            yield f"{folder}/{entry.key}", entry, inside


def _matches(names: list[str], patterns: list[str], whole: bool) -> bool:
    """Whether the names match the patterns. whole: all names must match; otherwise the first may name a folder."""
    if not patterns:
        return not names or not (whole or any(name.startswith(".") for name in names))
    if patterns[0] == "**" and _matches(names, patterns[1:], whole):
        return True
    if not names or (names[0].startswith(".") and not patterns[0].startswith(".")):
        return False
    if patterns[0] == "**":
        return _matches(names[1:], patterns, whole)
    return fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:], whole)
