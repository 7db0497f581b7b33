"""signals.completions: a waiter for jobs is told when they end. Nothing here polls in between."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.reported import Reported, watched
from tests.support.seed import (
    FINISHES,
    claim_one,
    completed,
    dead,
    enqueue,
    enqueue_one,
    failed,
    open_lease,
    request,
    running,
    settle,
)
from tests.support.stores import LASTING, STORES
from windlass.core.flow.queue import settings
from windlass.core.ids import new_id
from windlass.core.jobs.change import JobChange
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd


@pytest.fixture(params=sorted(name for name, kind in STORES.items() if kind.notifies))
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """An empty store of every kind that tells at once."""
    opened = STORES[request.param].open(tmp_path, clock)
    yield opened
    await opened.close()


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_an_attempt_that_ends_a_job_is_reported(store: Store, status: Status) -> None:
    job = await running(store)
    watcher, reported = await watched(store, job.id)
    await settle(store, FINISHES[status](job))
    assert await reported.of(job.id)
    await watcher.close()


@pytest.mark.parametrize("status", sorted(FINISHES))
async def test_an_end_of_which_nothing_is_kept_is_reported(store: Store, status: Status) -> None:
    await store.queues.declare({"default": settings(retention=dict.fromkeys(FINISHES, 0))})
    job = await running(store)
    watcher, reported = await watched(store, job.id)
    await settle(store, FINISHES[status](job))
    assert await reported.of(job.id)
    assert await store.operator.get([job.id]) == [None]
    await watcher.close()


async def test_a_waiting_job_that_is_cancelled_is_reported(store: Store) -> None:
    id_ = await enqueue_one(store)
    watcher, reported = await watched(store, id_)
    await store.operator.cancel([id_], "too late")
    assert await reported.of(id_)
    await watcher.close()


async def test_links_that_end_because_a_parent_did_are_reported(store: Store) -> None:
    job = await running(store)
    (child,) = await enqueue(store, parent=job.id, parents=(job.id,))
    (grandchild,) = await enqueue(store, parent=child, parents=(child,))
    watcher, reported = await watched(store, child, grandchild)
    await settle(store, dead(job))
    assert await reported.of(child, grandchild)
    await watcher.close()


async def test_a_job_that_expires_is_reported(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store, expires=SECOND)
    watcher, reported = await watched(store, id_)
    clock.advance(2 * SECOND)
    assert len(await store.jobs.expire(10)) == 1
    assert await reported.of(id_)
    await watcher.close()


async def test_a_job_that_ends_with_its_runner_is_reported(store: Store) -> None:
    job = await running(store)
    watcher, reported = await watched(store, job.id)
    await store.operator.cancel([job.id], "enough")
    await store.leases.end(RunnerEnd(runner="r1", crashed=False, started=frozenset({(job.id, job.attempt)})))
    assert await reported.of(job.id)
    await watcher.close()


async def test_an_end_after_a_failed_attempt_is_reported(store: Store) -> None:
    job = await running(store)
    watcher, reported = await watched(store, job.id)
    await settle(store, failed(job))
    await store.operator.run_now([job.id])
    await settle(store, completed(await claim_one(store)))
    assert await reported.of(job.id)
    await watcher.close()


async def test_a_job_that_is_back_is_reported_again_if_it_is_watched_again(store: Store) -> None:
    job = await running(store)
    watcher, reported = await watched(store, job.id)
    await settle(store, dead(job))
    assert await reported.of(job.id)
    await store.operator.retry([job.id])
    watcher.unwatch(job.id)
    watcher.watch(job.id, "default")
    assert await reported.of(job.id)
    await settle(store, completed(await claim_one(store)))
    assert await reported.of(job.id)
    await watcher.close()


async def test_a_job_is_reported_in_the_queue_that_it_was_moved_to(store: Store) -> None:
    id_ = await enqueue_one(store)
    watcher, reported = await watched(store, id_)
    await store.operator.change([id_], JobChange(queue="other"))
    watcher.watch(id_, "other")
    reported.jobs.clear()
    await open_lease(store)
    job = await claim_one(store, queues=("other",))
    await settle(store, completed(job))
    assert await reported.of(id_)
    await watcher.close()


async def test_many_that_end_at_once_are_all_reported(store: Store) -> None:
    await open_lease(store)
    ids = await enqueue(store, 300)
    watcher, reported = await watched(store, *ids)
    await store.jobs.settle([completed(job) for job in await store.jobs.claim(request(limit=300, most=300))])
    assert await reported.of(*ids)
    await watcher.close()


async def test_what_had_ended_before_it_was_watched_is_reported(store: Store) -> None:
    job = await running(store)
    await settle(store, completed(job))
    watcher = store.signals.watch_completions(reported := Reported())
    watcher.watch(job.id, "default")
    assert await reported.of(job.id)
    await watcher.close()


async def test_what_is_not_there_may_be_watched(store: Store) -> None:
    await store.operator.counts()
    watcher = store.signals.watch_completions(reported := Reported())
    watcher.watch(missing := new_id(), "default")
    assert await reported.of(missing), "its waiter is to read again"
    await watcher.close()


async def test_what_is_unwatched_is_no_longer_reported(store: Store) -> None:
    await open_lease(store)
    first, second = await enqueue(store, 2)
    watcher, reported = await watched(store, first, second)
    watcher.unwatch(first)
    one, other = await store.jobs.claim(request())
    await settle(store, completed(one))
    await settle(store, completed(other))
    assert await reported.of(second)
    assert reported.jobs <= {first}  # it may have been on its way
    await watcher.close()


async def test_each_of_several_watchers_gets_what_it_watches(store: Store) -> None:
    await open_lease(store)
    first, second = await enqueue(store, 2)
    one, one_reported = await watched(store, first)
    both, both_reported = await watched(store, first, second)
    await store.jobs.settle([completed(job) for job in await store.jobs.claim(request())])
    assert await one_reported.of(first)
    assert await both_reported.of(first, second)
    assert one_reported.jobs == set()
    await one.close()
    await both.close()


async def test_a_closed_completion_watcher_reports_nothing(store: Store) -> None:
    job = await running(store)
    closed, nothing = await watched(store, job.id)
    await closed.close()
    watcher, reported = await watched(store, job.id)
    await settle(store, completed(job))
    assert await reported.of(job.id)
    assert nothing.jobs == set()
    await watcher.close()


async def test_a_completion_watcher_that_never_watched_anything_can_be_closed(store: Store) -> None:
    watcher = store.signals.watch_completions(reported := Reported())
    await watcher.close()
    assert reported.jobs == set()


@pytest.fixture(params=[name for name in LASTING if STORES[name].notifies])
async def pair(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock
) -> AsyncIterator[tuple[Store, Store]]:
    """The same store, as two processes open it."""
    ours, theirs = (STORES[request.param].open(tmp_path, clock) for _ in range(2))
    yield ours, theirs
    await ours.close()
    await theirs.close()


async def test_it_does_not_matter_which_process_ends_the_job(pair: tuple[Store, Store]) -> None:
    ours, theirs = pair
    id_ = await enqueue_one(ours)
    watcher, reported = await watched(ours, id_)
    await open_lease(theirs)
    await settle(theirs, completed(await claim_one(theirs)))
    assert await reported.of(id_)
    await watcher.close()


async def test_a_completion_watcher_that_gets_messages_is_not_silent(store: Store) -> None:
    id_ = await enqueue_one(store)
    watcher, _ = await watched(store, id_)
    assert watcher.outage is None
    await watcher.close()
