"""Completions that are not kept: one call for as many as of kept ones, and only tombstones are left."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.seed import completed, enqueue, new_job, open_lease, request
from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.job import Enqueued
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Settled
from windlass.store.redis.connection.access import Access

JOBS = 200


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each script was called for several queues."""
    counted: Counter[str] = Counter()
    call = Access.call_queues

    async def count(access: Access, name: str, requests: Any) -> Any:
        counted[name] += 1
        return await call(access, name, requests)

    monkeypatch.setattr(Access, "call_queues", count)
    return counted


@pytest.fixture(autouse=True)
async def _kept_for_no_time(store: Store) -> None:
    await store.queues.change("default", QueueSettings(retention={Status.COMPLETED: 0}))
    await open_lease(store)


async def test_a_call_completes_as_many_as_are_kept(store: Store, calls: Counter[str]) -> None:
    ids = await enqueue(store, JOBS)
    jobs = await store.jobs.claim(request(most=JOBS, limit=JOBS))
    answers: Sequence[Settled] = await store.jobs.settle([completed(job) for job in jobs])
    assert set(answers) == {Settled.SETTLED}
    assert calls["complete"] == 1
    assert await store.operator.get(ids) == [None] * JOBS
    known = await store.jobs.enqueue([new_job(id=id_) for id_ in ids])
    assert known == [Enqueued(id_, existing=True) for id_ in ids]
    assert set(await store.jobs.settle([completed(job) for job in jobs])) == {Settled.ALREADY}
