"""The rows of one batch read by several threads: for a batch alone, which somebody waits for.

Its rows lie all over the array, a decoded zarr chunk for a few of them each: half a millisecond for 4 of 64 rows with
the default layout. Codecs release the GIL, so that threads divide the time; rows in order of their place are shared
out evenly, and each thread reads its zarr chunks into memory of its own.
"""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from flat_tokens.rows.row_source import ChunkReader, RowSource
from flat_tokens.rows.row_window import RowWindow
from flat_tokens.storage.elements import Elements

MOST_THREADS = 4  # more would wait for memory that they touch first
FEWEST_ROWS = 4  # a thread costs 0.1 ms, less than one zarr chunk


def usable_threads(tokens: Elements, row_count: int) -> int:
    """How many threads are worth their start for so many rows: 1 where nothing is decoded."""
    if not tokens.is_decoded:
        return 1
    return max(1, min(MOST_THREADS, usable_cpus(), row_count // FEWEST_ROWS))


def usable_cpus() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fill(
    source: RowSource, rows: npt.NDArray[np.int64], window: RowWindow, readers: list[ChunkReader]
) -> None:
    """Put row rows[i] into window place i, by a thread for each of `readers`. Errors as `source.fill`."""
    if len(readers) == 1:
        source.fill(rows, window, readers[0])
        return
    order = np.argsort(rows)
    borders = [len(rows) * number // len(readers) for number in range(len(readers) + 1)]
    parts = [window.part(first, stop) for first, stop in itertools.pairwise(borders)]

    def work(number: int) -> None:
        first, stop = borders[number : number + 2]
        source.fill(rows[order[first:stop]], parts[number], readers[number])

    with ThreadPoolExecutor(len(readers), "flat_tokens-read") as threads:
        for done in [threads.submit(work, number) for number in range(len(readers))]:
            done.result()
    window.join(parts, order)
