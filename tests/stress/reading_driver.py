"""Reads a dataset in one process as its settings say, by threads that share a reader and by forks in the middle of
passes, and writes what each of them got: python reading_driver.py SETTINGS.json RESULT.json

SETTINGS: see `Reading`. RESULT: [[step, digest of the batch], ...] of each reader, or its error in words.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import flat_tokens
from flat_tokens.rows import cut

Found = list[tuple[int, str]]


class Reading(NamedTuple):
    """The settings of the readers of one run.

    paths: paths or URLs of datasets.
    cache: folder for cache_dir, or None.
    kind: "loader", "mixture" or "packs".
    strategy: of packs.
    options: of the reader.
    stop: the steps are [0, stop).
    seed: for the steps of each thread and fork.
    threads, forks: their number.
    is_careless: a planted fault: batches get memory that may be in use.
    """

    paths: list[str]
    cache: str | None
    kind: str
    strategy: str
    options: dict[str, Any]
    stop: int
    seed: int
    threads: int
    forks: int
    is_careless: bool = False


def make_reader(reading: Reading) -> Any:
    """Return the reader that threads and forks share."""
    splits: list[Any] = [flat_tokens.open(path, cache_dir=reading.cache).train for path in reading.paths]
    if reading.kind == "packs":
        strategy, length = reading.strategy, reading.options["seq_len"]
        splits = [
            flat_tokens.PackedSequences(split, length, split_across_pack=True, strategy=strategy)
            for split in splits
        ]
    if reading.kind == "mixture" or len(splits) > 1:
        return flat_tokens.Mixture(splits, list(range(1, len(splits) + 1)), **reading.options)
    return flat_tokens.Loader(splits[0], **reading.options)


def digest(batch: flat_tokens.Batch) -> str:
    """Return a hash of all fields of a batch."""
    lengths = b"" if batch.lengths is None else batch.lengths.tobytes()
    parts = (batch.inputs, batch.targets, batch.is_seq_start, batch.loss_mask)
    return hashlib.blake2b(b"".join(part.tobytes() for part in parts) + lengths, digest_size=8).hexdigest()


def undisturbed(reading: Reading) -> Found:
    """Return the digest of each step, read in one thread."""
    reader = make_reader(reading)
    return [(step, digest(reader.batch(step))) for step in range(reading.stop)]


def read_some(reader: Any, stop: int, rng: random.Random) -> Iterator[tuple[int, str]]:
    """Yield steps from passes that start anywhere, single steps, and every n-th step."""
    for _ in range(rng.randint(3, 12)):
        first = rng.randrange(stop)
        way = rng.choice(["pass", "pass", "steps", "strided"])
        if way == "pass":
            last = min(stop, first + rng.choice([1, 3, 20]))
            prefetch = rng.choice([True, True, False])
            for step, batch in enumerate(reader.from_step(first, last, prefetch=prefetch), first):
                yield step, digest(batch)
        elif way == "steps":  # later batches must not overwrite kept ones
            kept = [(step, reader.batch(step)) for step in rng.choices(range(stop), k=5)]
            yield from ((step, digest(batch)) for step, batch in kept)
        else:
            stride = rng.randint(1, 4)
            for step in range(first, min(stop, first + 6 * stride), stride):
                yield step, digest(reader.batch(step))


def main() -> int:
    reading = Reading(**json.loads(Path(sys.argv[1]).read_text()))
    result = Path(sys.argv[2])
    if not reading.threads:
        result.write_text(json.dumps([undisturbed(reading)]))
        return 0
    if reading.is_careless:
        cut.sys = _NeverHeld()  # type: ignore[assignment,attr-defined]
    sys.setswitchinterval(1e-5)
    reader = make_reader(reading)
    found: list[Found | str] = []

    def work(number: int) -> None:
        own: Found = []
        found.append(own)
        try:
            own.extend(read_some(reader, reading.stop, random.Random(f"{reading.seed} thread {number}")))
        except BaseException:
            found.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(reading.threads)]
    for thread in threads:
        thread.start()
    children = [fork(reading, reader, result, number) for number in range(reading.forks)]
    for thread in threads:
        thread.join()
    for number, child in enumerate(children):
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            found.append(f"fork {number} ended with {status}")
        found += json.loads(_of_fork(result, number).read_text())
    result.write_text(json.dumps(found))
    return 0


def fork(reading: Reading, reader: Any, result: Path, number: int) -> int:
    """A child that resumes where its parent was, and reads more; the parent takes one further batch of its pass."""
    rng = random.Random(f"{reading.seed} fork {number}")
    first = rng.randrange(reading.stop)
    batches = enumerate(reader.from_step(first, min(reading.stop, first + 8), prefetch=True), first)
    own: Found = [(step, digest(batch)) for step, batch in _some(batches, rng.randint(0, 3))]
    child = os.fork()
    if child:
        for _ in _some(batches, 1):
            pass
        return child
    told: list[Found | str] = [own]
    try:
        step, stop = first + len(own), min(reading.stop, first + 8)
        resumed = enumerate(reader.from_step(step, stop, prefetch=True), step)
        own.extend((step, digest(batch)) for step, batch in resumed)
        own.extend(read_some(reader, reading.stop, rng))
    except BaseException:
        told.append(traceback.format_exc())
    with contextlib.suppress(OSError):
        _of_fork(result, number).write_text(json.dumps(told))
    os._exit(0)


def _some(items: Iterator[Any], count: int) -> Iterator[Any]:
    return (item for _, item in zip(range(count), items, strict=False))


def _of_fork(result: Path, number: int) -> Path:
    return result.with_name(f"{result.name}.{number}")


class _NeverHeld:
    """In place of the module sys: nobody holds an array."""

    @staticmethod
    def getrefcount(value: object) -> int:
        return 2


if __name__ == "__main__":
    sys.exit(main())
