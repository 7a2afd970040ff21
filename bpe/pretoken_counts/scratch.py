"""Storage for the sorted runs of tasks until they are merged: a folder that all workers can access, or a store.

Each attempt at a task writes one file with a unique name, complete or not at all. Only the files of attempts that
returned to the driver are read. A late attempt leaves no file. In a removed folder, it cannot create one. In a store,
the driver deletes the object "alive" before it lists and deletes the others. An attempt looks for this object after
writing its file, and deletes the file if the object no longer exists.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts
from bpe.pretoken_counts.counts_writer import write_counts_file
from bpe.pretoken_counts.runs import RunFile
from bpe.pretoken_counts.workspace import PREFIX, Workspace
from tokenmill.engines.job import require_open
from tokenmill.stores import StorageOptions, StoreNotFound, is_url, open_store

_ALIVE: Final = "alive"
_JOB: Final = "job"


class Scratch(NamedTuple):
    """A folder or store for the runs of one count.

    place: path or URL of a folder that only this run uses.
    options: options of the store.
    """

    place: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def is_remote(self) -> bool:
        """Return whether the folder is in a store."""
        return is_url(self.place)

    def check_sight(self) -> None:
        """Raise EngineFailure if this process cannot access the folder."""
        if not self.is_remote:
            require_open(Path(self.place))

    def keep(self, blocks: Iterable[Arrays]) -> RunFile:
        """Write sorted counts as a file of a run."""
        name = f"{os.urandom(12).hex()}.run"
        path = f"{self.place}/{name}"
        if not self.is_remote:
            try:
                written = write_counts_file(path, blocks, CountsFacts(), temporary=True)
            except BaseException:
                Path(path).unlink(missing_ok=True)
                raise
            return RunFile(name, Path(path).stat().st_size, *written)
        options, store = dict(self.options), open_store(self.place, dict(self.options))
        written = write_counts_file(path, blocks, CountsFacts(), storage_options=options)
        try:
            store.head(_ALIVE)
        except StoreNotFound:
            store.delete([name])
            raise
        return RunFile(name, store.head(name).size, *written)

    def delete(self, names: Iterable[str]) -> None:
        """Remove files of runs that were merged."""
        open_store(self.place, dict(self.options)).delete(names)

    def put_job(self, data: bytes) -> str:
        """Store the job for all workers. Return its path or URL."""
        open_store(self.place, dict(self.options)).put(_JOB, data)
        return f"{self.place}/{_JOB}"


@contextmanager
def scratch_in(folder: str | None, options: StorageOptions, workspace: Workspace) -> Iterator[Scratch]:
    """Open a scratch in a folder or at a URL, and remove it at the end. folder: None for the workspace."""
    if folder is None:
        yield Scratch(str(workspace.folder.absolute()))
    elif not is_url(folder):
        with Workspace(folder) as own:
            yield Scratch(str(own.folder.absolute()))
    else:
        place = f"{folder.rstrip('/')}/{PREFIX.lstrip('.')}{os.urandom(8).hex()}"
        store = open_store(place, options)
        store.put(_ALIVE, b"")
        try:
            yield Scratch(place, tuple(sorted(options.items())))
        except BaseException:
            with suppress(Exception):  # the original error is raised
                _remove(place, options)
            raise
        _remove(place, options)


def _remove(place: str, options: StorageOptions) -> None:
    store = open_store(place, options)
    store.delete([_ALIVE])
    store.delete([entry.key for entry in store.list()])
