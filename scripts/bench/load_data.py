"""What the benchmarks of loading share: ids that are drawn by a seed, datasets of them, and turns on one core."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import harness
import numpy as np
from numpy.typing import NDArray

from flat_tokens import FlatTokensArray, Loader, writer
from flat_tokens import open as open_dataset
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import SplitRecord

SEQ_LEN, BATCH_SIZE, SEED = 1024, 64, 7
LAYOUTS = {
    "raw": ArrayLayout.create(2, 2**18, compression="none"),
    "zstd": ArrayLayout.create(),  # as written by default
}
ID_COUNTS = {"GPT-2": 50_257, "o200k": 200_019}
Encoded = NDArray[np.uint32]
Batches = Iterator[Any]


def tokens(count: int, id_count: int) -> Encoded:
    """As `encoded_tokens` holds them: ids as frequent as words (1 / rank), in sequences of 600 tokens on average."""
    generator = np.random.default_rng(SEED)
    encoded = np.minimum(id_count ** generator.random(count), id_count - 1).astype(np.uint32) << np.uint32(1)
    starts = np.cumsum(generator.geometric(1 / 600, count // 300))
    encoded[np.concatenate([[0], starts[starts < count]])] |= 1
    return encoded


def write(root: Path, encoded: Encoded, layout: ArrayLayout) -> FlatTokensArray:
    """The train split of a new dataset of these tokens."""
    starts = np.append(np.flatnonzero(encoded & 1), len(encoded)).astype(np.uint64)
    splits, records = {}, []
    nothing = np.zeros(0, dtype=np.uint32)
    for name, values, begins in (("train", encoded, starts), ("validation", nothing, starts[:1])):
        split = SplitRecord(len(values), len(begins) - 1, int(values.max(initial=0)) >> 1)
        records += writer.create_split(
            root, name, split.token_count, split.seq_count, split.max_token_id, layout
        )
        records += writer.write_tokens(root, name, layout, 0, values)
        records += writer.write_starts(root, name, layout, 0, begins)
        splits[name] = split
    writer.write_root(root, splits, records, layout, tokenizer=None, sources=[], options={}, versions={})
    return open_dataset(root).train


def loader_of(train: FlatTokensArray) -> Loader:
    return Loader(train, SEQ_LEN, BATCH_SIZE, SEED)


def check(name: str, train: FlatTokensArray, encoded: Encoded) -> None:
    """Ends the run if a batch is not what its rows say."""
    loader = loader_of(train)
    ids, is_start = encoded >> 1, (encoded & 1).astype(bool)
    before = np.where(is_start, 0, np.concatenate([[0], ids[:-1]]))
    steps = len(loader)
    some = [*range(3), *range(steps - 2, steps + 3), steps // 2, 9 * steps + 1]
    alone = {step: loader.batch(step) for step in some}
    for first in (0, steps - 2):
        alone |= dict(zip(range(first, first + 5), loader.from_step(first, first + 5), strict=True))
    for step, batch in alone.items():
        places = loader.rows_of(step)[:, None] * SEQ_LEN + np.arange(SEQ_LEN)
        expected = (before[places], ids[places], is_start[places])
        found = (batch.inputs, batch.targets, batch.is_seq_start)
        if not all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True)):
            sys.exit(f"error: {name}: the batch of step {step} differs from a gather of its rows")


def one_core() -> None:
    """Keep this process to one core, with one thread of PyTorch."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def measure(contenders: Mapping[str, tuple[int, Batches]], turns: int) -> list[harness.Row]:
    """A row for each: so many batches a turn, each going on where its last turn ended."""
    draws: dict[str, Callable[[], float]] = {
        name: functools.partial(draw, steps, batches) for name, (steps, batches) in contenders.items()
    }
    for name, run in draws.items():
        harness.progress(f"warming  {name}  {run():.3f} s")
    rows = []
    for name, seconds in harness.take_turns(draws, turns).items():
        steps = contenders[name][0]
        found = harness.summary(seconds, steps * BATCH_SIZE * SEQ_LEN)
        rows.append(
            {
                "what": name,
                "M tokens/s": found["mb_per_s"],
                "us": found["seconds"] / steps * 1e6,
                "spread": found["spread"],
                "turns": found["turns"],
            }
        )
    return rows


def draw(steps: int, batches: Batches) -> float:
    """Seconds of processor time, of all threads, for so many batches, the next ones."""
    settle()
    return worked(lambda: [None for _ in itertools.islice(batches, steps)])[0]


def worked(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of processor time of one call, and what it returned. On a core of its own that is the time; what others
    do on shared cores is not in it."""
    started = time.process_time()
    result = function()
    return time.process_time() - started, result


def settle() -> None:
    """Wait until no thread of this process works: litdata and mosaicml-streaming go on reading ahead for half a second
    after their turn, which takes half of the core from whoever comes next."""
    for _ in range(100):
        worked = time.process_time()
        time.sleep(0.05)
        if time.process_time() - worked < 0.002:
            return
