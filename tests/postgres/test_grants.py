"""Tokens of a queue: at the gate, or granted ahead for a moment; in every window no more than the rate lets start."""

from random import Random

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule, within_rate
from tests.support.seed import enqueue
from windlass.core.flow.rate import parse_rate
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.postgres.limits.rate_check import AHEAD

_TOKEN_BUCKET = "SELECT credit, at FROM windlass.token_buckets WHERE queue = 'default' AND key = ''"
FAST = parse_rate("1000/s", "r")


async def test_where_the_rate_is_far_claims_do_not_read_the_token_bucket(store: Store, other: Other) -> None:
    await rule(store, rate_limit=FAST)
    await enqueue(store, 100)
    runner = await new_runner(store)
    await runner.claim(5)
    before = await other.does(_TOKEN_BUCKET)
    for _ in range(5):
        assert len(await runner.claim(5)) == 5
    assert await other.does(_TOKEN_BUCKET) == before
    assert await other.does("SELECT tokens FROM windlass.quotas") == [(248,)]


async def test_what_was_granted_is_not_good_any_more_after_its_time(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await rule(store, rate_limit=FAST)
    await enqueue(store, 100)
    runner = await new_runner(store)
    await runner.claim(5)
    ((_, before),) = await other.does(_TOKEN_BUCKET)
    await other.commits()
    clock.advance(AHEAD + 1)
    assert len(await runner.claim(5)) == 5
    ((_, after),) = await other.does(_TOKEN_BUCKET)
    assert after == before + AHEAD + 1, "it paid from the token bucket again"


async def test_a_claim_stopped_at_the_token_bucket_keeps_others_from_starting_and_no_token_is_spent_twice(
    store: Store, clock: ManualClock, other: Other
) -> None:
    rate = parse_rate("5/s", "r")
    await rule(store, rate_limit=rate)
    await enqueue(store, 100)
    first, second = await new_runner(store, "r1"), await new_runner(store, "r2")
    starts = [(job.claimed_at, 1) for job in await first.claim(2)]
    await other.does("SELECT 1 FROM windlass.token_buckets FOR NO KEY UPDATE")
    assert await second.claim(5) == []
    clock.advance(10 * SECOND)
    # The stopped claim takes what it had found, and writes the moment at which it does.
    await other.does("UPDATE windlass.token_buckets SET credit = 0, at = %s", clock.wall())
    await other.commits()
    starts += [(clock.wall(), 1)] * 3
    assert await second.claim(5) == []
    for _ in range(10):
        clock.advance(SECOND // 5)
        starts += [(job.claimed_at, 1) for job in await second.claim(5)]
    assert within_rate(starts, rate)


async def test_every_window_holds_however_tokens_were_granted(store: Store, clock: ManualClock) -> None:
    rate = parse_rate("400/s burst 300", "r")
    await rule(store, rate_limit=rate)
    await enqueue(store, 3000)
    runners = [await new_runner(store, f"r{i}") for i in range(3)]
    random, starts = Random(11), []
    for _ in range(250):
        jobs = await random.choice(runners).claim(random.choice([1, 2, 5, 20, 60]))
        starts += [(job.claimed_at, 1) for job in jobs]
        clock.advance(random.choice([1, 1, 100, 5_000, 20_000, 240_000]))
    assert within_rate(starts, rate)
    assert len(starts) > 1000


async def test_a_token_bucket_that_is_full_again_is_forgotten(store: Store, clock: ManualClock, other: Other) -> None:
    await rule(store, rate_limit=parse_rate("2/s", "r"))
    await enqueue(store, 5)
    runner = await new_runner(store)
    await runner.claim(2)
    clock.advance(SECOND)
    await store.operator.prune(10)
    assert len(await other.does(_TOKEN_BUCKET)) == 1
    clock.advance(1)
    await other.commits()
    await store.operator.prune(10)
    assert await other.does(_TOKEN_BUCKET) == []
