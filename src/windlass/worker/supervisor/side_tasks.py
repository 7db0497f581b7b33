"""Small tasks beside the leases: lead, relay hints, check the schema, keep time, notice an empty store."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Sequence, Set

from windlass.client.groups.members import first_live
from windlass.client.groups.opening import read_opening
from windlass.coordinator.coordinator import Coordinator
from windlass.core.events import Emit, HintsUnavailable
from windlass.core.graphs.ids import WATCHER_TYPES
from windlass.core.groups.ids import is_group_id
from windlass.core.ids import JobId
from windlass.core.log_events import GroupStaysOpen
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.errors import StoreUnavailable, StoreUnusable
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.records import JobFilter
from windlass.worker.channel import Hint
from windlass.worker.store_retry import FailureReports, describe_error, retry_until_done
from windlass.worker.supervisor.runner_process import Runner
from windlass.worker.supervisor.state import SupervisorState

RESIGN_SECONDS = 1.0
LISTEN_SECONDS = 60.0
SCHEMA_CHECK = "checking the schema"
TIME_STEP_SECONDS = 0.2
MAX_RUNNERS = 100
MAX_SCHEDULES = 100
MAX_GROUPS = 100
EMPTY_CHECK_SECONDS = 0.2
UNSEALED_SECONDS = 5.0
"""A producer that is slow between two members is not worth a line in the log."""
HOLDING = (Status.PENDING, Status.RUNNING, Status.FAILED)


async def lead(state: SupervisorState) -> None:
    """Campaign for coordinator and do its duties, until cancelled."""
    coordinator = Coordinator(state.store, state.id, state.emit, blobs=state.blobs)
    try:
        await coordinator.run()
    finally:
        await resign(coordinator)


async def resign(coordinator: Coordinator) -> None:
    """Give up leadership; if the store does not answer in time, the term expires by itself."""
    with contextlib.suppress(StoreUnavailable, TimeoutError):
        await asyncio.wait_for(coordinator.resign(), RESIGN_SECONDS)


async def relay(state: SupervisorState) -> None:
    """Relay hints to the runners, until cancelled. Without hints, idle runners poll every second."""
    signals = state.store.signals
    signals.subscribe(state.queues)
    if signals.outage is not None:
        state.emit(HintsUnavailable(why=signals.outage))
    while True:
        cursor = signals.cursor()
        if await signals.wait(cursor, LISTEN_SECONDS):
            for child in state.serving.values():
                child.channel.hint(Hint())
        await asyncio.sleep(0)


async def watch_schema(store: Store, seconds: float, emit: Emit) -> None:
    """Check every `seconds`, until there is a breaking change: raises StoreUnusable."""
    failures = FailureReports(emit)
    while True:
        await asyncio.sleep(seconds)
        try:
            await store.check_schema()
        except StoreUnusable:
            raise
        except Exception as error:
            # Any error: a worker that cannot check still works.
            failures.failed(SCHEMA_CHECK, describe_error(error))
        else:
            failures.succeeded(SCHEMA_CHECK)


async def keep_time(runners: Set[Runner]) -> None:
    """Advance the active time of all runners, until cancelled; time in suspension is not counted."""
    while True:
        now = since_boot()
        for child in runners:
            child.table.keep_time(now)
        await asyncio.sleep(TIME_STEP_SECONDS)


async def until_empty(store: Store, queues: Sequence[str], emit: Emit) -> tuple[str, ...]:
    """Wait until nothing is left, and return the other queues with pending jobs.

    This polls: while jobs flow, one hint arrives with every commit.
    """
    over, unsealed = set[JobId](), UnsealedGroups(store, emit)
    while not await retry_until_done("looking for work", lambda: is_empty(store, queues, over), emit):
        await retry_until_done("looking for open groups", lambda: unsealed.look(over), emit)
        over.clear()
        await asyncio.sleep(EMPTY_CHECK_SECONDS)
    counts = (await retry_until_done("counting jobs", store.operator.counts, emit)).queues
    return tuple(sorted(name for name, of in counts.items() if of[Status.PENDING] and name not in queues))


class UnsealedGroups:
    """Emits once which open group holds the worker, if it was not sealed for a while."""

    def __init__(self, store: Store, emit: Emit) -> None:
        self._store, self._emit = store, emit
        self._since: dict[JobId, float] = {}
        """Since when the members of each group have ended."""
        self._emitted: set[JobId] = set()

    async def look(self, over: Set[JobId]) -> None:
        """`over` are the groups whose members have ended, as far as the last check read them."""
        now = time.monotonic()
        self._since = {group: self._since.get(group, now) for group in over}
        for group in self._since.keys() - self._emitted:
            if now - self._since[group] >= UNSEALED_SECONDS:
                opening = await read_opening(self._store, group)
                if opening is not None and opening.size is None:
                    self._emitted.add(group)
                    self._emit(GroupStaysOpen(flow=group))


async def _is_group_over(store: Store, over: set[JobId]) -> bool:
    """Whether a group waits although its members have ended: its callback runs in a moment, if it is sealed."""
    for type_ in WATCHER_TYPES:
        groups = await store.operator.list(JobFilter(type=type_, status=(Status.SCHEDULED,)), MAX_GROUPS, None)
        for group in groups.items:
            if is_group_id(group.id) and await first_live(store.operator, group.id) is None:
                over.add(group.id)
                return True
    return False


async def _counted(store: Store, queues: Sequence[str]) -> Counter[str]:
    counts = (await store.operator.counts()).queues
    jobs = Counter[str]()
    for queue in queues:
        jobs.update(counts.get(queue, {}))
    return jobs


async def is_empty(store: Store, queues: Sequence[str], over: set[JobId] | None = None) -> bool:
    """Nothing pending, running, failed, or due within a second, and no tick that is due.

    Paused queues do not count. A group whose members have ended is added to `over`, if it alone holds the worker.
    """
    # A dead worker may have left jobs under its lease, and no other worker may be there to rescue them.
    if await store.leases.rescue(MAX_RUNNERS):
        return False
    # The cheap read next: while there is work, no counts are needed.
    if await store.signals.has_work(queues, None):
        return False
    paused = {queue.name for queue in await store.queues.list() if queue.paused}
    served = [queue for queue in queues if queue not in paused]
    jobs = await _counted(store, served)
    if any(jobs[status] for status in HOLDING):
        return False
    # A job may finish between the two reads and free a slot that is not yet reassigned.
    if jobs[Status.BLOCKED] and await store.signals.has_work(queues, None):
        return False
    if jobs[Status.SCHEDULED]:
        due = (await store.jobs.admit(0, queues)).next_due_in
        if (due is not None and due <= SECOND) or await _is_group_over(store, set() if over is None else over):
            return False
        # A job that was scheduled at the count may have been woken since, so the reads after it did not find it.
        now = await _counted(store, served)
        if any(now[status] for status in HOLDING):
            return False
    ticking = (await store.schedules.due(MAX_SCHEDULES)).schedules
    # A schedule that cannot be read stays due for ever.
    return not any(each.problem is None and each.rules.job.queue in {*queues} - paused for each in ticking)
