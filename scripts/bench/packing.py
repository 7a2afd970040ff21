"""How long planning packs takes, what it holds, and how much padding is left; packs read a second.

    python scripts/bench/packing.py [--sequences 10000000] [--pack 2048]

The sequences are lognormal in length (mean 600, sigma 1, at most a pack), seeded; their seq_starts lie in a dataset on
disk, so reading and checking them is part of the plan. Contenders: the plain loop over the lengths, whose packs the
greedy plan must equal. "from memory" leaves out the reading.
"""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import numpy as np

from flat_tokens import PackedSequences, writer
from flat_tokens import open as open_dataset
from flat_tokens.packs.packing_greedy import next_fit_plainly
from flat_tokens.storage.layout import ArrayLayout


class InMemory:
    """seq_starts that were read already."""

    name = "train"

    def __init__(self, values: Any) -> None:
        self.values = values
        self.seq_starts = self
        self.encoded_tokens = self

    def __len__(self) -> int:
        return len(self.values)

    def read(self, start: int, stop: int) -> Any:
        """The starts [start, stop)."""
        return self.values[start:stop]


def lengths_of(count: int, mean: float, longest: int) -> Any:
    """Lognormal lengths: int64[count] in [1, longest]."""
    drawn = np.random.default_rng(0).lognormal(np.log(mean) - 0.5, 1.0, count)
    return np.clip(drawn, 1, longest).astype(np.int64)


def write_starts(folder: Path, starts: Any) -> Any:
    """The train split of a dataset whose tokens are missing: no plan reads them."""
    layout = ArrayLayout.create()
    for name, values in (("train", starts), ("validation", starts[:1])):
        writer.create_split(folder, name, int(values[-1]), len(values) - 1, 0, layout)
        writer.write_starts(folder, name, layout, 0, values)
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    return open_dataset(folder).train


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sequences", type=int, default=10_000_000)
    parser.add_argument("--pack", type=int, default=2048, metavar="TOKENS")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    rows: list[harness.Row] = []
    for mean in (600, 60):
        lengths = lengths_of(options.sequences, mean, options.pack)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
        with tempfile.TemporaryDirectory() as folder:
            stored = write_starts(Path(folder), starts)
            rows += measure(mean, lengths, starts, stored, options)
    harness.save(
        "packing", harness.facts(), rows, [], [f"{options.sequences:,} sequences, packs of {options.pack:,}"]
    )


def measure(
    mean: int, lengths: Any, starts: Any, stored: Any, options: argparse.Namespace
) -> list[harness.Row]:
    """A row a contender."""
    listed = lengths.tolist()
    made: dict[str, PackedSequences] = {}

    def plan(name: str, source: Any, **how: Any) -> Callable[[], float]:
        def run() -> float:
            seconds, made[name] = harness.timed(lambda: PackedSequences(source, options.pack, **how))
            return seconds

        return run

    contenders: dict[str, Callable[[], float]] = {
        "plain loop": lambda: harness.timed(lambda: next_fit_plainly(listed, options.pack))[0],
        "greedy": plan("greedy", stored),
        "greedy, from memory": plan("greedy, from memory", InMemory(starts)),
        "best-fit": plan("best-fit", stored, strategy="best-fit"),
        "best-fit, from memory": plan("best-fit, from memory", InMemory(starts), strategy="best-fit"),
        "split": plan("split", stored, split_across_pack=True),
    }
    seconds = harness.take_turns(contenders, options.turns)
    expected = starts[next_fit_plainly(listed, options.pack)]
    if not np.array_equal(made["greedy"]._plan.bounds[:-1], expected):  # type: ignore[attr-defined]
        raise SystemExit("error: the greedy plan differs from the plain loop")
    rows: list[harness.Row] = []
    for name, measured in seconds.items():
        row: harness.Row = {"plan": name, "mean length": mean, "seconds": float(np.median(measured))}
        row["spread"] = (max(measured) - min(measured)) / row["seconds"]
        row["padding, %"] = 100 * made[name].report.padded_fraction if name in made else None
        row["peak, bytes a sequence"] = peak_bytes(contenders[name]) / len(listed) if name in made else None
        rows.append(row)
    resumed, _ = harness.timed(lambda: made["best-fit"]._plan.pieces(np.array([len(made["best-fit"]) // 2])))
    rows.append({"plan": "best-fit: a pack of another window", "mean length": mean, "seconds": resumed})
    return rows


def peak_bytes(run: Callable[[], float]) -> int:
    """The most that was held at once beside what was there before, numpy's arrays included."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    main()
