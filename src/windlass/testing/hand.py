"""A worker's part, played by hand: the same claims, decisions and settlements, one job at a time."""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import TypedDict

import msgspec

from windlass.client.app import App
from windlass.coordinator.fire import Fire
from windlass.core.ids import JobId, new_runner_id
from windlass.core.job import Claimed, Job
from windlass.core.moments import LONGEST, Micros, duration, to_datetime, to_micros
from windlass.core.names import check_name
from windlass.core.outcome import Outcome, Raised, decide
from windlass.core.queue import QueueRules
from windlass.core.status import Status
from windlass.errors import InvalidOption
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, LeaseRequest, QueueShare, RunnerEnd
from windlass.testing.report import Report
from windlass.worker.notes import take_note
from windlass.worker.work import Work

MOST_ADMITTED = 500
MOST_ATTEMPTS = 10_000
_INSTANT = timedelta(microseconds=1)


class RunOptions(TypedDict, total=False):
    """What `run_all` takes.

    - `advance`: let time pass until nothing waits any more: retries, snoozes, delays, rates. It jumps: of ticks of
      schedules that lie between, as many run as `catch_up` says
    - `until`: let time pass up to this moment, or for so long: it stops at every tick of a schedule and everything
      that becomes due, as time does
    - `raise_errors`: raise the first error of a handler, after it was recorded as ever
    - `queues`: only these, in this order
    - `limit`: so many attempts at most (10,000): a job that comes back for ever is an error, not a test that hangs
    """

    advance: bool
    until: datetime | timedelta
    raise_errors: bool
    queues: Sequence[str]
    limit: int


class Hand:
    """Gives out jobs and takes their outcomes; whoever holds it runs the handlers in between."""

    def __init__(
        self,
        app: App,
        *,
        advance: bool = False,
        until: datetime | timedelta | None = None,
        raise_errors: bool = False,
        queues: Sequence[str] | None = None,
        limit: int = MOST_ATTEMPTS,
    ) -> None:
        self._app = app
        self._clock = app.clock
        self._advance = advance
        self._until = None if until is None else _end(self._clock.now, until)
        if advance and until is not None:
            raise InvalidOption("until", "cannot be given together with advance")
        self._raises = raise_errors
        self._only = None if queues is None else [check_name(name, "queues") for name in queues]
        self._limit = limit
        self._runner = new_runner_id(os.urandom)
        self._claims = 0
        self._rules: dict[str, QueueRules] = {}
        self._store: Store
        self._fire: Fire
        self._random = _Even()
        self._ran: dict[JobId, None] = {}
        self._errors: list[BaseException] = []
        self._attempts = 0
        self._waits = 0
        """In a row for a token of some queue's rate, without a claim."""

    async def begin(self) -> None:
        """What a runner does before its first claim."""
        self._store = await self._app._ready()
        self._fire = Fire(self._store, lambda event: None)
        # The clock may go far while handlers run: no lease of ours may lapse by that.
        await self._store.leases.open(LeaseRequest(runner=self._runner, worker="a test", length=LONGEST))
        await self._learn()

    async def end(self) -> None:
        """What becomes of a runner that stops: whatever it still holds is handed back."""
        await self._store.leases.end(RunnerEnd(runner=self._runner, started=frozenset(), crashed=False))

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
        """Decide and write what becomes of the job, as a runner does; the job, if it is dead now."""
        error = outcome.error if isinstance(outcome, Raised) else None
        if isinstance(error, KeyboardInterrupt):
            raise error  # somebody stops the test, not the job
        if work.lines or work.said is not None:
            await self._store.jobs.note([take_note(work)])
        policy = work.definition.policy(self._rules[work.claimed.queue].retry)
        settlement = decide(work.claimed, outcome, policy, self._random)
        await self._store.jobs.settle([msgspec.structs.replace(settlement, started_after=work.started_after)])
        self._attempts += 1
        self._ran[work.claimed.id] = None
        if error is not None and settlement.error is not None:
            self._errors.append(error)
            if self._raises:
                raise error
        return (await self._store.operator.get([settlement.id]))[0] if settlement.status is Status.DEAD else None

    async def report(self) -> Report:
        """What was done so far."""
        found = await self._store.operator.get(list(self._ran))
        # A queue may keep nothing of its finished jobs.
        jobs = tuple(job for job in found if job is not None)
        return Report(jobs=jobs, attempts=self._attempts, errors=tuple(self._errors))

    async def _claim(self) -> Claimed | None:
        self._claims += 1
        names = self._rules if self._only is None else self._only
        request = ClaimRequest(
            runner=self._runner,
            claim=self._claims,
            shares=tuple(QueueShare(name, 1) for name in names),
            types=self._app.registry.types,
            limit=1,
        )
        jobs = await self._store.jobs.claim(request)
        if not jobs:
            return None
        self._waits = 0
        return jobs[0]

    async def _more(self) -> bool:
        """Whether there may be more to claim: jobs that are due now, queues that are new, or a later moment."""
        fired = await self._fire.run() == 0
        admitted = await self._store.jobs.admit(MOST_ADMITTED)
        if fired or admitted.jobs or await self._learn():
            return True
        if not self._advance and self._until is None:
            return False
        found = [admitted.next_due_in, await self._next_token(), *await self._next_tick()]
        waits = [each for each in found if each is not None]
        return self._pass(max(_INSTANT, timedelta(microseconds=min(waits))) if waits else None)

    def _pass(self, length: timedelta | None) -> bool:
        """Let time pass, if it may: whether it did. None: nothing is to come."""
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
        """How long until a schedule comes: of interest only where time passes as it does."""
        return [] if self._until is None else [(await self._store.schedules.due(1)).next_in]

    async def _next_token(self) -> Micros | None:
        """How long until the next job may start somewhere by the rate of its queue; None where none waits for that.

        After as many waits in a row as any job could cost, what waits there waits for something else.
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
        """Look at the queues; whether there are new ones."""
        before = set(self._rules)
        self._rules = {queue.name: queue.rules for queue in await self._store.queues.list()}
        return not set(self._rules) <= before

    def _work(self, job: Claimed) -> Work:
        now = self._clock.since_boot()
        work = Work(job, self._app.registry.get(job.type), -1, now)
        work.started_on = now
        return work


def _end(now: datetime, until: datetime | timedelta) -> datetime:
    """A moment, or the one after so long."""
    if isinstance(until, timedelta):
        return now + timedelta(microseconds=duration(until, "until"))
    return to_datetime(to_micros(until, "until"))


class _Even(Random):
    """No jitter: a test that lets exactly the time of a retry pass must find it due."""

    def random(self) -> float:
        return 0.5
