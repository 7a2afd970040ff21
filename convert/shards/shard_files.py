"""The files that shards lie in: what they are called, and which may be written over.

Every attempt to encode a shard writes to files of its own: their names hold a random token, so two attempts at one
shard, late ones and lost ones included, never have a file in common. A file counts once its attempt's record was taken,
and from then on nobody writes to it.

Fresh memory is slow, and some file systems are slow to make new files where many were deleted a moment ago. So the file
of a part that is merged is a *spare*: it goes to the next attempt, which renames it to a name of its own, as only one
attempt can do, and writes over it, or else deletes it.
"""

from __future__ import annotations

import os
import re

from convert.planning.plan import ShardId
from convert.shards.shard import PARTS

SMALL = "small"  # in place of a part's name: the file that holds all small parts of a shard
_TOKEN_BYTES = 8
_NAME = re.compile(r"\d+\.\d+-[0-9a-f]+\.(?P<part>[a-z-]+)")


def attempt_names(shard: ShardId) -> tuple[str, ...]:
    """Names no other attempt has, for a file of each of PARTS and one for the small parts."""
    token = os.urandom(_TOKEN_BYTES).hex()
    return tuple(f"{shard.chunk_index}.{shard.number}-{token}.{part}" for part in (*PARTS, SMALL))


def is_shard_file(name: str) -> bool:
    """Whether this is the name of a file of some attempt."""
    return _NAME.fullmatch(name) is not None
