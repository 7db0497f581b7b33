"""The state of REST workers that a server keeps between requests."""

import contextlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from windlass.client.app import App
from windlass.core.flow.queue import QueueRules
from windlass.core.ids import JobId, check_id
from windlass.core.jobs.job import Claimed, Job, to_claimed
from windlass.core.moments import SECOND, Duration, Micros, duration
from windlass.errors import InvalidInput, InvalidOption
from windlass.server.operation import Call
from windlass.server.workers.groups import RestGroups
from windlass.server.workers.long_polls import LongPolls
from windlass.server.workers.registry import RestWorkers
from windlass.server.workers.rest_worker import Given, RestWorker
from windlass.store.clock import since_boot

MAX_KNOWN = 10_000
"""Claimed jobs in memory for one worker, without payloads; older ones are read from the store."""
MIN_LEASE, MAX_LEASE = SECOND, 3600 * SECOND
BEATS = 3
"""Beats in a lease, so that two may be lost."""
FRESH: Micros = SECOND
"""How long the settings of queues are cached."""

AttemptKey = tuple[JobId, int]


class WorkerService:
    """REST workers and their waiting claims."""

    def __init__(self, app: App, lease: Micros, is_stopping: Callable[[], bool]) -> None:
        self.app = app
        self.workers = RestWorkers(app, lease=lease)
        self.polls = LongPolls(app, is_stopping)
        self.groups = RestGroups(app, lease)
        self._rules: dict[str, QueueRules] = {}
        self._rules_at: Micros = 0

    def note_claimed(self, worker: RestWorker, job: Claimed) -> None:
        """Keep what the settlement needs."""
        if len(worker.claimed) >= MAX_KNOWN:
            del worker.claimed[next(iter(worker.claimed))]  # perhaps settled through another server
        kept = msgspec.structs.replace(job, payload="", parent_results=None)
        worker.claimed[job.id, job.attempt] = Given(kept, since_boot())

    def forget(self, worker: RestWorker, key: AttemptKey) -> Micros | None:
        """Forget an attempt that is over; since when the worker had it, None: not known."""
        if worker.alone == key:
            worker.alone = None
        given = worker.claimed.pop(key, None)
        return None if given is None else given.since

    async def claimed(self, worker: RestWorker, keys: Iterable[AttemptKey]) -> dict[AttemptKey, Claimed]:
        """Attempts that were given to this worker, from memory or, if another server gave them, from the store."""
        found, missing = {}, []
        for key in keys:
            if (given := worker.claimed.get(key)) is not None:
                found[key] = given.job
                continue
            with contextlib.suppress(InvalidInput):  # no job has such an id
                missing.append((check_id(key[0]), key[1]))
        if missing:
            store = await self.app._ready()
            jobs = {job.id: job for job in await store.operator.get([id_ for id_, _ in missing]) if job is not None}
            for id_, attempt in missing:
                job = jobs.get(id_)
                if job is not None and _was_given(job, attempt, worker.runner):
                    found[id_, attempt] = msgspec.structs.replace(to_claimed(job), attempt=attempt)
        return found

    async def rules(self) -> dict[str, QueueRules]:
        """The settings of the queues, read at most once a second."""
        if since_boot() - self._rules_at > FRESH:
            store = await self.app._ready()
            self._rules = {queue.name: queue.rules for queue in await store.queues.list()}
            self._rules_at = since_boot()
        return self._rules


def _was_given(job: Job, attempt: int, runner: str) -> bool:
    """Whether this attempt was the runner's."""
    if job.attempt == attempt and job.worker == runner:
        return True
    return any(each.attempt == attempt and each.worker == runner for each in job.attempts)


def check_lease(length: Duration) -> Micros:
    """The lease of REST workers, from 1 second to 1 hour."""
    found = duration(length, "worker_lease")
    if not MIN_LEASE <= found <= MAX_LEASE:
        raise InvalidOption("worker_lease", "must be from 1 second to 1 hour")
    return found


def service_of(call: Call) -> WorkerService:
    """The service of the server that got the call."""
    service: WorkerService = call.state.workers
    return service


def lease_of(workers: RestWorkers) -> dict[str, Any]:
    """The fields of an answer that renews the lease."""
    seconds = workers.lease / SECOND
    expires = datetime.now(UTC) + timedelta(seconds=seconds)
    return {"lease_expires_at": expires, "lease": seconds, "beat_after": seconds / BEATS}
