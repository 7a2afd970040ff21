"""A model of runs at one output on a store, in all orders of their requests: lease, journal and published objects.
 Up to three drivers, each with a plan, are stepped request by request, stand still for longer than a lease
holds, are killed, and leave workers that put objects late.

One thing is taken for granted: that no driver stands still for so long between the put that confirms that it is still
the one, its look at its claim, and the one request that follows; no store here can make these one.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)
from state_machines import run_model
from store_runs import Harm, HarmedStore, Killed

from convert import ConvertOptions
from convert.errors import ConvertError, Refused, StorageError
from convert.planning.plan_record import PLAN_VERSION, PlanRecord
from convert.workdir import store as store_module
from convert.workdir.journal import StoreJournal
from convert.workdir.store import StoreWorkDir
from convert.workdir.unpublished import UnpublishedStore
from flat_tokens.format import SPLITS
from flat_tokens.storage.file_digest import file_digest
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import MANIFEST_NAME, FileRecord, SplitRecord
from flat_tokens.writer import write_file, write_root
from tokenmill.stores import Entry, Store, StoreNotFound, lease, open_store

pytest.importorskip("obstore", reason="obstore is not installed")

UNITS = (3, 2)  # how many objects the dataset of each plan has
LAYOUT = ArrayLayout.create(zarr_format=3)
HANG_SECONDS = 20.0
EXAMPLES = 60


def content(plan: int, unit: int) -> bytes:
    return f"unit {unit} of plan {plan}".encode()


BASE: list[str] = []  # the folder of all examples


class Gate(Harm):
    """Holds each request of a driver's thread until its turn comes."""

    def __init__(self, begins: Callable[[], None], ended: Callable[[], None]) -> None:
        super().__init__()
        self._begins, self._ended = begins, ended
        self.thread: threading.Thread | None = None
        self.arrived, self.turn = threading.Semaphore(0), threading.Semaphore(0)

    @contextmanager
    def around(self, request: str) -> Iterator[None]:
        if threading.current_thread() is not self.thread:
            yield
            return
        self.arrived.release()
        self.turn.acquire()
        if self.is_dead:
            raise Killed
        self._begins()
        try:
            yield
        finally:
            self._ended()


class GatedStore(HarmedStore):
    """As the other, but to delete is one request."""

    def delete(self, keys: Iterable[str]) -> None:
        own = list(keys)
        with self._harm.around(f"delete {own}"):
            self._store.delete(own)


class Driver:
    """A run in a thread of its own, that does one request when it is told to."""

    def __init__(self, model: Model, number: int, plan: int, overwrite: bool) -> None:
        self.model, self.plan, self.overwrite = model, plan, overwrite
        self.is_confirming = False
        self.is_critical = False  # from the put that confirms to the request that follows
        self.is_done = self.has_begun = self.has_won = self.was_killed = False
        self.noting: set[int] = set()  # what is in the journal or not yet
        self.error: BaseException | None = None
        self.has_published = False
        self.gate = Gate(self._begins, lambda: model.look(self))
        home = model.folder / f"{number}"
        home.mkdir()
        self.name = f"driver {number}, plan {plan}" + (", overwrite" if overwrite else "")
        tempfile.tempdir = str(home)
        model.gates.append(self.gate)
        options = ConvertOptions(["in"], "tok", model.url, overwrite=overwrite, restart=overwrite)
        self.workdir = StoreWorkDir(options)
        model.gates.pop()
        confirm, put_next = self.workdir.log.confirm, self.workdir.log._put_next

        def confirm_and_go() -> str:
            self.is_confirming = True
            try:
                return confirm()
            finally:
                self.is_confirming = False

        def put_and_go(lines: bytes) -> Entry:
            entry = put_next(lines)
            self.is_critical = self.is_confirming
            return entry

        self.workdir.log.confirm = confirm_and_go  # type: ignore[method-assign]
        self.workdir.log._put_next = put_and_go  # type: ignore[method-assign]
        self.gate.thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self.gate.thread.start()
        self._wait()

    def step(self) -> None:
        """Let the next request happen."""
        if not self.is_done:
            self.gate.turn.release()
            self._wait()

    def _wait(self) -> None:
        assert self.gate.arrived.acquire(timeout=HANG_SECONDS), f"{self.name} hangs"
        assert self.error is None or isinstance(self.error, (ConvertError, Killed)), repr(self.error)

    def kill(self) -> None:
        """End it where it is."""
        self.gate.is_dead = self.was_killed = True
        while not self.is_done:
            self.step()
        self.workdir._lease._released.set()

    def _begins(self) -> None:
        self.is_critical = self.is_critical and self.is_confirming

    def _run(self) -> None:
        try:
            self._work()
            assert self.has_published
            self.has_won = True
        except BaseException as error:
            self.error = error
        try:
            self.workdir.close()
        except BaseException as error:
            self.error = error
        self.is_done = True
        self.is_critical = False
        self.gate.arrived.release()

    def _work(self) -> None:
        workdir, model = self.workdir, self.model
        workdir.check_output()
        goes_on = workdir.open(PlanRecord({"tokenmill_plan": PLAN_VERSION, "plan": self.plan}))
        self.has_begun = True
        done = {first for _, _, first in workdir.log.recorded()._runs} if goes_on else set()
        model.opened(self, goes_on, done)
        workdir.clean_dataset({f"unit-{unit}" for unit in done})
        for unit in range(UNITS[self.plan]):
            if unit not in done:
                write_file(workdir.dataset, f"unit-{unit}", content(self.plan, unit))
                self.noting = {unit}
                workdir.log.append([{"run": ["train", "tokens", unit]}])
                workdir.log.flush()
                self.noting = set()
                if model.manifest is None:  # else another has finished, from what this one had done too
                    model.kept.add(unit)
        contents = {f"unit-{unit}": content(self.plan, unit) for unit in range(UNITS[self.plan])}
        files = [FileRecord(name, len(data), file_digest((data,))) for name, data in contents.items()]
        splits = {split: SplitRecord(0, 0, 0) for split in SPLITS}
        write_root(workdir.dataset, splits, files, LAYOUT, options={"plan": self.plan})
        for unit in range(UNITS[self.plan]):  # `verify`
            if bytes(workdir.dataset.read(f"unit-{unit}")) != content(self.plan, unit):
                raise StorageError("what was read back is not what was written")
        workdir.publish()


class Model(RuleBasedStateMachine):
    """The drivers at one output, and what must hold at any time."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(dir=BASE[0])
        self.folder = Path(self._folder.name)
        self.url = f"memory://{uuid4().hex}/out"
        self.target, self.partial = open_store(self.url), open_store(f"{self.url}.partial")
        self.gates: list[Gate] = []
        self.drivers: list[Driver] = []
        self.kept: set[int] = set()  # units of kept_plan that some run has noted
        self.kept_plan = -1
        self.plan_is_there = False
        self.manifest: dict[str, Any] | None = None
        self.late = False
        self.started = 0
        self.now = 1000.0
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(lease.time, "time", lambda: self.now)
        self._patch.setattr(lease, "RENEWAL_SECONDS", 1e6)
        self._patch.setattr(lease, "WATCHED_SECONDS", 0.0)
        self._patch.setattr(store_module, "open_store", self._open)
        self._patch.setattr(tempfile, "tempdir", None)

    def _open(self, *arguments: Any) -> Store:
        own = [driver.gate for driver in self.drivers if driver.gate.thread is threading.current_thread()]
        return GatedStore(open_store(*arguments), (own or self.gates)[0])

    def teardown(self) -> None:
        try:
            self._last_run()
        finally:
            for driver in self.drivers:
                driver.kill()
            self._patch.undo()
            self._folder.cleanup()

    # -- what happens

    def _working(self) -> list[Driver]:
        return [driver for driver in self.drivers if not driver.is_done]

    def _start(self, plan: int, overwrite: bool) -> Driver:
        driver = Driver(self, self.started, plan, overwrite)
        self.started += 1
        self.drivers.append(driver)
        return driver

    @precondition(lambda self: len(self._working()) < 3)
    @rule(plan=st.sampled_from([0, 0, 1]), overwrite=st.booleans())
    def start(self, plan: int, overwrite: bool) -> None:
        self._start(plan, overwrite)

    @precondition(lambda self: self._working())
    @rule(data=st.data(), count=st.sampled_from([*range(1, 30), 1000]))
    def step(self, data: st.DataObject, count: int) -> None:
        """Some requests of a driver, or all."""
        driver = data.draw(st.sampled_from(self._working()))
        while count and not driver.is_done:
            driver.step()
            count -= 1

    @precondition(lambda self: self._working())
    @rule(still=st.lists(st.booleans(), min_size=3, max_size=3))
    def stand_still(self, still: list[bool]) -> None:
        """A minute passes, in which some drivers do nothing at all; the others renew their lease."""
        self.now += lease.TAKEN_OVER_SECONDS + 1
        for driver, stands in zip(self._working(), still, strict=False):
            if driver.workdir._lease.is_held and (driver.is_critical or not stands):
                driver.workdir._lease.renew()

    @precondition(lambda self: len(self._working()) > 1)
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self._working())).kill()
        self.now += lease.TAKEN_OVER_SECONDS + 1
        for driver in self._working():
            if driver.workdir._lease.is_held:
                driver.workdir._lease.renew()

    @precondition(lambda self: any(driver.has_begun for driver in self.drivers))
    @rule(data=st.data(), unit=st.integers(0, max(UNITS) - 1))
    def put_late(self, data: st.DataObject, unit: int) -> None:
        """By a worker of any run that there was."""
        self._put_late(
            data.draw(st.sampled_from([driver for driver in self.drivers if driver.has_begun])), unit
        )

    def _put_late(self, driver: Driver, unit: int) -> None:
        if unit < UNITS[driver.plan]:
            self.late = True
            try:
                UnpublishedStore(self.target, self.partial).put(f"unit-{unit}", content(driver.plan, unit))
            except StorageError:
                return

    def overtake(self, done: int, done_by_other: int, plan: int, overwrite: bool) -> tuple[bool, bool]:
        """One order of `overtaken`; whether the first driver came to its end before, and then the other."""
        first = self._start(0, overwrite=False)
        for _ in range(done):
            first.step()
        ended = first.is_done
        while first.is_critical:
            first.step()
        self.now += lease.TAKEN_OVER_SECONDS + 1
        other = self._start(plan, overwrite)
        for _ in range(done_by_other):
            other.step()
        while other.is_critical:
            other.step()
        other_ended = other.is_done
        if first.has_begun:
            self._put_late(first, 1)
        for driver in (first, other):
            while not driver.is_done:
                driver.step()
            self.a_manifest_speaks_of_what_is_there()
        return ended, other_ended

    # -- what must hold

    def look(self, driver: Driver) -> None:
        """What came of a request."""
        manifest = self._manifest()
        if manifest != self.manifest:
            if manifest is None:
                assert driver.overwrite, f"{driver.name} removes a finished dataset"
            else:
                assert self.manifest is None, f"{driver.name} puts a manifest over another's"
                assert manifest["options"]["plan"] == driver.plan
                driver.has_published = True
                self.kept = set()
            self.manifest = manifest
        plan_is_there = "plan.json" in self.debris()
        if self.plan_is_there and not plan_is_there:
            assert driver.overwrite or not self.kept, f"{driver.name} throws {self.kept} away"
            self.kept = set()
        self.plan_is_there = plan_is_there

    def debris(self) -> list[str]:
        return [entry.key for entry in self.partial.list()]

    def opened(self, driver: Driver, goes_on: bool, done: set[int]) -> None:
        """A driver has the output to itself."""
        if goes_on:
            assert driver.plan == self.kept_plan, f"{driver.name} goes on with another plan"
            noting = set().union(*(other.noting for other in self.drivers))
            assert self.kept <= done <= self.kept | noting, (
                f"{driver.name} goes on with {done}, not {self.kept}"
            )
            self.kept = done
        else:
            assert driver.overwrite or not self.kept, f"{driver.name} throws {self.kept} away"
            self.kept, self.kept_plan = set(), driver.plan

    def _manifest(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(bytes(self.target.read(MANIFEST_NAME)))
        except StoreNotFound:
            return None
        return found

    @invariant()
    def a_manifest_speaks_of_what_is_there(self) -> None:
        manifest = self._manifest()
        if manifest is not None:
            plan = manifest["options"]["plan"]
            for unit in range(UNITS[plan]):
                assert bytes(self.target.read(f"unit-{unit}")) == content(plan, unit)

    def _last_run(self) -> None:
        """When all are gone, a run with --overwrite and --restart makes the dataset, and nothing else stays."""
        for driver in self.drivers:
            driver.kill()
        self.now += lease.TAKEN_OVER_SECONDS + 1
        for _ in range(2):
            last = self._start(1, overwrite=True)
            while not last.is_done:
                last.step()
                self.a_manifest_speaks_of_what_is_there()
            if last.has_won or not self.late:
                break
        if self.late and isinstance(last.error, Refused):
            return  # an object that came when nothing else was there: it is the user's to say whose it is
        assert last.has_won, repr(last.error)
        assert self.debris() == []
        names = {"unit-0", "unit-1", "zarr.json", "files.jsonl", "sources.jsonl", MANIFEST_NAME}
        assert {entry.key for entry in self.target.list()} == names


def test_runs_in_all_orders(tmp_path: Path) -> None:
    BASE[:] = [str(tmp_path)]
    run_model(Model, EXAMPLES, 25)


@pytest.mark.parametrize(("plan", "overwrite"), [(0, False), (1, True)])
def test_a_run_is_taken_over_at_any_request(tmp_path: Path, plan: int, overwrite: bool) -> None:
    assert overtaken(tmp_path, plan, overwrite, 83) > 30


def overtaken(tmp_path: Path, plan: int, overwrite: bool, step: int) -> int:
    """A driver that stands still after each of its requests, is taken over, and goes on after every step-th request of
    the other; a worker of it puts an object late. How many orders there are."""
    BASE[:] = [str(tmp_path)]
    for orders, done in enumerate(itertools.count()):
        for done_by_other in itertools.count(done % step, step):
            model = Model()
            try:
                first_ended, other_ended = model.overtake(done, done_by_other, plan, overwrite)
            finally:
                model.teardown()
            if other_ended:
                break
        if first_ended:
            return orders
    raise AssertionError


def without_a_claim(journal: StoreJournal) -> None:
    journal._number = max((number for _, number, _ in journal._objects()), default=0) + 1


def put_over(store: UnpublishedStore, key: str, data: Any, if_absent: bool = False) -> Any:
    return (store.partial if key == MANIFEST_NAME else store.target).put(key, data)


@pytest.mark.parametrize(
    ("where", "name", "fault"),
    [
        (StoreJournal, "claim", without_a_claim),
        (UnpublishedStore, "put", put_over),
    ],
)
def test_the_model_finds_faults(
    tmp_path: Path, where: type, name: str, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, fault)
    with pytest.raises((AssertionError, ExceptionGroup)):
        overtaken(tmp_path, 1, True, 29)
