"""A full disk: the producer is told for certain, nothing is half stored, and workers wait without losing anything."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.e2e.stage import Stage
from tests.faults.full import Disk, SmallDisk, may_mount, short_files, small_disk
from tests.support.processes import let_pass, until
from tests.support.seed import claim_one, completed, enqueue, open_lease, request, settle, status_of
from windlass import App, EnqueueFailed, EnqueueUnknown, Task
from windlass.errors import StoreUnavailable
from windlass.store.open import open_store

KINDS = ["a small disk", "a limit on files"]


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if request.param == KINDS[0] and not may_mount():
        pytest.skip("only root may mount a disk")
    make = small_disk if request.param == KINDS[0] else short_files
    with make(tmp_path / "disk") as made:
        yield made


def url(disk: Disk) -> str:
    return f"sqlite:///{disk.folder}/jobs.db"


def check_sound(disk: Disk) -> None:
    database = apsw.Connection(f"{disk.folder}/jobs.db")
    assert database.pragma("integrity_check") == "ok"
    database.close()


@pytest.fixture
def app(disk: Disk) -> Iterator[App]:
    app = App(url(disk))
    yield app
    app.close()


def one_task(app: App) -> Task[[str], None, None]:
    @app.task(type="t")
    def task(text: str) -> None: ...

    return task


def test_a_producer_is_told_that_nothing_was_stored_and_that_the_disk_is_full(app: App, disk: Disk) -> None:
    task = one_task(app)
    stored = [task.enqueue("x" * 1000).id for _ in range(50)]
    disk.fill()
    for _ in range(3):
        with pytest.raises((EnqueueFailed, EnqueueUnknown)) as caught:
            task.enqueue("x" * 1000)
        with pytest.raises((EnqueueFailed, EnqueueUnknown)):
            app.enqueue_many([task.job("x" * 1000) for _ in range(20)])
        if isinstance(disk, SmallDisk):
            assert str(caught.value) == f"nothing was stored: the disk of {disk.folder}/jobs.db is full"
    assert {job.id for job in app.jobs.list(limit=1000).items} == set(stored)
    disk.free()
    check_sound(disk)
    stored.append(task.enqueue("there is room again").id)
    assert {job.id for job in app.jobs.list(limit=1000).items} == set(stored)
    assert app.stats.counts().totals["pending"] == len(stored)


async def test_claims_and_settlements_are_refused_whole_and_can_be_repeated(disk: Disk) -> None:
    store = open_store(url(disk))
    try:
        await open_lease(store)
        waiting = await enqueue(store, 20, payload=f'"{"x" * 1000}"')
        held = await claim_one(store)
        again = request()
        disk.fill()
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match=disk.problem):
                await store.jobs.claim(again)
            with pytest.raises(StoreUnavailable, match=disk.problem):
                await settle(store, completed(held))
        assert [await status_of(store, id_) for id_ in waiting] == ["running"] + ["pending"] * 19
        disk.free()
        check_sound(disk)
        assert await settle(store, completed(held)) == "settled"
        claimed = await store.jobs.claim(again)
        assert [(job.id, job.attempt) for job in claimed] == [(id_, 1) for id_ in waiting[1:]]
    finally:
        await store.close()


def test_a_worker_keeps_its_jobs_while_the_disk_is_full_and_settles_them_afterwards(
    disk: Disk, tmp_path: Path
) -> None:
    (tmp_path / "stage").mkdir()
    # Only the database is on the small disk: what the handlers leave behind for us is not.
    (tmp_path / "stage" / "jobs.db").symlink_to(disk.folder / "jobs.db")
    stage = Stage(tmp_path / "stage", f"sqlite:///{tmp_path}/stage/jobs.db")
    try:
        _work_through_a_full_disk(stage, disk)
    finally:
        stage.processes.end()
        stage.app.close()


def _work_through_a_full_disk(stage: Stage, disk: Disk) -> None:
    worker = stage.worker("--concurrency", "4", lease="1s")
    # Outcomes that do not fit into what is left of the log.
    size = 60_000
    running = [
        *stage.enqueue("block", 2, gate="gate", size=size),
        *stage.enqueue("ablock", 2, gate="gate", size=size),
    ]
    stage.until_started(running)
    stage.enqueue("quick", 20)
    tree = worker.tree()
    disk.fill(*tree)
    stage.open("gate")
    until(lambda: "settling failed" in worker.output, "the worker reports the full disk")
    let_pass(3)
    # Small commits may still fit into the log, which is as long as it was.
    assert {(job.status, job.attempt) for job in map(stage.job, running)} <= {("running", 1), ("completed", 1)}
    with pytest.raises((EnqueueFailed, EnqueueUnknown)):
        stage.enqueue("quick", 5_000)
    disk.free(*tree)
    stage.until_finished()
    assert disk.problem in worker.output
    stage.check()
    assert {stage.job(id_).attempt for id_ in stage.ids} == {1}
    stage.close_down()
    check_sound(disk)
