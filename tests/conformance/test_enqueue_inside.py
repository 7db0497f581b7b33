"""enqueue_inside: the jobs exist if and only if the caller commits."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import seed
from tests.support.clock import ManualClock
from tests.support.key_queues import drain, enqueue_with_key, take
from tests.support.seed import enqueue_one, look, new_job, open_lease, status_of
from tests.support.stores import HOSTS, STORES
from windlass.core.flow.queue import QueueSettings
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.errors import InvalidOption
from windlass.store.contract import Store


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


async def test_a_connection_that_is_none_of_this_store_is_refused_and_nothing_is_stored(store: Store) -> None:
    job = new_job()
    for wrong in (object(), 42, store):
        with pytest.raises(InvalidOption) as refused:
            await store.jobs.enqueue_inside(wrong, [job], {})
        assert refused.value.field == "connection"
    assert await store.operator.get([job.id]) == [None]


async def test_the_callers_transaction_sees_its_own_jobs_and_those_of_others(host: Store, theirs: Any) -> None:
    stored, own = await enqueue_one(host), new_job()
    await host.jobs.enqueue_inside(theirs, [own], {})
    found = await host.jobs.get_inside(theirs, [own.id, stored, new_job().id])
    assert [job and job.id for job in found] == [own.id, stored, None]
    theirs.rollback()
    assert [job and job.id for job in await host.jobs.get_inside(theirs, [own.id, stored])] == [None, stored]
    theirs.rollback()


async def test_a_read_on_a_connection_that_is_none_of_this_store_is_refused(store: Store) -> None:
    with pytest.raises(InvalidOption) as refused:
        await store.jobs.get_inside(object(), [new_job().id])
    assert refused.value.field == "connection"


async def test_a_commit_makes_the_jobs_claimable(host: Store, theirs: Any) -> None:
    jobs = [new_job(), new_job()]
    answers = await host.jobs.enqueue_inside(theirs, jobs, {})
    assert [(each.id, each.existing) for each in answers] == [(job.id, False) for job in jobs]
    assert await host.operator.get([job.id for job in jobs]) == [None, None]
    assert await host.signals.has_work(["default"], None) is False
    theirs.commit()
    assert await host.signals.has_work(["default"], None) is True
    await open_lease(host)
    assert {each.id for each in await host.jobs.claim(seed.request())} == {job.id for job in jobs}


async def test_a_rollback_leaves_nothing_not_even_a_queue(host: Store, theirs: Any) -> None:
    job = new_job(queue="mail", idempotency_key="k")
    await host.jobs.enqueue_inside(theirs, [job], {})
    theirs.rollback()
    assert await host.operator.get([job.id]) == [None]
    assert await host.queues.list() == []
    answers = await host.jobs.enqueue([new_job(queue="mail", idempotency_key="k")])
    assert not answers[0].existing, "the key is free"


async def test_a_key_finds_the_existing_job_and_is_taken_with_the_commit(host: Store, theirs: Any) -> None:
    existing_job = await enqueue_one(host, idempotency_key="a")
    again, fresh = new_job(idempotency_key="a"), new_job(idempotency_key="b")
    answers = await host.jobs.enqueue_inside(theirs, [again, fresh], {})
    assert [(each.id, each.existing) for each in answers] == [(existing_job, True), (fresh.id, False)]
    theirs.commit()
    late = await host.jobs.enqueue([new_job(idempotency_key="b")])
    assert [(each.id, each.existing) for each in late] == [(fresh.id, True)]


async def test_the_same_id_again_is_no_second_job(host: Store, theirs: Any) -> None:
    job = new_job()
    await host.jobs.enqueue_inside(theirs, [job], {})
    theirs.commit()
    answers = await host.jobs.enqueue_inside(theirs, [job], {})
    assert [(each.id, each.existing) for each in answers] == [(job.id, True)]
    theirs.rollback()
    assert await status_of(host, job.id) is Status.PENDING


async def test_jobs_of_the_future_wait_as_usual(host: Store, theirs: Any, clock: ManualClock) -> None:
    job = new_job(delay=SECOND)
    await host.jobs.enqueue_inside(theirs, [job], {})
    theirs.commit()
    assert await status_of(host, job.id) is Status.SCHEDULED
    clock.advance(SECOND)
    await host.jobs.admit(10)
    assert await status_of(host, job.id) is Status.PENDING


async def test_what_the_code_declares_holds_for_jobs_of_the_same_transaction(host: Store, theirs: Any) -> None:
    declared = {"mail": QueueSettings(max_attempts=7, timeout=3600 * SECOND)}
    job = new_job(queue="mail")
    await host.jobs.enqueue_inside(theirs, [job], declared)
    theirs.commit()
    found = await look(host, job.id)
    assert (found.max_attempts, found.timeout) == (7, 3600)
    assert [queue.declared for queue in await host.queues.list()] == list(declared.values())


async def test_a_refused_enqueue_leaves_the_transaction_as_it_was(host: Store, theirs: Any) -> None:
    good, bad = new_job(), new_job(payload="\ud800")
    await host.jobs.enqueue_inside(theirs, [good], {})
    with pytest.raises(UnicodeEncodeError):
        await host.jobs.enqueue_inside(theirs, [new_job(queue="other"), bad], {})
    theirs.commit()
    assert await status_of(host, good.id) is Status.PENDING
    assert [queue.name for queue in await host.queues.list()] == ["default"]
    assert (await host.operator.counts()).totals["pending"] == 1


async def test_a_job_enqueued_with_a_callers_commit_waits_for_its_key(host: Store, theirs: Any) -> None:
    (holder,) = await enqueue_with_key(host)
    behind, free = new_job(concurrency_key="k"), new_job(concurrency_key="other")
    await host.jobs.enqueue_inside(theirs, [behind, free], {})
    theirs.commit()
    assert {job.id for job in await take(host)} == {holder, free.id}
    assert (await look(host, behind.id)).reason == "waits for its concurrency key"


async def test_a_rolled_back_job_leaves_its_key_free(host: Store, theirs: Any) -> None:
    await host.jobs.enqueue_inside(theirs, [new_job(concurrency_key="k")], {})
    theirs.rollback()
    ids = await enqueue_with_key(host, 2)
    assert await drain(host) == ids
