"""Conversions on a store with a fault at one request. `pytest -m stress --points 300 --seed 1` tries many more."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator

import pytest
from servers import moto_server
from store_faults import KINDS
from store_sweep import StoreSweep

pytest.importorskip("obstore", reason="obstore is not installed")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
TRIED = [
    "driver killed after a journal batch",
    "driver stopped, another takes over",
    "worker killed, its put comes late",
    "credential expired",
]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreSweep]:
    with moto_server() as endpoint:
        sweep = StoreSweep(endpoint, "sweep", tmp_path_factory.mktemp("store-sweep"))
        yield sweep
        sweep.close()


@pytest.mark.slow
@pytest.mark.promise("stores")
@pytest.mark.parametrize("name", TRIED)
def test_a_disturbed_conversion_is_completed(name: str, sweep: StoreSweep) -> None:
    rng = random.Random(f"points {name}")
    at, seed = rng.choice(sweep.places(name)), rng.randrange(100)
    assert sweep.point(name, at, seed) is None, (at, seed)
    assert sweep.missed == 0


@pytest.mark.slow
@pytest.mark.promise("lease")
def test_a_driver_that_was_stopped_after_it_read_the_journal_harms_nothing(sweep: StoreSweep) -> None:
    own = [
        at
        for at, line in enumerate(sweep.requests[:-1])
        if re.match(r"HEAD \S*/journal/", line) and re.match(r"PUT \S*/journal/", sweep.requests[at + 1])
    ]
    assert sweep.point("driver stopped, another takes over", own[0], 1) is None


@pytest.mark.promise("stores")
@pytest.mark.stress
def test_campaign(request: pytest.FixtureRequest, sweep: StoreSweep) -> None:
    seed, count = request.config.getoption("--seed"), request.config.getoption("--points")
    rng = random.Random(seed)
    names = rng.choices([*KINDS], [kind.weight for kind in KINDS.values()], k=count)
    problems = []
    for name in names:
        at, own_seed = rng.choice(sweep.places(name)), rng.randrange(1 << 16)
        if problem := sweep.point(name, at, own_seed):
            problems.append(f"{name}, request {at}, seed {own_seed}: {problem}")
    print(f"{count} points, seed {seed}: {sweep.missed} missed, {len(problems)} wrong")
    assert not problems, "\n".join(problems)
