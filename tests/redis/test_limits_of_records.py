"""Everything that may be said of a job fits into its record, all of it at once."""

import pytest

from tests.redis.places import misplaced
from tests.support.seed import claim_ids, claim_one, completed, enqueue_one, look, new_job, open_lease, settle
from windlass.core.codec import INLINE_LIMIT
from windlass.core.ids import new_id
from windlass.core.jobs.job import MAX_ATTEMPTS, MAX_PER_KEY, MAX_PRIORITY, MIN_PRIORITY
from windlass.core.names import MAX_CONCURRENCY_KEY_LENGTH, MAX_KEY_LENGTH, MAX_NAME_LENGTH, MAX_TAGS
from windlass.store.redis.store import RedisStore


@pytest.mark.parametrize("priority", [MIN_PRIORITY, MAX_PRIORITY])
async def test_a_job_of_which_as_much_is_said_as_may_be_runs(store: RedisStore, priority: int) -> None:
    meta = '{"a":"' + "x" * (INLINE_LIMIT - 8) + '"}'
    assert len(meta) == INLINE_LIMIT
    tags = tuple(f"{n:02}" + "t" * (MAX_NAME_LENGTH - 2) for n in range(MAX_TAGS))
    job = new_job(
        meta=meta,
        tags=tags,
        idempotency_key="k" * MAX_KEY_LENGTH,
        concurrency_key="c" * MAX_CONCURRENCY_KEY_LENGTH,
        key_limit=MAX_PER_KEY,
        tenant="z" * MAX_NAME_LENGTH,
        parent=new_id(),
        flow=new_id(),
        max_attempts=MAX_ATTEMPTS,
        priority=priority,
        payload='{"b":1}',
    )
    await store.jobs.enqueue([job])
    kept = await look(store, job.id)
    assert (kept.idempotency_key, kept.tags, kept.payload) == (job.idempotency_key, tags, {"b": 1})
    await open_lease(store)
    claimed = await claim_one(store)
    assert claimed.meta == meta
    assert claimed.payload == '{"b":1}'
    await settle(store, completed(claimed))
    assert await misplaced(store) == []


async def test_others_are_claimed_beside_it(store: RedisStore) -> None:
    await store.jobs.enqueue([new_job(meta='{"a":"' + "x" * (INLINE_LIMIT - 8) + '"}')])
    await enqueue_one(store)
    await open_lease(store)
    assert len(await claim_ids(store)) == 2
