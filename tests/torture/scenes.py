"""One scene per verb that writes, and more where a verb does different things."""

import asyncio
import os

from tests.support.seed import enqueue_one, new_job, open_lease, request, worker_info
from tests.torture.chain_scenes import CHAINS
from tests.torture.flow_scenes import FLOW
from tests.torture.group_scenes import GROUPS
from tests.torture.scene import JOBS, LEASE, Scene
from tests.torture.tick_scenes import TICKS
from windlass.core.flow.queue import settings
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import JobError, Progress
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import DAY, SECOND
from windlass.core.stats.meter import Meter, histogram
from windlass.core.stats.samples import HOUR
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Campaign, LeaseRequest, Note, RunnerEnd

ARM = "WINDLASS_FAILPOINTS"


def play_alone(points: str, name: str, url: str) -> None:
    """The call in a process of its own, which one of these failpoints may end."""
    os.environ[ARM] = points
    asyncio.run(SCENES[name].play(url))


# What was there before.


async def _waiting(store: Store) -> None:
    await store.jobs.enqueue([new_job(id=id_) for id_ in JOBS[:2]])


async def _delayed(store: Store) -> None:
    job = new_job(id=JOBS[0], delay=SECOND, expires=DAY, idempotency_key="one", idempotency_window=DAY)
    await store.jobs.enqueue([job])


async def _running(store: Store) -> None:
    await _waiting(store)
    await open_lease(store)
    await store.jobs.claim(request(claim=1))


async def _metered(store: Store) -> None:
    await _waiting(store)
    await store.stats.record([_METER])


async def _dead(store: Store) -> None:
    await _running(store)
    error = JobError("ValueError", "no")
    outcome = Settlement(
        id=JOBS[0], queue="default", attempt=1, status=Status.DEAD, outcome="dead", error=error, failures=1
    )
    await store.jobs.settle([outcome])


async def _stranger(store: Store) -> None:
    await store.workers.beat(worker_info("w2", types=("known",)))
    await enqueue_one(store, id=JOBS[0])


async def _parked(store: Store) -> None:
    await _stranger(store)
    await store.jobs.park()


async def _registered(store: Store) -> None:
    await store.workers.beat(worker_info())


async def _leading(store: Store) -> None:
    await store.leader.campaign(Campaign("w1", 10 * SECOND))


async def _paused(store: Store) -> None:
    await store.queues.pause("default", None)


# The calls.

_NEW = [new_job(id=JOBS[0], idempotency_key="one"), new_job(id=JOBS[1], delay=DAY)]
_REPLACING = [new_job(id=JOBS[1], idempotency_key="one", on_conflict=OnConflict.REPLACE)]
_OUTCOMES = [
    Settlement(id=JOBS[0], queue="default", attempt=1, status=Status.COMPLETED, outcome="completed", result="1"),
    Settlement(
        id=JOBS[1],
        queue="default",
        attempt=1,
        status=Status.FAILED,
        outcome="failed",
        delay=SECOND,
        error=JobError("ValueError", "no"),
        failures=1,
    ),
]
_END = RunnerEnd(runner="r1", started=frozenset({(JOBS[0], 1)}), crashed=True)
_METER = Meter(queue="default", type="t", completed=1, wait=histogram([1]), run=histogram([2]))


async def _sampled(store: Store) -> None:
    """A call makes a bounded number of minutes: as many calls as an hour needs."""
    for _ in range(4):
        await store.stats.sample()


_ALL = [
    Scene(verb="migrate", act=lambda store: store.migrate()),
    Scene(
        verb="enqueue",
        before=_registered,
        act=lambda store: store.jobs.enqueue(_NEW),
        again=lambda first, second: [each.id for each in second] == JOBS[:2] and all(e.existing for e in second),
    ),
    Scene(verb="admit", before=_delayed, act=lambda store: store.jobs.admit(10)),
    Scene(
        verb="claim",
        before=lambda store: asyncio.gather(_waiting(store), open_lease(store)),
        act=lambda store: store.jobs.claim(request(claim=1)),
        again=lambda first, second: bool(first == second and first),
    ),
    Scene(
        verb="settle",
        before=_running,
        act=lambda store: store.jobs.settle(_OUTCOMES),
        again=lambda first, second: second == ["already", "already"],
        piecemeal=True,
        by_servers=True,
    ),
    Scene(
        verb="settle",
        name="settle, completed",
        before=_running,
        act=lambda store: store.jobs.settle(_OUTCOMES[:1]),
        again=lambda first, second: second == ["already"],
    ),
    Scene(
        verb="settle",
        name="settle, failed",
        before=_running,
        act=lambda store: store.jobs.settle(_OUTCOMES[1:]),
        again=lambda first, second: second == ["already"],
    ),
    Scene(
        verb="note",
        before=_running,
        act=lambda store: store.jobs.note(
            [Note(id=JOBS[0], queue="default", attempt=1, started_after=5, progress=Progress(1))]
        ),
    ),
    Scene(verb="park", before=_stranger, act=lambda store: store.jobs.park()),
    Scene(verb="cancel", before=_running, act=lambda store: store.operator.cancel(JOBS[:2], "unwanted")),
    Scene(verb="retry", before=_dead, act=lambda store: store.operator.retry(JOBS[:1])),
    Scene(verb="delete", before=_dead, act=lambda store: store.operator.delete(JOBS[:1])),
    Scene(
        verb="prune",
        before=_dead,
        piecemeal=True,
        by_servers=True,
        later=lambda clock: clock.advance(400 * DAY),
        act=lambda store: store.operator.prune(10),
    ),
    Scene(verb="declare", act=lambda store: store.queues.declare({"mail": settings(max_attempts=7)})),
    Scene(
        verb="change",
        name="change of a queue",
        act=lambda store: store.queues.change("mail", settings(max_attempts=8)),
    ),
    Scene(
        verb="change",
        before=_delayed,
        act=lambda store: store.operator.change(JOBS[:1], JobChange(queue="mail", delay=DAY, payload="[]")),
        again=lambda first, second: bool(first == second),
    ),
    Scene(
        verb="run_now",
        before=_delayed,
        act=lambda store: store.operator.run_now(JOBS[:1]),
        again=lambda first, second: bool(first == second),
    ),
    Scene(
        verb="expire",
        before=_delayed,
        later=lambda clock: clock.advance(DAY),
        act=lambda store: store.jobs.expire(10),
    ),
    Scene(
        verb="enqueue",
        name="enqueue, replacing",
        before=_delayed,
        act=lambda store: store.jobs.enqueue(_REPLACING),
        again=lambda first, second: [(each.id, each.existing) for each in second] == [(JOBS[1], True)],
    ),
    Scene(verb="pause", before=_waiting, act=lambda store: store.queues.pause("default", DAY)),
    Scene(verb="resume", before=_paused, act=lambda store: store.queues.resume("default")),
    # Where the pulse is felt in a transaction of its own, a repeat completes these.
    Scene(
        verb="open",
        act=lambda store: store.leases.open(LeaseRequest(runner="r1", worker="w1", length=LEASE)),
        piecemeal=True,
        by_servers=True,
    ),
    Scene(
        verb="renew",
        piecemeal=True,
        by_servers=True,
        before=_running,
        act=lambda store: store.leases.renew("w1", ["r1", "gone"], LEASE),
        again=lambda first, second: bool(first == second),
    ),
    Scene(verb="end", before=_running, act=lambda store: store.leases.end(_END)),
    Scene(
        verb="rescue",
        before=_running,
        lapsed=True,
        later=lambda clock: clock.advance(2 * LEASE),
        act=lambda store: store.leases.rescue(10),
    ),
    # The worker is registered first, and some of its parked jobs are freed after that.
    Scene(verb="beat", before=_parked, piecemeal=True, act=lambda store: store.workers.beat(worker_info())),
    Scene(verb="unregister", before=_registered, act=lambda store: store.workers.unregister("w1")),
    Scene(
        verb="campaign",
        piecemeal=True,
        by_servers=True,
        before=_registered,
        act=lambda store: store.leader.campaign(Campaign("w1", 10 * SECOND)),
        again=lambda first, second: bool(first == second == 1),
    ),
    Scene(verb="record", act=lambda store: store.stats.record([_METER, _METER]), adds_up=True),
    Scene(
        verb="sample",
        before=_metered,
        later=lambda clock: clock.advance(HOUR + 2 * SECOND),
        act=_sampled,
        piecemeal=True,
    ),
    Scene(verb="resign", before=_leading, act=lambda store: store.leader.resign("w1")),
]
SCENES = {scene.name or scene.verb: scene for scene in [*_ALL, *FLOW, *CHAINS, *GROUPS, *TICKS]}
