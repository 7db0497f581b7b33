"""Tokens that were granted ahead: they count as long as they are good, and are worth nothing after that."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule, within_rate
from tests.support.seed import enqueue
from tests.support.stores import STORES
from windlass.core.flow.rate import parse_rate
from windlass.core.moments import SECOND, Micros
from windlass.store.contract import Store

RATE = parse_rate("1000/s burst 400", "rate")
"""A grant is a quarter of what is there, good for a quarter of a second: the bucket may be full before."""
READINGS = range(1, 9)
"""By the clock, during a claim."""


class Stopped:
    """A process that is stopped in the middle of a claim: at one of its readings the clock has jumped."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.boot = clock.boot
        self.left: int | None = None

    def wall(self) -> Micros:
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self._clock.advance(SECOND)
        return self._clock.wall()

    def since_boot(self) -> Micros:
        return self._clock.since_boot()


@pytest.fixture
def stopped(clock: ManualClock) -> Stopped:
    return Stopped(clock)


@pytest.fixture
async def elsewhere(store: Store, stopped: Stopped, tmp_path: Path) -> AsyncIterator[Store]:
    """The same store, as the process has it that will be stopped."""
    opened = STORES["postgres"].open(tmp_path, stopped)
    yield opened
    await opened.close()


async def test_what_others_were_granted_is_not_given_away_again(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=RATE)
    await enqueue(store, 2500)
    one, other = await new_runner(store, "r1"), await new_runner(store, "r2")
    starts = []
    for wait in (0, 3_000, 10_000, 150_000, 249_000):
        clock.advance(SECOND)
        # The first claim brings tokens for the last one, which needs no gate.
        for runner, limit, pause in ((one, 1, wait), (other, 500, 0), (one, 90, 0)):
            starts += [(job.claimed_at, 1) for job in await runner.claim(limit, most=500)]
            clock.advance(pause)
    assert within_rate(starts, RATE)
    assert len(starts) > 500, "it must not be kept by giving nothing"


@pytest.mark.parametrize("reading", READINGS)
async def test_a_process_that_was_stopped_after_it_was_granted_tokens_starts_nothing_with_them(
    store: Store, elsewhere: Store, clock: ManualClock, stopped: Stopped, reading: int
) -> None:
    await rule(store, rate_limit=RATE)
    await enqueue(store, 2000)
    one, other = await new_runner(elsewhere, "r1"), await new_runner(store, "r2")
    starts = [(job.claimed_at, 1) for job in await one.claim(1)]
    stopped.left = reading
    starts += [(job.claimed_at, 1) for job in await one.claim(90)]
    stopped.left = None
    starts += [(job.claimed_at, 1) for job in await other.claim(500, most=500)]
    assert within_rate(starts, RATE)
    assert len(starts) > 100, "it must not be kept by giving nothing"


async def test_a_burst_that_is_small_beside_the_rate_does_not_hold_it_up(store: Store, clock: ManualClock) -> None:
    await rule(store, rate_limit=parse_rate("10000/s burst 100", "rate"))
    await enqueue(store, 200)
    runner = await new_runner(store)
    began = 0
    for _ in range(100):
        began += len(await runner.claim(1))
        clock.advance(SECOND // 1000)
    assert began == 100
