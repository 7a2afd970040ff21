"""Which objects of stores a URL among the arguments stands for: one, all in a folder, or those that match a glob.

    s3://bucket/a.txt   s3://bucket/data/   s3://bucket/data   s3://bucket/**/*.jsonl.gz   https://host/a.parquet

What a folder or a glob stands for is listed in the order of the keys' bytes; of a folder that `save_to_disk` wrote, the
files that it lists. Names that begin with a dot are left out,
as in local folders. * and ? match within a name, ** any number of folders. A web server lists nothing: each of its
files is an argument, and * and ? in it are themselves.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from glob import has_magic

from tokenmill.errors import printable
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.hints import DATASET_WITHIN, ZARR_METADATA
from tokenmill.inputs.kinds import FORMATS, PLAIN_TEXT, Rank, empty_table, kind_of, rank_in_folder
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

_LISTLESS = ("http://", "https://")
_NO_DEVICE = 2**64 - 1  # in place of a file's device


def find_objects(
    url: str,
    options: StorageOptions,
    input_format: str,
    problems: list[str],
    keep_empty: bool = False,
    is_excluded: Callable[[str], bool] = lambda url: False,
) -> Iterator[tuple[Source, Rank]]:
    """The objects of a URL, in order, as sources with their ranks; `problems` receives its faults.

    keep_empty: also yield empty tables.
    StoreError (exit 4) for what is wrong with the store: no answer, no permission.
    """
    pairs = tuple(sorted(options.items()))
    found = False
    datasets: set[str] = set()
    try:
        parse(url)  # UnknownScheme if it names nothing
        for place, entry, inside in _entries(url, options):
            found = True
            if is_excluded_below(url, place, is_excluded):
                continue
            folder, _, base = place.rpartition("/")
            if base == ZARR_METADATA:
                datasets.add(folder)
            name, rank = split_key(place)[1], Rank.NAMED
            if inside:
                rank = rank_in_folder(base, input_format, inside == base)
            try:
                kind = PLAIN_TEXT if rank == Rank.NO_DATA else kind_of(name, input_format)
            except ValueError as error:
                problems.append(f"{shown_url(place)}: {error}")
                continue
            if FORMATS[kind.format].is_encoded and not entry.size and not keep_empty:
                problems.append(empty_table(shown_url(place), kind))
                continue
            yield Source(place, entry.size, 0, kind=kind, version=entry.version, options=pairs), rank
    except (StoreNotFound, UnknownScheme, BadInput) as error:
        problems.append(str(error))
        return
    problems += [f"{shown_url(folder)}: {DATASET_WITHIN}" for folder in outermost(datasets)]
    if not found:
        problems.append(f"{printable(shown_url(url))}: no objects (names that begin with a dot are skipped)")


def is_excluded_below(argument: str, path: str, is_excluded: Callable[[str], bool]) -> bool:
    """Whether a path of an argument is excluded, or a folder between the argument and the path.

    ("in/**", "in/drafts/a.txt") checks "in/drafts" and "in/drafts/a.txt".
    """
    magic = re.search(r"[*?[]", argument)
    named = magic.start() if magic else len(argument)
    ends = [place for place in range(named, len(path)) if path[place] == "/"]
    return any(is_excluded(path[:end]) for end in (*ends, len(path)) if end)


def outermost(folders: Iterable[str]) -> list[str]:
    """Those folders that lie in none of the others, in order."""
    found: list[str] = []
    for folder in sorted(folders):
        if not any(folder.startswith(f"{other}/") for other in found):
            found.append(folder)
    return found


def source_identity(source: Source) -> tuple[int, int]:
    """What equal URLs have alike, in the form of a file's device and number."""
    digest = hashlib.blake2b(source.path.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return _NO_DEVICE, int.from_bytes(digest, "big")


def _entries(url: str, options: StorageOptions) -> Iterator[tuple[str, Entry, str]]:
    """(URL, entry, path within the folder that the URL names, "" for an object that it names) of the objects."""
    scheme = url[: url.index("://") + 3].lower()
    if scheme in _LISTLESS:
        yield url, _head(url, options), ""
        return
    path = url[len(scheme) :]
    if has_magic(path):
        yield from _matching(scheme, path.split("/"), options)
        return
    if not path.endswith("/") and "/" in path:
        try:
            yield url, _head(url, options), ""
            return
        except StoreNotFound as error:
            there_is_none = error
    else:
        there_is_none = None
    is_empty = True
    folder = url.rstrip("/")
    for place, entry in _in_folder(folder, options):
        is_empty = False
        yield place, entry, place[len(folder) + 1 :]
    if is_empty and there_is_none is not None:
        raise there_is_none


def _head(url: str, options: StorageOptions) -> Entry:
    folder, key = split_key(url)
    return open_store(folder, options).head(key)


def _in_folder(folder: str, options: StorageOptions) -> Iterator[tuple[str, Entry]]:
    """What a folder stands for: what `save_to_disk` lists, if it wrote it, else all objects below it."""
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
    yield from _visible(folder, options)


def _visible(folder: str, options: StorageOptions) -> Iterator[tuple[str, Entry]]:
    for entry in open_store(folder, options).list():
        if not any(name.startswith(".") for name in entry.key.split("/")):
            yield f"{folder}/{entry.key}", entry


def _matching(scheme: str, names: list[str], options: StorageOptions) -> Iterator[tuple[str, Entry, str]]:
    first = next(number for number, name in enumerate(names) if has_magic(name))
    folder, patterns = scheme + "/".join(names[:first]), names[first:]
    for entry in open_store(folder, options).list():
        parts = entry.key.split("/")
        if _matches(parts, patterns, "**" in patterns):
            inside = "" if "**" in patterns else "/".join(parts[len(patterns) :])
            yield f"{folder}/{entry.key}", entry, inside


def _matches(names: list[str], patterns: list[str], whole: bool) -> bool:
    """Whether the names match, all of them if `whole`, else also a folder that the object lies in."""
    if not patterns:
        return not names or not (whole or any(name.startswith(".") for name in names))
    if patterns[0] == "**" and _matches(names, patterns[1:], whole):
        return True
    if not names or (names[0].startswith(".") and not patterns[0].startswith(".")):
        return False
    if patterns[0] == "**":
        return _matches(names[1:], patterns, whole)
    return fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:], whole)
