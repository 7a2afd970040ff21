"""Jobs that are disturbed at random points. `pytest -m stress --points 500 --seed 1` tries many more of them."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable

import pytest
from allocation_faults import ALLOCATION_FAULTS
from bench import Bench, Fault
from file_faults import FILE_FAULTS
from injector import compiler
from jobs import JOBS
from network_disk import NETWORK_FAULTS
from power_loss import POWER_LOSS, PowerLoss

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or compiler() is None, reason="needs Linux and a C compiler"
)
FAULTS: dict[str, Fault] = {
    fault.name: fault for fault in [*FILE_FAULTS, *ALLOCATION_FAULTS, POWER_LOSS, *NETWORK_FAULTS]
}
Benches = Callable[[str], Bench]


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Benches:
    """bench(job): one bench per job."""
    build, made = tmp_path_factory.mktemp("stress"), dict[str, Bench]()

    def get(name: str) -> Bench:
        if name not in made:
            made[name] = Bench(JOBS[name], build)
        return made[name]

    return get


def draw_points(seed: str, count: int, bench: Benches) -> list[tuple[str, Fault, int]]:
    """Draw points: (job, fault, number of the operation). Faults that cannot strike a job are left out."""
    rng, found = random.Random(seed), list[tuple[str, Fault, int]]()
    while len(found) < count:
        job, fault = rng.choice(list(JOBS)), rng.choice(list(FAULTS.values()))
        if possible := bench(job).points(fault):
            found.append((job, fault, rng.randint(1, possible)))
    return found


@pytest.mark.slow
@pytest.mark.promise("complete")
@pytest.mark.promise("resume")
@pytest.mark.promise("power-failure")
@pytest.mark.parametrize("name", FAULTS)
def test_a_disturbed_conversion_is_completed(name: str, bench: Benches) -> None:
    possible, rng = bench("convert").points(FAULTS[name]), random.Random(name)
    assert possible > 10
    assert bench("convert").problem([(FAULTS[name], rng.randint(1, possible))], rng) is None


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
        strikes = [(fault, rng.randint(1, own.points(fault))) for fault in faults]
        assert own.problem(strikes, rng) is None


@pytest.mark.promise("power-failure")
@pytest.mark.parametrize("forgotten", [".json", "."])
def test_a_missing_sync_is_found(forgotten: str, bench: Benches) -> None:
    """Without the syncs of files or folders with this ending, the output may be lost after exit code 0."""
    fault, own = PowerLoss(forgotten), bench("train")
    assert "exit code 0, but" in (own.problem([(fault, own.points(fault))], random.Random(0)) or "")


@pytest.mark.promise("complete")
@pytest.mark.promise("resume")
@pytest.mark.promise("power-failure")
@pytest.mark.stress
def test_campaign(request: pytest.FixtureRequest, bench: Benches) -> None:
    seed = request.config.getoption("--seed")
    points = draw_points(seed, request.config.getoption("--points"), bench)
    problems = [
        f"{job}, {problem}"
        for job, fault, at in points
        if (problem := bench(job).problem([(fault, at)], random.Random(f"{seed} {at}")))
    ]
    print(f"{len(points)} points, seed {seed}: {Counter(fault.name for _, fault, _ in points)}")
    assert not problems, "\n".join(problems)
