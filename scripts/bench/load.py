"""How fast are shuffled batches on one core, beside the other loaders, and how fast are rows, opening and resuming?

Equal first: batches of every dataset must be what a naive gather of the same rows from the ids in memory gives. All
run in one process on one core, data in the page cache, turn by turn, each loader going on where its last turn ended,
once the threads of the one before are at rest; and from opening to the end of the first epoch, by a new loader
each turn.
Ours hand out inputs, targets and start flags, the peers plain rows of ids that are stored as uint16; only where it
says so, PyTorch's loader makes the same of the same tokens. M tokens/s counts targets. Without --corpus the
ids are drawn by a seed, as frequent as words are (1 / rank), in sequences of 600 tokens on average.

    python scripts/bench/load.py [--corpus FILE --tokenizer FILE] [--tokens 16777216]
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import harness
import load_peers
import numpy as np
from numpy.typing import NDArray

from flat_tokens import Loader, writer
from flat_tokens import open as open_dataset
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import SplitRecord

SEQ_LEN, BATCH_SIZE, SEED = 1024, 64, 7
LAYOUTS = {
    "raw": ArrayLayout.create(2, 2**18, compression="none"),
    "zstd, 64 Ki": ArrayLayout.create(2, 2**16),
    "zstd, as written by default": ArrayLayout.create(),
}
Encoded = NDArray[np.uint32]
Begin = Callable[[], Iterator[Any]]


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.set_defaults(corpus=None)
    parser.add_argument("--tokens", type=int, default=2**24, help="of the datasets (default 16 Mi)")
    parser.add_argument("--memory-of", metavar="DATASET", help=argparse.SUPPRESS)
    options = parser.parse_args() if "--corpus" not in sys.argv else harness.parse(parser)
    if options.memory_of:
        print(json.dumps(memory_of(options.memory_of)))
        return
    machine = harness.facts()
    machine["versions"] |= {
        name: version
        for name in ("torch", "litdata", "mosaicml-streaming")
        if (version := harness.package_version(name))
    }
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    encoded, texts = tokens(options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load_peers.quiet(folder)
        datasets = {
            layout: write(folder / str(number), encoded, LAYOUTS[layout])
            for number, layout in enumerate(LAYOUTS)
        }
        for layout, path in datasets.items():
            check(layout, path, encoded)
        rows, notes = batches(folder, datasets, encoded, options.turns)
        rows += access(folder, datasets, encoded, options.turns)
        for layout, path in datasets.items():
            held = harness.run_child(__file__, ["--memory-of", str(path)], 1)
            notes.append(f"{layout}: 300 batches hold {held / 2**20:.0f} MiB beside numpy and the page cache")
    notes.append(f"{len(encoded):,} tokens, batches of {BATCH_SIZE} x {SEQ_LEN:,}, rows of {SEQ_LEN:,}")
    notes.append("all batches equal a naive gather of their rows")
    harness.save("load", machine, rows, texts, notes)


# -- the data


def tokens(options: argparse.Namespace) -> tuple[Encoded, list[harness.Row]]:
    """As `encoded_tokens` holds them; texts are repeated until there are enough."""
    count = options.tokens // 2**16 * 2**16
    if options.corpus is None:
        generator = np.random.default_rng(SEED)
        ids = np.minimum(50_000 ** generator.random(count), 49_999).astype(np.uint32)
        lengths = generator.geometric(1 / 600, count // 300)
        encoded = ids << np.uint32(1)
        starts = np.cumsum(lengths)
        encoded[np.concatenate([[0], starts[starts < count]])] |= 1
        return encoded, []
    from compression import encoded_tokens

    parts, texts = [], []
    for path in options.corpus:
        text = harness.read_text(path, options.limit_mb * 1e6)
        texts.append(harness.describe(path, text))
        parts.append(encoded_tokens(text, options.tokenizer))
    encoded = np.resize(np.concatenate(parts), count)
    if int(encoded.max()) >> 1 >= 2**16:
        sys.exit(
            "error: the peers are measured with ids of 16 bits; give a tokenizer of at most 65,536 entries"
        )
    return encoded, texts


def write(root: Path, encoded: Encoded, layout: ArrayLayout) -> Path:
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
    return root


# -- batches


def check(layout: str, path: Path, encoded: Encoded) -> None:
    """Ends the run if a batch is not what its rows say."""
    loader = Loader(open_dataset(path).train, SEQ_LEN, BATCH_SIZE, SEED)
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
            sys.exit(f"error: {layout}: the batch of step {step} differs from a gather of its rows")


def batches(
    folder: Path, datasets: dict[str, Path], encoded: Encoded, turns: int
) -> tuple[list[harness.Row], list[str]]:
    """A row a loader, and notes about peers that are not there."""
    loaders: dict[str, tuple[int, Begin]] = {}
    for layout, path in datasets.items():
        for dtype in ("int32", "int64", "uint16") if layout == "raw" else ("int32", "uint16"):
            steps = 2000 if layout == "raw" else 500
            loaders[f"tokenmill, {layout}, {dtype}"] = (steps, functools.partial(begin_ours, path, dtype))
    ids = (encoded >> 1).astype(np.uint16)
    torch_memmap = "torch DataLoader, memmap, __getitems__"
    peers: list[tuple[str, int, type[Any], Any, Any]] = [
        (f"{torch_memmap}, {np.dtype(dtype or np.uint16).name}", 1000, load_peers.TorchMemmap, ids, dtype)
        for dtype in (None, np.int32, np.int64)
    ]
    peers += [
        (
            f"{torch_memmap}, inputs, targets and flags, {np.dtype(dtype).name}",
            300,
            load_peers.TorchInputs,
            encoded,
            dtype,
        )
        for dtype in (np.uint16, np.int32, np.int64)
    ]
    peers.append(("litdata, uint16", 150, load_peers.Litdata, ids, SEQ_LEN))
    peers.append(("mosaicml-streaming, uint16", 40, load_peers.Mosaic, ids, SEQ_LEN))
    notes = []
    for name, steps, kind, tokens, argument in peers:
        if not load_peers.is_installed(kind.module) or not load_peers.is_installed("torch"):
            notes.append(f"{name}: left out, {kind.module} is not installed")
            continue
        loaders[name] = (
            steps,
            functools.partial(kind(folder, tokens, argument).batches, SEQ_LEN, BATCH_SIZE),
        )
    epoch = (len(encoded) // SEQ_LEN - 1) // BATCH_SIZE  # peers have a row less
    begun = {name: (steps, begin()) for name, (steps, begin) in loaders.items()}
    measured = {
        "shuffled batches": {name: functools.partial(draw, *loader) for name, loader in begun.items()}
    }
    measured["first epoch, opening included"] = {
        name: functools.partial(begin_and_draw, epoch, begin) for name, (_, begin) in loaders.items()
    }
    rows = []
    for what, contenders in measured.items():
        for name, run in contenders.items():
            harness.progress(f"warming  {what}: {name}  {run():.3f} s")
        for name, seconds in harness.take_turns(contenders, turns).items():
            steps = epoch if contenders is not measured["shuffled batches"] else loaders[name][0]
            found = harness.summary(seconds, steps * BATCH_SIZE * SEQ_LEN)
            rows.append(
                {
                    "what": f"{what}: {name}",
                    "M tokens/s": found["mb_per_s"],
                    "us": found["seconds"] / steps * 1e6,
                    "spread": found["spread"],
                    "turns": found["turns"],
                }
            )
    return rows, notes


def begin_ours(path: Path, dtype: str) -> Iterator[Any]:
    return Loader(open_dataset(path).train, SEQ_LEN, BATCH_SIZE, SEED, dtype=dtype).from_step(0)


def begin_and_draw(steps: int, begin: Begin) -> float:
    """Seconds for a new loader and its first batches."""
    settle()
    return harness.timed(lambda: [None for _ in itertools.islice(begin(), steps)])[0]


def draw(steps: int, loader: Iterator[Any]) -> float:
    """Seconds for so many batches, the next ones."""

    def run() -> None:
        for _ in range(steps):
            next(loader)

    settle()
    return harness.timed(run)[0]


def settle() -> None:
    """Wait until no thread of this process works: litdata and mosaicml-streaming go on reading ahead for half a second
    after their turn, which took half of the core from whoever came next (46 -> 100 us a batch)."""
    for _ in range(100):
        worked = time.process_time()
        time.sleep(0.05)
        if time.process_time() - worked < 0.002:
            return


# -- rows, opening, resuming


def access(folder: Path, datasets: dict[str, Path], encoded: Encoded, turns: int) -> list[harness.Row]:
    """Random rows beside numpy and zarr; opening; the first batch of a new loader in the middle."""
    import zarr

    order = np.random.default_rng(SEED).integers(0, len(encoded) // SEQ_LEN, 4000).tolist()
    np.save(folder / "encoded.npy", encoded)
    memmap = np.load(folder / "encoded.npy", mmap_mode="r")
    opened = {layout: open_dataset(path).train for layout, path in datasets.items()}
    group: Any = zarr.open_group(datasets["zstd, 64 Ki"], mode="r")
    stored = group["train/encoded_tokens"]

    def through(read: Callable[[int], Any], count: int) -> Callable[[], float]:
        def run() -> None:
            for index in order[:count]:
                read(index)

        run()
        return lambda: harness.timed(run)[0] / count

    contenders = {
        "random row: tokenmill, raw": through(lambda index: opened["raw"].row(index, SEQ_LEN), 4000),
        "random row: numpy.memmap, copied": through(
            lambda index: np.array(memmap[index * SEQ_LEN : (index + 1) * SEQ_LEN]), 4000
        ),
        "random row: tokenmill, zstd, 64 Ki": through(
            lambda index: opened["zstd, 64 Ki"].row(index, SEQ_LEN), 400
        ),
        "random row: zarr-python, zstd, 64 Ki": through(
            lambda index: stored[index * SEQ_LEN : (index + 1) * SEQ_LEN], 100
        ),
        "open: tokenmill": lambda: statistics.median(
            harness.timed(lambda: open_dataset(datasets["raw"]))[0] for _ in range(20)
        ),
    }
    for layout, path in datasets.items():
        contenders[f"resume at the middle: tokenmill, {layout}"] = functools.partial(resumed, path)
    rows: list[harness.Row] = []
    for name, seconds in harness.take_turns(contenders, turns).items():
        median = statistics.median(seconds)
        spread = (max(seconds) - min(seconds)) / median
        rows.append({"what": name, "us": median * 1e6, "spread": spread, "turns": len(seconds)})
    return rows


def resumed(path: Path) -> float:
    """Seconds from an open dataset to the batch of a step in the middle of the third epoch, by a new loader."""
    array = open_dataset(path).train
    return harness.timed(lambda: at_middle(Loader(array, SEQ_LEN, BATCH_SIZE, SEED)))[0]


def at_middle(loader: Loader) -> Any:
    return loader.batch(2 * len(loader) + len(loader) // 2)


def memory_of(path: str) -> int:
    """Bytes of its own (not of files) that this process holds more after 300 batches, in a fresh process."""

    def anonymous() -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        return 0

    before = anonymous() if Path("/proc/self/status").exists() else 0
    loader = Loader(open_dataset(path).train, SEQ_LEN, BATCH_SIZE, SEED)
    running = loader.from_step(0)
    for _ in range(300):
        next(running)
    return anonymous() - before if before else harness.peak_bytes()


if __name__ == "__main__":
    main()
