"""fire: two at the same moment, queues and schedules that change under it, and what it costs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import claim_one, completed, new_job, open_lease, settle
from tests.support.stores import STORES
from tests.support.timing import HOUR, MINUTE, add, find, fire, moment, said, ticks_of
from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.job import Enqueued
from windlass.core.schedules.firing import Fired, Firing, firing, overlap_key
from windlass.errors import QueueClosed
from windlass.store.contract import Store
from windlass.store.keys import key_ref
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.verbs import fire as fire_verb

LOCK = "SELECT name FROM windlass.schedules ORDER BY name FOR UPDATE"
HOLD_KEY = "INSERT INTO windlass.idempotency_keys (queue, hash, job) VALUES (%s, %s, gen_random_uuid())"


@pytest.fixture
async def second(store: Store, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """The same database, as another coordinator has it."""
    opened = STORES["postgres"].open(tmp_path, clock)
    assert await opened.migrate() == [], "it is the same"
    yield opened
    await opened.close()


async def decided(store: Store) -> list[Firing]:
    due = await store.schedules.due(1000)
    return [firing(each, due.now) for each in due.schedules]


async def test_of_two_that_fire_the_same_tick_at_the_same_moment_one_does(
    store: Store, second: Store, clock: ManualClock, other: Other
) -> None:
    for name in "abc":
        await add(store, name)
    clock.advance(MINUTE)
    wanted = await decided(store)
    await other.does(LOCK)
    pair = [
        asyncio.create_task(store.schedules.fire(wanted)),
        asyncio.create_task(second.schedules.fire(wanted[::-1])),
    ]
    await other.is_waited_for(2)
    await other.commits()
    one, two = await asyncio.gather(*pair)
    assert sorted([all(each.done for each in one), all(each.done for each in two)]) == [False, True]
    assert sorted([any(each.done for each in one), any(each.done for each in two)]) == [False, True]
    for name in "abc":
        assert await ticks_of(store, name) == [clock.wall()]


CHANGES = {
    "paused": "UPDATE windlass.schedules SET paused = true, revision = revision + 1",
    "fired by another": f"UPDATE windlass.schedules SET next_at = next_at + {MINUTE}",
    "removed": "DELETE FROM windlass.schedules",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_what_was_changed_while_a_firing_waited_for_it_is_not_fired(
    store: Store, clock: ManualClock, other: Other, change: str
) -> None:
    await add(store)
    clock.advance(MINUTE)
    wanted = await decided(store)
    await other.does(CHANGES[change])
    task = asyncio.create_task(store.schedules.fire(wanted))
    await other.is_waited_for()
    await other.commits()
    assert await task == [Fired(done=False)]
    assert await ticks_of(store) == []


async def test_a_queue_that_is_closed_while_a_job_is_on_its_way_there_gets_none_and_the_others_get_theirs(
    store: Store, second: Store, clock: ManualClock, other: Other
) -> None:
    await add(store, "shut", job={"queue": "shut"}, overlap=False)
    await add(store, "well", job={"queue": "well"}, overlap=False)
    await store.queues.declare({"shut": QueueSettings(), "well": QueueSettings()})
    clock.advance(MINUTE)
    # It has seen that the queue is open, and waits for a transaction that may have the key.
    await other.does(HOLD_KEY, *key_ref("well", overlap_key("well")))
    task = asyncio.create_task(fire(store))
    await other.is_waited_for()
    await second.queues.close("shut")
    await other.does("DELETE FROM windlass.idempotency_keys")
    await other.commits()
    assert sorted(each.skipped for each in await task) == [0, 1]
    assert (await ticks_of(store, "shut"), await ticks_of(store, "well")) == ([], [clock.wall()])
    assert (await find(store, "shut")).skipped == 1
    held = await other.does("SELECT queue FROM windlass.idempotency_keys")
    assert [row[0] for row in held] == ["well"], "no key is left over"
    await second.queues.open("shut")
    clock.advance(MINUTE)
    await fire(store)
    assert await ticks_of(store, "shut") == [clock.wall()]


async def test_a_queue_that_is_closed_again_and_again_fails_the_firing_in_the_end_and_nothing_is_done(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = 0

    async def closed(*_: object) -> list[Fired]:
        nonlocal rounds
        rounds += 1
        raise QueueClosed("q")

    await add(store)
    clock.advance(MINUTE)
    wanted = await decided(store)
    with monkeypatch.context() as patched:
        patched.setattr(fire_verb, "fire", closed)
        with pytest.raises(QueueClosed):
            await store.schedules.fire(wanted)
    assert rounds == fire_verb.MAX_ROUNDS
    assert await store.schedules.fire(wanted) == [Fired(done=True, jobs=(wanted[0].jobs[0].id,))]


async def test_five_hundred_go_by_as_many_statements_as_five(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def statements(count: int) -> int:
        said_of = {
            f"{count}-{n:03}": said(
                {"queue": f"q{n % 20}", "type": f"t{n % 30}", "priority": n % 3}, overlap=n % 2 == 0
            )
            for n in range(count)
        }
        await store.schedules.declare(said_of)
        clock.advance(MINUTE)
        wanted = [each for each in await decided(store) if each.name in said_of]
        assert len(wanted) == count
        asked = 0
        with monkeypatch.context() as patched:
            for name in ("rows", "run"):
                plain = getattr(Session, name)

                async def counting(session: Session, *given: Any, plain: Any = plain) -> Any:
                    nonlocal asked
                    asked += 1
                    return await plain(session, *given)

                patched.setattr(Session, name, counting)
            fired = await store.schedules.fire(wanted)
        assert sum(len(each.jobs) for each in fired) == count
        for name in said_of:
            await store.schedules.remove(name)
        return asked

    assert await statements(500) == await statements(5) < 15


async def test_a_tick_whose_job_is_finished_already_is_not_enqueued_again_and_leaves_no_key(
    store: Store, clock: ManualClock, other: Other
) -> None:
    """A program may have enqueued it itself, or set the clock back and made the schedule anew."""
    await add(store, overlap=False)
    clock.advance(MINUTE)
    (wanted,) = await decided(store)
    await store.jobs.enqueue(wanted.jobs)
    await open_lease(store)
    await settle(store, completed(await claim_one(store)))
    assert await fire(store) == [Fired(done=True, jobs=(wanted.jobs[0].id,))]
    assert await ticks_of(store) == [clock.wall()]
    assert await other.does("SELECT * FROM windlass.idempotency_keys") == []
    assert await other.does("SELECT * FROM windlass.jobs") == []


async def test_schedules_that_two_declare_at_once_are_made_once(
    store: Store, second: Store, clock: ManualClock, other: Other
) -> None:
    names = [f"s{n}" for n in range(50)]
    await other.does(
        "INSERT INTO windlass.schedules (name, declared, changed, paused, created_at, missed, skipped, revision)"
        " VALUES ('s25', '{}', '{}', false, 0, 0, 0, 0)"
    )
    tasks = [
        asyncio.create_task(store.schedules.declare({name: said(every=60) for name in names})),
        asyncio.create_task(second.schedules.declare({name: said(every=60) for name in names[::-1]})),
    ]
    await other.is_waited_for(2)
    await other.commits()
    await asyncio.gather(*tasks)
    found = {each.name: each for each in await store.schedules.list()}
    assert sorted(found) == sorted(names)
    assert {each.declared for each in found.values()} == {said(every=60)}
    assert {name: each.revision for name, each in found.items() if each.revision} == {"s25": 1}
    assert moment(found["s25"]) % MINUTE == 0


async def test_what_a_job_before_the_tick_left_behind_is_harmless(store: Store, clock: ManualClock) -> None:
    """A window that was given to a job under the very key that ticks have."""
    stranger = new_job(idempotency_key=overlap_key("s"), idempotency_window=HOUR)
    assert await store.jobs.enqueue([stranger]) == [Enqueued(stranger.id)]
    await open_lease(store)
    await settle(store, completed(await claim_one(store)))
    await add(store, overlap=False)
    clock.advance(MINUTE)
    assert await fire(store) == [Fired(done=True, skipped=1)]
    clock.advance(HOUR)
    assert [each.skipped for each in await fire(store)] == [0]


async def test_what_is_due_at_once_sends_a_hint_with_its_commit_and_what_jitter_delays_does_not(
    store: Store, clock: ManualClock, connection: Any
) -> None:
    heard: list[object] = []
    await connection.add_listener("windlass.windlass", lambda *given: heard.append(given[-1]))
    await add(store, "now", job={"queue": "now"})
    await add(store, "later", job={"queue": "later"}, jitter=3600)
    clock.advance(MINUTE)
    assert sum(len(each.jobs) for each in await fire(store)) == 2
    await connection.fetchval("SELECT 1")  # what was told before is heard before the answer
    assert heard == ["now"]


async def test_a_firing_of_nothing_but_missed_ticks_goes_on_to_the_next(store: Store, clock: ManualClock) -> None:
    await add(store, catch_up="none")
    clock.advance(HOUR + MINUTE // 2)
    assert await fire(store) == [Fired(done=True)]
    assert moment(await find(store)) == clock.wall() + MINUTE // 2
