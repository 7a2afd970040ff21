"""CPU and memory limits that Linux control groups (cgroups(7)) set for this process.

Groups that do not exist or cannot be read set no limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
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
    quotas = []
    for group, is_version_2 in control_groups("cpu", membership, mounted):
        names = ["cpu.max"] if is_version_2 else ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        with suppress(OSError, ValueError, ZeroDivisionError):  # "max": no quota
            quota, period = (int(part) for name in names for part in (group / name).read_text().split())
            quotas.append(math.ceil(quota / period))
    return min((quota for quota in quotas if quota > 0), default=None)  # version 1 uses -1 for no quota
