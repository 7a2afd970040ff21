"""How fast are batches of tensors, beside other loaders that make the same product of the same tokens?

The product: input_ids and labels, int64[64, 1024], of shuffled rows, labels -100 at the first token of each document.
Each peer gets the tokens in the form that it likes best, with the start flag in the low bit, as the format stores
them, since none has a place for it, and the product is made of each batch at once, as well as numpy can. All run in one
process on one core, without workers, turn by turn, each going on where its last turn ended, once the threads of the one
before are at rest; times are of the processor, of all threads, since the cores are shared. A peer that is not installed
is left out and named. M tokens/s counts labels.

    python scripts/bench/load_peers.py [--tokens 16777216]
"""

from __future__ import annotations

import importlib.util
import itertools
import logging
import os
import sys
import tempfile
import warnings
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
    write,
)

PACKAGES = ("torch", "litdata", "mosaicml-streaming", "grain", "tensorstore")


def product(found: Any) -> dict[str, Any]:
    """input_ids and labels of a batch of rows as the format stores them, int[rows, SEQ_LEN]."""
    import torch

    found = np.asarray(found)
    input_ids = (found >> 1).astype(np.int64)
    labels = input_ids.copy()
    np.copyto(labels, -100, where=(found.astype(np.uint8) & np.uint8(1)).view(np.bool_))
    return {"input_ids": torch.from_numpy(input_ids), "labels": torch.from_numpy(labels)}


def rows_of(encoded: Encoded) -> Any:
    return encoded[: len(encoded) // SEQ_LEN * SEQ_LEN].reshape(-1, SEQ_LEN)


def torch_memmap(folder: Path, encoded: Encoded) -> Batches:
    """A map-style dataset over a memmap, a batch by one fancy index in `__getitems__`."""
    from torch.utils.data import DataLoader, Dataset

    np.save(folder / "encoded.npy", rows_of(encoded))
    rows = np.asarray(np.load(folder / "encoded.npy", mmap_mode="r"))

    class Rows(Dataset[Any]):
        def __len__(self) -> int:
            return len(rows)

        def __getitems__(self, indices: list[int]) -> Any:
            return rows[indices]

    loader: Any = DataLoader(Rows(), BATCH_SIZE, shuffle=True, drop_last=True, collate_fn=product)
    return itertools.chain.from_iterable(itertools.repeat(loader))


def litdata(folder: Path, encoded: Encoded) -> Batches:
    """StreamingDataset with its TokensLoader, in chunks of 64 MB, uncompressed."""
    import torch
    from litdata import StreamingDataset, TokensLoader
    from litdata.streaming.writer import BinaryWriter
    from torch.utils.data import DataLoader

    path = folder / "litdata"
    path.mkdir()
    writer = BinaryWriter(str(path), chunk_bytes="64MB", item_loader=TokensLoader(block_size=SEQ_LEN))
    step = 2**19
    for number, first in enumerate(range(0, len(encoded), step)):
        writer[number] = torch.from_numpy(encoded[first : first + step].astype(np.int32))
    writer.done()
    writer.merge()
    dataset = StreamingDataset(
        str(path), item_loader=TokensLoader(block_size=SEQ_LEN), shuffle=True, drop_last=True
    )
    loader = DataLoader(dataset, BATCH_SIZE)
    return (product(batch.numpy()) for batch in itertools.chain.from_iterable(itertools.repeat(loader)))


def mosaic(folder: Path, encoded: Encoded) -> Batches:
    """mosaicml-streaming: a sample a row, in MDS shards without compression."""
    from streaming import MDSWriter, StreamingDataset
    from torch.utils.data import DataLoader

    path = folder / "mds"
    with MDSWriter(out=str(path), columns={"ids": f"ndarray:int32:{SEQ_LEN}"}) as writer:
        for row in rows_of(encoded):
            writer.write({"ids": row.astype(np.int32)})
    dataset = StreamingDataset(local=str(path), shuffle=True, batch_size=BATCH_SIZE)
    loader = DataLoader(dataset, BATCH_SIZE)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    return (product(batch["ids"].numpy()) for batch in batches)


def grain(folder: Path, encoded: Encoded) -> Batches:
    """MapDataset over a memmap, its own shuffling and batching."""
    import grain as its

    np.save(folder / "grain.npy", rows_of(encoded))
    rows = np.asarray(np.load(folder / "grain.npy", mmap_mode="r"))
    dataset = its.MapDataset.source(rows).seed(SEED).shuffle().repeat().batch(BATCH_SIZE, drop_remainder=True)
    return (product(found) for found in dataset)


def tensorstore(folder: Path, encoded: Encoded) -> Batches:
    """Rows of our own zstd dataset, a batch of reads at once, all that was decoded kept in memory."""
    import tensorstore as its

    write(folder / "tensorstore", encoded, LAYOUTS["zstd"])
    store = its.open(
        {
            "driver": "zarr",
            "kvstore": {"driver": "file", "path": str(folder / "tensorstore/train/encoded_tokens")},
            "context": {"cache_pool": {"total_bytes_limit": 2**30}},
        },
        read=True,
    ).result()
    count = len(encoded) // SEQ_LEN

    def batches() -> Batches:
        generator = np.random.default_rng(SEED)
        while True:
            order = generator.permutation(count)
            for first in range(0, count - BATCH_SIZE + 1, BATCH_SIZE):
                reads = [
                    store[row * SEQ_LEN : (row + 1) * SEQ_LEN].read()
                    for row in order[first : first + BATCH_SIZE].tolist()
                ]
                yield product(np.stack([read.result() for read in reads]))

    return batches()


PEERS: dict[str, tuple[str, int, Callable[[Path, Encoded], Batches]]] = {
    "torch DataLoader over a memmap": ("torch", 300, torch_memmap),
    "litdata": ("litdata", 100, litdata),
    "mosaicml-streaming": ("streaming", 30, mosaic),
    "grain": ("grain", 30, grain),
    "tensorstore, zstd": ("tensorstore", 50, tensorstore),
}


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.add_argument("--tokens", type=int, default=2**24, help="of the datasets (default 16 Mi)")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        sys.exit("error: this benchmark needs PyTorch; pip install 'tokenmill[torch]'")
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    machine = harness.facts()
    machine["versions"] |= {name: v for name in PACKAGES if (v := harness.package_version(name))}
    one_core()
    encoded = tokens(options.tokens, ID_COUNTS["GPT-2"])
    notes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        quiet(folder)
        contenders: dict[str, tuple[int, Batches]] = {}
        for layout, how in LAYOUTS.items():
            train = write(folder / layout, encoded, how)
            check(layout, train, encoded)
            batches = iter(DataLoader(BatchDataset(loader_of(train)), batch_size=None))
            contenders[f"tokenmill, {layout}"] = (300, batches)
        for title, (module, steps, make) in PEERS.items():
            if importlib.util.find_spec(module) is None:
                notes.append(f"{title}: left out, {module} is not installed")
                continue
            contenders[title] = steps, make(folder, encoded)
            is_right(title, next(contenders[title][1]))
        rows = measure(contenders, options.turns)
    memmap = next((row["M tokens/s"] for row in rows if row["what"].startswith("torch")), None)
    for row in rows:
        row["of the memmap"] = f"{row['M tokens/s'] / memmap:.2f}" if memmap else None
    notes.append(f"{len(encoded):,} tokens, batches of {BATCH_SIZE} x {SEQ_LEN:,}, ids of GPT-2")
    harness.save("load_peers", machine, rows, [], notes)


def is_right(title: str, batch: dict[str, Any]) -> None:
    """Ends the run unless a batch has the form of the product."""
    for name, values in batch.items():
        if tuple(values.shape) != (BATCH_SIZE, SEQ_LEN) or str(values.dtype) != "torch.int64":
            sys.exit(f"error: {title}: {name} is {values.dtype}{list(values.shape)}")
    ids, labels = batch["input_ids"], batch["labels"]
    if not bool(((labels == ids) | (labels == -100)).all()) or not bool((labels == -100).any()):
        sys.exit(f"error: {title}: the labels are not those of its input_ids")


def quiet(folder: Path) -> None:
    """Keep the peers' caches inside `folder` and their news to themselves."""
    os.environ["DATA_OPTIMIZER_CACHE_FOLDER"] = str(folder / "cache")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)


if __name__ == "__main__":
    main()
