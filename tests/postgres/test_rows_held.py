"""A caller's open transaction holds one job or one queue: what has nothing to do with it goes on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import psycopg
import pytest

from tests.conformance.test_groups import claim_all, enqueue_group
from tests.services.parts import Listener, one_work
from tests.support.clock import ManualClock
from tests.support.seed import Ending, completed, dead, enqueue_one, new_job, nothing, open_lease, request, status_of
from tests.support.timing import MINUTE, add, fire, ticks_of
from windlass import App
from windlass.core.groups.ids import Role, callback_id, member_id
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Claimed
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd, Settled
from windlass.worker.runner.settler import Settler

Caller = psycopg.AsyncConnection[tuple[object, ...]]
Hold = Callable[[Store, Caller, Claimed], Awaitable[object]]


async def waits_for_it(store: Store, caller: Caller, job: Claimed) -> None:
    await store.jobs.enqueue_inside(caller, [new_job(parents=(job.id,))], {})


async def wants_its_key(store: Store, caller: Caller, job: Claimed) -> None:
    wanted = new_job(idempotency_key=job.idempotency_key, on_conflict=OnConflict.REPLACE)
    await store.jobs.enqueue_inside(caller, [wanted], {})


HOLDS: list[Hold] = [waits_for_it, wants_its_key]


@pytest.fixture
async def caller(store: Store) -> AsyncIterator[Caller]:
    """A connection of a program's own, whose transactions end when it says so."""
    async with await psycopg.AsyncConnection.connect(store.address) as connection:
        yield connection
        await connection.rollback()


@pytest.fixture
async def jobs(store: Store) -> list[Claimed]:
    """Eight jobs that a runner holds."""
    await open_lease(store)
    for n in range(8):
        await enqueue_one(store, idempotency_key=f"k{n}")
    return await store.jobs.claim(request())


async def until_left(settler: Settler, outcomes: int) -> None:
    async with asyncio.timeout(30):
        while settler.backlog > outcomes:  # noqa: ASYNC110 - the settler gives no signal
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("ending", [completed, dead])
@pytest.mark.parametrize("hold", HOLDS)
async def test_outcomes_of_other_jobs_are_written(
    store: Store, caller: Caller, jobs: list[Claimed], hold: Hold, ending: Ending
) -> None:
    held, *others = jobs
    await hold(store, caller, held)
    app = App("sqlite:///never-opened.db")
    app.task(type="t")(nothing)
    settler = Settler(store.jobs, Listener(), lambda work: None, lambda: False, verbose=False)
    for job in jobs:
        settler.add(one_work(app, job), ending(job))
    running = asyncio.create_task(settler.run())
    await until_left(settler, 1)
    assert [await status_of(store, job.id) for job in others] == [ending(held).status] * len(others)
    assert await status_of(store, held.id) is Status.RUNNING
    await caller.rollback()
    await until_left(settler, 0)
    assert await status_of(store, held.id) is ending(held).status
    running.cancel()


@pytest.mark.parametrize("hold", HOLDS)
async def test_the_end_of_a_runner_puts_its_other_jobs_back(
    store: Store, caller: Caller, jobs: list[Claimed], hold: Hold, clock: ManualClock
) -> None:
    held, *others = jobs
    await hold(store, caller, held)
    ended = RunnerEnd(runner="r1", started=frozenset(), returned=frozenset(), crashed=False)
    rescued = await store.with_timeout(10.0).leases.end(ended)
    assert {job.id for job in others} <= {job.id for job in rescued}
    await caller.rollback()
    clock.advance(10 * SECOND)
    rescued += await store.leases.rescue(10)
    assert {job.id for job in jobs} == {job.id for job in rescued}


async def test_schedules_of_other_queues_fire(store: Store, caller: Caller, clock: ManualClock) -> None:
    for name in "abcd":
        await add(store, name, job={"queue": name})
    await store.jobs.enqueue_inside(caller, [new_job(queue="b")], {})
    clock.advance(MINUTE)
    with pytest.raises(StoreUnavailable):
        await fire(store.with_timeout(10.0))
    for name in "acd":
        assert await ticks_of(store, name) == [clock.wall()]
    assert await ticks_of(store, "b") == []
    await caller.rollback()
    await fire(store)
    assert await ticks_of(store, "b") == [clock.wall()]


async def test_members_end_and_are_added_while_the_rows_of_their_group_are_held(store: Store, caller: Caller) -> None:
    group = await enqueue_group(store, 4)
    members = [job for id_, job in (await claim_all(store)).items() if id_ != group]
    held = [group, callback_id(group, Role.THEN)]
    await caller.execute("SELECT 1 FROM windlass.jobs WHERE id::text = ANY(%s) FOR UPDATE", [held])
    prompt = store.with_timeout(10.0)
    settled = await prompt.jobs.settle([completed(job) for job in members[:3]] + [dead(members[3])])
    assert settled == [Settled.SETTLED] * 4
    await prompt.jobs.enqueue([new_job(id=member_id(group, 4), parent=group)])
    await caller.rollback()
