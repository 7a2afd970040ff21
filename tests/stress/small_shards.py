"""The `tokenmill` command with buffers and shards small enough that a few kilobytes of text need many of them."""

from __future__ import annotations

import sys

from convert.planning import plan
from convert.shards import shard_writer
from tokenmill.__main__ import run

if __name__ == "__main__":
    shard_writer.BUFFER_BYTES = 60
    plan.MIN_GIVEN_SHARD_BYTES = 700
    sys.exit(run())
