"""How long is the whole road from a text file to a verified dataset, beside encoders that merely make ids in memory?

Ours is timed as a user meets it: `python -m convert FILE --workers N`, from the start of the process to its end
with a dataset that is compressed, written and verified. gigatoken is a process too, which reads, encodes and
forgets the ids; and once more one that goes on as one would by hand: start flags in numpy, the arrays written by
zarr with its defaults, one after the other, nothing verified. What it wrote must equal ours. tiktoken's clock runs
only while it encodes documents that lie split in memory already. Before all that, the dataset's tokens and sequence
lengths are compared with tiktoken's, over the whole file.

Before each process, off the clock, what the others wrote goes to the disk (numpy and zarr leave 1 GB unwritten, which
would slow down whoever comes next) and the machine rests for REST_SECONDS: memory and page cache that the process
before has let go of go back to a virtual machine's host within some 2 s and cost again when they are touched; whoever
came next at once would find it warm, and most of all whoever came after the one with most memory. What it wrote stays
until the text is done with: ext4 without a journal, as many such machines have it, looks past every file deleted in the
last minutes whenever one is made. So all begin as a command does that a user types.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness
import numpy as np
import peers
from encoders import Gigatoken, Tiktoken, flat, installed

REST_SECONDS = 3.0


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.set_defaults(limit_mb=1e6)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--child", choices=["gigatoken", "gigatoken-zarr", "tiktoken"], help=argparse.SUPPRESS
    )
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    options = harness.parse(parser)
    if options.child:
        child(options)
        return

    peers.use()
    machine = harness.facts()
    here = {encoder.name for encoder in installed()[0]}
    notes = [note for note in installed()[1] if note.startswith(("gigatoken", "tiktoken"))]
    rows: list[harness.Row] = []
    texts = [harness.describe(path, path.read_bytes()) for path in options.corpus]
    for path, text in zip(options.corpus, texts, strict=True):
        with tempfile.TemporaryDirectory(dir=harness.ROOT / "data") as scratch:
            output = Path(scratch) / f"{path.stem}.zarr"
            ours = functools.partial(convert, path, output, options)
            ours()
            if "tiktoken" in here:
                notes.append(compare(path, output, options))
            contenders = {"tokenmill, file to verified dataset": ours}
            by_hand = Path(scratch) / f"{path.stem}-by-hand.zarr"
            for peer, what in (
                ("gigatoken", "file to ids in memory"),
                ("gigatoken-zarr", "file to arrays by numpy and zarr"),
                ("tiktoken", "encoding alone"),
            ):
                if peer.removesuffix("-zarr") in here:
                    to = by_hand if peer.endswith("-zarr") else None
                    contenders[f"{peer}, {what}"] = functools.partial(process, peer, path, options, to)
            seconds = harness.take_turns(contenders, options.turns)
            if by_hand.exists():
                notes.append(compare_arrays(path.stem, output, by_hand))
            medians = {name: harness.summary(each, text["text_bytes"]) for name, each in seconds.items()}
            for name, row in medians.items():
                rows.append(
                    {
                        "text": path.stem,
                        "what": name,
                        "workers": options.workers,
                        "text_bytes": row["text_bytes"],
                        "seconds": row["seconds"],
                        "spread": row["spread"],
                        "mb_per_s": row["mb_per_s"],
                        "times tiktoken": medians[list(medians)[-1]]["seconds"] / row["seconds"],
                        "turns": row["turns"],
                    }
                )
    harness.save("conversion", machine, rows, texts, notes)


def convert(path: Path, output: Path, options: argparse.Namespace) -> float:
    """Seconds of the whole process."""
    set_aside(output)
    command = [sys.executable, "-m", "convert", str(path.resolve())]
    command += ["--tokenizer", str(options.tokenizer.resolve())]
    command += ["--output", str(output), "--workers", str(options.workers), "--progress", "none"]
    command += ["--validation-fraction", "0"]  # all documents in one split, in the order of the file
    rest()
    started = time.perf_counter()
    # From outside the checkout: the installed package, compiled by pip, as a user runs it.
    done = subprocess.run(command, cwd=output.parent, stdout=subprocess.DEVNULL, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        sys.exit(f"error: `{' '.join(command[1:])}` ended with {done.returncode}")
    return seconds


def process(name: str, path: Path, options: argparse.Namespace, output: Path | None = None) -> float:
    """Seconds of gigatoken's whole process, or those that tiktoken's process has measured. output: for arrays."""
    if output is not None:
        set_aside(output)
    arguments = ["--child", name, "--corpus", str(path), "--tokenizer", str(options.tokenizer)]
    arguments += ["--workers", str(options.workers)]
    if output is not None:
        arguments += ["--output", str(output)]
    rest()
    seconds, own = harness.timed(lambda: harness.run_child(__file__, arguments, options.workers))
    return float(own["seconds"]) if name == "tiktoken" else seconds


def rest() -> None:
    """Leave the machine as a user's command finds it: nothing waits to be written, memory is back with the host."""
    os.sync()
    time.sleep(REST_SECONDS)


def set_aside(output: Path) -> None:
    """Give what the run before wrote, if there is any, another name."""
    if output.exists():
        output.rename(tempfile.mkdtemp(prefix=f"{output.name}-", dir=output.parent))


def child(options: argparse.Namespace) -> None:
    path: Path = options.corpus[0]
    if options.child.startswith("gigatoken"):
        import gigatoken

        encoder = Gigatoken(options.tokenizer, options.workers).fresh()
        result = encoder.encode_files(
            gigatoken.TextFileSource([path], separator=harness.SEPARATOR), parallel=True
        )
        if options.output is not None:
            write_by_hand(result, options.output)
        print(json.dumps({"sequences": len(result)}))
        return
    tiktoken = Tiktoken(options.tokenizer, options.workers)
    documents, encoding = tiktoken.prepare(path.read_bytes()), tiktoken.fresh()
    seconds, _ = harness.timed(lambda: tiktoken.encode(encoding, documents))
    print(json.dumps({"seconds": seconds}))


def write_by_hand(result: Any, output: Path) -> None:
    """The two arrays of a split, of gigatoken's answer, as numpy and zarr make them without further thought."""
    import awkward
    import zarr

    ids = np.asarray(awkward.flatten(result), dtype=np.uint32)
    lengths = np.asarray(awkward.num(result), dtype=np.uint64)
    starts = np.concatenate([[0], np.cumsum(lengths[lengths > 0])]).astype(np.uint64)
    encoded = ids * np.uint32(2)
    encoded[starts[:-1]] += 1
    zarr.create_array(output / "encoded_tokens", data=encoded)
    zarr.create_array(output / "seq_starts", data=starts)


def compare_arrays(name: str, output: Path, by_hand: Path) -> str:
    """A note that both datasets hold the same; ends the run if they do not."""
    import zarr

    for array in ("encoded_tokens", "seq_starts"):
        ours, theirs = (zarr.open_array(root / array, mode="r")[:] for root in (output / "train", by_hand))
        if not np.array_equal(np.asarray(ours), np.asarray(theirs)):
            sys.exit(f"error: {name}: {array} by gigatoken, numpy and zarr is not ours")
    return f"{name}: the arrays by gigatoken, numpy and zarr hold what ours hold"


def compare(path: Path, output: Path, options: argparse.Namespace) -> str:
    """A note with what was compared; ends the run on the first difference.

    Documents go through tiktoken in batches: its lists of Python integers need some 10 bytes of memory a byte of text.
    """
    import zarr

    import flat_tokens

    train = flat_tokens.open(output).train
    tiktoken = Tiktoken(options.tokenizer, options.workers)
    encoding = tiktoken.fresh()
    documents = [document for document in tiktoken.prepare(path.read_bytes()) if document]
    if train.seq_count != len(documents):
        sys.exit(
            f"error: {path.stem}: {train.seq_count} sequences for {len(documents)} documents that are not empty"
        )
    starts = np.asarray(zarr.open_array(output / "train" / "seq_starts", mode="r")[:]).astype(np.int64)
    encoded = np.asarray(zarr.open_array(output / "train" / "encoded_tokens", mode="r")[:])
    for first in range(0, len(documents), 20_000):
        lists = tiktoken.encode(encoding, documents[first : first + 20_000])
        here = starts[first : first + len(lists) + 1]
        expected = tiktoken.id_of_rank[flat(lists)] * np.uint32(2)
        expected[np.cumsum([0, *map(len, lists)])[:-1]] += 1
        if not np.array_equal(np.diff(here), np.fromiter(map(len, lists), dtype=np.int64)):
            sys.exit(f"error: {path.stem}: lengths differ from tiktoken's in the sequences from {first}")
        if not np.array_equal(encoded[here[0] : here[-1]], expected):
            sys.exit(f"error: {path.stem}: ids differ from tiktoken's in the sequences from {first}")
        harness.progress(f"compared {first + len(lists):,} of {len(documents):,} sequences with tiktoken's")
    return (
        f"{path.stem}: {len(encoded):,} tokens in {len(documents):,} sequences,"
        f" all {os.path.getsize(path):,} bytes of the file: ids and lengths equal tiktoken's"  # noqa: PTH202
    )


if __name__ == "__main__":
    main()
