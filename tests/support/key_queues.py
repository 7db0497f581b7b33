"""Jobs of concurrency keys in one line each: who runs, who is next, and every way in which a job gives way."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from tests.support.clock import ManualClock
from tests.support.seed import (
    cancelled,
    claim_one,
    completed,
    dead,
    enqueue,
    failed,
    let_lapse,
    new_job,
    open_lease,
    request,
    requeued,
    settle,
    snoozed,
    status_of,
    worker_info,
)
from windlass.core.ids import JobId, new_id
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Claimed
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd


async def enqueue_with_key(store: Store, jobs: int = 1, key: str = "k", **fields: Any) -> list[JobId]:
    """Enqueue several with one concurrency key."""
    return await enqueue(store, jobs, concurrency_key=key, **fields)


async def look_again(store: Store) -> None:
    """What is due or free has come up: a store may leave that to the next admission."""
    await store.jobs.admit(1000)


async def may_run(store: Store, ids: list[JobId]) -> list[JobId]:
    """Those of them that are pending or running."""
    await look_again(store)
    return [id_ for id_ in ids if await status_of(store, id_) in (Status.PENDING, Status.RUNNING)]


async def take(store: Store, runner: str = "r1", **fields: Any) -> list[Claimed]:
    """All that a runner can get; its lease is opened."""
    await open_lease(store, runner)
    return await store.jobs.claim(request(runner, **fields))


async def drain(store: Store, **fields: Any) -> list[JobId]:
    """Run one after the other until nothing is left: the order in which they ran. Each has a lease of its own."""
    order: list[JobId] = []
    while jobs := await take(store, f"drain {new_id()}", limit=1, **fields):
        order.append(jobs[0].id)
        await settle(store, completed(jobs[0]))
    return order


Exit = Callable[[Store, ManualClock, Claimed], Awaitable[None]]


class Leaving(NamedTuple):
    """A way in which a holder stops running, and whether its key is then free."""

    leave: Exit
    frees: bool
    frees_strict: bool


def _settling(ending: Callable[[Claimed], Any]) -> Exit:
    async def leave(store: Store, clock: ManualClock, job: Claimed) -> None:
        await settle(store, ending(job))

    return leave


async def _rescued(store: Store, clock: ManualClock, job: Claimed) -> None:
    await let_lapse(store, clock)
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]


async def _end(store: Store, job: Claimed, *, crashed: bool, runner: str = "r1") -> None:
    await store.leases.end(RunnerEnd(runner=runner, started=frozenset({(job.id, job.attempt)}), crashed=crashed))


async def _runner_stopped(store: Store, clock: ManualClock, job: Claimed) -> None:
    await _end(store, job, crashed=False)


async def _runner_crashed(store: Store, clock: ManualClock, job: Claimed) -> None:
    await _end(store, job, crashed=True)


async def _crashed_to_death(store: Store, clock: ManualClock, job: Claimed) -> None:
    """Each time under another runner: one that is gone does not come back."""
    await _end(store, job, crashed=True)
    for runner in ("r1 again", "r1 once more"):
        again = await claim_one(store, await open_lease(store, runner))
        assert again.id == job.id, "it had its slot until it died"
        await _end(store, again, crashed=True, runner=runner)
    assert await status_of(store, job.id) is Status.DEAD


async def _cancelled_on_request(store: Store, clock: ManualClock, job: Claimed) -> None:
    await store.operator.cancel([job.id], "")
    await settle(store, failed(job))
    assert await status_of(store, job.id) is Status.CANCELLED


async def _rescued_when_unwanted(store: Store, clock: ManualClock, job: Claimed) -> None:
    await store.operator.cancel([job.id], "")
    await _rescued(store, clock, job)


RUNNING_EXITS = {
    "completed": Leaving(_settling(completed), True, True),
    "dead": Leaving(_settling(dead), True, True),
    "cancelled": Leaving(_settling(cancelled), True, True),
    "cancelled on request": Leaving(_cancelled_on_request, True, True),
    "cancelled by its rescue": Leaving(_rescued_when_unwanted, True, True),
    "crashed to death": Leaving(_crashed_to_death, True, True),
    "failed": Leaving(_settling(failed), True, False),
    "snoozed": Leaving(_settling(snoozed), True, False),
    "requeued": Leaving(_settling(requeued), False, False),
    "rescued": Leaving(_rescued, False, False),
    "its runner stopped": Leaving(_runner_stopped, False, False),
    "its runner crashed": Leaving(_runner_crashed, False, False),
}
"""Of a job that runs under the lease of runner r1."""

WaitingExit = Callable[[Store, ManualClock, JobId], Awaitable[None]]


async def _cancelled(store: Store, clock: ManualClock, id_: JobId) -> None:
    await store.operator.cancel([id_], "")


async def _expired(store: Store, clock: ManualClock, id_: JobId) -> None:
    clock.advance(DAY)
    assert len(await store.jobs.expire(10)) == 1


async def _replaced(store: Store, clock: ManualClock, id_: JobId) -> None:
    await store.jobs.enqueue(
        [new_job(type="other", idempotency_key="first", on_conflict=OnConflict.REPLACE, delay=DAY)]
    )
    assert await status_of(store, id_) is Status.CANCELLED


async def _moved(store: Store, clock: ManualClock, id_: JobId) -> None:
    await store.operator.change([id_], JobChange(queue="elsewhere"))


async def _postpone(store: Store, clock: ManualClock, id_: JobId) -> None:
    await store.operator.change([id_], JobChange(delay=60 * SECOND))


async def _changed_otherwise(store: Store, clock: ManualClock, id_: JobId) -> None:
    await store.operator.change([id_], JobChange(priority=3, payload="{}"))


WAITING_EXITS: dict[str, tuple[WaitingExit, bool]] = {
    "cancelled": (_cancelled, True),
    "expired": (_expired, True),
    "replaced": (_replaced, True),
    "moved to another queue": (_moved, True),
    "postponed": (_postpone, True),
    "changed otherwise": (_changed_otherwise, False),
}
"""Of a job that holds a slot and waits: how it gives way, and whether its key is then free. Strict order or not."""


async def park_all(store: Store) -> None:
    """Set aside all that is not of type `known`."""
    await store.workers.beat(worker_info("somebody", types=("known",)))
    await look_again(store)
    await store.jobs.park()
    await store.workers.unregister("somebody")
