"""What is already done: one small JSON file for each finished shard and each merged run, renamed into place after the
data it speaks of.

A record is trusted only with its data: size and checksum are checked before anything is taken over from an earlier
run, so a torn write (power loss, full disk) is simply done again. Shards are not synced to disk for that reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from convert.errors import naming
from convert.shards.runs import Run
from convert.shards.shard import PARTS, ShardRecord, is_intact
from flat_tokens.storage.manifest import FileRecord

_THRESHOLD_NAME = "validation-threshold.json"


class Journal:
    """The records of what is finished, in `folder` beside the shards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, chunk_index: int) -> Path:
        """Where the record of a text chunk lies."""
        return self.folder / f"{chunk_index:08}.json"

    def finish(self, record: ShardRecord) -> None:
        """Note that the shard of `record` is done; its parts must be under their final names by now."""
        self._write(self.path(record.chunk_index), record.as_json())

    def recorded(self, chunk_index: int) -> ShardRecord | None:
        """What is known of a shard that was finished once; its parts may be gone or damaged by now. None: nothing."""
        entry = self._read(self.path(chunk_index))
        try:
            record = ShardRecord.from_json(entry) if isinstance(entry, dict) else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return record if record is not None and record.chunk_index == chunk_index else None

    def finished(self, chunk_index: int, parts: Sequence[str] = PARTS) -> ShardRecord | None:
        """The record of a shard whose `parts` are there and intact, else None: a damaged one counts as not done."""
        record = self.recorded(chunk_index)
        return record if record is not None and is_intact(self.folder, record, parts) else None

    def run_path(self, run: Run) -> Path:
        """Where the record of a run lies."""
        return self.folder / f"{run.split}-{run.array}-{run.first}.json"

    def finish_run(self, run: Run, files: Sequence[FileRecord]) -> None:
        """Note that a run is written; its files must be under their final names by now."""
        entry = {"items": run.item_count, "files": [asdict(file) for file in files]}
        self._write(self.run_path(run), entry)

    def recorded_run(self, run: Run) -> list[FileRecord] | None:
        """The files of a run that was written once, which may be gone or damaged by now; None: it was not."""
        entry = self._read(self.run_path(run))
        try:
            if entry is None or entry["items"] != run.item_count:
                return None
            return [FileRecord(str(f["path"]), int(f["bytes"]), str(f["sha256"])) for f in entry["files"]]
        except (ValueError, KeyError, TypeError):
            return None

    def keep_threshold(self, count: int, threshold: int) -> None:
        """Note the hash below which the `count` documents of --validation-docs lie: the corpus was read for it."""
        self._write(self.folder / _THRESHOLD_NAME, {"documents": count, "threshold": threshold})

    def recorded_threshold(self, count: int) -> int | None:
        """What `keep_threshold` noted for so many documents; None: nothing."""
        entry = self._read(self.folder / _THRESHOLD_NAME)
        if not isinstance(entry, dict) or entry.get("documents") != count:
            return None
        threshold = entry.get("threshold")
        return threshold if type(threshold) is int and 0 <= threshold <= 1 << 64 else None

    def _write(self, path: Path, entry: dict[str, Any]) -> None:
        temporary = f"{path}.tmp"
        with naming(temporary):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            try:
                rest = memoryview(json.dumps(entry).encode("ascii"))
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            finally:
                os.close(descriptor)
            os.replace(temporary, path)  # noqa: PTH105

    @staticmethod
    def _read(path: Path) -> Any:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
