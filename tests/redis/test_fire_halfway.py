"""Plans of ticks that a process left, or resumes when all is long over; schedules that are changed meanwhile."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_one, completed, look, open_lease, settle
from tests.support.servers.redis_places import redis_place
from tests.support.timing import HOUR, MINUTE, add, find, fire, jobs_of, moment, said, ticks_of
from windlass.core.moments import DAY, Micros
from windlass.core.schedules.firing import Fired, firing
from windlass.core.schedules.schedule import amended, settings
from windlass.errors import StoreUnavailable
from windlass.store.open import open_store
from windlass.store.redis.connection.access import Access
from windlass.store.redis.schedules.fire import finish
from windlass.store.redis.schedules.read_schedules import PlannedTicks, due_of, read_by_name
from windlass.store.redis.store import RedisStore


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[RedisStore]:
    opened = open_store(redis_place(tmp_path), clock=clock)
    assert isinstance(opened, RedisStore)
    yield opened
    await opened.close()


class Line:
    """The way to the queues, which is cut after so many trips; `dead` are queues that are never reached."""

    def __init__(self, trips: int = 0, dead: tuple[str, ...] = ()) -> None:
        self._each = Access.call_each
        self.trips, self._dead = trips, dead

    def __enter__(self) -> "Line":
        async def each(access: Access, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
            return await self.each(access, name, requests)

        Access.call_each = each  # type: ignore[method-assign, assignment]
        return self

    def __exit__(self, *_: object) -> None:
        Access.call_each = self._each  # type: ignore[method-assign]

    async def each(self, access: Access, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        if not self.trips and not self._dead:
            raise StoreUnavailable("cut")
        self.trips -= 1
        reached = {queue: request for queue, request in requests.items() if queue not in self._dead}
        lost = dict.fromkeys(requests.keys() - reached, StoreUnavailable("cut"))
        return {**await self._each(access, name, reached), **lost}


async def plan(store: RedisStore, name: str = "s", trips: int = 0) -> PlannedTicks:
    """What is due is planned, and the process that planned it goes no further: what it knows."""
    with Line(trips), pytest.raises(StoreUnavailable):
        await fire(store)
    _, found = await read_by_name(store._access, [name])
    return due_of(found[name])


async def marks(store: RedisStore, queue: str = "default") -> int:
    """Of how many schedules a queue knows."""
    (key,) = store._server.keys.of_queue(queue, ("fired_ticks",))
    known: int = await store._access._command("HLEN", key)
    return known


async def drop(store: RedisStore, due: PlannedTicks) -> None:
    """The job of a plan is deleted, and nothing remembers its id."""
    (job,) = due.firing.jobs
    await store.operator.cancel([job.id], "unwanted")
    assert await store.operator.delete([job.id]) != [None]
    for key in store._server.keys.of_queue(job.queue, ("tombstones", "tombstone_times")):
        await store._access._command("UNLINK", key)


async def complete_all(store: RedisStore, queue: str = "default") -> None:
    await open_lease(store)
    await settle(store, completed(await claim_one(store, queues=(queue,))))


async def test_a_plan_is_finished_as_it_was_made_though_more_is_due_by_now(
    store: RedisStore, clock: ManualClock
) -> None:
    begin = clock.wall()
    await add(store, job={"expires": HOUR})
    clock.advance(MINUTE)
    planned = await plan(store)
    clock.advance(20 * MINUTE + MINUTE // 2)
    assert await fire(store) == [Fired(done=False)], "what it had decided itself was not done"
    job = await look(store, planned.firing.jobs[0].id)
    assert job.expires_at is not None
    assert job.expires_at.timestamp() * 1_000_000 == begin + MINUTE + HOUR, "by the time of the plan"
    assert moment(await find(store)) == begin + 2 * MINUTE
    await fire(store)
    assert await ticks_of(store) == [begin + MINUTE, begin + 21 * MINUTE]


@pytest.mark.parametrize("gone", ["pruned", "deleted", "there"])
async def test_a_late_plan_enqueues_nothing(store: RedisStore, clock: ManualClock, gone: str) -> None:
    await add(store)
    clock.advance(MINUTE)
    late = await plan(store)
    await fire(store)
    if gone == "pruned":
        await complete_all(store)
        clock.advance(30 * DAY)
        await store.operator.prune(1000)
        clock.jump_wall(-30 * DAY)
    elif gone == "deleted":
        await drop(store, late)
    jobs, before = await jobs_of(store), await find(store)
    assert await finish(store._access, [late]) == {"s": Fired(done=True, jobs=(late.firing.jobs[0].id,))}
    assert (await jobs_of(store), await find(store)) == (jobs, before)
    assert len(jobs) == (gone == "there")


async def test_a_plan_later_than_the_next_one_enqueues_nothing(store: RedisStore, clock: ManualClock) -> None:
    await add(store)
    clock.advance(MINUTE)
    late = await plan(store)
    await fire(store)
    clock.advance(MINUTE)
    await fire(store)
    await drop(store, late)
    assert await finish(store._access, [late]) == {}
    assert await ticks_of(store) == [clock.wall()]


async def test_two_that_finish_a_plan_at_once_count_it_once(store: RedisStore, clock: ManualClock) -> None:
    await add(store)
    await store.queues.close("default")
    clock.advance(MINUTE)
    one = await plan(store)
    first, second = await finish(store._access, [one]), await finish(store._access, [one])
    assert first == second == {"s": Fired(done=True, skipped=1)}
    assert (await find(store)).skipped == 1


async def test_what_was_skipped_stays_skipped_though_the_queue_is_open_when_it_is_repeated(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store)
    await store.queues.close("default")
    clock.advance(MINUTE)
    await die_before_advance(store, monkeypatch)
    await store.queues.open("default")
    await fire(store)
    assert await ticks_of(store) == []
    assert (await find(store)).skipped == 1


async def test_what_got_a_job_is_not_skipped_when_it_is_repeated_though_that_job_is_over(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, overlap=False)
    clock.advance(MINUTE)
    await die_before_advance(store, monkeypatch)
    (job,) = await jobs_of(store)
    await complete_all(store)
    await store.operator.delete([job.id])
    await fire(store)
    assert await jobs_of(store) == []
    assert ((await find(store)).skipped, (await find(store)).last_job) == (0, job.id)


async def die_before_advance(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    call_global = Access.call_global

    async def cut(access: Access, name: str, request: Any, *blobs: bytes) -> Any:
        if name == "advance_schedules":
            raise StoreUnavailable("cut")
        return await call_global(access, name, request, *blobs)

    with monkeypatch.context() as patched:
        patched.setattr(Access, "call_global", cut)
        with pytest.raises(StoreUnavailable):
            await fire(store)


@pytest.mark.parametrize("verb", ["pause", "remove", "change", "declare"])
async def test_what_was_planned_before_a_change_is_done_before_it(
    store: RedisStore, clock: ManualClock, verb: str
) -> None:
    added, tick = await add(store), clock.wall() + MINUTE
    clock.advance(MINUTE)
    late = await plan(store)
    if verb == "change":
        other = amended(added.changed, said({"queue": "other"}))
        assert await store.schedules.change("s", other, added.changed) is not None
    elif verb == "declare":
        await store.schedules.declare({"s": said({"queue": "never"})})
    else:
        assert await getattr(store.schedules, verb)("s")
    assert await ticks_of(store) == [tick]
    await finish(store._access, [late])
    assert await ticks_of(store) == [tick]
    clock.advance(MINUTE)
    await fire(store)
    queues = {"pause": ["default"], "remove": ["default"], "change": ["default", "other"], "declare": ["default"] * 2}
    assert [job.queue for job in await jobs_of(store)] == queues[verb]


@pytest.mark.parametrize("verb", ["pause", "remove"])
async def test_a_change_gives_way_to_a_plan_that_was_made_while_it_was_decided(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    tick = moment(await add(store))
    clock.advance(MINUTE)
    call_global = Access.call_global

    async def paused(access: Access, name: str, request: Any, *blobs: bytes) -> Any:
        if name in ("set_schedules", "drop_schedule"):
            monkeypatch.undo()
            await plan(store)
        return await call_global(access, name, request, *blobs)

    monkeypatch.setattr(Access, "call_global", paused)
    assert await getattr(store.schedules, verb)("s")
    assert await ticks_of(store) == [tick]
    assert await store._access.command("HLEN", "plans") == 0


async def test_a_schedule_that_is_made_anew_is_not_held_up_by_what_queues_know_of_the_old_one(
    store: RedisStore, clock: ManualClock
) -> None:
    await add(store)
    clock.advance(MINUTE)
    await fire(store)
    clock.advance(MINUTE)
    late = await plan(store)
    await store.schedules.remove("s")
    clock.jump_wall(-HOUR)
    await add(store, job={"type": "other"}, every=45)
    begin = clock.wall()
    clock.advance(MINUTE)
    assert (await fire(store))[0].jobs
    assert await finish(store._access, [late]) == {}
    assert [job.type for job in await jobs_of(store)] == ["other", "t", "t"]
    assert (await ticks_of(store))[0] == begin + MINUTE * 3 // 4


async def test_a_job_whose_id_another_queue_has_since_the_clock_was_set_back_is_not_made_twice(
    store: RedisStore, clock: ManualClock
) -> None:
    await add(store, cron="* * * * *")
    clock.advance(MINUTE)
    await fire(store)
    (before,) = await jobs_of(store)
    await store.schedules.remove("s")
    clock.jump_wall(-MINUTE)
    await add(store, job={"queue": "other"}, cron="* * * * *")
    clock.advance(MINUTE)
    assert await fire(store) == [Fired(done=True, jobs=(before.id,))]
    assert [(job.id, job.queue) for job in await jobs_of(store)] == [(before.id, "default")]


async def test_queues_forget_removed_schedules_after_a_day_and_not_those_that_are_there_again(
    store: RedisStore, clock: ManualClock
) -> None:
    for name in ("s", "again"):
        await add(store, name)
    clock.advance(MINUTE)
    await fire(store)
    for name in ("s", "again"):
        await store.schedules.remove(name)
    clock.advance(DAY - 2 * MINUTE)
    await store.operator.prune(1000)
    assert await marks(store) == 2
    await add(store, "again")
    clock.advance(5 * MINUTE)
    await fire(store)
    await store.operator.prune(1000)
    assert await marks(store) == 1
    assert await store._access.command("ZCARD", "removed_schedules") == 0


async def test_a_process_with_a_plan_older_than_queues_remember_must_ask_again(
    store: RedisStore, clock: ManualClock
) -> None:
    await add(store)
    clock.advance(MINUTE)
    late = await plan(store)
    await store.schedules.remove("s")
    await drop(store, late)
    clock.advance(2 * DAY)
    await store.operator.prune(1000)
    assert await marks(store) == 0
    assert await finish(store._access, [late]) == {}
    assert await jobs_of(store) == []


async def test_a_plan_left_unfinished_for_days_is_finished_then(store: RedisStore, clock: ManualClock) -> None:
    await add(store)
    tick = clock.wall() + MINUTE
    clock.advance(MINUTE)
    await plan(store)
    clock.advance(3 * DAY)
    await fire(store)
    assert await ticks_of(store) == [tick]


async def test_a_queue_that_cannot_be_reached_holds_up_its_own_schedules_only(
    store: RedisStore, clock: ManualClock
) -> None:
    await add(store, "down", job={"queue": "down"})
    await add(store, "well", job={"queue": "well"})
    tick: Micros = clock.wall() + MINUTE
    clock.advance(MINUTE)
    with Line(dead=("down",)), pytest.raises(StoreUnavailable):
        await fire(store)
    assert (moment(await find(store, "down")), moment(await find(store, "well"))) == (tick, tick + MINUTE)
    assert len(await fire(store)) == 1
    assert (await ticks_of(store, "down"), await ticks_of(store, "well")) == ([tick], [tick])


async def test_many_ticks_of_one_schedule_come_in_portions_and_a_death_between_them_leaves_no_gap(
    store: RedisStore, clock: ManualClock
) -> None:
    begin, count = clock.wall(), 350
    await add(store, catch_up="all")
    clock.advance(count * MINUTE)
    await plan(store, trips=2)
    assert 0 < len(await ticks_of(store)) < count
    await fire(store)
    assert await ticks_of(store) == [begin + n * MINUTE for n in range(1, count + 1)]
    assert moment(await find(store)) == begin + (count + 1) * MINUTE


async def test_a_process_learns_what_became_of_its_plan_though_another_finished_it(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store)
    clock.advance(MINUTE)
    each = Access.call_each

    async def paused(access: Access, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        monkeypatch.undo()
        assert await fire(store) == [Fired(done=False)]
        return await each(access, name, requests)

    monkeypatch.setattr(Access, "call_each", paused)
    (fired,) = await fire(store)
    assert fired == Fired(done=True, jobs=((await jobs_of(store))[0].id,))


async def test_a_process_that_slept_until_the_next_tick_was_fired_does_not_know_what_became_of_its_own(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = clock.wall()
    await add(store)
    clock.advance(MINUTE)
    each = Access.call_each

    async def paused(access: Access, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        monkeypatch.undo()
        clock.advance(MINUTE)
        for _ in range(2):
            await fire(store)
        return await each(access, name, requests)

    monkeypatch.setattr(Access, "call_each", paused)
    with pytest.raises(StoreUnavailable, match="other processes have fired") as reported:
        await fire(store)
    assert reported.value.maybe_done
    assert await ticks_of(store) == [begin + MINUTE, begin + 2 * MINUTE]


async def test_what_was_decided_on_a_schedule_with_a_plan_is_given_up_for_the_plan(
    store: RedisStore, clock: ManualClock
) -> None:
    begin = clock.wall()
    await add(store, catch_up="all")
    clock.advance(MINUTE)
    first = await store.schedules.due(10)
    await plan(store)
    clock.advance(MINUTE)
    wanted = firing(first.schedules[0], clock.wall())
    assert len(wanted.jobs) == 2
    assert await store.schedules.fire([wanted]) == [Fired(done=False)]
    assert await ticks_of(store) == [begin + MINUTE]
    assert moment(await find(store)) == begin + 2 * MINUTE


async def test_settings_edited_by_hand_hide_no_other_schedule(store: RedisStore, clock: ManualClock) -> None:
    for name in ("a", "b"):
        await add(store, name)
    await store._access.command("HSET", "schedules", "a", b"\xff")
    clock.advance(MINUTE)
    found = {each.name: each for each in (await store.schedules.due(10)).schedules}
    assert found["a"].changed == settings()
    assert firing(found["b"], clock.wall()).jobs
