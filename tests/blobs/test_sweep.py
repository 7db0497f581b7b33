"""Collection: blobs go with their jobs, and what is left behind is found."""

from pathlib import Path

import pytest

from tests.blobs.files import blobs, grow_old
from tests.services.parts import Listener
from tests.support.chains import after, end_next, enqueue_jobs
from tests.support.clock import ManualClock
from tests.support.seed import claim_one, completed, enqueue_one, failed, new_job, open_lease, running, settle
from windlass import Status
from windlass.blobs.contract import BlobFailed, BlobPage
from windlass.blobs.directory import Directory
from windlass.blobs.offload import Offload
from windlass.coordinator.coordinator import Coordinator
from windlass.coordinator.duties import MAX_PAGE, OLD_SECONDS, PAUSE_SECONDS, WALK_EVERY, Sweep, prune
from windlass.core.flow.queue import DEFAULT_RETENTION, QueueSettings
from windlass.core.ids import JobId, new_id
from windlass.core.jobs.job import Claimed
from windlass.core.moments import DAY
from windlass.store.contract import Store


@pytest.fixture
def large(root: Path) -> Offload:
    return Offload(Directory(str(root)))


@pytest.fixture
def sweep(store: Store, large: Offload) -> Sweep:
    return Sweep(store, large.store, Listener())


async def held(store: Store, large: Offload) -> Claimed:
    """A running job whose payload is a blob."""
    id_ = new_id()
    await open_lease(store)
    await enqueue_one(store, id=id_, payload=large.keep(id_, "payload", "{}"))
    return await claim_one(store)


async def test_pruning_a_job_collects_its_blobs_and_no_others(
    store: Store, clock: ManualClock, large: Offload, root: Path
) -> None:
    old = await held(store, large)
    await settle(store, completed(old, large.keep(old.id, "result", "1")))
    clock.advance(DEFAULT_RETENTION[Status.COMPLETED] + DAY)
    young = await held(store, large)
    await settle(store, completed(young, large.keep(young.id, "result", "2")))
    assert len(blobs(root)) == 4
    heard = Listener()
    assert await prune(store, heard, large) == 60.0
    assert heard.names == ["JobsPruned"]
    assert [path.parent.name for path in blobs(root)] == [young.id, young.id]


async def linked(store: Store, large: Offload) -> list[JobId]:
    """A completed job whose result is a blob, and a link that took it."""
    job = new_job()
    ids = await enqueue_jobs(store, [job, after(new_job(delay=30 * DAY), job.id)])
    await end_next(store, lambda claimed: completed(claimed, large.keep(claimed.id, "result", "1")))
    return ids


async def test_a_result_that_a_link_has_yet_to_read_outlives_its_job_until_the_link_goes(
    store: Store, clock: ManualClock, large: Offload, sweep: Sweep, root: Path
) -> None:
    first, second = await linked(store, large)
    kept = blobs(root)
    clock.advance(DEFAULT_RETENTION[Status.COMPLETED] + DAY)
    await prune(store, Listener(), large)
    assert await store.operator.get([first]) == [None]
    grow_old(root, 10 * OLD_SECONDS)
    await sweep.run()
    assert blobs(root) == kept
    await store.operator.cancel([second], "no")
    await store.operator.delete([second])
    await sweep.run()
    assert blobs(root) == []


async def test_an_earlier_result_that_a_link_took_is_not_swept(
    store: Store, large: Offload, sweep: Sweep, root: Path
) -> None:
    first, _ = await linked(store, large)
    kept = blobs(root)
    await store.operator.retry([first])
    await end_next(store, completed)
    grow_old(root, 10 * OLD_SECONDS)
    await sweep.run()
    assert blobs(root) == kept


async def test_blobs_that_cannot_be_removed_do_not_keep_jobs_from_being_pruned(
    store: Store, clock: ManualClock, large: Offload, root: Path
) -> None:
    class Stuck(Directory):
        def drop(self, jobs: object) -> None:
            raise BlobFailed("cannot be cleared: Read-only file system")

    job = await held(store, large)
    await settle(store, completed(job))
    clock.advance(DEFAULT_RETENTION[Status.COMPLETED] + DAY)
    heard = Listener()
    coordinator = Coordinator(store, "a", heard, blobs=Offload(Stuck(str(root))))
    await coordinator.step(0)
    assert await store.operator.get([job.id]) == [None]
    assert heard.names == ["LeadershipGained", "JobsPruned", "DutyFailed"]


async def test_the_coordinator_sweeps_if_it_knows_where(store: Store, large: Offload, root: Path) -> None:
    large.keep(new_id(), "payload", "{}")
    grow_old(root, OLD_SECONDS + 60)
    heard = Listener()
    await Coordinator(store, "a", heard, blobs=large).step(0)
    assert heard.names == ["LeadershipGained", "BlobsSwept"]
    assert blobs(root) == []


async def test_an_orphan_is_swept_when_it_is_a_day_old_and_not_before(store: Store, root: Path) -> None:
    now = [0.0]
    directory = Directory(str(root), lambda: now[0])
    Offload(directory).keep(new_id(), "payload", "{}")
    (orphan,) = blobs(root)
    written = orphan.stat().st_mtime
    sweep = Sweep(store, directory, Listener())
    now[0] = written + OLD_SECONDS
    await sweep.run()
    assert blobs(root) == [orphan]
    now[0] += 1
    await sweep.run()
    assert blobs(root) == []


async def test_what_a_job_refers_to_is_never_swept(store: Store, large: Offload, sweep: Sweep, root: Path) -> None:
    waiting = new_id()
    await enqueue_one(store, id=waiting, payload=large.keep(waiting, "payload", "{}"))
    done = await running(store, type="other")
    await settle(store, completed(done, large.keep(done.id, "result", "1")))
    kept = blobs(root)
    grow_old(root, 10 * OLD_SECONDS)
    await sweep.run()
    assert blobs(root) == kept
    assert len(kept) == 2


async def test_a_retried_job_keeps_its_payload_and_loses_its_old_result(
    store: Store, large: Offload, sweep: Sweep, root: Path
) -> None:
    job = await held(store, large)
    await settle(store, completed(job, large.keep(job.id, "result", "1")))
    await store.operator.retry([job.id])
    grow_old(root, 2 * OLD_SECONDS)
    await sweep.run()
    assert [path.name.partition(".")[0] for path in blobs(root)] == ["payload"]


async def test_results_of_attempts_that_were_not_the_last_are_swept_when_the_job_rests(
    store: Store, clock: ManualClock, large: Offload, sweep: Sweep, root: Path
) -> None:
    job = await held(store, large)
    large.keep(job.id, "result", "1")
    grow_old(root, 2 * OLD_SECONDS)
    await sweep.run()
    assert len(blobs(root)) == 2, "its settlement may still be on its way"
    await settle(store, failed(job))
    await sweep.run()
    assert [path.name.partition(".")[0] for path in blobs(root)] == ["payload"]


async def test_blobs_of_jobs_that_were_never_kept_are_swept(
    store: Store, large: Offload, sweep: Sweep, root: Path
) -> None:
    await store.queues.declare({"default": QueueSettings(retention={Status.COMPLETED: 0})})
    job = await held(store, large)
    await settle(store, completed(job, large.keep(job.id, "result", "1")))
    assert await store.operator.get([job.id]) == [None]
    grow_old(root, 2 * OLD_SECONDS)
    await sweep.run()
    assert blobs(root) == []


async def test_a_long_walk_is_made_in_pages_with_pauses(store: Store, large: Offload, root: Path) -> None:
    asked: list[tuple[str | None, int]] = []

    class Counted(Directory):
        def page(self, after: str | None, limit: int) -> BlobPage:
            asked.append((after, limit))
            return super().page(after, 2)

    for _ in range(5):
        large.keep(new_id(), "payload", "{}")
    sweep = Sweep(store, Counted(str(root)), Listener())
    pauses = [await sweep.run() for _ in range(4)]
    assert pauses == [PAUSE_SECONDS, PAUSE_SECONDS, WALK_EVERY, PAUSE_SECONDS]
    assert [limit for _, limit in asked] == [MAX_PAGE] * 4
    assert asked[3][0] is None, "the next walk begins anew"


async def test_a_store_that_is_away_sweeps_nothing(store: Store, large: Offload, root: Path) -> None:
    """Not knowing whether a job is there is not knowing that it is gone."""

    class Away:
        async def get(self, ids: object) -> None:
            raise ConnectionError("away")

    class View:
        operator = Away()

    large.keep(new_id(), "payload", "{}")
    grow_old(root, 2 * OLD_SECONDS)
    with pytest.raises(ConnectionError):
        await Sweep(View(), large.store, Listener()).run()  # type: ignore[arg-type]
    assert len(blobs(root)) == 1
