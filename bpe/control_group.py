"""CPU and memory limits that Linux control groups (cgroups(7)) set for this process.

Groups that do not exist or cannot be read set no limit.
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
    """Yield the folder of each control group of this process, innermost first, and whether it is version 2.

    controller: "cpu" or "memory".

    A folder may not exist: in a container, often only the root does.
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
    """Return the number of threads that the CPU quota lets run at once, rounded up, or None without a quota."""
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
        if threads > 0:  # version 1 uses -1 for no quota
            least = threads if least is None else min(least, threads)
    return least
