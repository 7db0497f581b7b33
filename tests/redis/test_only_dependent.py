"""The one dependent of a job that was enqueued with it is in the job's record, not in the index of dependents."""

import redis

from tests.support.chains import after, chain, end_next, enqueue_jobs, statuses
from tests.support.key_queues import take
from tests.support.seed import completed, dead, new_job, settle, status_of
from windlass.core.jobs.job import DEFAULT_QUEUE
from windlass.core.status import Status
from windlass.store.redis.store import RedisStore

BLOCKED, PENDING, COMPLETED, CANCELLED = Status.BLOCKED, Status.PENDING, Status.COMPLETED, Status.CANCELLED


def listed(store: RedisStore) -> set[bytes]:
    """The members of the index of dependents."""
    server = store._access.server
    (key,) = server.keys.of_queue(DEFAULT_QUEUE, ("dependents",))
    with redis.Redis.from_url(server.address.dsn) as client:
        return set(client.zrange(key, 0, -1))


async def test_a_chain_needs_no_entry_in_the_index(store: RedisStore) -> None:
    ids = await chain(store, 3)
    assert listed(store) == set()
    for _ in ids:
        await end_next(store, completed)
    assert await statuses(store, ids) == [COMPLETED] * 3


async def test_a_second_dependent_brings_the_first_into_the_index(store: RedisStore) -> None:
    first, second = await chain(store, 2)
    (third,) = await enqueue_jobs(store, [after(new_job(), first)])
    assert listed(store) == {f"w{first}{child}".encode() for child in (second, third)}
    await end_next(store, completed)
    assert await statuses(store, [second, third]) == [PENDING, PENDING]
    assert listed(store) == set()


async def test_a_parent_that_dies_brings_its_dependent_into_the_index(store: RedisStore) -> None:
    first, second = await chain(store, 2)
    await end_next(store, dead)
    assert listed(store) == {f"f{first}{second}".encode()}
    assert await status_of(store, second) is CANCELLED


async def test_a_known_dependent_is_not_released_by_a_job_that_names_it_later(store: RedisStore) -> None:
    parent, child = await chain(store, 2)
    other = new_job()
    await enqueue_jobs(store, [other, after(new_job(id=child), other.id)])
    (running,) = [job for job in await take(store) if job.id == other.id]
    await settle(store, completed(running))
    assert await status_of(store, other.id) is COMPLETED
    assert await status_of(store, child) is BLOCKED, f"it waits for {parent}"
