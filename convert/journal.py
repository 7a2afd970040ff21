"""What is already done: one small JSON file for each finished shard, renamed into place after the shard's data.

A record is trusted only with its shard: size and checksum are checked before a shard is taken over from an earlier run,
so a torn write (power loss, full disk) is simply encoded again. Nothing is synced to disk on the way for that reason.
"""

from __future__ import annotations

import json
from pathlib import Path

from convert.errors import naming
from convert.shard import ShardRecord, is_intact


class Journal:
    """The records of the finished shards in `folder`, beside the shards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, chunk_index: int) -> Path:
        """Where the record of a text chunk lies."""
        return self.folder / f"{chunk_index:08}.json"

    def finish(self, record: ShardRecord) -> None:
        """Note that the shard of `record` is done; it must be under its final name by now."""
        path = self.path(record.chunk_index)
        temporary = path.with_suffix(".json.tmp")
        with naming(temporary):
            temporary.write_text(json.dumps(record.as_json()), encoding="utf-8")
            temporary.replace(path)

    def finished(self, chunk_index: int) -> ShardRecord | None:
        """The record of a shard that is done and intact, else None: a damaged one counts as not done."""
        try:
            entry = json.loads(self.path(chunk_index).read_text(encoding="utf-8"))
            record = ShardRecord.from_json(entry)
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if record.chunk_index != chunk_index or not is_intact(self.folder, record):
            return None
        return record
