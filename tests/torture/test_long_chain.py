"""A chain of a thousand links, through two queues, while its workers are killed again and again."""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from tests.support.parts import in_part
from tests.support.processes import Process, until
from tests.support.servers.redis_places import redis_cluster_place
from tests.torture.grounds import GROUNDS
from tests.torture.yard import Yard
from windlass import NewJob
from windlass.core.ids import new_id
from windlass.observe.history import HISTORY_FOLDER

LINKS = 1000
KILLS = 6
QUEUES = ("default", "other")
WORK = ("--queues", ",".join(QUEUES), "--processes", "2")
PLACES: dict[str, Callable[[Path], str]] = {
    **{name: ground.url for name, ground in GROUNDS.items()},
    "redis-cluster": redis_cluster_place,
}
LONG = 300.0


@pytest.mark.parametrize("kind", in_part(sorted(PLACES), ["sqlite"]))
def test_a_chain_of_a_thousand_links_holds_while_its_workers_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    yard = Yard(tmp_path, url=PLACES[kind](tmp_path / "jobs.db"), lease="2s")
    # What we enqueue belongs into the history too.
    monkeypatch.setenv(HISTORY_FOLDER, str(yard.histories))
    try:
        ids = [handle.id for handle in yard.app.enqueue_many(counting(LINKS))]
        work_through(yard, ids[-1])
        report = yard.audit()
        assert not report.violations, str(report)
        jobs = {job["id"]: job for job in yard.dump()}
        assert [jobs[id_]["result"] for id_ in ids] == list(range(1, LINKS + 1)), "each added one to what came before"
        check_effects(tmp_path / "effects", {id_: jobs[id_]["attempt"] for id_ in ids})
    finally:
        yard.close()


def counting(count: int) -> list[NewJob]:
    """Each link adds one to what the link before it came to; every third is in another queue."""
    jobs: list[NewJob] = []
    for place in range(count):
        job = NewJob(
            id=new_id(), type="add_one", payload="{}" if jobs else '{"number":0}', queue=QUEUES[place % 3 == 2]
        )
        if jobs:
            before = jobs[-1].id
            job = msgspec.structs.replace(job, parent=before, parents=(before,), result_params=(("number", before),))
        jobs.append(msgspec.structs.replace(job, max_attempts=1000))
    return jobs


def work_through(yard: Yard, last: str) -> None:
    """Now the runners are killed, now the worker with them; each time another goes on."""
    dice, worker = random.Random(8), yard.worker(*WORK)
    for kill in range(1, KILLS + 1):
        until(lambda: _completed(yard) >= LINKS * kill // (KILLS + 1), "it goes on", LONG)  # noqa: B023
        tree = worker.tree()
        victims = tree if kill % 2 else tree[1:]
        dice.shuffle(victims)
        yard.history.write("fault", kind="kill", pids=tree, until=1 << 62)
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        worker = _another(yard, worker) if kill % 2 else worker
    until(lambda: yard.app.jobs.get(last).finished, "the last link ends", LONG)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def _another(yard: Yard, dead: Process) -> Process:
    dead.wait()
    return yard.worker(*WORK)


def _completed(yard: Yard) -> int:
    return yard.app.stats.counts().totals["completed"]


def check_effects(path: Path, attempts: dict[str, int]) -> None:
    """What handlers wrote themselves: the attempt that is recorded ran once, and no link began before its turn."""
    ids = list(attempts)
    effects = [
        (job, int(attempt), int(number)) for job, attempt, number in map(str.split, path.read_text().splitlines())
    ]
    ran = Counter((job, attempt) for job, attempt, _ in effects)
    assert [id_ for id_ in ids if ran[id_, attempts[id_]] != 1] == []
    assert {(job, number) for job, _, number in effects} == {(id_, place) for place, id_ in enumerate(ids)}
    places = [number for _, _, number in effects]
    assert places == sorted(places), "a link ran after one that comes behind it"
    assert len(effects) <= LINKS + 2 * KILLS, "only what ran when a process was killed ran again"
