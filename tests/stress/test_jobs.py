"""Jobs that are disturbed at random points. `pytest -m stress --points 500 --seed 1` tries many more of them."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import allocations
import pytest
from allocations import ALLOCATION_FAULTS
from bench import Bench, Fault
from file_faults import FILE_FAULTS, RIVAL
from injector import compiler
from jobs import JOBS, STORE_JOBS
from power_loss import POWER_LOSS, PowerLoss
from request_faults import REQUEST_FAULTS
from servers import moto_server

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or compiler() is None, reason="needs Linux and a C compiler"
)
FAULTS: dict[str, Fault] = {
    fault.name: fault for fault in [*FILE_FAULTS, RIVAL, *ALLOCATION_FAULTS, POWER_LOSS]
}
ON_STORE = {fault.name: fault for fault in REQUEST_FAULTS}
TRIED_ON_STORE = [
    "driver killed after a journal batch",
    "driver stopped, another takes over",
    "worker killed, its put comes late",
    "credential expired",
]
Benches = Callable[[str], Bench]
Point = tuple[str, Fault, int]


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Benches:
    """bench(job): one bench per job."""
    build, made = tmp_path_factory.mktemp("stress"), dict[str, Bench]()

    def get(name: str) -> Bench:
        if name not in made:
            made[name] = Bench(JOBS[name], build)
        return made[name]

    return get


@pytest.fixture(scope="session")
def on_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    """on_store(job): one bench per job on a store."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    build, made = tmp_path_factory.mktemp("store"), dict[str, Bench]()
    with moto_server() as endpoint:

        def get(name: str) -> Bench:
            if name not in made:
                made[name] = Bench(STORE_JOBS[name], build, endpoint)
            return made[name]

        yield get
        for bench in made.values():
            bench.close()


def draw_points(seed: str, count: int, bench: Benches) -> list[Point]:
    """Draw points: (job, fault, number of the operation). Faults that cannot strike a job are left out."""
    rng, found = random.Random(seed), list[Point]()
    while len(found) < count:
        job, fault = rng.choice(list(JOBS)), rng.choice(list(FAULTS.values()))
        if possible := bench(job).points(fault):
            found.append((job, fault, rng.randint(1, possible)))
    return found


def draw_requests(seed: str, count: int, bench: Benches) -> list[Point]:
    """Draw points of the jobs on a store."""
    rng = random.Random(seed)
    faults = rng.choices(REQUEST_FAULTS, [fault.weight for fault in REQUEST_FAULTS], k=count)
    jobs = rng.choices(list(STORE_JOBS), k=count)
    return [
        (job, fault, rng.randint(1, bench(job).points(fault)))
        for job, fault in zip(jobs, faults, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.promise("complete")
@pytest.mark.promise("resume")
@pytest.mark.promise("power-failure")
@pytest.mark.parametrize("name", FAULTS)
def test_a_disturbed_conversion_is_completed(name: str, bench: Benches) -> None:
    possible, rng = bench("convert").points(FAULTS[name]), random.Random(name)
    assert possible
    assert bench("convert").problem([(FAULTS[name], rng.randint(1, possible))], rng) is None


@pytest.mark.slow
@pytest.mark.promise("stores")
@pytest.mark.promise("lease")
@pytest.mark.parametrize("name", TRIED_ON_STORE)
def test_a_disturbed_conversion_on_a_store_is_completed(name: str, on_store: Benches) -> None:
    rng = random.Random(name)
    at = rng.randint(1, on_store("store").points(ON_STORE[name]))
    assert on_store("store").problem([(ON_STORE[name], at)], rng) is None


@pytest.mark.slow
@pytest.mark.promise("complete")
@pytest.mark.promise("overwrite")
def test_disturbed_jobs_are_completed(bench: Benches) -> None:
    for job, fault, at in draw_points("commit", 8, bench):
        assert bench(job).problem([(fault, at)], random.Random(at)) is None, job


@pytest.mark.slow
@pytest.mark.promise("resume")
def test_two_faults_in_a_row(bench: Benches) -> None:
    own, rng = bench("convert"), random.Random("two faults")
    for _ in range(2):
        faults = rng.choice(FILE_FAULTS), FAULTS["group killed"]
        strikes = [(fault, rng.randint(1, own.points(fault) or 1)) for fault in faults]
        assert own.problem(strikes, rng) is None


@pytest.mark.long
@pytest.mark.promise("power-failure")
@pytest.mark.parametrize("forgotten", [".json", "."])
def test_a_missing_sync_is_found(forgotten: str, bench: Benches) -> None:
    """Without the syncs of files or folders with this ending, the output may be lost after exit code 0."""
    fault, own = PowerLoss(forgotten), bench("train")
    assert "exit code 0, but" in (own.problem([(fault, own.points(fault))], random.Random(0)) or "")


@pytest.mark.slow
def test_calls_without_memory_raise_memory_error_and_work_the_next_time(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    done = allocations.start(tmp_path_factory.mktemp("calls"), allocations.__file__, "7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "decode: 0 allocations" not in done.stdout


@pytest.mark.promise("complete")
@pytest.mark.promise("resume")
@pytest.mark.promise("power-failure")
@pytest.mark.promise("stores")
@pytest.mark.stress
@pytest.mark.parametrize("place", ["disk", "store"])
def test_campaign(place: str, request: pytest.FixtureRequest, bench: Benches) -> None:
    seed, count = request.config.getoption("--seed"), request.config.getoption("--points")
    if place == "store":
        bench = request.getfixturevalue("on_store")
        points = draw_requests(seed, count, bench)
    else:
        points = draw_points(seed, count, bench)
    problems = [
        f"{job}, {problem}"
        for job, fault, at in points
        if (problem := bench(job).problem([(fault, at)], random.Random(f"{seed} {at}")))
    ]
    print(f"{len(points)} points, seed {seed}: {Counter(fault.name for _, fault, _ in points)}")
    assert not problems, "\n".join(problems)
