"""The control groups of this process (Linux, cgroups(7)): what of the machine it may use.

Where there are none, or what they say cannot be read, they limit nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MEMBERSHIP: Final = Path("/proc/self/cgroup")
MOUNTED: Final = Path("/sys/fs/cgroup")


def control_groups(
    controller: str, membership: Path = MEMBERSHIP, mounted: Path = MOUNTED
) -> Iterator[tuple[Path, bool]]:
    """The folders of the groups that this controller ("cpu", "memory") counts the process in, and those around them.

    The innermost first, and whether it is of version 2. A folder need not exist: in a container only the root may.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        controllers, _, name = line.partition(":")[2].partition(":")
        if controllers == "":
            root = mounted
        elif controller in controllers.split(","):
            root = mounted / controller
        else:
            continue
        folder = root / name.lstrip("/")
        for group in (folder, *folder.parents[: len(folder.parts) - len(root.parts)]):
            yield group, controllers == ""


def quota_threads(membership: Path = MEMBERSHIP, mounted: Path = MOUNTED) -> int | None:
    """How many threads can run at once by the processor quota of the groups, rounded up; None without a quota."""
    least: int | None = None
    for group, is_version_2 in control_groups("cpu", membership, mounted):
        try:
            if is_version_2:
                quota, period = (group / "cpu.max").read_text().split()
            else:
                quota = (group / "cpu.cfs_quota_us").read_text()
                period = (group / "cpu.cfs_period_us").read_text()
            threads = math.ceil(int(quota) / int(period))
        except (OSError, ValueError, ZeroDivisionError):
            continue  # "max": no quota
        if threads > 0:  # version 1 says -1 for none
            least = threads if least is None else min(least, threads)
    return least
