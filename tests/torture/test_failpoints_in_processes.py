"""Real producers and workers that die, or lose their disk, at a commit: healed and drained, every job is done.

The cases run a few at a time: they mostly wait.
"""

import asyncio
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from tests.support.checker import read
from tests.support.processes import until
from tests.torture.grounds import GROUNDS
from tests.torture.scenes import SCENES
from tests.torture.yard import Yard
from windlass.store.failpoints import SIDES

AT_ONCE = 3
JOBS = 13
MAX_STARTS = 6
FATAL = ("enqueue", "claim", "settle", "note", "admit", "open", "renew", "end", "beat", "campaign")
VERBS = sorted({scene.verb for scene in SCENES.values()} - {"migrate"})
KILLS = [f"{verb}.{side}=kill" for verb, side in product(FATAL, SIDES)]
# A rescue needs something to rescue, so a supervisor dies first.
KILLS += [f"renew.after_commit=kill,rescue.{side}=kill" for side in SIDES]
TROUBLES = [",".join(f"{verb}.before_commit={action}" for verb in VERBS) for action in ("raise", "cut")]
TROUBLES += [",".join(f"{verb}.after_commit=cut" for verb in VERBS)]
TROUBLE_NAMES = [f"{store}-{name}" for store, name in product(sorted(GROUNDS), ("failed", "cut before", "cut after"))]
# Where a verb meets a commit is the same on every store; the others are for what is peculiar to a server.
TELLING = [points for points in KILLS if points.startswith(("enqueue.after", "claim.", "settle.", "renew."))]
DEATHS = [*product(("postgres", "redis", "yugabyte"), TELLING), *product(("sqlite",), KILLS)]
ALL = [*DEATHS, *product(sorted(GROUNDS), TROUBLES)]
QUICK = {
    ("postgres", "claim.after_commit=kill"),
    ("redis", "settle.before_commit=kill"),
    *product(("sqlite",), (points for points in TELLING if "after_commit=kill" in points)),
    *product(sorted(GROUNDS.keys() - {"yugabyte", "yugabyte-limits"}), TROUBLES[-1:]),
}
"""What `make test` runs."""


def parameters(cases: Iterable[tuple[str, str]]) -> list[ParameterSet]:
    return [pytest.param(*each, marks=() if each in QUICK else pytest.mark.extended) for each in cases]


class Case:
    """One yard with its failpoints armed."""

    def __init__(self, folder: Path, store: str, points: str) -> None:
        folder.mkdir()
        once = folder / "once"
        once.mkdir()
        self.points = points
        self.lethal = "=kill" in points
        armed = {"WINDLASS_FAILPOINTS": points}
        # Who is started again after a death lives; trouble comes to each process anew.
        self.yard = Yard(
            folder,
            {**armed, "WINDLASS_FAILPOINTS_ONCE": str(once)} if self.lethal else armed,
            url=GROUNDS[store].url(folder / "jobs.db"),
        )
        self.fired = once

    def play(self) -> int:
        """The number of jobs that completed, which is all of them."""
        try:
            self._until_done("enqueue_all.py")
            self._until_done(
                "-m", "windlass", "worker", "mill:app", "--until-empty", "--lease", "1s", "--concurrency", "2"
            )
            return self._check()
        finally:
            self.yard.close()

    def _until_done(self, *command: str) -> None:
        """Started again and again, as an init system would, until it ends by itself."""
        for _ in range(MAX_STARTS):
            process = self.yard.processes.start("part", *command)
            code = process.wait()
            if code == 0:
                return
            assert code == -signal.SIGKILL, f"it ended with {code}:\n{process.output}"
        raise AssertionError(f"{command} never came to its end")

    def _check(self) -> int:
        if self.lethal:
            wanted = {point.partition("=")[0] for point in self.points.split(",")}
            assert {path.name for path in self.fired.iterdir()} == wanted, "not every failpoint was reached"
            pids = sorted({line["pid"] for line in read(self.yard.histories)})
            self.yard.history.write("fault", kind=self.points, pids=pids, at=0, until=1 << 62)
        report = self.yard.audit()
        assert not report.violations, str(report)
        jobs = self.yard.dump()
        assert {job["status"] for job in jobs} == {"completed"}, jobs
        # An orphan may still be on its way out, with a lease and nothing under it.
        until(self._no_lease_is_left, "every lease is over")
        return len(jobs)

    def _no_lease_is_left(self) -> bool:
        assert asyncio.run(self.yard.rescue()) == []
        return self.yard.leases() == []


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Cases"]:
    cases = Cases(tmp_path_factory.mktemp("failpoints"))
    yield cases
    cases.pool.shutdown(cancel_futures=True)


class Cases:
    """Those under way: each is begun a little before its turn."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[tuple[str, str], Future[int]] = {}
        self.pool = ThreadPoolExecutor(AT_ONCE)

    def result(self, store: str, points: str) -> int:
        alike = [case for case in ALL if (case in QUICK) is ((store, points) in QUICK)]
        place = alike.index((store, points))
        for ahead in alike[place : place + AT_ONCE]:
            if ahead not in self._running:
                case = Case(self._folder / str(len(self._running)), *ahead)
                self._running[ahead] = self.pool.submit(case.play)
        return self._running[store, points].result()


@pytest.mark.parametrize(("store", "points"), parameters(DEATHS))
def test_a_process_that_dies_at_a_commit_loses_nothing(store: str, points: str, cases: Cases) -> None:
    assert cases.result(store, points) == JOBS


@pytest.mark.parametrize(("store", "points"), parameters(product(sorted(GROUNDS), TROUBLES)), ids=TROUBLE_NAMES)
def test_a_commit_that_fails_once_in_every_process_and_verb_loses_nothing(
    store: str, points: str, cases: Cases
) -> None:
    assert cases.result(store, points) == JOBS
