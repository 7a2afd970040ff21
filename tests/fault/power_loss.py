"""What a disk may hold after the power failed, of a job whose operations were noted (recorder.c).

`Record.run(...)` runs a job; `record.state(at, rng)` draws one of the states that a failure before operation `at` may
leave. Lasting is what a sync asked for: of a file the bytes that were written before the sync began, of a folder the
names. Of all else a part is there, chosen at random:

- of a file nothing of it, all of it, a beginning that is torn at any byte, or its size with zeros for some blocks;
- of names those up to some operation, as a journal keeps them, or any of them; a rename is made whole or not at all.

So file systems are taken as weak as POSIX lets them be; that a name lasts when its file is synced is not relied on.
"""

from __future__ import annotations

import hashlib
import os
import random
import struct
import subprocess
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from injector import compiler

RECORDER = Path(__file__).with_name("recorder.c")
CREATE, WRITE, SIZE, RENAME, LINK, UNLINK, RMDIR, MKDIR, SYNC_BEGINS, SYNC_ENDS = range(1, 11)
_ENTRY = struct.Struct("IIQqIIQ")
BLOCK_BYTES = 512


@dataclass
class Inode:
    """A file or folder. changes: of bytes, (operation, offset, data), or (operation, size, None) for a truncation."""

    is_folder: bool
    first: bytes = b""  # what it held before the job
    changes: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    syncs: list[tuple[int, int]] = field(default_factory=list)  # (its end, its beginning), by end
    paths: set[str] = field(default_factory=set)  # that it had, for who is to forget its syncs

    def lasting(self, at: int) -> int:
        """Operations before this one last, if the power fails before operation `at`."""
        return max((begin for end, begin in self.syncs[: bisect_left(self.syncs, (at, -1))]), default=-1)


_Content = Callable[[Inode], bytes]


@dataclass(frozen=True)
class NameChange:
    """Entries of folders that change together: (folder, name, inode or None)."""

    at: int
    entries: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True)
class State:
    """files: by path; None is a folder."""

    files: dict[str, bytes | None]

    def write(self, root: Path) -> None:
        """Make it, in an empty folder. Times of files are all the same, as of what was there before."""
        for path, data in sorted(self.files.items()):
            place = root / path
            if data is None:
                place.mkdir()
            else:
                place.write_bytes(data)
                os.utime(place, (1e9, 1e9))

    @property
    def key(self) -> str:
        """The same for the same states."""
        return hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()


class Record:
    """What a job did below `root`, and what was there before."""

    def __init__(self, root: Path, forget: str = "") -> None:
        """Look at what is there. forget: syncs of paths that end so count as not made, to see that it matters."""
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

    # -- what is noted

    def run(self, library: Path, command: Sequence[str], seconds: float = 120.0) -> str:
        """Run the job and read what it did; its output. AssertionError if it fails, or does what is not noted."""
        noted = library.with_name("record")
        noted.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),  # the checkout's packages, not installed ones
            "LD_PRELOAD": str(library),
            "RECORD_ROOT": str(self._root),
            "RECORD_FILE": str(noted),
        }
        done = subprocess.run(
            command, cwd=self._root, env=environment, capture_output=True, text=True, timeout=seconds
        )
        if done.returncode:
            raise AssertionError(f"the job fails by itself: {done.stderr[-2000:]}")
        data, place, syncs = noted.read_bytes(), 0, dict[int, int]()
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
        real, made = tree(self._root), self.whole().files
        if real != made:
            wrong = sorted(path for path in {*real, *made} if real.get(path, 0) != made.get(path, 0))
            raise AssertionError(f"what was noted is not what was done: {wrong[:5]}")
        return done.stdout + done.stderr

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

    # -- what a failure leaves

    def whole(self) -> State:
        """All that was done."""
        return self._tree(self._changes, lambda inode: _content(inode.first, inode.changes))

    def least(self, at: int) -> State:
        """Only what must be there."""
        kept = [change for change in self._changes if self._lasts(change, at)]
        return self._tree(
            kept,
            lambda inode: _content(
                inode.first, [change for change in inode.changes if change[0] < inode.lasting(at)]
            ),
        )

    def state(self, at: int, rng: random.Random) -> State:
        """One that the failure may leave, before operation `at`."""
        so_far = [change for change in self._changes if change.at < at]
        lasting = [self._lasts(change, at) for change in so_far]
        if rng.random() < 0.5:  # a journal: no name without those before it
            least = max((place + 1 for place, lasts in enumerate(lasting) if lasts), default=0)
            kept = so_far[: rng.randint(least, len(so_far))]
        else:
            share = rng.choice([0.0, 0.5, 0.9, 1.0])
            kept = [
                change for change, lasts in zip(so_far, lasting, strict=True) if lasts or rng.random() < share
            ]
        share = rng.choice([0.0, 0.3, 1.0])  # of files that hold all of it
        return self._tree(kept, lambda inode: _torn(inode, at, share, rng))

    def _lasts(self, change: NameChange, at: int) -> bool:
        return any(self._inodes[folder].lasting(at) > change.at for folder, _, _ in change.entries)

    def _tree(self, changes: Sequence[NameChange], content: _Content) -> State:
        folders = {number: dict(names) for number, names in self._first.items()}
        for change in changes:
            for folder, name, number in change.entries:
                names = folders.setdefault(folder, {})
                if number is None:
                    names.pop(name, None)
                else:
                    names[name] = number
        files: dict[str, bytes | None] = {}
        waiting = [("", 0)]
        while waiting:
            prefix, folder = waiting.pop()
            for name, number in folders.get(folder, {}).items():
                inode = self._inodes[number]
                files[prefix + name] = None if inode.is_folder else content(inode)
                if inode.is_folder:
                    waiting.append((f"{prefix}{name}/", number))
        return State(files)


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
    lasting = inode.lasting(at)
    synced = [change for change in inode.changes if change[0] < lasting]
    later = [change for change in inode.changes if lasting <= change[0] < at]
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
    for start in range(0, len(whole), BLOCK_BYTES):
        if kind == "zeros" or rng.random() < 0.5:
            made[start : start + BLOCK_BYTES] = before[start : min(len(whole), start + BLOCK_BYTES)]
    return bytes(made)


def tree(root: Path) -> dict[str, bytes | None]:
    """All below a folder."""
    return {
        path.relative_to(root).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
    }


def compile_recorder(folder: Path) -> Path | None:
    """The library to preload; None where there is no C compiler."""
    found = compiler()
    if found is None:
        return None
    library = folder / "recorder.so"
    subprocess.run(
        [found, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o", library, RECORDER, "-ldl"], check=True
    )
    return library
