"""Readers with delayed system calls that share objects, processes and a cache have the batches of a single thread.

`pytest -m stress --points 200 --seed 1` tries many more.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from injector import Delays, Injector, compiler
from processes import Started, start
from reading import Reading
from small_datasets import write_dataset
from web_server import WebServer, web_server

from flat_tokens.storage.layout import ArrayLayout

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
DRIVER = Path(__file__).with_name("reading.py")


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with web_server() as server:
        yield server


def make_dataset(rng: random.Random, path: Path) -> Path:
    count, longest = rng.choice([(30, 400), (300, 40), (2000, 9)])
    train = [[rng.randrange(28) for _ in range(rng.randint(1, longest))] for _ in range(count)]
    while sum(map(len, train)) < 2000:  # enough for some batches of each kind
        train.append([rng.randrange(28) for _ in range(longest)])
    zarr_format, chunk = rng.choice([2, 3]), rng.choice([16, 64, 512])
    compression = rng.choice(["none", "zstd", "lz4"])
    layout = ArrayLayout.create(
        zarr_format, chunk, chunk * 4 if zarr_format == 3 else None, compression=compression
    )
    mask = None
    if rng.random() < 0.3:
        mask = {"train": [rng.random() < 0.7 for _ in range(sum(map(len, train)))], "validation": []}
    write_dataset(path, train, [], layout, mask)
    return path


def serve(server: WebServer, path: Path) -> str:
    """Return the URL of copies of the files."""
    for file in path.rglob("*"):
        if file.is_file():
            server.files[f"{path}/{file.relative_to(path).as_posix()}"] = file.read_bytes()
    return f"{server.url}{path}"


def draw_reading(rng: random.Random, root: Path, server: WebServer) -> Reading:
    kind, is_remote = rng.choice(["loader", "loader", "mixture", "greedy", "best-fit"]), rng.random() < 0.3
    made = [
        make_dataset(rng, root / f"{at}") for at in range(rng.choice([1, 2, 3]) if kind == "mixture" else 1)
    ]
    batch_size = rng.choice([2, 4, 8])
    options: dict[str, Any] = {"seq_len": rng.choice([3, 16, 50]), "batch_size": batch_size}
    options |= {"seed": rng.randrange(100), "shuffle_blocks": rng.choice([1, 4, 16])}
    options["streams"] = rng.choice([1, 2, batch_size])
    if kind in ("loader", "mixture"):
        options["block_tokens"] = rng.choice([16, 100, 1000])
    if kind == "loader" and rng.random() < 0.3:
        options |= {"packed": False, "drop_last": True}
    return Reading(
        [serve(server, path) if is_remote else str(path) for path in made],
        str(root / "cache") if is_remote else None,
        kind,
        options,
        rng.choice([10, 60]),
        rng.randrange(1 << 30),
        rng.randint(1, 4),
        0 if is_remote else rng.randint(0, 3),  # stores cannot be read in a fork
    )


def begin(root: Path, reading: Reading, name: str, delays: Delays | None = None) -> Started:
    path = os.pathsep.join(filter(None, sys.path))
    variables = Injector(root.parent, root).environment(reads=True, delays=delays) if delays else {}
    (root / f"{name}.json").write_text(json.dumps(reading._asdict()))
    command = [sys.executable, DRIVER, root / f"{name}.json", root / f"{name}.result"]
    return start(command, root, variables | {"PYTHONPATH": path})


def race(seed: str, root: Path, server: WebServer) -> int:
    """Read a dataset with one thread, then with many readers, and compare. Return the number of batches."""
    rng = random.Random(seed)
    root.mkdir()
    reading = draw_reading(rng, root, server)
    alone = begin(root, reading._replace(threads=0, forks=0, cache=None), "alone")
    assert alone.wait(120).code == 0
    (expected,) = json.loads((root / "alone.result").read_text())
    if reading.cache:  # processes share the cache: one is killed, and another one starts late
        readers = {
            f"p{at}": begin(root, reading._replace(seed=reading.seed + at), f"p{at}") for at in range(3)
        }
        time.sleep(rng.random())
        readers.pop("p0").process.kill()
        readers["late"] = begin(root, reading, "late")
    else:
        delays = Delays(rng.choice([0, 100_000, 500_000]), rng.choice([20, 200]), rng.randrange(1 << 30))
        readers = {"many": begin(root, reading, "many", delays)}
    count = 0
    for name, reader in readers.items():
        ended = reader.wait(120)
        assert (ended.code, ended.hung, ended.orphans) == (0, False, ()), (reading, ended)
        for steps in json.loads((root / f"{name}.result").read_text()):
            assert isinstance(steps, list), (reading, steps)
            wrong = [step for step, digest in steps if [step, digest] != expected[step]]
            assert not wrong, (reading, wrong)
            count += len(steps)
    return count


@pytest.mark.slow
def test_shared_and_forked_readers(server: WebServer, tmp_path: Path) -> None:
    assert all(race(f"1 {number}", tmp_path / f"{number}", server) for number in range(4))


@pytest.mark.stress
def test_campaign(request: pytest.FixtureRequest, server: WebServer, tmp_path: Path) -> None:
    seed, count = request.config.getoption("--seed"), request.config.getoption("--points")
    batches = sum(race(f"{seed} {number}", tmp_path / f"{number}", server) for number in range(count))
    print(f"{count} runs, {batches:,} batches")
