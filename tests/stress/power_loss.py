"""Power failures: states of the disk that a job may leave, drawn from its recorded operations (recorder.c).

`Record.run(...)` runs and records a job. `record.state(at, rng)` draws a state after a power failure before operation
`at`. Durable are the bytes of a file that were written before a sync of the file began, and the names in a folder that
were made before a sync of the folder began. Of everything else, a random part survives:

- of a file: nothing, all, a prefix that ends at any byte, or its size with zeros in some blocks;
- of names: those up to some operation, as in a journal, or any of them. A rename happens completely or not at all.

This is the weakest file system that POSIX allows. A sync of a file does not make its name durable.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import Bench, Fault, Files, tree
from injector import compile_library
from processes import KILLED, Outcome, start

RECORDER = Path(__file__).with_name("recorder.c")
CREATE, WRITE, SIZE, RENAME, LINK, UNLINK, RMDIR, MKDIR, SYNC_BEGINS, SYNC_ENDS = range(1, 11)
_ENTRY = struct.Struct("IIQqIIQ")
BLOCK_BYTES = 512


@dataclass
class Inode:
    """A file or folder.

    first: its bytes before the job.
    changes: of bytes, (operation, offset, data), or (operation, size, None) for a truncation.
    syncs: (end, beginning) as numbers of operations, by end.
    paths: all names that it had.
    """

    is_folder: bool
    first: bytes = b""
    changes: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    syncs: list[tuple[int, int]] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)

    def durable(self, at: int) -> int:
        """Return the number of the first operation that may be lost if the power fails before operation `at`."""
        return max((begin for end, begin in self.syncs[: bisect_left(self.syncs, (at, -1))]), default=-1)


_Content = Callable[[Inode], bytes]


@dataclass(frozen=True)
class NameChange:
    """Entries of folders that change together: (folder, name, inode or None)."""

    at: int
    entries: tuple[tuple[int, str, int | None], ...]


class Record:
    """The operations of a job below `root`, and the files before it.

    forget: ignore syncs of paths with this ending, to show that they are needed.
    """

    def __init__(self, root: Path, forget: str = "") -> None:
        self._forget = forget
        self._inodes: list[Inode] = []
        self._numbers: dict[int, int] = {}  # of the system's inodes now: ours
        self._folders: dict[int, dict[str, int]] = {}
        self._root = root
        self._add(root.stat().st_ino, Inode(True, paths={"."}))
        for folder, names, files in os.walk(root):
            own = self._folders[self._numbers[Path(folder).stat().st_ino]]
            for path in (Path(folder, name) for name in [*names, *files]):
                known = self._numbers.get(path.stat().st_ino)  # of a file with two names
                made = Inode(path.is_dir(), b"" if path.is_dir() else path.read_bytes())
                own[path.name] = self._add(path.stat().st_ino, made) if known is None else known
        self._first = {number: dict(names) for number, names in self._folders.items()}
        self._changes: list[NameChange] = []
        self.operations = 0

    def run(self, library: Path, command: Sequence[str], seconds: float = 120.0) -> None:
        """Run the job and read its record. Raise AssertionError if it fails, or if the record is incomplete."""
        log = library.with_name("record")
        log.unlink(missing_ok=True)
        variables = {
            "LD_PRELOAD": str(library),
            "RECORD_ROOT": str(self._root),
            "RECORD_FILE": str(log),
        }
        done = start(command, self._root, variables).wait(seconds)
        if done.code:
            raise AssertionError(f"the undisturbed job fails: {done.output[-2000:]}")
        data, place, syncs = log.read_bytes(), 0, dict[int, int]()
        while place < len(data):
            kind, thread, inode, offset, path_bytes, other_bytes, size = _ENTRY.unpack_from(data, place)
            place += _ENTRY.size
            path = data[place : (place := place + path_bytes)].decode().strip("/")
            other = data[place : (place := place + other_bytes)].decode().strip("/")
            block = data[place : (place := place + size)]
            if kind == SYNC_BEGINS:
                syncs[thread] = self.operations
            elif kind == SYNC_ENDS:
                for number in [*self._numbers] if offset else [inode]:
                    self._sync(number, syncs[thread])
            elif kind in (WRITE, SIZE):
                self._inode(inode).changes.append((self.operations, offset, block if kind == WRITE else None))
            else:
                self._name(kind, inode, path, other, bool(offset))
            self.operations += 1
        for made_inode in self._inodes:
            if self._forget and any(path.endswith(self._forget) for path in made_inode.paths):
                made_inode.syncs = []
        real, made = tree(self._root), self.whole()
        if real != made:
            wrong = sorted(path for path in {*real, *made} if real.get(path, 0) != made.get(path, 0))
            raise AssertionError(f"the record differs from the files: {wrong[:5]}")

    def _sync(self, inode: int, begin: int) -> None:
        if inode in self._numbers:
            self._inode(inode).syncs.append((self.operations, begin))

    def _name(self, kind: int, inode: int, path: str, other: str, empties: bool) -> None:
        folder, name = self._place(path)
        known = self._folders[folder].get(name)
        entries: tuple[tuple[int, str, int | None], ...] = ()
        if kind in (CREATE, MKDIR):
            if known is None or self._numbers.get(inode) != known:
                known = self._add(inode, Inode(kind == MKDIR))
                entries = ((folder, name, known),)
            elif empties:
                self._inodes[known].changes.append((self.operations, 0, None))
        elif kind in (RENAME, LINK):
            entries = ((*self._place(other), known),)
            if kind == RENAME:
                entries += ((folder, name, None),)
        else:
            entries = ((folder, name, None),)
        for where, what, number in entries:
            if number is None:
                self._folders[where].pop(what, None)
            else:
                self._folders[where][what] = number
                self._inodes[number].paths.add(other if kind in (RENAME, LINK) else path)
        if entries:
            self._changes.append(NameChange(self.operations, entries))

    def _place(self, path: str) -> tuple[int, str]:
        *folders, name = path.split("/")
        at = 0
        for folder in folders:
            at = self._folders[at][folder]
        return at, name

    def _inode(self, inode: int) -> Inode:
        return self._inodes[self._numbers[inode]]

    def _add(self, inode: int, made: Inode) -> int:
        self._numbers[inode] = len(self._inodes)
        self._inodes.append(made)
        if made.is_folder:
            self._folders[self._numbers[inode]] = {}
        return self._numbers[inode]

    def whole(self) -> Files:
        """Return the files after all operations."""
        return self._tree(self._changes, lambda inode: _content(inode.first, inode.changes))

    def least(self, at: int) -> Files:
        """Return the durable files only."""
        kept = [change for change in self._changes if self._is_durable(change, at)]
        return self._tree(
            kept,
            lambda inode: _content(
                inode.first, [change for change in inode.changes if change[0] < inode.durable(at)]
            ),
        )

    def state(self, at: int, rng: random.Random) -> Files:
        """Draw the files after a failure before operation `at`."""
        so_far = [change for change in self._changes if change.at < at]
        durable = [self._is_durable(change, at) for change in so_far]
        if rng.random() < 0.5:  # a journal: no name without those before it
            least = max((place + 1 for place, is_durable in enumerate(durable) if is_durable), default=0)
            kept = so_far[: rng.randint(least, len(so_far))]
        else:
            share = rng.choice([0.0, 0.5, 0.9, 1.0])
            kept = [
                change
                for change, is_durable in zip(so_far, durable, strict=True)
                if is_durable or rng.random() < share
            ]
        share = rng.choice([0.0, 0.3, 1.0])  # of files that hold all of it
        return self._tree(kept, lambda inode: _torn(inode, at, share, rng))

    def _is_durable(self, change: NameChange, at: int) -> bool:
        return any(self._inodes[folder].durable(at) > change.at for folder, _, _ in change.entries)

    def _tree(self, changes: Sequence[NameChange], content: _Content) -> Files:
        folders = {number: dict(names) for number, names in self._first.items()}
        for change in changes:
            for folder, name, number in change.entries:
                names = folders.setdefault(folder, {})
                if number is None:
                    names.pop(name, None)
                else:
                    names[name] = number
        files: Files = {}
        waiting = [("", 0)]
        while waiting:
            prefix, folder = waiting.pop()
            for name, number in folders.get(folder, {}).items():
                inode = self._inodes[number]
                files[prefix + name] = None if inode.is_folder else content(inode)
                if inode.is_folder:
                    waiting.append((f"{prefix}{name}/", number))
        return files


def _content(first: bytes, changes: Sequence[tuple[int, int, bytes | None]]) -> bytes:
    data = bytearray(first)
    for _, offset, block in changes:
        if block is None:
            data[offset:] = bytes(max(0, offset - len(data)))
        else:
            data[len(data) :] = bytes(max(0, offset - len(data)))
            data[offset : offset + len(block)] = block
    return bytes(data)


def _torn(inode: Inode, at: int, share: float, rng: random.Random) -> bytes:
    """What may be there of the bytes of a file."""
    durable = inode.durable(at)
    synced = [change for change in inode.changes if change[0] < durable]
    later = [change for change in inode.changes if durable <= change[0] < at]
    if not later:
        return _content(inode.first, synced)
    kind = "all" if rng.random() < share else rng.choice(["none", "beginning", "blocks", "zeros"])
    if kind == "none":
        return _content(inode.first, synced)
    whole = _content(inode.first, synced + later)
    if kind == "all":
        return whole
    if kind == "beginning":
        count = rng.randrange(len(later))
        number, offset, block = later[count]
        cut = None if block is None else block[: rng.randrange(len(block) + 1)]
        return _content(inode.first, [*synced, *later[:count], (number, offset, cut)])
    before = _content(inode.first, synced).ljust(len(whole), b"\0")
    made = bytearray(whole)
    for offset in range(0, len(whole), BLOCK_BYTES):
        if kind == "zeros" or rng.random() < 0.5:
            stop = min(len(whole), offset + BLOCK_BYTES)
            made[offset : offset + BLOCK_BYTES] = before[offset:stop]
    return bytes(made)


def write(files: Files, root: Path) -> None:
    """Replace all files in a folder. All get the same modification time, which is the one of the inputs."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, data in sorted(files.items()):
        if data is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(data)
            os.utime(root / path, (1e9, 1e9))


class PowerLoss(Fault):
    """The power fails before an operation. The last point is after the end of the command, when all synced data and
    nothing else survives. forget: see Record."""

    tears = True

    def __init__(self, forget: str = "") -> None:
        super().__init__(f"power failure{forget and f', without syncs of {forget}'}", (KILLED,))
        self._forget = forget
        self._records: dict[str, Record] = {}

    def count_points(self, bench: Bench) -> int:
        record = self._records[bench.job.name] = Record(bench.root, self._forget)
        record.run(compile_library(RECORDER, bench.build / "recorder.so"), bench.command())
        return record.operations + 1

    def strike(self, bench: Bench, at: int, rng: random.Random) -> Outcome:
        record = self._records[bench.job.name]
        if at > record.operations:
            write(record.least(record.operations), bench.root)
            return Outcome(0, "")
        write(record.state(at, rng), bench.root)
        return Outcome(KILLED, "")


POWER_LOSS = PowerLoss()
