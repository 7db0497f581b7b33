"""Closed queues: nothing new is stored; what is there goes on."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.key_queues import drain
from tests.support.seed import completed, enqueue, enqueue_one, failed, new_job, running, settle, status_of
from tests.support.stores import HOSTS, STORES
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Enqueued
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.errors import QueueClosed
from windlass.store.contract import Store
from windlass.store.records import Transition


async def test_a_closed_queue_takes_nothing_and_says_so(store: Store) -> None:
    await store.queues.close("mail")
    job = new_job(queue="mail")
    with pytest.raises(QueueClosed, match="queue 'mail' is closed") as caught:
        await store.jobs.enqueue([job])
    assert caught.value.queue == "mail"
    assert await store.operator.get([job.id]) == [None]


@pytest.mark.parametrize("delay", [0, DAY], ids=["now", "later"])
@pytest.mark.parametrize("key", [None, "k"], ids=["plain", "keyed"])
async def test_nothing_of_the_whole_bulk_is_stored(store: Store, delay: int, key: str | None) -> None:
    await store.queues.close("mail")
    jobs = [
        new_job(),
        new_job(queue="new", idempotency_key="i"),
        new_job(queue="mail", delay=delay, concurrency_key=key),
    ]
    with pytest.raises(QueueClosed):
        await store.jobs.enqueue(jobs)
    assert await store.operator.get([job.id for job in jobs]) == [None] * 3
    assert {queue.name for queue in await store.queues.list()} == {"mail"}
    assert await store.jobs.enqueue(jobs[:2]) == [Enqueued(job.id) for job in jobs[:2]], "no key was left behind"


async def test_known_ids_are_answered_as_ever(store: Store) -> None:
    known = new_job()
    await store.jobs.enqueue([known])
    await store.queues.close("default")
    assert await store.jobs.enqueue([known, known]) == [Enqueued(known.id, existing=True)] * 2
    with pytest.raises(QueueClosed):
        await store.jobs.enqueue([known, new_job()])


async def test_a_finished_id_is_answered_too(store: Store) -> None:
    job = await running(store)
    await settle(store, completed(job))
    await store.queues.close("default")
    assert await store.jobs.enqueue([new_job(id=job.id)]) == [Enqueued(job.id, existing=True)]


async def test_a_held_idempotency_key_answers_with_its_job(store: Store) -> None:
    id_ = await enqueue_one(store, idempotency_key="i")
    await store.queues.close("default")
    assert await store.jobs.enqueue([new_job(idempotency_key="i")]) == [Enqueued(id_, existing=True)]


async def test_nothing_is_replaced_in_a_closed_queue(store: Store) -> None:
    id_ = await enqueue_one(store, idempotency_key="i")
    await store.queues.close("default")
    with pytest.raises(QueueClosed):
        await store.jobs.enqueue([new_job(idempotency_key="i", on_conflict=OnConflict.REPLACE)])
    assert await status_of(store, id_) is Status.PENDING


async def test_what_is_there_goes_on(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    ids = await enqueue(store, 2)
    line = await enqueue(store, 2, concurrency_key="k")
    later = await enqueue_one(store, delay=SECOND)
    await store.queues.close("default")
    await settle(store, failed(job))
    assert await store.operator.retry([job.id]) == [Transition(job.id, Status.PENDING, done=True)]
    clock.advance(SECOND)
    await store.jobs.admit(10)
    assert set(await drain(store)) == {job.id, *ids, *line, later}


async def test_it_takes_jobs_again_when_it_is_opened(store: Store) -> None:
    await store.queues.close("default")
    await store.queues.open("default")
    ids = await enqueue(store, 2)
    assert await drain(store) == ids


async def test_other_queues_are_open(store: Store) -> None:
    await store.queues.close("mail")
    id_ = await enqueue_one(store)
    assert await status_of(store, id_) is Status.PENDING


@pytest.fixture(params=sorted(HOSTS))
async def host(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """A store that can take part in a caller's transaction."""
    opened = STORES[request.param].open(tmp_path, clock)
    await opened.migrate()
    yield opened
    await opened.close()


@pytest.fixture
def theirs(host: Store, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A caller's connection to the same database."""
    connection = HOSTS[request.node.callspec.params["host"]](tmp_path)
    yield connection
    connection.close()


async def test_inside_a_callers_transaction_too_and_that_goes_on(host: Store, theirs: Any) -> None:
    await host.queues.close("mail")
    kept, refused = new_job(), [new_job(), new_job(queue="mail")]
    await host.jobs.enqueue_inside(theirs, [kept], {})
    with pytest.raises(QueueClosed):
        await host.jobs.enqueue_inside(theirs, refused, {})
    theirs.commit()
    assert await status_of(host, kept.id) is Status.PENDING
    assert await host.operator.get([job.id for job in refused]) == [None, None]
