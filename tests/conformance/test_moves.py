"""The table of legal moves: every verb, tried on a job in every status."""

from collections.abc import Awaitable, Callable

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import ENDINGS, claim_ids, let_lapse, look, new_job, open_lease, put, worker_info
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Claimed, Job
from windlass.core.moments import DAY
from windlass.core.status import WAITING, Status, may_move
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd

LIFE = 100 * DAY
"""After which the jobs here expire."""

Verb = Callable[[Store, ManualClock, Job], Awaitable[object]]


async def admit(store: Store, clock: ManualClock, job: Job) -> None:
    clock.advance(2 * DAY)
    await store.jobs.admit(10)


async def claim(store: Store, clock: ManualClock, job: Job) -> None:
    await open_lease(store, "claimer")
    await claim_ids(store, "claimer", types=(job.type,))


async def expire(store: Store, clock: ManualClock, job: Job) -> None:
    clock.advance(LIFE)
    await store.jobs.expire(10)


async def postpone(store: Store, clock: ManualClock, job: Job) -> None:
    await store.operator.change([job.id], JobChange(delay=DAY))


async def bring_forward(store: Store, clock: ManualClock, job: Job) -> None:
    await store.operator.change([job.id], JobChange(run_at=clock.wall()))


async def replace(store: Store, clock: ManualClock, job: Job) -> None:
    await store.jobs.enqueue([new_job(idempotency_key="k", on_conflict=OnConflict.REPLACE)])


async def park(store: Store, clock: ManualClock, job: Job) -> None:
    await store.workers.beat(worker_info("other", types=("other",)))
    await store.jobs.park()


async def unpark(store: Store, clock: ManualClock, job: Job) -> None:
    await store.workers.beat(worker_info("knows", types=(job.type,)))


async def rescue(store: Store, clock: ManualClock, job: Job) -> None:
    await let_lapse(store, clock)
    await store.leases.rescue(10)


def crash(started: bool) -> Verb:
    async def verb(store: Store, clock: ManualClock, job: Job) -> None:
        held = frozenset({(job.id, job.attempt)}) if started else frozenset()
        await store.leases.end(RunnerEnd(runner=job.worker or "nobody", started=held, crashed=True))

    return verb


def settle(outcome: str) -> Verb:
    async def verb(store: Store, clock: ManualClock, job: Job) -> None:
        await store.jobs.settle([ENDINGS[outcome](_as_claimed(job))])

    return verb


def _as_claimed(job: Job) -> Claimed:
    """What a runner would hold that thinks it runs this job's present attempt."""
    return Claimed(job.id, job.queue, job.type, "{}", job.attempt, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


VERBS: dict[str, tuple[Verb, dict[Status, Status]]] = {
    # verb: what it does to a job in which status; in every other status it must change nothing
    "enqueue again": (lambda s, c, j: s.jobs.enqueue([new_job(id=j.id)]), {}),
    "admit": (admit, {Status.SCHEDULED: Status.PENDING, Status.FAILED: Status.PENDING}),
    "expire": (expire, dict.fromkeys(WAITING, Status.CANCELLED)),
    "replace": (replace, dict.fromkeys(WAITING, Status.CANCELLED)),
    "change, put off": (postpone, {Status.PENDING: Status.SCHEDULED, Status.BLOCKED: Status.SCHEDULED}),
    "change, bring forward": (bring_forward, dict.fromkeys((Status.SCHEDULED, Status.FAILED), Status.PENDING)),
    "run now": (
        lambda s, c, j: s.operator.run_now([j.id]),
        dict.fromkeys((Status.SCHEDULED, Status.FAILED), Status.PENDING),
    ),
    "claim": (claim, {Status.PENDING: Status.RUNNING}),
    "park": (park, {Status.PENDING: Status.BLOCKED}),
    "unpark": (unpark, {Status.BLOCKED: Status.PENDING}),
    "settle completed": (settle("completed"), {Status.RUNNING: Status.COMPLETED}),
    "settle failed": (settle("failed"), {Status.RUNNING: Status.FAILED}),
    "settle dead": (settle("dead"), {Status.RUNNING: Status.DEAD}),
    "settle cancelled": (settle("cancelled"), {Status.RUNNING: Status.CANCELLED}),
    "settle snoozed": (settle("snoozed"), {Status.RUNNING: Status.SCHEDULED}),
    "settle requeued": (settle("requeued"), {Status.RUNNING: Status.PENDING}),
    "rescue": (rescue, {Status.RUNNING: Status.PENDING}),
    "end, crashed": (crash(started=True), {Status.RUNNING: Status.PENDING}),
    "end, not started": (crash(started=False), {Status.RUNNING: Status.PENDING}),
    "cancel": (
        lambda s, c, j: s.operator.cancel([j.id], ""),
        dict.fromkeys(WAITING, Status.CANCELLED),
    ),
    "retry": (
        lambda s, c, j: s.operator.retry([j.id]),
        dict.fromkeys((Status.FAILED, Status.COMPLETED, Status.DEAD, Status.CANCELLED), Status.PENDING),
    ),
    "delete": (lambda s, c, j: s.operator.delete([j.id]), {}),
    "prune": (lambda s, c, j: s.operator.prune(10), {}),
}

GONE = {("delete", status) for status in (Status.COMPLETED, Status.DEAD, Status.CANCELLED)}


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_moves_a_job_as_the_table_allows_or_not_at_all(
    store: Store, clock: ManualClock, verb: str, status: Status
) -> None:
    do, moves = VERBS[verb]
    id_: JobId = await put(store, status, max_attempts=3, idempotency_key="k", expires=LIFE)
    await do(store, clock, await look(store, id_))
    if (verb, status) in GONE:
        assert await store.operator.get([id_]) == [None]
        return
    after = (await look(store, id_)).status
    assert after is moves.get(status, status)
    assert after is status or may_move(status, after)
