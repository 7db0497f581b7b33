"""A runner in the process of a test: the same claims, decisions and settlements, one job at a time."""

import os
from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random
from typing import TypedDict

import msgspec

from windlass.client.app import App
from windlass.client.groups.ends import GroupEnds
from windlass.coordinator.duties import Fire
from windlass.core.flow.queue import QueueRules
from windlass.core.ids import JobId, new_runner_id
from windlass.core.jobs.job import Claimed, Job
from windlass.core.jobs.outcome import Outcome, Raised, decide
from windlass.core.moments import MAX_DURATION, SECOND, Duration, Micros, duration, to_datetime, to_micros
from windlass.core.names import check_name
from windlass.core.status import Status
from windlass.core.suggest import unknown_option
from windlass.errors import ConfigError, InvalidOption
from windlass.store.clock import ManualClock, since_boot
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota, RunnerEnd
from windlass.testing.report import Report
from windlass.worker.handlers.work import Work
from windlass.worker.runner.notes import take_note

MAX_ADMITTED = 500
MAX_ATTEMPTS = 10_000
MAX_RESCUED = 100
REAL_LEASE = 3600 * SECOND
"""The lease on a real store: after it the jobs of a killed test run are rescued."""
_INSTANT = timedelta(microseconds=1)


class RunOptions(TypedDict, total=False):
    """The options of `run_all`; `advance` and `until` need the clock of a test.

    - `advance`: let time pass until nothing waits: retries, snoozes, delays, rates. It jumps; `catch_up` decides
      which skipped ticks of schedules run
    - `until`: let time pass up to this moment, or for this long; it stops at every tick of a schedule and everything
      that becomes due
    - `raise_errors`: raise the first error of a handler, after it was recorded
    - `queues`: only these, in this order
    - `limit`: at most this many attempts (10,000), so that a job that never ends is an error
    """

    advance: bool
    until: datetime | Duration
    raise_errors: bool
    queues: Iterable[str]
    limit: int


def inline_runner(app: App, options: RunOptions) -> "InlineRunner":
    """A runner with these options; raises InvalidOption for one that does not exist."""
    for name in options:
        if name not in RunOptions.__annotations__:
            raise unknown_option(name, RunOptions.__annotations__, "an option of run_all")
    return InlineRunner(app, **options)


class InlineRunner:
    """Claims jobs and settles their outcomes; the caller runs the handlers in between."""

    def __init__(
        self,
        app: App,
        *,
        advance: bool = False,
        until: datetime | Duration | None = None,
        raise_errors: bool = False,
        queues: Iterable[str] | None = None,
        limit: int = MAX_ATTEMPTS,
    ) -> None:
        self._app = app
        self._clock = app._store_handle.clock
        self._advance = advance
        self._until = None if until is None else _end(_turned(self._clock, "until").now, until)
        if advance and until is not None:
            raise InvalidOption("until", "cannot be given together with advance")
        if advance:
            _turned(self._clock, "advance")
        self._raises = raise_errors
        self._only = None if queues is None else [check_name(name, "queues") for name in queues]
        self._limit = limit
        self._runner = new_runner_id(os.urandom)
        self._claims = 0
        self._rules: dict[str, QueueRules] = {}
        self._store: Store
        self._fire: Fire
        self._group_ends: GroupEnds
        self._random = _Even()
        self._ran: dict[JobId, None] = {}
        self._errors: list[BaseException] = []
        self._attempts = 0
        self._waits = 0
        """Consecutive waits for a rate's tokens, without a claim."""

    async def begin(self) -> None:
        """Prepare like a runner before its first claim."""
        self._store = await self._app._ready()
        self._fire = Fire(self._store, lambda event: None)
        self._group_ends = GroupEnds(self._store.operator, lost_pause=0)
        if self._clock is None:
            await self._refuse_workers()
        # The clock of a test may jump far while handlers run: the lease must not lapse by that.
        length = REAL_LEASE if self._clock is None else MAX_DURATION
        self._store.leases.hold_liveness_lock(self._runner)
        await self._store.leases.open(LeaseRequest(runner=self._runner, worker="a test", length=length))
        await self._store.leases.rescue(MAX_RESCUED)
        await self._learn()

    async def end(self) -> None:
        """Requeue the held jobs, as a stopping runner does."""
        await self._store.leases.end(RunnerEnd(runner=self._runner, started=frozenset(), crashed=False))
        self._store.leases.release_liveness_lock(self._runner)

    async def _refuse_workers(self) -> None:
        """A worker would run some of the jobs, in parallel and elsewhere."""
        for worker in await self._store.workers.list():
            raise ConfigError(
                f"{self._app!r} has a live worker, process {worker.pid} on {worker.host}, which would take jobs from "
                "run_all: stop it, or give the tests a store of their own"
            )

    async def take(self) -> Work | None:
        """The next job, best first, or None if nothing is due."""
        job = await self._claim()
        while job is None and await self._more():
            job = await self._claim()
        if job is None:
            return None
        if self._attempts >= self._limit:
            raise RuntimeError(
                f"{self._attempts} attempts, and {job.type!r} is due again: does a job come back for ever? "
                "run_all(limit=…) allows more"
            )
        return self._work(job)

    async def settle(self, work: Work, outcome: Outcome) -> Job | None:
        """Decide and write the outcome, as a runner does; returns the job if it is dead now."""
        error = outcome.error if isinstance(outcome, Raised) else None
        if isinstance(error, KeyboardInterrupt):
            raise error  # stops the test, not the job
        if work.lines or work.latest_progress is not None:
            await self._store.jobs.note([take_note(work)])
        policy = work.definition.policy(self._rules[work.claimed.queue].retry)
        settlement = decide(work.claimed, outcome, policy, self._random)
        await self._store.jobs.settle([msgspec.structs.replace(settlement, started_after=work.started_after)])
        self._group_ends.note([(work.claimed, settlement.status)])
        await self._group_ends.check()
        self._attempts += 1
        self._ran[work.claimed.id] = None
        if error is not None and settlement.error is not None:
            self._errors.append(error)
            if self._raises:
                raise error
        return (await self._store.operator.get([settlement.id]))[0] if settlement.status is Status.DEAD else None

    async def report(self) -> Report:
        """The report so far."""
        found = await self._store.operator.get(list(self._ran))
        # A queue may keep no finished jobs.
        jobs = tuple(job for job in found if job is not None)
        return Report(jobs=jobs, attempts=self._attempts, errors=tuple(self._errors))

    async def _claim(self) -> Claimed | None:
        self._claims += 1
        names = self._rules if self._only is None else self._only
        request = ClaimRequest(
            runner=self._runner,
            claim=self._claims,
            quotas=tuple(QueueQuota(name, 1) for name in names),
            types=self._app.registry.runnable,
            limit=1,
        )
        jobs = await self._store.jobs.claim(request)
        if not jobs:
            return None
        self._waits = 0
        return jobs[0]

    async def _more(self) -> bool:
        """Whether there may be more to claim: due jobs, new queues, or a later moment."""
        fired = await self._fire.run() == 0
        admitted = await self._store.jobs.admit(MAX_ADMITTED)
        if fired or admitted.jobs or await self._learn():
            return True
        if not self._advance and self._until is None:
            return False
        found = [admitted.next_due_in, await self._next_token(), *await self._next_tick()]
        waits = [each for each in found if each is not None]
        return self._pass(max(_INSTANT, timedelta(microseconds=min(waits))) if waits else None)

    def _pass(self, length: timedelta | None) -> bool:
        """Let time pass, if allowed; returns whether it did. None: nothing more will be due."""
        assert self._clock is not None  # checked with the options
        now = self._clock.now
        if self._until is None:
            moment = now if length is None else now + length
        else:
            moment = self._until if length is None else min(self._until, now + length)
        if moment <= now:
            return False
        self._clock.set(moment)
        return True

    async def _next_tick(self) -> list[Micros | None]:
        """How long until the next tick of a schedule, if time passes continuously."""
        return [] if self._until is None else [(await self._store.schedules.due(1)).next_in]

    async def _next_token(self) -> Micros | None:
        """How long until a queue's rate allows the next job; None if no job waits for that.

        After as many consecutive waits as a rate's burst the job waits for something else.
        """
        counts = (await self._store.operator.counts()).queues
        queues = [each for each in await self._store.queues.list() if not each.paused]
        waiting = [each.rules.rate_limit for each in queues if counts.get(each.name, {}).get(Status.PENDING)]
        rates = [rate for rate in waiting if rate is not None]
        self._waits += 1
        if not rates or self._waits > max(rate.burst for rate in rates):
            return None
        return min(-(-rate.period // rate.tokens) for rate in rates)

    async def _learn(self) -> bool:
        """Read the queues; returns whether there are new ones."""
        before = set(self._rules)
        self._rules = {queue.name: queue.rules for queue in await self._store.queues.list()}
        return not set(self._rules) <= before

    def _work(self, job: Claimed) -> Work:
        now = since_boot() if self._clock is None else self._clock.since_boot()
        work = Work(job, self._app.registry.get(job.type), -1, now)
        work.started_on = now
        return work


def _turned(clock: ManualClock | None, field: str) -> ManualClock:
    """The clock that this option moves."""
    if clock is None:
        raise InvalidOption(field, "moves the clock of a test, and the time of this app's store is real")
    return clock


def _end(now: datetime, until: datetime | Duration) -> datetime:
    """A moment, or the one after this long."""
    if isinstance(until, datetime):
        return to_datetime(to_micros(until, "until"))
    return now + timedelta(microseconds=duration(until, "until"))


class _Even(Random):
    """No jitter: after exactly the time of a retry, it must be due."""

    def random(self) -> float:
        return 0.5
