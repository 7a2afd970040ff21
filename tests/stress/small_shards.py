"""The `tokenmill` command with shards small enough that a few kilobytes of text need many of them."""

from __future__ import annotations

import sys

from convert.planning import plan
from tokenmill.__main__ import run

if __name__ == "__main__":
    plan.MIN_GIVEN_SHARD_BYTES = 700
    sys.exit(run())
