"""A model of several that append to a dataset at once: each looks for the newest version, makes its part and puts the
next version, at any time, again or late; readers look in between."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from state_machines import finds_fault, run_model

from flat_tokens.format import SPLITS
from flat_tokens.storage import versions
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord, SplitRecord
from flat_tokens.storage.versions import Part, Version, newest, part_path, read_version, write_version
from tokenmill.stores import AlreadyThere, open_store
from tokenmill.stores.local import LocalStore

APPENDERS = 3


def part(path: str, by: int) -> Part:
    record = FileRecord(f"{path}/manifest.json".lstrip("/"), by + 1, f"{by:016x}")
    return Part(path, record, ArrayLayout.create(), {name: SplitRecord(0, 0, 0) for name in SPLITS})


class Appending(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._root = Path(self._folder.name)
        self._store = open_store(self._folder.name)
        self._planned: list[Version | None] = [None] * APPENDERS
        self._published: list[Version] = [Version(0, (part("", 0),))]
        self._seen = 0

    def teardown(self) -> None:
        self._folder.cleanup()

    @rule(appender=st.integers(0, APPENDERS - 1))
    def plan(self, appender: int) -> None:
        """What it will put, of what is there now."""
        number = newest(self._root)
        before = read_version(self._root, number) if number else self._published[0]
        new = part(part_path(number + 1), appender + 10 * len(self._published))
        self._planned[appender] = Version(number + 1, (*before.parts, new))

    @rule(appender=st.integers(0, APPENDERS - 1))
    def put(self, appender: int) -> None:
        """Once, twice, or long after others did."""
        version = self._planned[appender]
        if version is None:
            return
        try:
            write_version(self._store, version)
        except AlreadyThere:
            assert version.number < len(self._published), "refused, but nothing is there"
            return
        assert version.number == len(self._published), "a second one of its number was taken"
        self._published.append(version)

    @invariant()
    def what_was_published_stays(self) -> None:
        assert newest(self._root) == len(self._published) - 1
        for number, version in enumerate(self._published[1:], 1):
            assert read_version(self._root, number) == version
            assert version.parts[:-1] == self._published[number - 1].parts


def test_of_those_that_append_at_once_one_succeeds() -> None:
    run_model(Appending, 15, 25)


def put_over(self: LocalStore, key: str, data: Any, if_absent: bool = False) -> Any:
    return ORIGINAL_PUT(self, key, data)


def one_too_few(root: Path) -> int:
    return max(ORIGINAL_NEWEST(root) - 1, 0)


ORIGINAL_PUT, ORIGINAL_NEWEST = LocalStore.put, versions.newest


@pytest.mark.parametrize("fault", ["put over another's", "the version before the newest"])
def test_the_model_finds_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "put over another's":
        monkeypatch.setattr(LocalStore, "put", put_over)
    else:
        monkeypatch.setitem(globals(), "newest", one_too_few)
    finds_fault(Appending, 15, 25)
