"""Watches runners: forwards cancel requests, requeues jobs behind a blocked event loop, kills hung runners."""

import asyncio
from collections.abc import Set
from random import Random

from windlass.core.events import RunnerBlocked, RunnerHung
from windlass.core.ids import JobId
from windlass.core.jobs.job import to_claimed
from windlass.core.jobs.outcome import Policy, decide, requeue
from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.records import CancelRequest
from windlass.worker.channel import Cancel, Overdue
from windlass.worker.handlers.attempt import timed_out
from windlass.worker.shared_table import Entry, State
from windlass.worker.store_retry import repeat
from windlass.worker.supervisor.runner_process import RunnerProcess
from windlass.worker.supervisor.state import SupervisorState

EVERY_SECONDS = 0.5
GAP: Micros = 2 * SECOND
"""A round that starts this late is skipped: runners and supervisor may have been suspended together."""
BLOCKED_AFTER: Micros = 2 * SECOND
"""An event loop that has not run for this long is blocked by a handler."""
HUNG_AFTER: Micros = 2 * SECOND
"""This long after its timeout the runner of such a handler is killed."""
WARN_EVERY: Micros = 30 * SECOND
HANDSHAKE_SECONDS = 0.002


class Watch:
    """Checks every runner twice a second; of `processes` also their event loops."""

    def __init__(self, state: SupervisorState, processes: Set[RunnerProcess] = frozenset()) -> None:
        self._state = state
        self._processes = processes
        self._forwarded: set[CancelRequest] = set()
        self._random = Random()
        self._ended_on: Micros = 0
        """When the last round ended."""

    async def run(self) -> None:
        """Watch until cancelled, despite errors: the runners work, and the next round is near."""
        self._ended_on = since_boot()
        await repeat("watching runners", self._round, self._state.emit, every=EVERY_SECONDS)

    async def _round(self) -> None:
        late = since_boot() - self._ended_on > GAP
        try:
            if not late:
                await self._check_all()
        finally:
            self._ended_on = since_boot()

    async def _check_all(self) -> None:
        await self._forward_cancels()
        for child in list(self._processes):
            await self._free_stuck(child)
            await self._check_hung(child)

    async def _forward_cancels(self) -> None:
        """Forward each request once its runner shows the attempt in its table: before that the runner ignores it."""
        if not any(True for child in self._state.runners for _ in child.table.held()):
            return  # without held jobs there is nothing to cancel
        wanted = await self._state.store.leases.cancels(self._state.id)
        serving, held = self._state.serving, set[tuple[str, JobId, int]]()
        for runner in {cancel.runner for cancel in wanted} & serving.keys():
            held |= {(runner, entry.id, entry.attempt) for entry in serving[runner].table.held()}
        found = {cancel for cancel in wanted if (cancel.runner, cancel.id, cancel.attempt) in held}
        for cancel in found - self._forwarded:
            serving[cancel.runner].channel.send(Cancel(cancel.id, cancel.attempt))
        self._forwarded = found

    async def _check_hung(self, child: RunnerProcess) -> None:
        """Report a handler that blocks the loop; past its timeout kill its runner, which cannot do it itself."""
        now, tick = child.table.active_time(since_boot()), child.table.tick
        started = [entry for entry in child.table.held() if entry.state is State.STARTED]
        if child.hung or child.gone or not tick or not started or now - tick < BLOCKED_AFTER:
            return
        overdue = [entry for entry in started if entry.deadline and now > entry.deadline + HUNG_AFTER]
        if overdue:
            await self._end_hung(child, overdue)
        elif now - child.warned_on > WARN_EVERY:
            child.warned_on = now
            self._state.emit(
                RunnerBlocked(
                    runner=child.runner or "",
                    pid=child.pid,
                    seconds=(now - tick) / SECOND,
                    # The latest start first: the loop ran until then.
                    jobs=tuple(entry.id for entry in sorted(started, key=lambda e: -e.since)[:3]),
                    where=await child.stacks.ask(child.pid),
                )
            )

    async def _end_hung(self, child: RunnerProcess, overdue: list[Entry]) -> None:
        ids = [entry.id for entry in overdue]
        jobs = await self._state.store.operator.get(ids)
        where = await child.stacks.ask(child.pid)
        self._state.emit(RunnerHung(runner=child.runner or "", pid=child.pid, jobs=tuple(ids), where=where))
        for job in jobs:
            if job is not None:
                claimed, outcome = to_claimed(job), timed_out(round((job.timeout or 0) * SECOND))
                settlement = decide(claimed, outcome, Policy(self._state.retry(job.type)), self._random)
                child.overdue.append(Overdue(settlement, job.type))
        child.hung = True
        child.kill()

    async def _free_stuck(self, child: RunnerProcess) -> None:
        """Requeue prefetched jobs that the runner should have started long ago."""
        now = since_boot()
        late = [e for e in child.table.held() if e.state is State.PREFETCHED and now > e.start_by]
        if not late:
            return
        for entry in late:
            child.table.take(entry.index)
        # The runner may be starting one of them right now: after this pause one side has read the other's byte.
        await asyncio.sleep(HANDSHAKE_SECONDS)
        waiting = {(e.index, e.id, e.attempt) for e in child.table.held() if e.state is State.PREFETCHED}
        stuck = {(e.id, e.attempt) for e in late if (e.index, e.id, e.attempt) in waiting}
        if stuck and child.runner is not None:
            held = await self._state.store.jobs.held(child.runner)
            back = [requeue(job.id, job.queue, job.attempt) for job in held if (job.id, job.attempt) in stuck]
            await self._state.store.jobs.settle(back)
