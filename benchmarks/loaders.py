"""One run of one loader: `loaders.py JOB`, as in contenders.py.

    {"kind": "load", "loader": "litdata", "folder": FOLDER, "seconds": 2, "threads": 1}

The product of each: input_ids and labels as int64[64, 1024] tensors of shuffled rows, with label -100 at the first
token of each document. "prepare" writes the tokens of FOLDER/tokens.npy in the form that the loader prefers. The
start flag stays in the low bit of a token, since no other loader has a field for it.
"""

from __future__ import annotations

import importlib
import itertools
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from contenders import Row, serve
from numpy.typing import NDArray

SEQ_LEN, BATCH_SIZE, SEED = 1024, 64, 7
WARM_UP_BATCHES = 10
Batches = Iterator[Any]


def product(rows: Any) -> dict[str, Any]:
    """Make the tensors of one batch, as fast as NumPy allows."""
    import torch

    rows = np.asarray(rows)
    input_ids = (rows >> 1).astype(np.int64)
    labels = input_ids.copy()
    np.copyto(labels, -100, where=(rows.astype(np.uint8) & np.uint8(1)).view(np.bool_))
    return {"input_ids": torch.from_numpy(input_ids), "labels": torch.from_numpy(labels)}


def stored_rows(folder: Path) -> NDArray[np.uint32]:
    tokens = np.load(folder / "tokens.npy", mmap_mode="r")
    return np.asarray(tokens[: len(tokens) // SEQ_LEN * SEQ_LEN].reshape(-1, SEQ_LEN))


def nothing(folder: Path) -> None:
    """Prepare nothing, for loaders that read the files of `loading.py`."""


def forever(loader: Any) -> Batches:
    return itertools.chain.from_iterable(itertools.repeat(loader))


def ours(name: str) -> Callable[[Path], Batches]:
    """A Loader as tensors, through DataLoader without workers."""

    def open_loader(folder: Path) -> Batches:
        from torch.utils.data import DataLoader

        import flat_tokens
        from flat_tokens.torch import BatchDataset

        loader = flat_tokens.Loader(flat_tokens.open(folder / name).train, SEQ_LEN, BATCH_SIZE, SEED)
        return iter(DataLoader(BatchDataset(loader), batch_size=None))

    return open_loader


def torch_memmap(folder: Path) -> Batches:
    """A map-style dataset over a memory map that reads a batch with one index."""
    from torch.utils.data import DataLoader

    rows = stored_rows(folder)

    class Rows:
        def __len__(self) -> int:
            return len(rows)

        def __getitems__(self, indices: list[int]) -> Any:
            return rows[indices]

    dataset: Any = Rows()
    loader: Any = DataLoader(dataset, BATCH_SIZE, shuffle=True, drop_last=True, collate_fn=product)
    return forever(loader)


def grain(folder: Path) -> Batches:
    """MapDataset over a memory map, with its own shuffling and batching."""
    import grain as package

    source = package.MapDataset.source(stored_rows(folder))
    dataset = source.seed(SEED).shuffle().repeat().batch(BATCH_SIZE, drop_remainder=True)
    return (product(rows) for rows in dataset)


def tensorstore(folder: Path) -> Batches:
    """Rows of our compressed dataset, the reads of a batch at once, with a cache for all of it."""
    import tensorstore as package

    path = {"driver": "file", "path": str(folder / "zstd.zarr" / "train" / "encoded_tokens")}
    context = {"cache_pool": {"total_bytes_limit": 2**30}}
    driver = "zarr3" if (folder / "zstd.zarr" / "zarr.json").exists() else "zarr"
    store = package.open({"driver": driver, "kvstore": path, "context": context}, read=True).result()
    count = store.shape[0] // SEQ_LEN

    def batches() -> Batches:
        generator = np.random.default_rng(SEED)
        while True:
            order = generator.permutation(count)
            for first in range(0, count - BATCH_SIZE + 1, BATCH_SIZE):
                chosen = order[first : first + BATCH_SIZE].tolist()
                reads = [store[row * SEQ_LEN : (row + 1) * SEQ_LEN].read() for row in chosen]
                yield product(np.stack([read.result() for read in reads]))

    return batches()


def prepare_litdata(folder: Path) -> None:
    import torch
    from litdata import TokensLoader
    from litdata.streaming.writer import BinaryWriter

    (folder / "litdata").mkdir()
    loader = TokensLoader(block_size=SEQ_LEN)
    writer = BinaryWriter(str(folder / "litdata"), chunk_bytes="64MB", item_loader=loader)
    tokens = stored_rows(folder).reshape(-1)
    for number, first in enumerate(range(0, len(tokens), 2**19)):
        writer[number] = torch.from_numpy(tokens[first : first + 2**19].astype(np.int32))
    writer.done()
    writer.merge()


def litdata(folder: Path) -> Batches:
    """StreamingDataset with its TokensLoader, in chunks of 64 MB, uncompressed."""
    from litdata import StreamingDataset, TokensLoader
    from torch.utils.data import DataLoader

    loader = TokensLoader(block_size=SEQ_LEN)
    dataset = StreamingDataset(str(folder / "litdata"), item_loader=loader, shuffle=True, drop_last=True)
    return (product(batch.numpy()) for batch in forever(DataLoader(dataset, BATCH_SIZE)))


def prepare_streaming(folder: Path) -> None:
    from streaming import MDSWriter

    with MDSWriter(out=str(folder / "mds"), columns={"ids": f"ndarray:int32:{SEQ_LEN}"}) as writer:
        for row in stored_rows(folder):
            writer.write({"ids": row.astype(np.int32)})


def streaming(folder: Path) -> Batches:
    """mosaicml-streaming: a sample per row, in uncompressed MDS shards."""
    from streaming import StreamingDataset
    from torch.utils.data import DataLoader

    dataset = StreamingDataset(local=str(folder / "mds"), shuffle=True, batch_size=BATCH_SIZE)
    return (product(batch["ids"].numpy()) for batch in forever(DataLoader(dataset, BATCH_SIZE)))


# Packages to import before the clock runs, the preparation, and the loader.
LOADERS: dict[str, tuple[str, Callable[[Path], None], Callable[[Path], Batches]]] = {
    "tokenmill": ("flat_tokens.torch", nothing, ours("raw.zarr")),
    "tokenmill, zstd": ("flat_tokens.torch", nothing, ours("zstd.zarr")),
    "torch DataLoader over a memmap": ("torch", nothing, torch_memmap),
    "grain": ("grain", nothing, grain),
    "tensorstore, zstd": ("tensorstore", nothing, tensorstore),
    "litdata": ("litdata", prepare_litdata, litdata),
    "mosaicml-streaming": ("streaming", prepare_streaming, streaming),
}


def prepare(job: Row) -> Row:
    quiet(job)
    LOADERS[job["loader"]][1](Path(job["folder"]))
    return {}


def load(job: Row) -> Row:
    """Open the data, take the first batch, then draw batches for the given seconds."""
    quiet(job)
    import torch
    import torch.utils.data

    module, _, open_batches = LOADERS[job["loader"]]
    importlib.import_module(module)
    torch.set_num_threads(job["threads"])
    started = time.perf_counter()
    batches = open_batches(Path(job["folder"]))
    check(next(batches))
    first = time.perf_counter() - started
    for _ in range(WARM_UP_BATCHES):
        next(batches)
    count, started, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < job["seconds"]:
        next(batches)
        count += 1
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    tokens = count * BATCH_SIZE * SEQ_LEN
    return {"first_batch_s": first, "tokens": tokens, "load_s": seconds, "load_cpu_s": cpu}


def check(batch: dict[str, Any]) -> None:
    """Raise ValueError if the batch is not the product."""
    for name, values in batch.items():
        if tuple(values.shape) != (BATCH_SIZE, SEQ_LEN) or str(values.dtype) != "torch.int64":
            raise ValueError(f"{name} is {values.dtype}{list(values.shape)}")
    ids, labels = batch["input_ids"], batch["labels"]
    if not bool(((labels == ids) | (labels == -100)).all()) or not bool((labels == -100).any()):
        raise ValueError("the labels are wrong")


def quiet(job: Row) -> None:
    """Keep caches of the loaders inside the folder, and suppress warnings."""
    os.environ["DATA_OPTIMIZER_CACHE_FOLDER"] = str(Path(job["folder"]) / "cache")
    warnings.filterwarnings("ignore")
    shutil.rmtree(Path(job["folder"]) / "cache", ignore_errors=True)


if __name__ == "__main__":
    serve({"prepare": prepare, "load": load})
