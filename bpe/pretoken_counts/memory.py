"""How much memory may be used, and what a training takes: so that what does not fit is said before it is tried.

The budget is what the whole process may take, in bytes. Where none is given it is what the machine, the control group
and the limits of the shell leave, less a fifth for everybody else.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bpe import _core
from bpe.errors import BadArgument, NotEnoughMemory
from bpe.sizes import bytes_text

# The least that counting can work with, beside what the process takes already.
MIN_FREE_BYTES: Final = 32 << 20
_UNKNOWN: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """limit_bytes: of the whole process. given: whether the user named it."""

    limit_bytes: int
    given: bool = True

    @staticmethod
    def of(max_memory_bytes: int | None) -> MemoryBudget:
        """The budget that is asked for, or what there is; BadArgument if counting can't work with it."""
        if max_memory_bytes is None:
            return MemoryBudget(used_bytes() + max(MIN_FREE_BYTES, available_bytes() // 5 * 4), given=False)
        least = used_bytes() + MIN_FREE_BYTES
        if max_memory_bytes < least:
            raise BadArgument(
                f"max_memory must be at least {bytes_text(least)} (what the program takes and some to work with), "
                f"got {bytes_text(max_memory_bytes)}"
            )
        return MemoryBudget(max_memory_bytes)

    @property
    def free_bytes(self) -> int:
        """What is left of it now."""
        return max(0, self.limit_bytes - used_bytes())

    @property
    def words(self) -> str:
        """What the limit is, for a message."""
        return (
            f"{bytes_text(self.limit_bytes)} ({'--max-memory' if self.given else 'what this machine leaves'})"
        )


def used_bytes() -> int:
    """The memory that the process takes now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * 1024 if os.uname().sysname != "Darwin" else peak


def available_bytes() -> int:
    """What the process could take beyond that: of the machine, its control group, and `ulimit -v`."""
    return max(0, min(_machine_bytes(), _group_bytes(), _address_space_bytes()))


def _machine_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError):
        return _UNKNOWN


def _group_bytes() -> int:
    """What the control groups of the process leave; page cache that can be dropped does not count as taken."""
    left = _UNKNOWN
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return left
    for line in lines:
        controllers, _, name = line.partition(":")[2].partition(":")
        if controllers == "":  # version 2
            root, limit, usage = Path("/sys/fs/cgroup"), "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, usage = (
                Path("/sys/fs/cgroup/memory"),
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
        else:
            continue
        folder = root / name.lstrip("/")
        for group in (folder, *folder.parents[: len(folder.parts) - len(root.parts)]):
            try:
                most = int((group / limit).read_text())
                cache = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
                taken = int((group / usage).read_text()) - int(cache.get("inactive_file", 0))
            except (OSError, ValueError):
                continue  # "max": no limit
            left = min(left, most - taken)
    return left


def _address_space_bytes() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return _UNKNOWN
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return soft // 2
    # Each thread maps a stack and an arena that it hardly uses.
    return soft - pages * os.sysconf("SC_PAGE_SIZE") - (128 << 20)


def trim_memory() -> None:
    """Give what malloc keeps of freed memory back to the system, so that `used_bytes` is what is in use."""
    _core.trim_memory()


def check_room(needed_bytes: int, what: str, budget: MemoryBudget) -> None:
    """Nothing, or NotEnoughMemory if so much more does not fit; what: the work that takes it."""
    if needed_bytes > budget.free_bytes:
        used = used_bytes()
        raise NotEnoughMemory(
            f"{what} takes about {bytes_text(needed_bytes)} beside the {bytes_text(used)} in use, more than "
            f"{budget.words}; give --max-memory {_round_up(used + needed_bytes)} or more"
        )


def _round_up(size_bytes: int) -> str:
    """A limit that is enough for so much, as --max-memory takes it: 90_000_001 -> "99MB".

    More by a twentieth and 4 MB: with another limit the steps before leave other gaps in memory.
    """
    return f"{size_bytes * 21 // (20 * 10**6) + 5}MB"


def training_bytes(distinct: int, pretoken_bytes: int, vocab_size: int, at_most: bool = False) -> int:
    """What merging takes, with the counts themselves. at_most: for any counts; else what text takes.

    Bytes for each byte of the distinct pretokens and each of them, more where ids of 16 bits do not do; for an entry,
    most are counts of the pairs it stands in. What turns out to take more is stopped by the core, which asks before it
    takes memory.
    """
    narrow = vocab_size < 1 << 16
    each = (11 if narrow else 13) if at_most else (6 if narrow else 8)
    entries = min(vocab_size, pretoken_bytes)
    return 16 * distinct + pretoken_bytes + each * (pretoken_bytes + distinct) + 350 * entries + (12 << 20)


def check_training_fits(
    distinct: int, pretoken_bytes: int, vocab_size: int, budget: MemoryBudget, held_bytes: int = 0
) -> None:
    """Nothing, or NotEnoughMemory saying how much it takes and what helps. held_bytes: of it, taken already."""
    needed = training_bytes(distinct, pretoken_bytes, vocab_size) - held_bytes
    if needed > budget.free_bytes:
        used = used_bytes()
        raise NotEnoughMemory(
            f"merging {distinct:,} distinct pretokens takes about {bytes_text(needed)} beside the "
            f"{bytes_text(used)} in use, more than {budget.words}; give {_round_up(used + needed)} or more, "
            f"{_WAYS_OUT}"
        )


def check_still_fits(budget: MemoryBudget) -> None:
    """Nothing, or NotEnoughMemory if the process takes more than it may."""
    if used_bytes() > budget.limit_bytes:
        raise outgrown(budget)


def outgrown(budget: MemoryBudget) -> NotEnoughMemory:
    """The error for merging that turned out to take more than was estimated."""
    return NotEnoughMemory(
        f"merging takes more than {budget.words}; use a lower --max-token-bytes if its entries are long, {_WAYS_OUT}"
    )


_WAYS_OUT: Final = (
    "use --min-pretoken-count 2 (or fit) to leave out the rarest, --sample-bytes to read less text, or a machine with "
    "more memory"
)
