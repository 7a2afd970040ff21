"""How fast are the batches of BatchDataset through PyTorch's DataLoader, beside a dataset over a memmap?

Both hand out input_ids and labels, int64[64, 1024] each, of random rows of the same 16 Mi tokens. The memmap holds ids
of 16 or 32 bits; its labels are a copy of its input_ids, since a file of ids does not know where documents begin.
"-100 at starts" gives it the flags as well, so that it makes the same product. All run in one process, turn by turn,
each going on where its last turn ended; medians. Equal first: ours are compared with a naive gather.

    python scripts/bench/torch_batches.py [--turns 5] [--tokens 16777216]
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
import numpy as np
from load import BATCH_SIZE, SEED, SEQ_LEN, draw, tokens, write
from numpy.typing import NDArray

import flat_tokens
from flat_tokens.storage.layout import ArrayLayout

try:
    import torch
    from torch.utils.data import DataLoader, IterableDataset
except ImportError:
    sys.exit("error: this benchmark needs PyTorch; pip install 'tokenmill[torch]'")

from flat_tokens.torch import BatchDataset

LAYOUTS = {
    "raw": ArrayLayout.create(2, 2**18, compression="none"),
    "zstd, as written by default": ArrayLayout.create(),
}
EVERYTHING = ("input_ids", "labels", "is_seq_start", "segment_ids", "position_ids")


class MemmapRows(IterableDataset[Any]):  # type: ignore[misc,unused-ignore]
    """Batches of random rows of a file of ids. encoded: the ids carry start flags, as the format stores them."""

    def __init__(self, path: Path, dtype: type[Any], is_encoded: bool = False) -> None:
        self.path, self.dtype, self.is_encoded = path, dtype, is_encoded

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        ids = np.memmap(self.path, self.dtype, mode="r")
        count = len(ids) // SEQ_LEN
        rows = np.asarray(ids)[: count * SEQ_LEN].reshape(count, SEQ_LEN)
        generator = np.random.default_rng(SEED)
        while True:
            order = generator.permutation(count)
            for first in range(0, count - BATCH_SIZE + 1, BATCH_SIZE):
                found = rows[order[first : first + BATCH_SIZE]]
                is_start = None
                if self.is_encoded:
                    is_start = (found.astype(np.uint8) & np.uint8(1)).view(np.bool_)
                    found >>= np.uint32(1)
                input_ids = found.astype(np.int64)
                labels = input_ids.copy()
                if is_start is not None:
                    np.copyto(labels, -100, where=is_start)
                yield {"input_ids": torch.from_numpy(input_ids), "labels": torch.from_numpy(labels)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=2**24, help="of the datasets (default 16 Mi)")
    parser.add_argument("--turns", type=int, default=5, help="runs of each contender (default 5)")
    options = parser.parse_args()
    options.corpus = None
    encoded, _ = tokens(options)
    machine = harness.facts()
    machine["versions"]["torch"] = torch.__version__
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contenders: dict[str, tuple[int, Any]] = {}
        for number, (layout, how) in enumerate(LAYOUTS.items()):
            train = flat_tokens.open(write(folder / str(number), encoded, how)).train
            check(layout, train, encoded)
            for what, fields in (("", ("input_ids", "labels")), (", all tensors", EVERYTHING)):
                dataset = BatchDataset(loader_of(train), fields=fields)
                contenders[f"BatchDataset, {layout}{what}"] = (500, batches_of(dataset))
            contenders[f"Loader alone, int32, {layout}"] = (1000, loader_of(train).from_step(0))
        for title, values, is_encoded in (
            ("memmap, uint16", (encoded >> 1).astype(np.uint16), False),
            ("memmap, uint32", encoded >> 1, False),
            ("memmap, uint32 with flags, -100 at starts", encoded, True),
        ):
            path = folder / f"{title}.bin"
            values.tofile(path)
            rows = MemmapRows(path, values.dtype.type, is_encoded)
            contenders[title] = (300, batches_of(rows))
        measured = {
            name: functools.partial(draw, steps, batches) for name, (steps, batches) in contenders.items()
        }
        for run in measured.values():  # the files and the windows are warm
            run()
        rows_found = [
            row(name, seconds, contenders[name][0])
            for name, seconds in harness.take_turns(measured, options.turns).items()
        ]
    notes = [
        f"{len(encoded):,} tokens, batches of {BATCH_SIZE} x {SEQ_LEN:,}, input_ids and labels int64, no workers"
    ]
    harness.save("torch_batches", machine, rows_found, [], notes)


def loader_of(train: flat_tokens.FlatTokensArray) -> flat_tokens.Loader:
    return flat_tokens.Loader(train, SEQ_LEN, BATCH_SIZE, SEED)


def batches_of(dataset: IterableDataset[Any]) -> Iterator[Any]:
    return iter(DataLoader(dataset, batch_size=None))


def row(name: str, seconds: list[float], steps: int) -> harness.Row:
    found = harness.summary(seconds, steps * BATCH_SIZE * SEQ_LEN)
    return {
        "what": name,
        "M tokens/s": found["mb_per_s"],
        "us": found["seconds"] / steps * 1e6,
        "spread": found["spread"],
        "turns": found["turns"],
    }


def check(layout: str, train: flat_tokens.FlatTokensArray, encoded: NDArray[np.uint32]) -> None:
    """Ends the run if a batch is not what its rows say."""
    loader = loader_of(train)
    for step, batch in zip(range(5), batches_of(BatchDataset(loader)), strict=False):
        found = encoded[loader.rows_of(step)[:, None] * SEQ_LEN + np.arange(SEQ_LEN)].astype(np.int64)
        ids = found >> 1
        expected = {"input_ids": ids, "labels": np.where(found & 1, -100, ids)}
        if not all(np.array_equal(batch[name].numpy(), expected[name]) for name in expected):
            sys.exit(f"error: {layout}: the batch of step {step} differs from a gather of its rows")


if __name__ == "__main__":
    main()
