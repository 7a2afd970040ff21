"""Memory limits and estimates, so that work that does not fit fails before it starts.

The budget limits the memory of the whole process, in bytes. By default the process may use four fifths of the memory
that is still available within the limits of the machine, the control group and the shell.
"""

from __future__ import annotations

import mmap
import os
import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bpe import _core
from bpe.control_group import control_groups
from bpe.errors import BadArgument, NotEnoughMemory, check_whole
from tokenmill.inputs.sizes import bytes_text

# Minimum memory for counting, in addition to the memory in use.
MIN_FREE_BYTES: Final = 32 << 20
_UNKNOWN: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """A memory limit.

    limit_bytes: limit for the whole process.
    given: whether the user set it.
    """

    limit_bytes: int
    given: bool = True

    @staticmethod
    def of(max_memory_bytes: int | None) -> MemoryBudget:
        """Return the budget for a limit (None: the available memory). Raise BadArgument if it is too small to count."""
        if max_memory_bytes is None:
            return MemoryBudget(used_bytes() + max(MIN_FREE_BYTES, available_bytes() // 5 * 4), given=False)
        least = used_bytes() + MIN_FREE_BYTES
        check_whole("max_memory", max_memory_bytes)
        if max_memory_bytes < least:
            raise BadArgument(
                f"max_memory: must be at least {bytes_text(least + 10**6)} (got {bytes_text(max_memory_bytes)})"
            )
        _core.return_large_memory()  # freed memory must not count as used
        return MemoryBudget(max_memory_bytes)

    @property
    def free_bytes(self) -> int:
        """Return the bytes that are still free."""
        return max(0, self.limit_bytes - used_bytes())

    @property
    def words(self) -> str:
        """Return a description of the limit for messages."""
        return f"{bytes_text(self.limit_bytes)} ({'--max-memory' if self.given else 'available on this machine'})"


def used_bytes() -> int:
    """Return the memory that the process uses now."""
    pages = _memory_pages()
    if pages is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages[1] * mmap.PAGESIZE


def available_bytes() -> int:
    """Return the additional memory that the machine, the control group, and `ulimit -v` allow."""
    return max(0, min(_machine_bytes(), _group_bytes(), _address_space_bytes()))


def _machine_bytes() -> int:
    with suppress(OSError, ValueError, KeyError):
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE // 2


def _group_bytes() -> int:
    """Return the memory left in the control groups of the process. Page cache that can be dropped counts as free."""
    left = _UNKNOWN
    for group, is_version_2 in control_groups("memory"):
        names = ("max", "current") if is_version_2 else ("limit_in_bytes", "usage_in_bytes")
        with suppress(OSError, ValueError):  # "max": no limit
            most, taken = (int((group / f"memory.{name}").read_text()) for name in names)
            cache = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            left = min(left, most - taken + int(cache.get("inactive_file", 0)))
    return left


def _address_space_bytes() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return _UNKNOWN
    pages = _memory_pages()
    # Each thread maps a stack and an arena, and hardly uses them.
    return limit // 2 if pages is None else limit - pages[0] * mmap.PAGESIZE - (128 << 20)


def _memory_pages() -> tuple[int, int] | None:
    """Return (mapped, resident) pages of the process, None if the system does not tell."""
    with suppress(OSError, ValueError):
        mapped, resident = map(int, Path("/proc/self/statm").read_text().split()[:2])
        return mapped, resident
    return None


def trim_memory() -> None:
    """Release the freed memory that malloc keeps, so that `used_bytes` counts only memory in use."""
    _core.trim_memory()


def check_room(needed_bytes: int, what: str, budget: MemoryBudget) -> None:
    """Raise NotEnoughMemory unless `needed_bytes` more fit in the budget. what: name of the work."""
    if needed_bytes > budget.free_bytes:
        used = used_bytes()
        raise NotEnoughMemory(
            f"{_needs(what, bytes_text(needed_bytes), budget)}. Pass --max-memory {enough_limit(used + needed_bytes)} "
            "or more."
        )


def enough_limit(size_bytes: int) -> str:
    """Return a value of --max-memory that is enough for `size_bytes`: 90_000_001 -> "99MB".

    It is larger by 5 % and 4 MB, because with another limit earlier steps fragment memory differently.
    """
    return f"{size_bytes * 21 // (20 * 10**6) + 5}MB"


def training_bytes(
    distinct: int, pretoken_bytes: int, vocab_size: int, at_most: bool = False, most_places: int = 1 << 62
) -> int:
    """Return the memory for merging, including the counts themselves.

    at_most: return an upper bound for any counts, instead of an estimate for ordinary text.
    most_places: occurrences of the most frequent pair of bytes, if known. No pair of entries has more.

    Each distinct pretoken takes one slot for each of its bytes and one more. A slot has an ID and the offsets of pairs:
    at most two, and half as many in ordinary text. The occurrences of one merge at a time are added; they share no
    slots. Memory per entry is mostly counts of the pairs that contain it. If merging needs more than the estimate, the
    core raises an error, because it checks the limit before each allocation.
    """
    slots = pretoken_bytes + distinct
    held = 16 * distinct + pretoken_bytes + 350 * min(vocab_size, pretoken_bytes)
    narrow = vocab_size < (1 << 16) - 2
    if not at_most:
        return held + (6 if narrow else 8) * slots + (12 << 20)
    place = 4 if slots < 1 << 32 else 8
    id_ = 2 if narrow and place == 4 else 4
    pairs = min(slots, max(1 << 16, 8 * min(vocab_size, pretoken_bytes)))
    return (
        held
        + (id_ + 2 * place) * slots
        + slots // 16
        + (2 * id_ + place) * min(slots // 2, most_places)
        + 56 * pairs  # per pair in the table of pairs while it grows
        + min(8 * slots, 32 << 20)  # sums that exclude rare pairs from the table
        + (18 << 20)
    )


def refused_training(
    distinct: int, needed_bytes: int, enough_bytes: int, budget: MemoryBudget, ways_out: str
) -> NotEnoughMemory:
    """Return the error for merging that does not fit, with the estimates for ordinary and for any text."""
    pretokens = f"{distinct:,} distinct pretoken{'' if distinct == 1 else 's'}"
    most = f" (for some texts {bytes_text(enough_bytes)})" if enough_bytes > needed_bytes else ""
    enough = enough_limit(used_bytes() + max(enough_bytes, needed_bytes))
    return NotEnoughMemory(
        f"{_needs(f'merging {pretokens}', f'{bytes_text(needed_bytes)}{most}', budget)}. Allow {enough} or more, "
        f"{ways_out}."
    )


def _needs(what: str, needed: str, budget: MemoryBudget) -> str:
    used = bytes_text(used_bytes())
    return f"{what}: needs about {needed} in addition to {used} in use, more than {budget.words}"


def ways_out(may_leave_out: bool, distinct: int) -> str:
    """Return remedies other than a higher limit. may_leave_out: whether merging fits without the rarest pretokens."""
    ways = []
    if may_leave_out:
        ways.append("use --min-pretoken-count 2 (or fit) to leave out the rarest")
    if distinct > 1:
        ways.append("use --sample-bytes to read less text")
    return ", ".join([*ways, "or use a machine with more memory"])
