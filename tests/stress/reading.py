"""Readers that threads and forks share: python reading.py SETTINGS.json RESULT.json

SETTINGS: the fields of `Reading`. RESULT: [[step, digest of the batch], ...] of each reader, or its error.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import threading
import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import flat_tokens

Found = list[tuple[int, str]]


class Reading(NamedTuple):
    """The settings of the readers of one run.

    paths: paths or URLs of datasets.
    cache: folder for cache_dir, or None.
    kind: "loader", "mixture", or the strategy of packs.
    options: of the reader.
    stop: the steps are [0, stop).
    seed: for the steps of each thread and fork.
    threads, forks: their number; without threads, each step is read once.
    """

    paths: list[str]
    cache: str | None
    kind: str
    options: dict[str, Any]
    stop: int
    seed: int
    threads: int
    forks: int


def make_reader(reading: Reading) -> Any:
    """Return the reader that threads and forks share."""
    splits: list[Any] = [flat_tokens.open(path, cache_dir=reading.cache).train for path in reading.paths]
    if reading.kind == "mixture":
        return flat_tokens.Mixture(splits, list(range(1, len(splits) + 1)), **reading.options)
    if reading.kind != "loader":
        length = reading.options["seq_len"]
        splits = [
            flat_tokens.PackedSequences(splits[0], length, split_across_pack=True, strategy=reading.kind)
        ]
    return flat_tokens.Loader(splits[0], **reading.options)


def digest(batch: flat_tokens.Batch) -> str:
    """Return a hash of all fields of a batch."""
    lengths = b"" if batch.lengths is None else batch.lengths.tobytes()
    parts = (batch.inputs, batch.targets, batch.is_seq_start, batch.loss_mask)
    return hashlib.blake2b(b"".join(part.tobytes() for part in parts) + lengths, digest_size=8).hexdigest()


def read_some(reader: Any, stop: int, rng: random.Random) -> Iterator[tuple[int, str]]:
    """Yield steps from passes that start anywhere, single steps, and every n-th step."""
    for _ in range(rng.randint(3, 12)):
        first, way = rng.randrange(stop), rng.choice(["pass", "pass", "steps", "strided"])
        if way == "pass":
            last = min(stop, first + rng.choice([1, 3, 20]))
            batches = reader.from_step(first, last, prefetch=rng.choice([True, True, False]))
            yield from ((step, digest(batch)) for step, batch in enumerate(batches, first))
        elif way == "steps":  # later batches must not overwrite kept ones
            kept = [(step, reader.batch(step)) for step in rng.choices(range(stop), k=5)]
            yield from ((step, digest(batch)) for step, batch in kept)
        else:
            stride = rng.randint(1, 4)
            for step in range(first, min(stop, first + 6 * stride), stride):
                yield step, digest(reader.batch(step))


def collect(found: list[Found | str], steps: Iterator[tuple[int, str]]) -> None:
    """Append the steps to `found`, and the error if there is one."""
    own: Found = []
    found.append(own)
    try:
        own.extend(steps)
    except BaseException:
        found.append(traceback.format_exc())


def fork(reading: Reading, reader: Any, result: Path, rng: random.Random) -> int:
    """Fork in the middle of a pass. The child resumes it and reads more; the parent reads one further batch of it."""
    first = rng.randrange(reading.stop)
    stop = min(reading.stop, first + 8)
    batches = enumerate(reader.from_step(first, stop, prefetch=True), first)
    own = [(step, digest(batch)) for step, batch in islice(batches, rng.randint(0, 3))]
    child = os.fork()
    if child:
        next(batches, None)
        return child
    found: list[Found | str] = [own]
    resumed = enumerate(reader.from_step(first + len(own), stop, prefetch=True), first + len(own))
    collect(found, ((step, digest(batch)) for step, batch in resumed))
    collect(found, read_some(reader, reading.stop, rng))
    result.write_text(json.dumps(found))
    os._exit(0)


def main(reading: Reading, result: Path) -> None:
    reader, found = make_reader(reading), list[Found | str]()
    if not reading.threads:
        collect(found, ((step, digest(reader.batch(step))) for step in range(reading.stop)))
    sys.setswitchinterval(1e-5)
    threads = [
        threading.Thread(
            target=collect,
            args=(found, read_some(reader, reading.stop, random.Random(f"{reading.seed} {number}"))),
        )
        for number in range(reading.threads)
    ]
    for thread in threads:
        thread.start()
    parts = [result.with_name(f"{result.name}.{number}") for number in range(reading.forks)]
    children = [fork(reading, reader, part, random.Random(f"{reading.seed} {part.name}")) for part in parts]
    for thread in threads:
        thread.join()
    for part, child in zip(parts, children, strict=True):
        if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            found.append(f"a fork ended with {status}")
        found += json.loads(part.read_text())
    result.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Reading(**json.loads(Path(sys.argv[1]).read_text())), Path(sys.argv[2]))
