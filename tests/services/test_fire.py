"""The duty that fires ticks: two coordinators in turn, broken schedules, very many of them."""

from random import Random
from typing import Any, cast

import pytest

from tests.services.parts import Listener
from tests.support.clock import ManualClock
from tests.support.timing import HOUR, MINUTE, add, find, said, ticks_of
from windlass.coordinator import duties as duty
from windlass.coordinator.coordinator import CAMPAIGN_SECONDS, TERM_SECONDS, Coordinator
from windlass.coordinator.duties import MAX_PAUSE, MAX_SCHEDULES, Fire
from windlass.core.moments import DAY, SECOND
from windlass.core.schedules.firing import firing
from windlass.core.schedules.schedule import Schedule
from windlass.observe.logs import sentence
from windlass.store.contract import Store


async def test_the_leader_enqueues_what_is_due_and_is_back_when_the_next_is(store: Store, clock: ManualClock) -> None:
    heard = Listener()
    fire = Fire(store, heard)
    assert await fire.run() == MAX_PAUSE
    await add(store, every=1)
    clock.advance(SECOND * 3 // 4)
    assert await fire.run() == 0.25
    clock.advance(SECOND // 4)
    assert await fire.run() == 0
    assert await ticks_of(store) == [clock.wall()]
    clock.advance(SECOND * 7)
    await fire.run()
    assert heard.names == ["TicksFired", "TicksFired"]
    assert [sentence(each)[1] for each in heard.heard] == [
        "1 job enqueued for 1 schedule",
        "7 jobs enqueued for 1 schedule, up to 6.0 s late",
    ]


async def test_what_was_missed_and_what_was_skipped_is_said(store: Store, clock: ManualClock) -> None:
    heard = Listener()
    await add(store, overlap=False)
    clock.advance(MINUTE)
    await Fire(store, heard).run()
    clock.advance(10 * MINUTE + 30 * SECOND)
    await Fire(store, heard).run()
    assert heard.names == ["TicksFired", "TicksMissed", "TicksSkipped"]
    texts = [sentence(each)[1] for each in heard.heard]
    assert texts[1] == "9 ticks of s missed: no coordinator was running"
    assert texts[2].startswith("1 tick of s skipped: the run before has not ended")


async def test_a_schedule_that_cannot_be_read_is_reported_once_a_minute_and_holds_up_no_other(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {f"a{n}" for n in range(MAX_SCHEDULES + 5)}

    def judge(schedule: Schedule, now: int) -> Any:
        if schedule.name in broken:
            raise KeyError("no such zone")
        return firing(schedule, now)

    monkeypatch.setattr(duty, "firing", judge)
    await store.schedules.declare({name: said() for name in [*broken, "well"]})
    clock.advance(MINUTE)
    heard = Listener()
    fire = Fire(store, heard)
    for _ in range(3):
        await fire.run()
    assert heard.names.count("ScheduleBroken") == len(broken)
    assert len(await ticks_of(store, "well")) == 1
    assert await fire.run() > 0, "it does not spin"


async def test_two_coordinators_that_are_paused_in_turn_fire_each_tick_once(store: Store, clock: ManualClock) -> None:
    """Each sleeps for longer than its term, wakes, and goes on; the wall clock is set meanwhile, by an hour too."""
    chance, begin = Random(30), clock.wall()
    await add(store, "all", catch_up="all")
    await add(store, "one", catch_up="one")
    heard = [Listener(), Listener()]
    pair = [Coordinator(store, name, listener) for name, listener in zip("ab", heard, strict=True)]
    now, furthest = 0.0, begin
    for turn in range(400):
        awake = pair[turn // 40 % 2 : turn // 40 % 2 + 1] if turn % 40 < 30 else pair
        passed = chance.uniform(0.5, TERM_SECONDS)
        clock.advance(round(passed * SECOND))
        now += passed
        if chance.random() < 0.05:
            clock.jump_wall(chance.choice([-HOUR, HOUR]))
        furthest = max(furthest, clock.wall())
        for each in awake:
            await each.step(now)
    assert all("LeadershipGained" in each.names for each in heard), "each has been leader"
    # Late enough for whatever was set back, and as often as it takes to make up for all.
    clock.advance(max(0, furthest - clock.wall()) + MINUTE)
    for turn in range(20):
        await pair[turn % 2].step(now + CAMPAIGN_SECONDS + TERM_SECONDS * (turn + 1))
    every = range(1, (clock.wall() - begin) // MINUTE + 1)
    assert await ticks_of(store, "all") == [begin + n * MINUTE for n in every], "each tick once, none left out"
    some = await ticks_of(store, "one")
    found = await find(store, "one")
    assert len(some) == len(set(some)) > 20
    assert len(some) + found.missed >= min(len(every), 100)


async def test_ten_thousand_schedules_cost_bounded_work_in_each_turn(store: Store, clock: ManualClock) -> None:
    count = 10_000
    await store.schedules.declare({f"s{n:05}": said(cron="0 * * * *", tz="Europe/Berlin") for n in range(count)})
    asked: list[int] = []
    fire = Fire(cast(Store, _Counting(store, asked)), lambda event: None)
    assert await fire.run() == MAX_PAUSE
    assert asked == [], "until one is due, there is nothing but a look"
    clock.advance(HOUR)
    turns = 0
    while await fire.run() == 0:
        turns += 1
        assert turns < 2 * count
    assert sum(asked) == count
    assert max(asked) <= MAX_SCHEDULES
    assert (await store.operator.counts()).queues["default"]["pending"] == count
    clock.advance(DAY)
    due = await store.schedules.due(MAX_SCHEDULES)
    assert len(due.schedules) == MAX_SCHEDULES


class _Counting:
    """A store whose firings are counted."""

    def __init__(self, store: Store, asked: list[int]) -> None:
        self._store, self._asked = store, asked

    @property
    def schedules(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store.schedules, name)

    async def fire(self, firings: Any) -> Any:
        self._asked.append(len(firings))
        return await self._store.schedules.fire(firings)
