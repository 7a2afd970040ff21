"""Reading back what was written, as soon as workers have nothing else to do.

When the last text chunk is encoded fewer runs are left than keep the workers busy: files of the others are held against
their records meanwhile (1 % of the time of 256 MB of English). What follows when the manifest is there looks at the
rest, and at all names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor
from pathlib import Path

from convert.errors import StorageError, WorkerLost
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.verify import BegunComparison, begin_to_compare, verify_dataset


class ReadBack:
    """Holds the files of the dataset at `root` against their records, by tasks of the executor."""

    def __init__(self, root: Path, executor: Executor) -> None:
        self._root, self._executor = root, executor
        self._begun: BegunComparison | None = None

    def begin(self, files: Sequence[FileRecord]) -> None:
        """Begin with these, which nobody writes to any more."""
        self._begun = begin_to_compare(self._root, files, self._executor)

    def finish(self, advance: Callable[[int], None]) -> None:
        """Return when all files are there with every byte they were written with, as the manifest says; StorageError.

        advance(done_bytes) is called now and then.
        """
        try:
            report = verify_dataset(
                self._root, self._executor, lambda done, _: advance(done), decode=False, begun=self._begun
            )
        except BrokenExecutor as error:
            raise WorkerLost(f"{error}, while it verified; run the same command again to go on") from error
        if not report.ok:
            raise StorageError(
                f"what was read back is not what was written: {report.problems[0]}; "
                f"check the disk and run the same command again"
            )
