"""age: who has waited long moves up to the next higher priority at which jobs wait."""

from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule
from tests.support.seed import WAIT, claim_ids, enqueue, enqueue_one, failed, look, open_lease, settle
from windlass.core.flow.queue import NO_AGEING, QueueSettings
from windlass.core.jobs.change import JobChange
from windlass.core.moments import DAY, SECOND
from windlass.store.contract import Store

LONG = 60 * SECOND


async def test_a_job_that_waited_long_runs_before_later_ones_with_a_higher_priority(
    store: Store, clock: ManualClock
) -> None:
    await rule(store, ageing=LONG)
    low = await enqueue_one(store)
    clock.advance(LONG)
    high = await enqueue_one(store, priority=5)
    assert await store.jobs.age(10) == 1
    await open_lease(store, length=DAY)
    assert await claim_ids(store) == [low, high]


async def test_no_job_moves_before_the_time(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    low = await enqueue_one(store)
    clock.advance(LONG - 1)
    high = await enqueue_one(store, priority=5)
    assert await store.jobs.age(10) == 0
    await open_lease(store, length=DAY)
    assert await claim_ids(store) == [high, low]


async def test_each_step_takes_as_long_again(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    low = await enqueue_one(store)
    clock.advance(LONG)
    middle = await enqueue_one(store, priority=3)
    high = await enqueue_one(store, priority=7)
    assert await store.jobs.age(10) == 1
    assert await store.jobs.age(10) == 0
    await open_lease(store, length=DAY)
    assert await claim_ids(store, limit=1) == [high]
    high = await enqueue_one(store, priority=7)
    clock.advance(LONG)
    assert await store.jobs.age(10) == 2
    assert await claim_ids(store, limit=3) == [low, middle, high]


async def test_the_highest_and_those_alone_at_their_priority_stay(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    await enqueue(store, 3, priority=5)
    await enqueue(store, 2, queue="other", priority=9)
    clock.advance(2 * LONG)
    assert await store.jobs.age(10) == 0


async def test_queues_that_do_not_say_so_do_not_age(store: Store, clock: ManualClock) -> None:
    await store.queues.declare({"default": QueueSettings(ageing=LONG)})
    await rule(store, ageing=NO_AGEING)
    for queue in ("default", "other"):
        await enqueue_one(store, queue=queue)
        await enqueue_one(store, queue=queue, priority=5)
    clock.advance(2 * LONG)
    assert await store.jobs.age(10) == 0


async def test_the_priority_that_people_see_stays(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    id_ = await enqueue_one(store, priority=-2)
    await enqueue_one(store, priority=5)
    clock.advance(LONG)
    await store.jobs.age(10)
    assert (await look(store, id_)).priority == -2
    runner = await new_runner(store)
    (job,) = await runner.claim(1)
    assert (job.id, job.priority) == (id_, -2)
    await runner.complete()
    assert (await look(store, id_)).priority == -2


async def test_a_throttled_job_continues_at_the_rank_of_its_enqueue(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    low = await enqueue_one(store)
    high = await enqueue_one(store, priority=5)
    clock.advance(LONG)
    await store.jobs.age(10)
    runner = await new_runner(store)
    (job,) = await runner.claim(1)
    assert job.id == low
    await settle(store, failed(job))
    runner.held = []
    clock.advance(WAIT)
    await store.jobs.admit(10)
    assert [job.id for job in await runner.claim()] == [high, low]
    assert (await look(store, low)).priority == 0


async def test_a_job_given_another_priority_has_that(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    low, other = await enqueue_one(store), await enqueue_one(store, priority=1)
    await enqueue_one(store, priority=5)
    clock.advance(LONG)
    assert await store.jobs.age(10) == 2
    await store.operator.change([low], JobChange(priority=2))
    assert (await look(store, low)).priority == 2
    await open_lease(store, length=DAY)
    assert (await claim_ids(store))[-1] == low
    assert (await look(store, other)).priority == 1


async def test_as_many_as_asked_for_move_those_that_wait_longest_first(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    early = await enqueue(store, 3)
    clock.advance(1)
    await enqueue(store, 3)
    clock.advance(LONG)
    await enqueue_one(store, priority=5)
    assert await store.jobs.age(3) == 3
    await open_lease(store, length=DAY)
    assert await claim_ids(store, limit=3) == sorted(early)
    assert await store.jobs.age(10) == 3


async def test_ageing_works_in_a_fair_queue(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG, fair=True)
    low = await enqueue_one(store, tenant="a")
    clock.advance(LONG)
    await enqueue(store, 20, tenant="b", priority=5)
    assert await store.jobs.age(10) == 1
    runner = await new_runner(store)
    assert low in [job.id for job in await runner.claim(2)]


async def test_the_lowest_priority_moves_up_to_the_highest(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    low = await enqueue_one(store, priority=-32768)
    clock.advance(LONG)
    high = await enqueue_one(store, priority=32767)
    assert await store.jobs.age(10) == 1
    await open_lease(store, length=DAY)
    assert await claim_ids(store) == [low, high]
    assert (await look(store, low)).priority == -32768


async def test_of_several_types_those_move_that_wait_longest(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    waiting = []
    for type_ in ("b", "a", "c", "a", "b"):
        waiting.append(await enqueue_one(store, type=type_))
        clock.advance(1)
    clock.advance(LONG)
    high = await enqueue_one(store, type="c", priority=5)
    assert await store.jobs.age(3) == 3
    await open_lease(store, length=DAY)
    assert await claim_ids(store, types=("a", "b", "c")) == [*waiting[:3], high, *waiting[3:]]


async def test_very_many_priorities_are_gone_through(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    steps = 120
    ids = [await enqueue_one(store, priority=-step) for step in range(steps)]
    clock.advance(LONG)
    top = await enqueue_one(store, priority=1)
    assert await store.jobs.age(1000) == steps
    assert await store.jobs.age(1000) == 0
    await open_lease(store, length=DAY)
    claimed = await claim_ids(store, limit=200, most=200)
    assert (claimed[0], sorted(claimed)) == (ids[0], sorted([*ids, top]))


async def test_many_move_at_once(store: Store, clock: ManualClock) -> None:
    await rule(store, ageing=LONG)
    await enqueue(store, 450)
    clock.advance(LONG)
    await enqueue_one(store, priority=5)
    assert await store.jobs.age(420) == 420
    assert await store.jobs.age(420) == 30
