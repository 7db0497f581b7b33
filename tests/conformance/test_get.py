"""get: a job is found wherever it is in its life."""

import asyncio

import pytest

from tests.support.seed import completed, enqueue, look, new_job, open_lease, put, request
from windlass.core.status import Status
from windlass.store.contract import Store


@pytest.mark.parametrize("status", list(Status))
async def test_a_job_is_found_in_every_status(store: Store, status: Status) -> None:
    id_ = await put(store, status, payload='{"n": 1}', priority=3, tags=("x",), tenant="acme", meta="[1]")
    found = await look(store, id_)
    assert (found.id, found.status, found.payload, found.priority) == (id_, status, {"n": 1}, 3)
    assert (found.tags, found.tenant, found.meta) == (("x",), "acme", [1])


async def test_answers_come_in_the_order_of_the_question(store: Store) -> None:
    first, done = await put(store, Status.PENDING), await put(store, Status.COMPLETED)
    unknown = new_job().id
    answers = await store.operator.get([done, unknown, first, done])
    assert [job and job.id for job in answers] == [done, None, first, done]


async def test_nothing_asked_is_answered_with_nothing(store: Store) -> None:
    assert await store.operator.get([]) == []


async def test_a_payload_comes_back_byte_for_byte(store: Store) -> None:
    text = '{"nul": "\\u0000", "big": 9007199254740993, "zero": -0.0, "one": 1.0, "🦆": [[], {}]}'
    await store.jobs.enqueue([new_job(payload=text)])
    await open_lease(store)
    (job,) = await store.jobs.claim(request())
    assert job.payload == text
    payload = (await look(store, job.id)).payload
    assert payload["nul"] == "\x00"
    assert payload["big"] == 9007199254740993


async def test_a_job_that_is_just_ending_is_never_missed(store: Store) -> None:
    ids = await enqueue(store, 100)
    await open_lease(store)
    jobs = await store.jobs.claim(request())

    async def settle_one_by_one() -> None:
        for job in jobs:
            await store.jobs.settle([completed(job)])

    settling = asyncio.create_task(settle_one_by_one())
    looks = 0
    while not settling.done():
        assert None not in await store.operator.get(ids)
        looks += 1
    await settling
    assert looks > 0
