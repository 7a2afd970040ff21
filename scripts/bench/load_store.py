"""How fast are shuffled batches of a dataset that lies on an object store, beside the same one on a disk?

The store is a web server on loopback that answers each request after 20 ms; another one answers at once, which tells
what the waiting costs from what requests cost: server and client share the cores with the loader. Equal first: the
batches of the store must be those of the disk. Then, turn by turn: batches of windows that follow each other, without a
model that would use them (M tokens/s counts targets; processor: the loader's time of it without the server's, beside
the disk's); and the time from opening to the first batch, in times of a request, with the number of requests. With a
loss mask and without. A note tells what the client takes for as much without a loader. The layout is what is written to
stores by default: zarr format 3, zstd.

    python scripts/bench/load_store.py [--tokens 67108864] [--milliseconds 20]
"""

from __future__ import annotations

import functools
import itertools
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import harness
import numpy as np
from obstore.store import HTTPStore
from slow_server import slow_server

from flat_tokens import Loader, writer
from flat_tokens import open as open_dataset
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import SplitRecord

SEQ_LEN, BATCH_SIZE, SEED = 1024, 64, 7
STORE, AT_ONCE = "store", "store that answers at once"
WINDOW_STEPS = 2**22 // (SEQ_LEN * BATCH_SIZE)
TURN_STEPS = 24 * WINDOW_STEPS
REQUEST_BYTES = 600_000  # about what a window asks for at once


def main() -> None:
    parser = harness.arguments(__doc__ or "")
    parser.set_defaults(corpus=[])
    parser.add_argument("--tokens", type=int, default=2**26, help="of the dataset (default 64 Mi)")
    parser.add_argument("--milliseconds", type=float, default=20, help="of a request (default 20)")
    options = parser.parse_args()
    machine = harness.facts()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = {"plain": folder / "plain.zarr", "masked": folder / "masked.zarr"}
        for kind, path in paths.items():
            write(path, options.tokens, kind == "masked")
        with slow_server(folder, options.milliseconds) as address, slow_server(folder, 0) as fast:
            rows, disk_seconds = windows(paths, address, fast, options.turns)
            alone = client_alone(f"{fast}/plain.zarr", disk_seconds)
            rows += first_batches(paths, address, options.milliseconds / 1000, options.turns)
    notes = [
        f"{options.tokens:,} tokens, batches of {BATCH_SIZE} x {SEQ_LEN:,}; {options.milliseconds:g} ms a request",
        "all batches of the store that were compared equal those of the disk",
        alone,
    ]
    harness.save("load_store", machine, rows, [], notes)


def write(root: Path, count: int, is_masked: bool) -> None:
    """Ids as frequent as words are, in sequences of 600 tokens on average; half of each is to be learned."""
    generator = np.random.default_rng(SEED)
    encoded = np.minimum(50_000 ** generator.random(count), 49_999).astype(np.uint32) << np.uint32(1)
    begins = np.cumsum(generator.geometric(1 / 600, count // 300))
    begins = np.concatenate([[0], begins[begins < count]])
    encoded[begins] |= 1
    mask = np.arange(count) % 512 >= 256
    layout = ArrayLayout.create(3)
    splits, records = {}, []
    starts = np.append(begins, count).astype(np.uint64)
    for name, some in (("train", count), ("validation", 0)):
        split = SplitRecord(
            some,
            len(begins) if some else 0,
            int(encoded[:some].max(initial=0)) >> 1,
            int(mask[:some].sum()) if is_masked else None,
        )
        records += writer.create_split(
            root, name, some, split.seq_count, split.max_token_id, layout, has_mask=is_masked
        )
        records += writer.write_tokens(root, name, layout, 0, encoded[:some])
        records += writer.write_starts(root, name, layout, 0, starts if some else starts[:1])
        if is_masked:
            records += writer.write_mask(root, name, layout, 0, mask[:some])
        splits[name] = split
    writer.write_root(root, splits, records, layout, tokenizer=None, sources=[], options={}, versions={})


def windows(paths: dict[str, Path], address: str, fast: str, turns: int) -> tuple[list[harness.Row], float]:
    """Batches of windows that follow each other; and the processor time of a window from a disk, without a mask."""
    running: dict[str, Callable[[], float]] = {}
    processor: dict[str, list[float]] = {}
    for kind, path in paths.items():
        places = {"disk": str(path), STORE: f"{address}/{path.name}", AT_ONCE: f"{fast}/{path.name}"}
        check(places["disk"], places[STORE])
        for where, place in places.items():
            batches = Loader(open_dataset(place).train, SEQ_LEN, BATCH_SIZE, SEED).from_step(0)
            spent = processor[f"{kind}, {where}"] = []
            running[f"{kind}, {where}"] = functools.partial(pull, batches, TURN_STEPS, spent)
            pull(batches, WINDOW_STEPS, [])  # and touch memory first
    rates: dict[str, float] = {}
    rows: list[harness.Row] = []
    for name, seconds in harness.take_turns(running, turns).items():
        found = harness.summary(seconds, TURN_STEPS * BATCH_SIZE * SEQ_LEN)
        rates[name] = found["mb_per_s"]
        disk = f"{name.partition(',')[0]}, disk"
        rows.append(
            {
                "what": f"windows: {name}",
                "M tokens/s": rates[name],
                "of the disk": f"{rates[name] / rates[disk]:.0%}",
                "processor": f"{statistics.median(processor[name]) / statistics.median(processor[disk]):.0%}",
                "times a request": None,
                "requests": None,
                "spread": found["spread"],
                "turns": found["turns"],
            }
        )
    return rows, statistics.median(processor["plain, disk"]) * WINDOW_STEPS / TURN_STEPS


def client_alone(place: str, disk_seconds: float) -> str:
    """What the client takes for the requests of a window, beside what a loader takes for all of it from a disk."""
    address = place.rpartition("/")[0]
    batches = Loader(open_dataset(place).train, SEQ_LEN, BATCH_SIZE, SEED).from_step(0)
    pull(batches, 2 * WINDOW_STEPS, [])
    count(address)
    pull(batches, 8 * WINDOW_STEPS, [])
    requests = count(address) / 8
    client = HTTPStore.from_url(place, client_options={"allow_http": True})
    times = []
    for number in range(400):
        asked = (number * 1000, number * 1000 + REQUEST_BYTES)
        started = time.process_time()
        client.get("train/encoded_tokens/c/0", options={"range": asked}).bytes()
        times.append(time.process_time() - started)
    alone = statistics.mean(times[50:])
    return (
        f"the client alone takes {1e6 * alone:.0f} us of processor time for {REQUEST_BYTES:,} bytes; a window makes "
        f"{requests:.1f} requests: {requests * alone / disk_seconds:.0%} of what the whole of it takes from a disk"
    )


def first_batches(paths: dict[str, Path], address: str, request: float, turns: int) -> list[harness.Row]:
    """From opening to the first batch."""
    rows: list[harness.Row] = []
    for kind, path in paths.items():
        first_batch(f"{address}/{path.name}")  # and connect
        count(address)
        seconds = [
            harness.timed(functools.partial(first_batch, f"{address}/{path.name}"))[0] for _ in range(turns)
        ]
        median = statistics.median(seconds)
        rows.append(
            {
                "what": f"open and first batch: {kind}, {STORE}",
                "processor": None,
                "times a request": median / request,
                "requests": count(address) // turns,
                "spread": (max(seconds) - min(seconds)) / median,
                "turns": turns,
            }
        )
    return rows


def pull(running: Iterator[object], steps: int, processor: list[float]) -> float:
    """Seconds for the next batches; processor gets what this process spent, all threads together."""
    spent = time.process_time()
    seconds = harness.timed(lambda: [None for _ in itertools.islice(running, steps)])[0]
    processor.append(time.process_time() - spent)
    return seconds


def first_batch(place: str) -> None:
    running = Loader(open_dataset(place).train, SEQ_LEN, BATCH_SIZE, SEED).from_step(0, 1)
    next(running)


def count(address: str) -> int:
    """Requests since the last call."""
    with urllib.request.urlopen(f"{address}/requests") as answer:
        return int(answer.read())


def check(disk: str, store: str) -> None:
    loaders = [Loader(open_dataset(place).train, SEQ_LEN, BATCH_SIZE, SEED) for place in (disk, store)]
    steps = WINDOW_STEPS + 2
    for mine, other in zip(*(loader.from_step(5, 5 + steps) for loader in loaders), strict=True):
        if not (np.array_equal(mine.inputs, other.inputs) and np.array_equal(mine.targets, other.targets)):
            sys.exit(f"error: a batch of {store} differs from that of {disk}")


if __name__ == "__main__":
    main()
