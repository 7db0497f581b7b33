"""Schedules: declared, added, changed, paused, removed; what an operator said wins."""

import pytest

from tests.support.clock import ManualClock
from tests.support.timing import HOUR, MINUTE, add, find, fire, jobs_of, moment, said, ticks_of
from windlass.core.moments import SECOND, to_datetime
from windlass.core.schedules.schedule import ScheduleSettings, amended, settings, without
from windlass.core.schedules.ticks import CatchUp
from windlass.errors import InvalidOption
from windlass.store.contract import Store


async def test_a_new_schedule_has_its_first_tick_after_now(store: Store, clock: ManualClock) -> None:
    await add(store, every=60)
    await add(store, "hourly", cron="0 * * * *", tz="Europe/Berlin")
    found = await find(store)
    assert found.created_at == to_datetime(clock.wall())
    assert (found.last_at, found.last_job, found.missed, found.skipped) == (None, None, 0, 0)
    assert moment(found) == clock.wall() + MINUTE
    assert moment(await find(store, "hourly")) == clock.wall() + HOUR, "the clock of a test begins at a full hour"


async def test_what_was_said_comes_back_as_it_was(store: Store) -> None:
    template = {
        "type": "report",
        "payload": '{"a": "ü"}',
        "queue": "mail",
        "priority": 3,
        "tags": ("x",),
        "tenant": "t",
    }
    given = said(template, cron="0 9 * * 1-5", tz="Asia/Tokyo", catch_up="all", overlap=False, jitter=30)
    assert await store.schedules.add("s", given) is not None
    found = await find(store)
    assert (found.changed, found.declared) == (given, ScheduleSettings())
    rules = found.rules
    assert (str(rules.cron), rules.tz, rules.catch_up) == ("0 9 * * 1-5", "Asia/Tokyo", CatchUp.ALL)
    assert (rules.overlap, rules.jitter) == (False, 30 * SECOND)
    assert (rules.job.type, rules.job.payload, rules.job.tags) == ("report", '{"a": "ü"}', ("x",))


async def test_a_name_is_taken_once(store: Store) -> None:
    first = await add(store)
    assert await store.schedules.add("s", said(every=5)) is None
    assert await find(store) == first


async def test_the_list_is_by_name(store: Store) -> None:
    for name in ("b", "c", "a"):
        await add(store, name)
    assert [each.name for each in await store.schedules.list()] == ["a", "b", "c"]
    assert [each and each.name for each in await store.schedules.get(["c", "nobody", "a"])] == ["c", None, "a"]


async def test_what_the_code_says_again_changes_nothing_though_a_tick_is_due(
    store: Store, clock: ManualClock
) -> None:
    await store.schedules.declare({"s": said()})
    clock.advance(5 * MINUTE)
    before = await find(store)
    await store.schedules.declare({"s": said()})
    assert await find(store) == before
    await fire(store)
    assert len(await ticks_of(store)) == 1, "a restart of the program has not lost what was due"


async def test_what_the_code_says_of_the_job_alone_leaves_the_ticks_as_they_are(
    store: Store, clock: ManualClock
) -> None:
    await store.schedules.declare({"s": said()})
    clock.advance(MINUTE)
    await store.schedules.declare({"s": said({"type": "other"})})
    await fire(store)
    assert [job.type for job in await jobs_of(store)] == ["other"]


async def test_other_times_count_from_now_on(store: Store, clock: ManualClock) -> None:
    await store.schedules.declare({"s": said(every=60)})
    clock.advance(5 * MINUTE)
    await store.schedules.declare({"s": said(every=3600)})
    assert moment(await find(store)) == clock.wall() + HOUR - 5 * MINUTE, "an interval counts from when it was made"
    await fire(store)
    assert await ticks_of(store) == []


async def test_an_operators_change_is_kept_beside_what_the_code_says_and_wins(store: Store) -> None:
    await store.schedules.declare({"s": said(cron="0 9 * * *", overlap=False)})
    changed = settings(every="2h")
    found = await store.schedules.change("s", changed, ScheduleSettings())
    assert found is not None
    await store.schedules.declare({"s": said(cron="0 10 * * *", overlap=False)})
    found = await find(store)
    assert (found.rules.cron, found.rules.every, found.rules.overlap) == (None, 2 * HOUR, False)
    assert (str(found.declared.cron), found.changed) == ("0 10 * * *", changed)


async def test_a_change_on_top_of_one_that_was_not_seen_is_not_made(store: Store) -> None:
    await add(store)
    before = await find(store)
    first = amended(before.changed, settings(jitter=5))
    assert await store.schedules.change("s", first, before.changed) == await find(store)
    late = await store.schedules.change("s", amended(before.changed, settings(jitter=9)), before.changed)
    assert late is not None
    assert late.changed == (await find(store)).changed == first


async def test_nothing_is_written_that_leaves_a_schedule_without_times_or_job(store: Store) -> None:
    added = await add(store)
    for bad in (ScheduleSettings(), without(added.changed, ["every"]), without(added.changed, ["job"])):
        with pytest.raises(InvalidOption):
            await store.schedules.change("s", bad, added.changed)
        with pytest.raises(InvalidOption):
            await store.schedules.add("t", bad)
    assert await store.schedules.list() == [added]


async def test_while_it_is_paused_nothing_is_enqueued_nor_made_up_after(store: Store, clock: ManualClock) -> None:
    await add(store, catch_up="all")
    paused = await store.schedules.pause("s")
    assert paused is not None
    assert paused.paused
    clock.advance(10 * MINUTE)
    assert await fire(store) == []
    resumed = await store.schedules.resume("s")
    assert resumed is not None
    assert moment(resumed) == clock.wall() + MINUTE
    assert await fire(store) == []
    clock.advance(MINUTE)
    await fire(store)
    assert await ticks_of(store) == [clock.wall()]


async def test_resuming_what_is_not_paused_loses_no_tick(store: Store, clock: ManualClock) -> None:
    await add(store)
    clock.advance(MINUTE)
    await store.schedules.resume("s")
    await fire(store)
    assert await ticks_of(store) == [clock.wall()]


async def test_what_is_removed_is_gone_and_its_jobs_are_not(store: Store, clock: ManualClock) -> None:
    await add(store)
    clock.advance(MINUTE)
    await fire(store)
    assert await store.schedules.remove("s")
    assert not await store.schedules.remove("s")
    clock.advance(MINUTE)
    assert await fire(store) == []
    assert len(await ticks_of(store)) == 1


@pytest.mark.parametrize("verb", ["pause", "resume"])
async def test_of_a_schedule_that_is_not_there_the_answer_is_none(store: Store, verb: str) -> None:
    assert await getattr(store.schedules, verb)("nobody") is None
    assert await store.schedules.change("nobody", said(), ScheduleSettings()) is None
    assert await store.schedules.list() == []
