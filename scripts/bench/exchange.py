"""How fast do datasets go to other tools and come from them, and in how much memory?

    python scripts/bench/exchange.py owt.zarr --scratch /tmp/exchange [--append-token 50256]

Each command is a process of its own, timed from its start to its end, with its peak memory. What is exported is
imported again; inputs of MDS and litdata are written by those tools where they are installed. The documents of each
import must be those of the dataset.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import flat_tokens

ROOT = Path(__file__).resolve().parents[2]
TEXT_SHARE = 2  # of 100 tokens are read beside, to see that the documents are the same


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--append-token", default="none", help="for nanogpt, if documents end with none")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    options.scratch.mkdir(exist_ok=True)
    train = flat_tokens.open(options.dataset).train
    print(f"{train.token_count:,} tokens in {train.seq_count:,} documents")
    print("| | seconds | M tokens/s | peak, MB |\n|---|---|---|---|")
    for name in ("megatron", "npy", "nanogpt", "jsonl"):
        words = ["export", str(options.dataset), "--to", name, "--split", "train"]
        words += ["--append-token", options.append_token] if name == "nanogpt" else []
        measure(f"export --to {name}", words, options.scratch / name, options.turns, train.token_count)
    inputs = {"megatron": "megatron/train", "npy": "npy/train.npy", "nanogpt": "nanogpt/train.bin"}
    for writer in (write_datatrove, write_mds, write_litdata):
        if place := writer(options.scratch, train):
            inputs[place] = place
    for name, place in inputs.items():
        words = ["import", str(options.scratch / place), "--from", name]
        words += ["--separator-token", options.append_token] if name == "nanogpt" else []
        output = options.scratch / f"{name}.zarr"
        measure(f"import --from {name}", words, output, options.turns, train.token_count)
        check(name, output, train)


def measure(title: str, words: list[str], output: Path, turns: int, tokens: int) -> None:
    """Print a row: the median of some turns."""
    seconds, peak = [], 0
    for _ in range(turns):
        shutil.rmtree(output, ignore_errors=True)
        started = time.perf_counter()
        command = [sys.executable, "-m", "flat_tokens", *words, "--output", str(output)]
        process = os.spawnve(os.P_NOWAIT, sys.executable, command, os.environ | {"PYTHONPATH": str(ROOT)})
        _, status, usage = os.wait4(process, 0)
        if status:
            sys.exit(f"{title}: exit status {status}")
        seconds.append(time.perf_counter() - started)
        peak = max(peak, usage.ru_maxrss // 1024)
    median = sorted(seconds)[turns // 2]
    print(f"| {title} | {median:.2f} | {tokens / median / 1e6:,.0f} | {peak:,} |", flush=True)


def check(name: str, output: Path, train: flat_tokens.FlatTokensArray) -> None:
    """End the run unless the documents are the same, all borders and some of the tokens."""
    found = flat_tokens.open(output).train
    extra = 1 if found.token_count == train.token_count + train.seq_count else 0
    step = max(1, train.seq_count * TEXT_SHARE // 100)
    for index in range(0, train.seq_count, max(1, train.seq_count // step)):
        expected = train.sequence(index)
        ids = found.sequence(index)
        if not np.array_equal(ids[: len(ids) - extra], expected):
            sys.exit(f"{name}: document {index} differs")
    if found.seq_count != train.seq_count:
        sys.exit(f"{name}: {found.seq_count} documents of {train.seq_count}")


def write_datatrove(scratch: Path, train: flat_tokens.FlatTokensArray) -> str:
    """NAME.ds and its index, by their layout: ids and ends."""
    folder = scratch / "datatrove"
    folder.mkdir(exist_ok=True)
    shutil.copy(scratch / "npy/train.npy", folder / "ids.npy")
    ids = np.load(folder / "ids.npy", mmap_mode="r")
    ids.tofile(folder / "a.ds")
    (folder / "ids.npy").unlink()
    train.seq_starts[1:].tofile(folder / "a.ds.index")
    return "datatrove"


def some(train: flat_tokens.FlatTokensArray) -> Iterator[np.ndarray]:
    """All documents, as a tool's writer takes them."""
    dtype = np.uint16 if train.max_token_id < 2**16 else np.int32
    for first in range(0, train.seq_count, 1000):
        for ids in train.sequences(range(first, min(first + 1000, train.seq_count))):
            yield ids.astype(dtype)


def write_mds(scratch: Path, train: flat_tokens.FlatTokensArray) -> str:
    """By mosaicml-streaming, zstd; nothing where it is not installed."""
    try:
        from streaming import MDSWriter
    except ImportError:
        return ""
    dtype = "uint16" if train.max_token_id < 2**16 else "int32"
    shutil.rmtree(scratch / "mds", ignore_errors=True)
    columns = {"tokens": f"ndarray:{dtype}"}
    with MDSWriter(out=str(scratch / "mds"), columns=columns, compression="zstd:1") as writer:
        for ids in some(train):
            writer.write({"tokens": ids})
    return "mds"


def write_litdata(scratch: Path, train: flat_tokens.FlatTokensArray) -> str:
    """By litdata; nothing where it is not installed."""
    try:
        import torch
        from litdata.streaming.item_loader import TokensLoader
        from litdata.streaming.writer import BinaryWriter
    except ImportError:
        return ""
    shutil.rmtree(scratch / "litdata", ignore_errors=True)
    writer = BinaryWriter(str(scratch / "litdata"), chunk_bytes="64MB", item_loader=TokensLoader())
    for at, ids in enumerate(some(train)):
        writer[at] = torch.from_numpy(ids)
    writer.done()
    writer.merge()
    return "litdata"


if __name__ == "__main__":
    main()
