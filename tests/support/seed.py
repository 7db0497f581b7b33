"""Jobs, leases, claims and settlements in one line each, all through the contract."""

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from tests.support.clock import ManualClock
from windlass.core.control import Cancel, Dead, Snooze
from windlass.core.ids import JobId, new_id
from windlass.core.jobs.job import Claimed, Job, JobError, NewJob
from windlass.core.jobs.outcome import Done, Outcome, Policy, Raised, Requeued, Settlement, decide
from windlass.core.jobs.retry import Fixed
from windlass.core.moments import DAY, SECOND, Micros
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota, Settled, WorkerInfo

LEASE: Micros = 30 * SECOND
WAIT: Micros = 60 * SECOND
"""How long a failed job waits here."""

_numbers = count(1)
_policy = Policy(retry=Fixed(base=WAIT / SECOND, jitter=0))


def nothing() -> None:
    """A handler that does nothing."""


def new_job(**fields: Any) -> NewJob:
    """A job to enqueue: type `t`, empty payload, unless said otherwise."""
    return NewJob(**{"id": new_id(), "type": "t", "payload": "{}", **fields})


async def enqueue(store: Store, jobs: int = 1, **fields: Any) -> list[JobId]:
    """Enqueue several alike; their ids in order."""
    return [each.id for each in await store.jobs.enqueue([new_job(**fields) for _ in range(jobs)])]


async def enqueue_one(store: Store, **fields: Any) -> JobId:
    """Enqueue one."""
    return (await enqueue(store, **fields))[0]


async def open_lease(store: Store, runner: str = "r1", worker: str = "w1", length: Micros = LEASE) -> str:
    """A lease for a runner; its name."""
    await store.leases.open(LeaseRequest(runner=runner, worker=worker, length=length))
    return runner


def request(
    runner: str = "r1",
    *,
    claim: int | None = None,
    queues: tuple[str, ...] = ("default",),
    types: tuple[str, ...] = ("t",),
    most: int = 100,
    limit: int = 100,
    held: int = 0,
    free: int | None = None,
) -> ClaimRequest:
    """A claim, with a number of its own unless one is given."""
    quotas = tuple(QueueQuota(queue, most, held) for queue in queues)
    number = next(_numbers) if claim is None else claim
    return ClaimRequest(runner=runner, claim=number, quotas=quotas, types=types, limit=limit, free=free)


async def claim_ids(store: Store, runner: str = "r1", **fields: Any) -> list[JobId]:
    """The ids of what a claim takes."""
    return [job.id for job in await store.jobs.claim(request(runner, **fields))]


async def claim_one(store: Store, runner: str = "r1", **fields: Any) -> Claimed:
    """Claim the best job."""
    (job,) = await store.jobs.claim(request(runner, **{"limit": 1, **fields}))
    return job


async def running(store: Store, runner: str = "r1", **fields: Any) -> Claimed:
    """A new job that a runner holds."""
    await open_lease(store, runner)
    id_ = await enqueue_one(store, **fields)
    job = await claim_one(store, runner, queues=(fields.get("queue", "default"),), types=(fields.get("type", "t"),))
    assert job.id == id_, "another job was in the way"
    return job


def completed(job: Claimed, result: str | None = "1") -> Settlement:
    return _decided(job, Done(result))


def failed(job: Claimed, message: str = "no") -> Settlement:
    return _decided(job, Raised(ValueError(message), JobError("ValueError", message)))


def dead(job: Claimed, reason: str = "hopeless") -> Settlement:
    return _decided(job, Raised(Dead(reason), JobError("Dead", reason)))


def cancelled(job: Claimed, reason: str = "unwanted") -> Settlement:
    return _decided(job, Raised(Cancel(reason), JobError("Cancel", reason)))


def snoozed(job: Claimed, seconds: float = 5) -> Settlement:
    return _decided(job, Raised(Snooze(seconds), JobError("Snooze", "")))


def requeued(job: Claimed) -> Settlement:
    return _decided(job, Requeued())


def _decided(job: Claimed, outcome: Outcome) -> Settlement:
    return decide(job, outcome, _policy, Random(0))


async def settle(store: Store, settlement: Settlement) -> Settled:
    """Settle one; what became of it."""
    return (await store.jobs.settle([settlement]))[0]


Ending = Callable[[Claimed], Settlement]

ENDINGS: dict[str, Ending] = {
    "completed": completed,
    "failed": failed,
    "dead": dead,
    "cancelled": cancelled,
    "snoozed": snoozed,
    "requeued": requeued,
}
"""Every outcome that a runner can report."""

FINISHES: dict[Status, Ending] = {
    Status.COMPLETED: completed,
    Status.DEAD: dead,
    Status.CANCELLED: cancelled,
}


async def put(store: Store, status: Status, **fields: Any) -> JobId:
    """A new job in the given status, by the verbs alone."""
    fields = {"type": f"t{next(_numbers)}", **fields}
    if status is Status.PENDING:
        return await enqueue_one(store, **fields)
    if status is Status.SCHEDULED:
        return await enqueue_one(store, **{"delay": DAY, **fields})
    if status is Status.BLOCKED:
        return await _parked(store, **fields)
    job = await running(store, f"seeder{next(_numbers)}", **fields)
    if status is Status.FAILED:
        await settle(store, failed(job))
    elif status is not Status.RUNNING:
        await settle(store, FINISHES[status](job))
    return job.id


async def _parked(store: Store, **fields: Any) -> JobId:
    await store.workers.beat(worker_info("seeder", types=("known to the seeder",)))
    id_ = await enqueue_one(store, **fields)
    await store.jobs.park()
    await store.workers.unregister("seeder")
    return id_


def worker_info(id_: str = "w1", **fields: Any) -> WorkerInfo:
    """A worker as it registers."""
    given = {"host": "here", "pid": 1, "version": "0", "queues": ("default",), "types": ("t",)}
    return WorkerInfo(**{"id": id_, "processes": 1, "slots": 10, **given, **fields})


async def look(store: Store, id_: JobId) -> Job:
    """A job that must be there."""
    (job,) = await store.operator.get([id_])
    assert job is not None, f"job {id_} is lost"
    return job


async def status_of(store: Store, id_: JobId) -> Status:
    """The status of a job that must be there."""
    return (await look(store, id_)).status


async def let_lapse(store: Store, clock: ManualClock, length: Micros = LEASE) -> None:
    """Let every lease lapse that is not renewed: a bystander keeps beating, so that it is not taken for an outage."""
    bystander = await open_lease(store, f"bystander{next(_numbers)}", "bystander's worker")
    for _ in range(5):
        clock.advance(length // 4)
        await store.leases.renew("bystander's worker", [bystander], length)
