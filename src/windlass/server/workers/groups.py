"""Groups and REST workers: their settlements wake groups, and the server runs the jobs that watch groups.

A queue may have REST workers only, which do not know the types of groups. So a server runs jobs of these types in the
queues that its REST workers serve, under a lease of its own. Any other worker of the queue may run them as well.
"""

import asyncio
import contextlib
import logging
import os
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec

from windlass.client.app import App
from windlass.client.groups.ends import GroupEnds
from windlass.client.tasks.context import Context, entered
from windlass.core.codec import check_size, decode, encode
from windlass.core.graphs.ids import FLOW_TYPE, JOIN_TYPE, MAP_TYPE
from windlass.core.groups.ids import GROUP_TYPE, MEMBER_TYPE
from windlass.core.ids import new_runner_id, runner_id
from windlass.core.jobs.job import Claimed, Job, JobError, Progress
from windlass.core.jobs.outcome import Done, Outcome, Policy, Raised, decide, requeue
from windlass.core.jobs.retry import DEFAULT_POLICY
from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status
from windlass.errors import LeaseLost, StoreUnavailable
from windlass.observe.logs import log_event
from windlass.observe.process import watch_events
from windlass.server.workers.payloads import whole_payload
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, LeaseRequest, Note, QueueQuota, RunnerEnd, Settled

GROUP_TYPES = (GROUP_TYPE, MEMBER_TYPE, FLOW_TYPE, JOIN_TYPE, MAP_TYPE)
"""Those of groups and graphs."""
LOOK_SECONDS = 1.0
"""Between two polls for groups that another process woke."""
MAX_CLAIMED = 20
PREFIX = "rest-groups-"
_log = logging.getLogger("windlass.server")
_random = Random()


class RestGroups:
    """The groups of one server."""

    def __init__(self, app: App, lease: Micros) -> None:
        self._app, self._lease = app, lease
        self.pause = min(LOOK_SECONDS, lease / SECOND / 3)
        """Seconds between two rounds: each renews the lease when a third of it is over."""
        self._queues: dict[str, Micros] = {}
        """By queue, when a REST worker last claimed from it."""
        self._ends: GroupEnds | None = None
        self._running: asyncio.Task[None] | None = None
        self._waking: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._runner = ""
        self._renewed: Micros = 0
        self._claims = 0
        self._has_failed = False
        """Whether the last round may have left claimed jobs unsettled."""

    def serve(self, queues: Iterable[str]) -> None:
        """A REST worker claims from these queues: run the jobs of groups in them."""
        self._queues |= dict.fromkeys(queues, since_boot())
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())

    async def note(self, ended: Iterable[tuple[Claimed, Status]]) -> None:
        """Wake the groups of jobs that REST workers have settled."""
        if self._ends is None:
            self._ends = GroupEnds((await self._app._ready()).operator, watch_events(log_event, "server"))
            self._waking = asyncio.create_task(self._ends.run())
        self._ends.note(ended)
        if not self._ends.quiet.is_set():
            self._woken.set()

    async def stop(self) -> None:
        """End its tasks and its lease; jobs that it held are requeued."""
        tasks = [each for each in (self._running, self._waking) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._runner:
            store = await self._app._ready()
            await store.leases.end(RunnerEnd(runner=self._runner, started=frozenset(), crashed=False))

    async def _run(self) -> None:
        """Run rounds while REST workers claim."""
        while self._queues:
            try:
                found = await self._round(await self._app._ready())
            except LeaseLost:
                self._runner, found = "", 0
            except Exception as error:
                if not isinstance(error, StoreUnavailable):
                    _log.exception("running the jobs of groups failed")
                self._has_failed, found = True, 0
            if not found:
                await self._pause()
            oldest = since_boot() - 2 * self._lease
            self._queues = {queue: at for queue, at in self._queues.items() if at > oldest}

    async def _pause(self) -> None:
        self._woken.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.pause):
                await self._woken.wait()
                if self._ends is not None:
                    await self._ends.quiet.wait()

    async def _round(self, store: Store) -> int:
        """Run the jobs of groups that are due; returns how many."""
        await self._keep_lease(store)
        if self._has_failed:
            await self._put_back(store)
        queues = tuple(self._queues)
        if not await store.signals.has_work(queues, GROUP_TYPES):
            return 0
        request = ClaimRequest(
            runner=self._runner,
            claim=self._claims,
            quotas=tuple(QueueQuota(queue, MAX_CLAIMED) for queue in queues),
            types=GROUP_TYPES,
            limit=MAX_CLAIMED,
            shared=True,
        )
        jobs = await store.jobs.claim(request)
        self._claims += 1
        ended = await asyncio.gather(*(self._work(store, job) for job in jobs), return_exceptions=True)
        for error in filter(None, ended):
            raise error
        return len(jobs)

    async def _put_back(self, store: Store) -> None:
        """Requeue jobs that a round left unsettled: the lease is renewed, so they are not rescued."""
        left = [each for each in await store.jobs.held(self._runner) if each.claim < self._claims]
        if left:
            await store.jobs.settle([requeue(each.id, each.queue, each.attempt) for each in left])
        self._has_failed = False

    async def _keep_lease(self, store: Store) -> None:
        now = since_boot()
        if not self._runner:
            self._runner, self._claims = runner_id(PREFIX + new_runner_id(os.urandom), 1), 1
            await store.leases.open(LeaseRequest(runner=self._runner, worker=self._runner, length=self._lease))
        elif now - self._renewed > self._lease // 3:
            renewal = await store.leases.renew(self._runner, (self._runner,), self._lease)
            if renewal.lost:
                raise LeaseLost(self._runner)
        self._renewed = now

    async def _work(self, store: Store, job: Claimed) -> None:
        outcome = await self._attempt(store, job)
        settlement = decide(job, outcome, Policy(DEFAULT_POLICY), _random)
        (answer,) = await store.jobs.settle([settlement])
        if answer is not Settled.STALE:
            await self.note([(job, settlement.status)])

    async def _attempt(self, store: Store, job: Claimed) -> Outcome:
        """Run the handler, as a runner does."""
        found = (await store.operator.get([job.id]))[0]
        if found is None:
            return Raised(LeaseLost(self._runner), JobError("LeaseLost", "the job is gone"))
        attempt = _Attempt(job, self._app, found)
        try:
            async with asyncio.timeout(job.timeout / SECOND if job.timeout else None):
                result = await attempt.run(decode(await whole_payload(self._app, job)))
            done = Done(check_size(encode(result, "result"), "result", self._app.payload_limit))
        except Exception as error:
            # Any error fails the attempt, which is retried.
            return Raised(error, JobError(type(error).__name__, str(error)))
        finally:
            if attempt.latest is not None:
                note = Note(id=job.id, queue=job.queue, attempt=job.attempt, progress=attempt.latest)
                await store.jobs.note([note])
        return done


class _Attempt(msgspec.Struct):
    """The attempt behind the handler's context."""

    claimed: Claimed
    home: App
    record: Job
    latest: Progress | None = None
    started_after: Micros | None = None
    is_async: bool = True
    cancelled: bool = False
    dead_on: tuple[type[BaseException], ...] = ()
    unawaited: str | None = None
    trace: tuple[str, str] | None = None
    added: Counter[str] = msgspec.field(default_factory=Counter)

    async def run(self, arguments: Any) -> Any:
        """Call the handler with its context."""
        definition = self.home.registry.get(self.claimed.type)
        context = {} if definition.signature.context is None else {definition.signature.context: Context(self)}
        token = entered.set(self)
        try:
            return await definition.handler(**context, **arguments)
        finally:
            entered.reset(token)

    def job(self) -> Job:
        return self.record

    def progress(self, progress: Progress) -> None:
        self.latest = progress

    def log(self, text: str) -> None:
        """No-op."""
