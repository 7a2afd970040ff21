"""One small change of one file, with a key that does not depend on line numbers."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Change:
    """Replaces [start, stop) of the text of `path` by `after`."""

    path: str  # relative to the root of the tree
    scope: str  # function or class, "" for the module
    line: int
    kind: str
    start: int
    stop: int
    before: str
    after: str
    key: str = ""

    def applied(self, text: str) -> str:
        """Return the changed text. Raise ValueError if the span has other text."""
        if text[self.start : self.stop] != self.before:
            raise ValueError(f"{self.path}:{self.line} is not what it was")
        return text[: self.start] + self.after + text[self.stop :]

    def told(self) -> str:
        """Return one line with the location, the old and the new text."""
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.path}:{self.line} [{self.kind}] {before} -> {after or '(nothing)'}"


def with_keys(changes: list[Change]) -> list[Change]:
    """Add keys to changes: the hash of file, scope, kind, both texts, and an index among equal ones."""
    seen: Counter[tuple[str, ...]] = Counter()
    keyed = []
    for change in changes:
        parts = (change.path, change.scope, change.kind, change.before, change.after)
        name = "\0".join((*parts, str(seen[parts])))
        seen[parts] += 1
        keyed.append(replace(change, key=hashlib.sha256(name.encode()).hexdigest()[:10]))
    return keyed
