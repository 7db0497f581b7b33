"""A runner that is really dead is rescued, whatever other runners there are and however rarely they renew."""

from collections.abc import Awaitable, Callable

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import LEASE, open_lease, running, status_of
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import LeaseRequest, RunnerEnd

STEP = LEASE // 6
MAX_WAIT = 3 * LEASE
"""The rest of its lease, a grace, and a look now and then."""

Life = Callable[[Store, int], Awaitable[object]]


async def nothing(store: Store, step: int) -> None: ...


async def beats_without_runners(store: Store, step: int) -> None:
    await store.leases.renew("w2", [], LEASE)
    await store.leases.renew("w3", [], LEASE)


async def beats_of_the_lost(store: Store, step: int) -> None:
    await store.leases.renew("w2", ["never", "gone"], LEASE)


async def restarts(store: Store, step: int) -> None:
    """A worker whose runner dies as soon as it has a lease."""
    await open_lease(store, f"young{step}", "w2")
    await store.leases.renew("w2", [f"young{step}"] if step % 2 else [], LEASE)
    await store.leases.end(RunnerEnd(runner=f"young{step}", started=frozenset(), crashed=True))


async def kills(store: Store, step: int) -> None:
    """Workers that are killed as soon as they have a lease, and leave it."""
    await open_lease(store, f"young{step}", f"w{step}")


async def short_kills(store: Store, step: int) -> None:
    await store.leases.open(lease_of(f"young{step}", LEASE // 10))


async def long_beats(store: Store, step: int) -> None:
    """A runner with a much longer lease, which renews rarely."""
    if step == 0:
        await store.leases.open(lease_of("long", 10 * LEASE))
    if step % 20 == 19:
        assert (await store.leases.renew("w2", ["long"], 10 * LEASE)).kept == ("long",)


async def short_beats(store: Store, step: int) -> None:
    if step == 0:
        await store.leases.open(lease_of("short", LEASE // 2))
    assert (await store.leases.renew("w2", ["short"], LEASE // 2)).kept == ("short",)


def lease_of(runner: str, length: int) -> LeaseRequest:
    return LeaseRequest(runner=runner, worker="w2", length=length)


LIVES: dict[str, Life] = {
    each.__name__: each
    for each in (
        nothing,
        beats_without_runners,
        beats_of_the_lost,
        restarts,
        kills,
        short_kills,
        long_beats,
        short_beats,
    )
}


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("outage", [0, 5 * LEASE])
async def test_the_dead_are_rescued(store: Store, clock: ManualClock, life: str, outage: int) -> None:
    job = await running(store, "r1")
    clock.advance(outage)
    rescued_after = None
    for step in range(60):
        await LIVES[life](store, step)
        await store.leases.rescue(10)
        if await status_of(store, job.id) is Status.PENDING:
            rescued_after = step * STEP
            break
        clock.advance(STEP)
    assert rescued_after is not None
    assert rescued_after <= MAX_WAIT
