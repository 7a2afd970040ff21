"""A store that counts its requests, and datasets on it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tokenmill.stores import Store


class CountingStore:
    """Wrap another store. requests: calls per method, all reads as "read". For read_ranges, each span of adjacent
    ranges counts.
    """

    is_local = False

    def __init__(self, store: Store) -> None:
        self.store, self.url = store, store.url
        self.requests: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        do = getattr(self.store, name)

        def count(*arguments: Any, **options: Any) -> Any:
            spans = 1
            if name == "read_ranges":
                rising = sorted(arguments[1])
                stops = [-1, *(stop for _, stop in rising[:-1])]
                spans = sum(start > stop for (start, _), stop in zip(rising, stops, strict=True))
            self.requests["read" if name.startswith("read") else name] += spans
            return do(*arguments, **options)

        return count


def copy_dataset(root: Path, store: Any) -> Any:
    """Copy a dataset's files to the store, the manifest last, and return the store."""
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    for path in sorted(paths, key=lambda path: path.name == "manifest.json"):
        store.put(path.relative_to(root).as_posix(), path.read_bytes())
    return store
