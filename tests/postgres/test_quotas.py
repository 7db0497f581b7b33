"""Shares of a limit: given out one at a time, trimmed, taken back; never more than the limit, whatever is stopped."""

import asyncio

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule
from tests.support.seed import LEASE, enqueue, let_lapse
from windlass.core.moments import SECOND
from windlass.store.contract import Store

_SHARES = "SELECT runner, slots FROM windlass.quotas WHERE queue = 'default' ORDER BY runner"
_RUNNING = "SELECT count(*) FROM windlass.jobs WHERE status = 'running'"


async def shares_of(other: Other) -> dict[str, int]:
    rows = await other.does(_SHARES)
    await other.commits()
    return {runner: slots for runner, slots in rows if slots}


async def test_runners_that_ask_at_once_get_no_more_than_there_is(store: Store, other: Other) -> None:
    await rule(store, max_concurrency=7)
    await enqueue(store, 50)
    runners = [await new_runner(store, f"r{i}") for i in range(5)]
    for _ in range(4):
        await asyncio.gather(*(runner.claim(3) for runner in runners))
    assert sum(len(runner.held) for runner in runners) == 7
    assert sum((await shares_of(other)).values()) == 7


async def test_a_process_stopped_while_it_shares_out_keeps_others_from_growing_not_from_claiming(
    store: Store, other: Other
) -> None:
    await rule(store, max_concurrency=4)
    await enqueue(store, 20)
    first, second = await new_runner(store, "r1"), await new_runner(store, "r2")
    assert len(await first.claim(2)) == 2
    # A runner was stopped after it had locked the queue and taken the rest.
    await other.does("SELECT 1 FROM windlass.queues WHERE name = 'default' FOR NO KEY UPDATE")
    await other.does("INSERT INTO windlass.quotas (queue, runner, slots) VALUES ('default', 'r3', 2)")
    assert await second.claim(4) == [], "no claim waits, and none gets anything"
    await first.complete(1)
    assert len(await first.claim(4)) == 1, "what it has it may use"
    await other.commits()
    assert len(await second.claim(4)) == 2, "the third runs nothing, so what it had is free"


async def test_a_share_that_its_runner_has_in_hand_is_not_trimmed(store: Store, other: Other) -> None:
    await rule(store, max_concurrency=3)
    await enqueue(store, 20)
    first, second = await new_runner(store, "r1"), await new_runner(store, "r2")
    await first.claim(3)
    await first.complete()
    # A claim of the first runner was stopped between its look and its taking.
    await other.does("SELECT 1 FROM windlass.quotas WHERE runner = 'r1' FOR NO KEY UPDATE")
    assert await second.claim(3) == []
    await other.commits()
    assert len(await second.claim(3)) == 3
    assert await shares_of(other) == {"r2": 3}
    assert await first.claim(3) == []


async def test_a_claim_whose_quota_is_trimmed_at_this_moment_takes_nothing(store: Store, other: Other) -> None:
    await rule(store, max_concurrency=3)
    await enqueue(store, 20)
    runner = await new_runner(store, "r1")
    await runner.claim(1)
    await other.does("UPDATE windlass.quotas SET slots = 1 WHERE runner = 'r1'")
    await other.does("SELECT 1 FROM windlass.queues WHERE name = 'default' FOR NO KEY UPDATE")
    assert await runner.claim(3) == []
    await other.commits()
    assert len(await runner.claim(3)) == 2


async def test_what_a_trim_leaves_is_what_runs(store: Store, other: Other) -> None:
    await rule(store, max_concurrency=6)
    await enqueue(store, 20)
    first, second = await new_runner(store, "r1"), await new_runner(store, "r2")
    await first.claim(6)
    await first.complete(4)
    assert len(await second.claim(10)) == 4
    assert await shares_of(other) == {"r1": 2, "r2": 4}


async def test_limits_that_change_under_load_are_never_exceeded_by_new_starts(store: Store, other: Other) -> None:
    await enqueue(store, 400)
    runners = [await new_runner(store, f"r{i}") for i in range(3)]
    for limit in (8, 3, 12, 1, 5, 20, 2):
        before = sum(len(runner.held) for runner in runners)
        await rule(store, max_concurrency=limit)
        for _ in range(4):
            await asyncio.gather(*(runner.claim(4) for runner in runners))
            held = sum(len(runner.held) for runner in runners)
            assert held <= max(limit, before)
            await asyncio.gather(*(runner.complete(1) for runner in runners))
            before = sum(len(runner.held) for runner in runners)
        assert (await other.does(_RUNNING)) == [(before,)]
        await other.commits()


async def test_a_share_left_behind_by_a_late_claim_goes_with_the_orphans(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await rule(store, max_concurrency=2)
    await enqueue(store, 5)
    first = await new_runner(store, "r1", LEASE)
    await first.claim(2)
    await other.does("SELECT 1 FROM windlass.quotas WHERE runner = 'r1' FOR NO KEY UPDATE")
    await let_lapse(store, clock)
    await store.leases.rescue(10)
    second = await new_runner(store, "r2")
    await other.commits()
    assert await shares_of(other) == {"r1": 2}
    clock.advance(10 * SECOND)
    await store.leases.rescue(10)
    assert await shares_of(other) == {}
    assert len(await second.claim(5)) == 2


async def test_shares_are_written_only_when_they_move(store: Store, other: Other) -> None:
    await rule(store, max_concurrency=1000)
    await enqueue(store, 60)
    runner = await new_runner(store)
    await runner.claim(10)
    before = await other.does("SELECT ctid::text, slots FROM windlass.quotas")
    for _ in range(4):
        await runner.complete()
        assert len(await runner.claim(10)) == 10
    assert await other.does("SELECT ctid::text, slots FROM windlass.quotas") == before
