"""Scenes of flow control: keys whose slots move on, queues with rules, what is closed."""

import asyncio
from typing import Any

from tests.support.seed import new_job, open_lease, request
from tests.torture.scene import JOBS, LEASE, Scene
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import Rate
from windlass.core.jobs.job import JobError
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd


def _keyed(*ids: str, **terms: Any) -> list[Any]:
    return [new_job(id=id_, concurrency_key="k", **terms) for id_ in ids]


async def _one_runs_and_one_waits(store: Store) -> None:
    await store.jobs.enqueue(_keyed(*JOBS[:2]))
    await open_lease(store)
    await store.jobs.claim(request(claim=1))


async def _one_of_strict_order_runs(store: Store) -> None:
    await store.jobs.enqueue(_keyed(*JOBS[:2], key_strict=True))
    await open_lease(store)
    await store.jobs.claim(request(claim=1))


async def _due_soon(store: Store) -> None:
    await store.jobs.enqueue(_keyed(*JOBS[:2], delay=SECOND))


async def _limited(store: Store) -> None:
    await store.queues.change("default", QueueSettings(max_concurrency=1, rate_limit=Rate(5, SECOND, 5)))
    await store.jobs.enqueue([new_job(id=id_) for id_ in JOBS[:2]])
    await open_lease(store)


async def _of_tenants(store: Store) -> None:
    await store.queues.change("default", QueueSettings(fair=True))
    await store.jobs.enqueue([new_job(id=id_, tenant=tenant) for id_, tenant in zip(JOBS, "AAB", strict=False)])
    await open_lease(store)


async def _closed(store: Store) -> None:
    await store.queues.close("default")


async def _old(store: Store) -> None:
    await store.queues.change("default", QueueSettings(ageing=SECOND))
    await store.jobs.enqueue([new_job(id=JOBS[0]), new_job(id=JOBS[1], priority=5)])


def _ended(status: Status, **facts: Any) -> Settlement:
    return Settlement(
        id=JOBS[0],
        queue="default",
        attempt=1,
        status=status,
        outcome=str(status),
        concurrency_key="k",
        **facts,
    )


_FAILED = _ended(Status.FAILED, delay=SECOND, error=JobError("ValueError", "no"), failures=1)
_END = RunnerEnd(runner="r1", started=frozenset({(JOBS[0], 1)}), crashed=True)

FLOW = [
    Scene(
        verb="enqueue",
        name="enqueue, under a key",
        act=lambda store: store.jobs.enqueue(_keyed(*JOBS[:2])),
        again=lambda first, second: all(each.existing for each in second),
    ),
    Scene(
        verb="admit",
        name="admit, to a line",
        before=_due_soon,
        act=lambda store: store.jobs.admit(10),
        piecemeal=True,
        by_servers=True,
    ),
    Scene(
        verb="claim",
        name="claim, of a key",
        before=lambda store: asyncio.gather(store.jobs.enqueue(_keyed(*JOBS[:2])), open_lease(store)),
        act=lambda store: store.jobs.claim(request(claim=1)),
        again=lambda first, second: bool(first == second and first),
        piecemeal=True,
        by_servers=True,
    ),
    Scene(
        verb="claim",
        name="claim, of a limited queue",
        before=_limited,
        act=lambda store: store.jobs.claim(request(claim=1)),
        again=lambda first, second: bool(first == second and first),
        piecemeal=True,
        by_servers=True,
    ),
    Scene(
        verb="claim",
        name="claim, of tenants",
        before=_of_tenants,
        act=lambda store: store.jobs.claim(request(claim=1, limit=2)),
        again=lambda first, second: bool(first == second and first),
        piecemeal=True,
        by_servers=True,
    ),
    Scene(
        verb="settle",
        name="settle, and the next job of the key goes on",
        before=_one_runs_and_one_waits,
        act=lambda store: store.jobs.settle([_ended(Status.COMPLETED, result="1")]),
        again=lambda first, second: second == ["already"],
    ),
    Scene(
        verb="settle",
        name="settle, failed under a key",
        before=_one_runs_and_one_waits,
        act=lambda store: store.jobs.settle([_FAILED]),
        again=lambda first, second: second == ["already"],
    ),
    Scene(
        verb="settle",
        name="settle, failed in strict order",
        before=_one_of_strict_order_runs,
        act=lambda store: store.jobs.settle([_FAILED]),
        again=lambda first, second: second == ["already"],
    ),
    Scene(
        verb="cancel",
        name="cancel, waiting for its key",
        before=_one_runs_and_one_waits,
        act=lambda store: store.operator.cancel(JOBS[1:2], "unwanted"),
    ),
    Scene(verb="end", name="end, under a key", before=_one_runs_and_one_waits, act=lambda s: s.leases.end(_END)),
    Scene(
        verb="rescue",
        name="rescue, under a key",
        before=_one_runs_and_one_waits,
        lapsed=True,
        later=lambda clock: clock.advance(2 * LEASE),
        act=lambda store: store.leases.rescue(10),
    ),
    Scene(verb="close", act=lambda store: store.queues.close("default")),
    Scene(verb="open", name="open, of a queue", before=_closed, act=lambda store: store.queues.open("default")),
    Scene(
        verb="change",
        name="change of a queue's rules",
        act=lambda store: store.queues.change("mail", QueueSettings(max_concurrency=2, fair=True, ageing=DAY)),
    ),
    Scene(verb="age", before=_old, later=lambda clock: clock.advance(DAY), act=lambda store: store.jobs.age(10)),
]
