"""Some of the points of tools/check_store_faults.py."""

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


@pytest.mark.parametrize("name", TRIED)
def test_a_conversion_on_a_store_broken_anywhere_goes_on_to_the_same_objects(
    name: str, sweep: StoreSweep
) -> None:
    assert name in KINDS
    rng = random.Random(f"points {name}")
    at, seed = rng.choice(sweep.places(name)), rng.randrange(100)
    assert sweep.point(name, at, seed) is None, (at, seed)
    assert sweep.missed == 0


def test_a_run_that_is_stopped_after_it_looked_takes_nothing_from_the_one_that_finishes(
    sweep: StoreSweep,
) -> None:
    own = [
        at
        for at, line in enumerate(sweep.requests[:-1])
        if re.match(r"HEAD \S*/journal/", line) and re.match(r"PUT \S*/journal/", sweep.requests[at + 1])
    ]
    assert sweep.point("driver stopped, another takes over", own[0], 1) is None
