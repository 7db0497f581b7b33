"""fire: one job for each tick, whichever process fires, however often, and whatever the clocks do."""

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, claim_one, completed, enqueue, look, open_lease, request, settle
from tests.support.timing import HOUR, MINUTE, add, find, fire, jobs_of, moment, said, ticks_of
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.moments import DAY, SECOND, Micros, to_datetime
from windlass.core.schedules.firing import Fired, firing
from windlass.core.schedules.schedule import amended, settings
from windlass.core.schedules.ticks import LATE, tick_id
from windlass.core.status import Status
from windlass.store.contract import Store


async def test_nothing_is_due_before_its_time_and_the_next_time_is_returned(store: Store, clock: ManualClock) -> None:
    assert (await store.schedules.due(10)).next_in is None
    await add(store)
    clock.advance(MINUTE - 1)
    due = await store.schedules.due(10)
    assert (due.now, due.schedules, due.next_in) == (clock.wall(), (), 1)


async def test_a_tick_has_one_job_which_says_whose_it_is(store: Store, clock: ManualClock) -> None:
    await add(store, job={"type": "report", "payload": '{"n": 1}', "queue": "mail", "priority": 7})
    tick = moment(await find(store))
    clock.advance(MINUTE + SECOND)
    assert await fire(store) == [Fired(done=True, jobs=(tick_id("s", tick),))]
    job = await look(store, tick_id("s", tick))
    assert (job.type, job.payload, job.queue, job.priority) == ("report", {"n": 1}, "mail", 7)
    assert (job.schedule, job.tick, job.run_at) == ("s", to_datetime(tick), to_datetime(tick))
    assert job.status is Status.PENDING
    after = await find(store)
    assert (after.last_at, after.next_at) == (to_datetime(tick), to_datetime(tick + MINUTE))
    assert after.last_job == job.id


ASKED: list[dict[str, Any]] = [
    {},
    {"priority": -5, "max_attempts": 7, "timeout": 9 * SECOND, "tags": ("a", "b"), "meta": '{"m": "ü"}', "flow": "f"},
    {"concurrency_key": "k", "key_limit": 2, "key_strict": True, "key_rate": parse_rate("5/s", "r"), "rate_cost": 2},
    {"queue": "fair", "tenant": "t"},
    {"queue": "fair"},
]


@pytest.mark.parametrize("asked", ASKED)
async def test_the_job_of_a_tick_is_what_it_would_be_if_it_had_been_enqueued(
    store: Store, clock: ManualClock, asked: dict[str, Any]
) -> None:
    settings_of = {"default": QueueSettings(max_attempts=4, timeout=SECOND), "fair": QueueSettings(fair=True)}
    await store.queues.declare(settings_of)
    await add(store, job=asked)
    clock.advance(MINUTE)
    plain = await look(store, (await enqueue(store, run_at=clock.wall(), **asked))[0])
    await fire(store)
    (tick,) = await jobs_of(store)
    own = {"id": plain.id, "schedule": None, "tick": None}
    assert msgspec.structs.replace(tick, **own) == plain
    await open_lease(store)
    both = await store.jobs.claim(request(queues=(plain.queue,)))
    if not asked.get("key_strict"):
        assert {job.id for job in both} == {plain.id, tick.id}
    # In strict order one follows the other.
    for job in both:
        await settle(store, completed(job))
    rest = await claim_ids(store, queues=(plain.queue,))
    assert {*(job.id for job in both), *rest} == {plain.id, tick.id}


async def test_a_finished_job_still_says_whose_it_was(store: Store, clock: ManualClock) -> None:
    await add(store)
    clock.advance(MINUTE)
    await fire(store)
    await open_lease(store)
    job = await claim_one(store)
    await settle(store, completed(job))
    ended = await look(store, job.id)
    await store.operator.retry([job.id])
    revived = await look(store, job.id)
    origin = ("s", to_datetime(clock.wall()))
    assert (ended.schedule, ended.tick) == (revived.schedule, revived.tick) == origin


async def test_what_two_have_decided_is_done_by_one(store: Store, clock: ManualClock) -> None:
    await add(store)
    clock.advance(MINUTE)
    first, second = await store.schedules.due(10), await store.schedules.due(10)
    assert (await store.schedules.fire([firing(each, first.now) for each in first.schedules]))[0].done
    assert await store.schedules.fire([firing(each, second.now) for each in second.schedules]) == [Fired(done=False)]
    assert len(await ticks_of(store)) == 1


async def test_of_one_decision_twice_in_a_call_the_first_is_done(store: Store, clock: ManualClock) -> None:
    await add(store)
    clock.advance(MINUTE)
    due = await store.schedules.due(10)
    answers = await store.schedules.fire([firing(due.schedules[0], due.now) for _ in range(2)])
    assert [each.done for each in answers] == [True, False]
    assert await ticks_of(store) == [clock.wall()]


async def test_a_decision_that_comes_late_is_not_done_though_its_job_was_pruned(
    store: Store, clock: ManualClock
) -> None:
    await add(store)
    clock.advance(MINUTE)
    due = await store.schedules.due(10)
    await fire(store)
    await open_lease(store)
    await settle(store, completed(await claim_one(store)))
    clock.advance(30 * DAY)
    for _ in range(3):
        await store.operator.prune(1000)
    assert await ticks_of(store) == []
    assert await store.schedules.fire([firing(each, due.now) for each in due.schedules]) == [Fired(done=False)]
    assert await ticks_of(store) == []


async def test_a_job_that_was_enqueued_before_its_schedule_advanced_is_not_doubled(
    store: Store, clock: ManualClock
) -> None:
    """Where enqueue and advance are two steps, the process may die between them."""
    await add(store)
    clock.advance(MINUTE)
    due = await store.schedules.due(10)
    wanted = firing(due.schedules[0], due.now)
    await store.jobs.enqueue(wanted.jobs)
    assert await fire(store) == [Fired(done=True, jobs=(wanted.jobs[0].id,))]
    assert await ticks_of(store) == [clock.wall()]
    assert (await find(store)).skipped == 0


@pytest.mark.parametrize("verb", ["pause", "remove", "change"])
async def test_what_was_decided_before_a_change_is_not_done_after_it(
    store: Store, clock: ManualClock, verb: str
) -> None:
    added = await add(store)
    clock.advance(MINUTE)
    due = await store.schedules.due(10)
    if verb == "change":
        await store.schedules.change("s", said({"type": "other"}), added.changed)
    else:
        await getattr(store.schedules, verb)("s")
    assert await store.schedules.fire([firing(each, due.now) for each in due.schedules]) == [Fired(done=False)]
    assert await ticks_of(store) == []
    await fire(store)
    assert [job.type for job in await jobs_of(store)] == (["other"] if verb == "change" else [])


async def test_what_was_decided_of_a_schedule_is_not_done_for_another_that_has_its_name_now(
    store: Store, clock: ManualClock
) -> None:
    await add(store, cron="* * * * *")
    clock.advance(MINUTE)
    due = await store.schedules.due(10)
    await store.schedules.remove("s")
    clock.jump_wall(-MINUTE // 2)
    await add(store, job={"type": "other"}, cron="* * * * *")
    clock.jump_wall(MINUTE // 2)
    assert await store.schedules.fire([firing(each, due.now) for each in due.schedules]) == [Fired(done=False)]
    await fire(store)
    assert [job.type for job in await jobs_of(store)] == ["other"]


CATCH_UP = {"one": [10], "all": list(range(1, 11)), "none": []}


@pytest.mark.parametrize("catch_up", sorted(CATCH_UP))
async def test_after_an_outage_the_rule_says_which_ticks_run(store: Store, clock: ManualClock, catch_up: str) -> None:
    begin = clock.wall()
    await add(store, catch_up=catch_up)
    clock.advance(10 * MINUTE + LATE)
    await fire(store)
    assert await fire(store) == [], "once"
    assert await ticks_of(store) == [begin + n * MINUTE for n in CATCH_UP[catch_up]]
    after = await find(store)
    assert (moment(after), after.missed) == (begin + 11 * MINUTE, 10 - len(CATCH_UP[catch_up]))


async def test_without_overlap_a_tick_is_skipped_while_the_job_before_it_lives(
    store: Store, clock: ManualClock
) -> None:
    begin = clock.wall()
    await add(store, overlap=False)
    clock.advance(MINUTE)
    await fire(store)
    await open_lease(store)
    job = await claim_one(store)
    clock.advance(MINUTE)
    assert await fire(store) == [Fired(done=True, skipped=1)]
    await settle(store, completed(job))
    clock.advance(MINUTE)
    await fire(store)
    assert await ticks_of(store) == [begin + MINUTE, begin + 3 * MINUTE]
    assert (await find(store)).skipped == 1


async def test_a_closed_queue_gets_nothing_and_delays_no_other(store: Store, clock: ManualClock) -> None:
    await add(store, "shut", job={"queue": "shut"})
    await add(store, "well", job={"queue": "well"})
    await store.queues.close("shut")
    clock.advance(MINUTE)
    assert sorted(each.skipped for each in await fire(store)) == [0, 1]
    assert (await ticks_of(store, "shut"), await ticks_of(store, "well")) == ([], [clock.wall()])
    assert (await find(store, "shut")).skipped == 1


async def test_a_tick_wakes_a_waiting_claim(store: Store, clock: ManualClock) -> None:
    await add(store)
    clock.advance(MINUTE)
    mark = store.signals.cursor()
    waits = asyncio.create_task(store.signals.wait(mark, 20))
    await asyncio.sleep(0)
    await fire(store)
    assert await waits is True


async def test_jitter_moves_the_job_and_not_the_tick(store: Store, clock: ManualClock) -> None:
    begin = clock.wall()
    await add(store, cron="* * * * *", jitter=30, catch_up="all")
    clock.advance(20 * MINUTE)
    await fire(store)
    assert await ticks_of(store) == [begin + n * MINUTE for n in range(1, 21)]
    late = [(job.run_at - job.tick).total_seconds() for job in await jobs_of(store) if job.tick is not None]
    assert all(0 <= each < 30 for each in late)
    assert len(set(late)) > 10


async def test_a_job_that_expires_has_its_time_from_when_it_may_run(store: Store, clock: ManualClock) -> None:
    await add(store, job={"expires": 10 * SECOND})
    clock.advance(MINUTE + 5 * SECOND)
    await fire(store)
    (job,) = await jobs_of(store)
    assert job.expires_at == to_datetime(clock.wall() + 10 * SECOND)


async def test_the_number_that_is_due_at_once_is_limited_and_the_longest_overdue_come_first(
    store: Store, clock: ManualClock
) -> None:
    for n in range(10):
        await add(store, f"s{n}", every=60 - n)
    clock.advance(MINUTE)
    assert [each.name for each in (await store.schedules.due(4)).schedules] == ["s9", "s8", "s7", "s6"]


async def test_a_clock_that_is_set_back_fires_no_tick_again(store: Store, clock: ManualClock) -> None:
    begin = clock.wall()
    await add(store)
    for _ in range(5):
        clock.advance(MINUTE)
        await fire(store)
    clock.jump_wall(-HOUR)
    assert await fire(store) == []
    await store.schedules.pause("s")
    await store.schedules.resume("s")
    assert moment(await find(store)) == begin + 6 * MINUTE, "not before what has been fired"
    before = (await find(store)).changed
    changed = await store.schedules.change("s", amended(before, settings(every=30)), before)
    assert changed is not None
    assert moment(changed) == begin + 5 * MINUTE + 30 * SECOND
    clock.advance(HOUR + MINUTE)
    await fire(store)
    assert await ticks_of(store) == [begin + n * MINUTE for n in range(1, 7)]


async def test_two_that_see_different_times_fire_each_tick_once(store: Store, clock: ManualClock) -> None:
    """Paused, resumed, set back and ahead at random: what one has decided may be done long after."""
    chance, begin = Random(8), clock.wall()
    await add(store, catch_up="all")
    furthest: Micros = begin
    kept = []
    for _ in range(300):
        clock.advance(chance.randrange(40 * SECOND))
        if chance.random() < 0.1:
            clock.jump_wall(chance.choice([-HOUR, HOUR, -MINUTE, MINUTE]))
        furthest = max(furthest, clock.wall())
        due = await store.schedules.due(10)
        kept += [firing(each, due.now) for each in due.schedules]
        if kept and chance.random() < 0.5:
            await store.schedules.fire([kept.pop(chance.randrange(len(kept)))])
    await fire(store)
    ticks = await ticks_of(store)
    assert len(ticks) == len(set(ticks)) > 50
    assert ticks == [begin + n * MINUTE for n in range(1, len(ticks) + 1)], "none twice, none left out"
    assert ticks[-1] <= furthest


async def test_ticks_of_many_schedules_at_one_moment_are_each_as_their_own_says(
    store: Store, clock: ManualClock
) -> None:
    for n in range(3):
        await add(store, f"plain {n}", job={"type": "report", "queue": "mail"})
        await add(store, f"keyed {n}", job={"queue": "mail", "concurrency_key": "k"})
    await add(store, "short", job={"queue": "mail", "expires": 5 * SECOND})
    await add(store, "urgent", job={"queue": "mail", "priority": 3, "payload": '{"n": 2}'})
    await add(store, "jittered", job={"queue": "mail"}, jitter=3600)
    tick = moment(await find(store, "short"))
    clock.advance(MINUTE)
    assert all(each.done and len(each.jobs) == 1 for each in await fire(store))
    await store.jobs.admit(100)  # a store may leave it to this who of a line comes first

    found = {name: await look(store, tick_id(name, tick)) for name in (await _names(store))}
    assert {(job.schedule, job.tick) for job in found.values()} == {(name, to_datetime(tick)) for name in found}
    assert {found[f"plain {n}"].type for n in range(3)} == {"report"}
    keyed = [found[f"keyed {n}"].status for n in range(3)]
    assert keyed.count(Status.BLOCKED) >= 2, "one may have the key slot, the others wait for it"
    assert set(keyed) <= {Status.BLOCKED, Status.PENDING}
    assert found["short"].expires_at == to_datetime(clock.wall() + 5 * SECOND)
    assert (found["urgent"].priority, found["urgent"].payload) == (3, {"n": 2})
    assert found["plain 0"].expires_at is None
    assert found["jittered"].status is Status.SCHEDULED
    assert found["jittered"].run_at > to_datetime(tick)


async def _names(store: Store) -> list[str]:
    return [schedule.name for schedule in await store.schedules.list()]
