"""How fast are shuffled batches on one core: of a Loader, as tensors through DataLoader, of packs, of mixtures?

Equal first: batches of every dataset must be what a naive gather of the same rows from the ids in memory gives. All
run in one process on one core, data in the page cache, turn by turn, each going on where its last turn ended; times are
of the processor, since the cores are shared. A Loader hands out inputs, targets and start flags, int32; a BatchDataset
input_ids and labels, int64, by itself or through DataLoader, without workers. The ids are drawn by a seed, as frequent
as words are (1 / rank), in sequences of 600 tokens on average, of as many entries as GPT-2 and o200k have. Then rows,
opening and resuming. M tokens/s counts targets, with padding. scripts/bench/load_peers.py has other loaders.

    python scripts/bench/load.py [--tokens 16777216]
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import numpy as np
from load_data import (
    BATCH_SIZE,
    ID_COUNTS,
    LAYOUTS,
    SEED,
    SEQ_LEN,
    Batches,
    Encoded,
    check,
    loader_of,
    measure,
    one_core,
    tokens,
    worked,
    write,
)

from flat_tokens import FlatTokensArray, Loader, Mixture, PackedSequences
from flat_tokens import open as open_dataset

try:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset
except ImportError:
    DataLoader = None  # type: ignore[assignment,misc,unused-ignore]

EVERYTHING = ("input_ids", "labels", "is_seq_start", "segment_ids", "position_ids")


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.add_argument("--tokens", type=int, default=2**24, help="of the datasets (default 16 Mi)")
    parser.add_argument("--memory-of", metavar="DATASET", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(json.dumps(memory_of(options.memory_of)))
        return
    machine = harness.facts()
    if version := harness.package_version("torch"):
        machine["versions"]["torch"] = version
    one_core()
    notes = [] if DataLoader is not None else ["what needs PyTorch is left out: it is not installed"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contenders: dict[str, tuple[int, Batches]] = {}
        datasets: dict[str, FlatTokensArray] = {}
        for ids, id_count in ID_COUNTS.items():
            encoded = tokens(options.tokens, id_count)
            for layout, how in LAYOUTS.items():
                title = f"{layout}, ids of {ids}"
                datasets[title] = write(folder / title, encoded, how)
                check(title, datasets[title], encoded)
                contenders |= of_rows(title, datasets[title])
        for layout in LAYOUTS:
            train = datasets[f"{layout}, ids of GPT-2"]
            contenders |= of_packs(layout, train)
            contenders[f"Mixture of 2, {layout}"] = (
                200,
                Mixture([train, datasets[f"{layout}, ids of o200k"]], [2, 1], SEQ_LEN, BATCH_SIZE).from_step(
                    0
                ),
            )
        rows = measure(contenders, options.turns)
        rows += access(folder, datasets, options.turns)
        for title in list(datasets)[:2]:
            held = harness.run_child(__file__, ["--memory-of", str(folder / title)], 1)
            notes.append(f"{title}: 300 batches hold {held / 2**20:.0f} MiB beside numpy and the page cache")
    notes.append(f"{options.tokens:,} tokens, batches of {BATCH_SIZE} x {SEQ_LEN:,}, rows of {SEQ_LEN:,}")
    notes.append("all batches that were compared equal a naive gather of their rows")
    harness.save("load", machine, rows, [], notes)


def of_rows(title: str, train: FlatTokensArray) -> dict[str, tuple[int, Batches]]:
    steps = 1000 if title.startswith("raw") else 300
    found: dict[str, tuple[int, Batches]] = {f"Loader, {title}": (steps, loader_of(train).from_step(0))}
    if DataLoader is not None:
        found[f"DataLoader(BatchDataset), {title}"] = (steps, tensors(loader_of(train)))
        if title.endswith("GPT-2"):
            as_tensors = Loader(train, SEQ_LEN, BATCH_SIZE, SEED, dtype=np.int64)
            found[f"Loader, int64, {title}"] = (steps, as_tensors.from_step(0))
            found[f"BatchDataset, {title}"] = (steps, iter(BatchDataset(loader_of(train))))
            batches = tensors(loader_of(train), EVERYTHING)
            found[f"DataLoader(BatchDataset), 5 fields, {title}"] = (steps // 2, batches)
    return found


def of_packs(layout: str, train: FlatTokensArray) -> dict[str, tuple[int, Batches]]:
    plans: dict[str, dict[str, Any]] = {
        "whole sequences in order": {"split_across_pack": False},
        "split": {"split_across_pack": True},
        "best-fit": {"strategy": "best-fit", "split_across_pack": True},  # windows of 8 Mi tokens
    }
    found: dict[str, tuple[int, Batches]] = {}
    for name, options in plans.items():
        if not options.get("split_across_pack"):  # some sequences are longer than a row
            train_packs = PackedSequences(train, 2**14, **options)
            loader = Loader(train_packs, 2**14, BATCH_SIZE * SEQ_LEN // 2**14, SEED)
        else:
            loader = Loader(PackedSequences(train, SEQ_LEN, **options), SEQ_LEN, BATCH_SIZE, SEED)
        found[f"Loader of packs, {name}, {layout}"] = (
            256 if name == "best-fit" else 128,
            loader.from_step(0),
        )
    return found


def tensors(loader: Loader, fields: tuple[str, ...] = ("input_ids", "labels")) -> Batches:
    return iter(DataLoader(BatchDataset(loader, fields=fields), batch_size=None))


# -- rows, opening, resuming


def access(folder: Path, datasets: dict[str, FlatTokensArray], turns: int) -> list[harness.Row]:
    """Random rows beside numpy and zarr; opening; the first batch of a new loader in the middle."""
    import zarr

    raw, compressed = (f"{layout}, ids of GPT-2" for layout in LAYOUTS)
    encoded: Encoded = datasets[raw].encoded_tokens[:]
    order = np.random.default_rng(SEED).integers(0, len(encoded) // SEQ_LEN, 4000).tolist()
    np.save(folder / "encoded.npy", encoded)
    memmap = np.load(folder / "encoded.npy", mmap_mode="r")
    group: Any = zarr.open_group(folder / compressed, mode="r")
    stored = group["train/encoded_tokens"]

    def through(read: Callable[[int], Any], count: int) -> Callable[[], float]:
        def run() -> None:
            for index in order[:count]:
                read(index)

        run()
        return lambda: worked(run)[0] / count

    contenders = {
        "random row: raw": through(lambda index: datasets[raw].row(index, SEQ_LEN), 4000),
        "random row: numpy.memmap, copied": through(
            lambda index: np.array(memmap[index * SEQ_LEN : (index + 1) * SEQ_LEN]), 4000
        ),
        "random row: zstd": through(lambda index: datasets[compressed].row(index, SEQ_LEN), 400),
        "random row: zarr-python, zstd": through(
            lambda index: stored[index * SEQ_LEN : (index + 1) * SEQ_LEN], 100
        ),
        "open": lambda: statistics.median(worked(lambda: open_dataset(folder / raw))[0] for _ in range(20)),
    }
    for title in (raw, compressed):
        contenders[f"resume in the middle: {title}"] = functools.partial(resumed, folder / title)
    rows: list[harness.Row] = []
    for name, seconds in harness.take_turns(contenders, turns).items():
        median = statistics.median(seconds)
        spread = (max(seconds) - min(seconds)) / median
        rows.append({"what": name, "us": median * 1e6, "spread": spread, "turns": len(seconds)})
    return rows


def resumed(path: Path) -> float:
    """Seconds from an open dataset to the batch of a step in the middle of the third epoch, by a new loader."""
    array = open_dataset(path).train
    return worked(lambda: at_middle(loader_of(array)))[0]


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
    running = loader_of(open_dataset(path).train).from_step(0)
    for _ in range(300):
        next(running)
    return anonymous() - before if before else harness.peak_bytes()


if __name__ == "__main__":
    main()
