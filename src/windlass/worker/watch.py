"""The watch over runners: passes on requests to stop, and frees what is stuck behind a loop that does not turn."""

import asyncio
from random import Random

from windlass.core.events import RunnerBlocked, RunnerHung, StoreBack, StoreTrouble
from windlass.core.moments import SECOND, Micros
from windlass.core.outcome import Policy, decide, hand_back
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.records import CancelRequest
from windlass.worker.child import Child
from windlass.worker.crew import Crew
from windlass.worker.link import Cancel, Overdue
from windlass.worker.run import timed_out
from windlass.worker.table import Entry, State
from windlass.worker.work import claimed_of

EVERY_SECONDS = 0.5
BLOCKED_AFTER: Micros = 2 * SECOND
"""A loop that has not turned for so long is held by a handler."""
HUNG_AFTER: Micros = 2 * SECOND
"""So long after its timeout such a handler is ended, with its runner."""
WARN_EVERY: Micros = 30 * SECOND
HANDSHAKE_SECONDS = 0.002


class Watch:
    """Looks at every runner twice a second."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._told: set[CancelRequest] = set()
        self._random = Random()

    async def run(self) -> None:
        """Until cancelled. A store that is away is told once, and when it is back."""
        troubled = False
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                await self._look_round()
            except StoreUnavailable as error:
                if not troubled:
                    self._crew.emit(StoreTrouble(doing="watching runners", problem=str(error)))
                troubled = True
            else:
                if troubled:
                    self._crew.emit(StoreBack(doing="watching runners"))
                troubled = False

    async def _look_round(self) -> None:
        await self._pass_on_cancels()
        for child in list(self._crew.children):
            await self._free_stuck(child)
            await self._see_hung(child)

    async def _pass_on_cancels(self) -> None:
        if not any(True for child in self._crew.children for _ in child.table.held()):
            return  # who holds nothing is not asked to stop anything
        serving, wanted = self._crew.serving, await self._crew.store.leases.cancels(self._crew.id)
        for cancel in wanted:
            if cancel not in self._told and cancel.runner in serving:
                serving[cancel.runner].link.say(Cancel(cancel.id, cancel.attempt))
        self._told = set(wanted)

    async def _see_hung(self, child: Child) -> None:
        """A handler that never lets go of the loop is reported, and ended with its runner when its time is over.

        The runner cannot do that itself: none of its code runs.
        """
        now, tick = since_boot(), child.table.tick
        started = [entry for entry in child.table.held() if entry.state is State.STARTED]
        if child.hung or not tick or not started or now - tick < BLOCKED_AFTER:
            return
        overdue = [entry for entry in started if entry.deadline and now > entry.deadline + HUNG_AFTER]
        if overdue:
            await self._end_hung(child, overdue)
        elif now - child.warned_on > WARN_EVERY:
            child.warned_on = now
            self._crew.emit(
                RunnerBlocked(
                    runner=child.runner or "",
                    pid=child.pid,
                    seconds=(now - tick) / SECOND,
                    # The youngest first: the loop turned until one of them began.
                    jobs=tuple(entry.id for entry in sorted(started, key=lambda e: -e.since)[:3]),
                    where=await child.stacks.ask(child.pid),
                )
            )

    async def _end_hung(self, child: Child, overdue: list[Entry]) -> None:
        ids = [entry.id for entry in overdue]
        where = await child.stacks.ask(child.pid)
        self._crew.emit(RunnerHung(runner=child.runner or "", pid=child.pid, jobs=tuple(ids), where=where))
        for job in await self._crew.store.operator.get(ids):
            if job is not None:
                claimed, outcome = claimed_of(job), timed_out(round((job.timeout or 0) * SECOND))
                settlement = decide(claimed, outcome, Policy(self._crew.retry(job.type)), self._random)
                child.overdue.append(Overdue(settlement, job.type))
        child.hung = True
        child.kill()

    async def _free_stuck(self, child: Child) -> None:
        """Hand back prefetched jobs that the runner should have started long ago."""
        now = since_boot()
        late = [e for e in child.table.held() if e.state is State.PREFETCHED and now > e.start_by]
        if not late:
            return
        for entry in late:
            child.table.take(entry.index)
        # The runner may be starting one of them right now: by then it has either seen us, or is seen by us.
        await asyncio.sleep(HANDSHAKE_SECONDS)
        waiting = {(e.index, e.id, e.attempt) for e in child.table.held() if e.state is State.PREFETCHED}
        stuck = {(e.id, e.attempt) for e in late if (e.index, e.id, e.attempt) in waiting}
        if stuck and child.runner is not None:
            held = await self._crew.store.jobs.held(child.runner)
            back = [hand_back(job.id, job.queue, job.attempt) for job in held if (job.id, job.attempt) in stuck]
            await self._crew.store.jobs.settle(back)
