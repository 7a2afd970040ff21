"""How fast do datasets go to other tools and come from them, and in how much memory?

    python scripts/bench/exchange.py owt.zarr --scratch /tmp/exchange [--append-token 50256]

Each command is a process of its own, with its time, its processor time and its peak memory. What is exported is
imported again; inputs of MDS and litdata are written by those tools where they are installed. Each import must have the
documents of the dataset.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import flat_tokens

ROOT = Path(__file__).resolve().parents[2]
COMPARED_STEP = 50  # one document in so many is compared


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
    print("| | seconds | processor, seconds | M tokens a second of it | peak, MB |\n|---|---|---|---|---|")
    for name in ("megatron", "npy", "nanogpt", "jsonl"):
        words = ["export", str(options.dataset), "--to", name, "--split", "train"]
        words += ["--append-token", options.append_token] if name == "nanogpt" else []
        measure(f"export --to {name}", words, options.scratch / name, options.turns, train.token_count)
    inputs = {"megatron": "megatron/train", "npy": "npy/train.npy", "nanogpt": "nanogpt/train.bin"}
    for writer in (write_datatrove, write_mds, write_litdata):
        # In a process of its own: what torch takes would count as the peak of the commands that are begun here.
        process = multiprocessing.get_context("spawn").Process(target=writer, args=(options.scratch, train))
        process.start()
        process.join()
        name = writer.__name__.removeprefix("write_")
        if (options.scratch / name).exists():
            inputs[name] = name
    for name, place in inputs.items():
        words = ["import", str(options.scratch / place), "--from", name]
        words += ["--separator-token", options.append_token] if name == "nanogpt" else []
        output = options.scratch / f"{name}.zarr"
        measure(f"import --from {name}", words, output, options.turns, train.token_count)
        check(name, output, train)


def measure(title: str, words: list[str], output: Path, turns: int, tokens: int) -> None:
    """Print a row: the median of some turns."""
    seconds, busy, peak = [], [], 0
    for _ in range(turns):
        shutil.rmtree(output, ignore_errors=True)
        started = time.perf_counter()
        command = [sys.executable, "-m", "flat_tokens", *words, "--output", str(output)]
        process = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            sys.exit(f"{title}: exit status {status}")
        seconds.append(time.perf_counter() - started)
        busy.append(usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss // 1024)
    wall, work = sorted(seconds)[turns // 2], sorted(busy)[turns // 2]
    print(f"| {title} | {wall:.1f} | {work:.1f} | {tokens / work / 1e6:,.0f} | {peak:,} |", flush=True)


def check(name: str, output: Path, train: flat_tokens.FlatTokensArray) -> None:
    """End the run unless there are as many documents, and some of them are the same."""
    found = flat_tokens.open(output).train
    extra = 1 if found.token_count == train.token_count + train.seq_count else 0
    for index in range(0, train.seq_count, COMPARED_STEP):
        expected = train.sequence(index)
        ids = found.sequence(index)
        if not np.array_equal(ids[: len(ids) - extra], expected):
            sys.exit(f"{name}: document {index} differs")
    if found.seq_count != train.seq_count:
        sys.exit(f"{name}: {found.seq_count} documents of {train.seq_count}")


def write_datatrove(scratch: Path, train: flat_tokens.FlatTokensArray) -> None:
    """NAME.ds and its index, by their layout: ids and ends."""
    folder = scratch / "datatrove"
    folder.mkdir(exist_ok=True)
    np.load(scratch / "npy/train.npy", mmap_mode="r").tofile(folder / "a.ds")
    train.seq_starts[1:].tofile(folder / "a.ds.index")


def some(train: flat_tokens.FlatTokensArray) -> Iterator[np.ndarray]:
    """All documents, as a tool's writer takes them."""
    dtype = np.uint16 if train.max_token_id < 2**16 else np.int32
    for first in range(0, train.seq_count, 1000):
        for ids in train.sequences(range(first, min(first + 1000, train.seq_count))):
            yield ids.astype(dtype)


def write_mds(scratch: Path, train: flat_tokens.FlatTokensArray) -> None:
    """By mosaicml-streaming, zstd; nothing where it is not installed."""
    try:
        from streaming import MDSWriter
    except ImportError:
        return
    dtype = "uint16" if train.max_token_id < 2**16 else "int32"
    shutil.rmtree(scratch / "mds", ignore_errors=True)
    columns = {"tokens": f"ndarray:{dtype}"}
    with MDSWriter(out=str(scratch / "mds"), columns=columns, compression="zstd:1") as writer:
        for ids in some(train):
            writer.write({"tokens": ids})


def write_litdata(scratch: Path, train: flat_tokens.FlatTokensArray) -> None:
    """By litdata; nothing where it is not installed."""
    try:
        import torch
        from litdata.streaming.item_loader import TokensLoader
        from litdata.streaming.writer import BinaryWriter
    except ImportError:
        return
    shutil.rmtree(scratch / "litdata", ignore_errors=True)
    writer = BinaryWriter(str(scratch / "litdata"), chunk_bytes="64MB", item_loader=TokensLoader())
    for at, ids in enumerate(some(train)):
        writer[at] = torch.from_numpy(ids)
    writer.done()
    writer.merge()


if __name__ == "__main__":
    main()
