"""The engine of a runner: its parts, wired together, and stopped in order."""

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from random import Random

import msgspec

from windlass.client.app import App
from windlass.client.groups.ends import GroupEnds
from windlass.core.events import Emit, JobOverdue, StoreFailed
from windlass.core.jobs.outcome import Done, NotRun, OtherVersion, Outcome, Policy, Requeued, completed, decide
from windlass.core.jobs.retry import StoredPolicy
from windlass.core.moments import SECOND, Micros
from windlass.observe.process import job_figures
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.records import Settled
from windlass.worker.channel import Cancel, Channel, Hint, LeaseGranted, LeaseLapsed, Overdue, Stop
from windlass.worker.config import WorkerConfig
from windlass.worker.handlers.attempt import halted
from windlass.worker.handlers.hooks import STOP_SECONDS, DeadHooks, Lifespan
from windlass.worker.handlers.process_pool import HandlerProcessPool
from windlass.worker.handlers.work import Halt, Work
from windlass.worker.runner.claim_loop import ClaimLoop
from windlass.worker.runner.held_jobs import HeldJobs
from windlass.worker.runner.meters import Batch, Meters
from windlass.worker.runner.notes import FinalNotes, Notes
from windlass.worker.runner.queue_rules import QueueRetryRules
from windlass.worker.runner.settler import Settler
from windlass.worker.runner.slots import Deadlines, Slots
from windlass.worker.shared_table import SharedTable
from windlass.worker.through_server import runnable

TICK_SECONDS = 0.1
RULES_EVERY = 1.0
CANCEL_GRACE = 1.0
"""How long a cancelled `async def` handler may clean up before the process ends without it."""
FLUSH_SECONDS = 10.0
"""How long a stopping runner tries to write its last outcomes to a store that does not answer."""
MIN_END = 0.05
"""Seconds before the end of its lease at which an orphan is killed."""


class Engine:
    """Claims, runs and settles until it is stopped or orphaned."""

    def __init__(
        self,
        app: App,
        store: Store,
        config: WorkerConfig,
        table: SharedTable,
        channel: Channel,
        emit: Emit,
        mark: str,
    ) -> None:
        self._app, self._store = app, store
        self._config, self._table = config, table
        self._channel, self._random, self._emit = channel, Random(), emit
        self._lifespan = Lifespan(app, emit)
        self._dead = DeadHooks(app, store, self._lifespan, emit)
        self._rules = QueueRetryRules(store, config, app.queue_names, emit)
        self._notes = Notes(store.jobs, emit)
        news = emit if config.verbose else None
        self._held_jobs = HeldJobs(app.registry, table, self._notes.unsent, isolate=bool(config.app), emit=news)
        figures = job_figures(through_server=bool(config.server))
        self._meters = Meters(store.stats, emit, figures)
        self._group_ends = GroupEnds(store.operator, emit, holds=self._held_jobs.holds_child_of)
        self._settler = Settler(
            store.jobs,
            self._dead.listening(emit),
            self._held_jobs.remove,
            self._flowing,
            verbose=config.verbose,
            measure=self._measure,
        )
        stop_seconds = STOP_SECONDS if app.hooks.stop else 0
        self._processes = HandlerProcessPool(config, mark, stop_seconds=stop_seconds, emit=emit)
        self._slots = Slots(
            config.concurrency, table, self._processes, figures, retry=self._queue_retry, ended=self._ended, emit=emit
        )
        self._loop = ClaimLoop(
            store, self._slots, self._held_jobs, self._settler, table, emit, reconcile_every=config.lease / SECOND
        )
        self._deadlines = Deadlines(self._slots)
        self._locked_as: str | None = None
        self._final_notes = FinalNotes(self._notes, self._settler.add)
        self._deadline: Micros | None = None
        self._stopping = asyncio.Event()
        self._completed = 0
        self.orphan = False
        """Whether the supervisor has ended before this runner."""
        self.failure: BaseException | None = None
        """The error that ended a part of the engine, and so the engine."""

    async def start(self) -> None:
        """Run the start hooks; raises ConfigError."""
        await self._lifespan.start()

    async def run(self) -> None:
        """Until stopped, orphaned, or failed (`failure`)."""
        types = runnable(self._app, self._config)
        await self._rules.refresh()
        tasks = [
            asyncio.create_task(self._loop.run(self._rules.served, types)),
            asyncio.create_task(self._settler.run()),
            asyncio.create_task(self._notes.run()),
            asyncio.create_task(self._dead.run()),
            asyncio.create_task(self._meters.run()),
            asyncio.create_task(self._group_ends.run()),
            asyncio.create_task(self._tick()),
            asyncio.create_task(self._report_lapse()),
            asyncio.create_task(self._listen()),
        ]
        stop = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait([*tasks, stop], return_when=asyncio.FIRST_COMPLETED)
            for failed in done - {stop}:
                # A part that ended by itself has failed; running handlers get the drain time.
                self.failure = asyncio.CancelledError() if failed.cancelled() else failed.exception()
                self._emit(StoreFailed(doing="running jobs", problem=repr(self.failure), retried=False))
                self.stop(self._config.drain)
            tasks[0].cancel()
            await self._drain()
            await self._close()
        finally:
            for task in [*tasks, stop]:
                task.cancel()
            self._slots.close()

    async def _listen(self) -> None:
        async for message in self._channel.from_supervisor():
            match message:
                case LeaseGranted(runner, lease):
                    self._serve(runner, lease)
                case Cancel(id=id_, attempt=attempt):
                    if (work := self._held_jobs.find(id_, attempt)) is not None:
                        work.cancel(self._table.active_time(since_boot()))
                        self._processes.request_cancel(work)
                case Hint():
                    self._store.signals.wake()
                case Stop(grace):
                    self.stop(grace)
        self._be_orphan()
        await asyncio.Event().wait()

    def _be_orphan(self) -> None:
        """The supervisor has ended, so no more renewals come: only the rest of the lease is left.

        Its last quarter is for interrupting handlers that do not end. Then the kernel kills this process,
        whatever the handlers do: when its jobs are rescued at the end of the lease, none of them may still run.
        """
        self.orphan = True
        left = self._table.valid_until - since_boot()
        self.stop(max(0, left - self._config.lease // 4))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(MIN_END, left / SECOND - MIN_END))

    def stop(self, grace: Micros) -> None:
        """Stop claiming; a second call can only shorten the time."""
        deadline = since_boot() + grace
        self._deadline = deadline if self._deadline is None else min(deadline, self._deadline)
        self._stopping.set()
        self._slots.changed.set()

    def kill_processes(self) -> None:
        """Kill all handler processes."""
        self._processes.kill_all()

    def _serve(self, runner: str, lease: int) -> None:
        self._store.leases.hold_liveness_lock(runner)
        if self._locked_as is not None:
            # The old lease is lost, and other runners have its jobs: start none of them.
            self._held_jobs.remove(self._slots.take_unstarted())
            self._store.leases.release_liveness_lock(self._locked_as)
        self._locked_as = self._settler.runner = self._held_jobs.runner = runner
        self._table.serving = lease
        self._loop.serve(runner)

    def _ended(self, work: Work, outcome: Outcome) -> None:
        """A handler has returned: decide its settlement, and queue it for writing.

        The job of an interrupted handler is requeued when this process has ended, not before: a part of the
        handler, such as a thread it waited for, may still run here.
        """
        if isinstance(outcome, Done):
            work.ended_on = since_boot()
            self._completed += 1
            self._final_notes.settle(work, completed(work.claimed, outcome.result, work.started_after))
            return
        if isinstance(outcome, Requeued):
            return
        if isinstance(outcome, OtherVersion):
            self._held_jobs.leave(work.claimed.type)
        settlement = decide(work.claimed, outcome, self._policy(work), self._random)
        if isinstance(outcome, NotRun | OtherVersion):
            self._settler.add(work, settlement)
            return
        work.ended_on = since_boot()
        self._completed += 1
        settlement = msgspec.structs.replace(settlement, started_after=work.started_after)
        self._final_notes.settle(work, settlement)

    def _measure(self, batch: Batch, answers: Sequence[Settled]) -> None:
        """Count outcomes that are durable."""
        self._meters.measure(batch, answers)
        if not self._config.server:  # else the server wakes groups
            self._group_ends.note_settled(((work.claimed, each.status) for work, each in batch), answers)

    def _flowing(self) -> bool:
        """Whether another claim is near: jobs arrive faster than one by one."""
        return self._loop.asking or self._slots.buffered > 0

    def _policy(self, work: Work) -> Policy:
        return work.definition.policy(self._queue_retry(work))

    def _queue_retry(self, work: Work) -> StoredPolicy:
        return self._rules.retry(work.claimed.queue)

    async def _tick(self) -> None:
        """Show the supervisor that the loop runs, halt overdue handlers, and refresh the rules of queues."""
        refreshed = since_boot()
        while True:
            self._table.tick = self._table.active_time(since_boot())
            self._table.completed = self._completed
            await asyncio.sleep(TICK_SECONDS)
            self._slots.feed()
            if self._slots.lost:
                self.stop(self._config.drain)
            for stuck in self._deadlines.sweep(self._table.active_time(since_boot())):
                self._give_up(stuck)
            if since_boot() - refreshed > RULES_EVERY * SECOND:
                refreshed = since_boot()
                await self._rules.refresh()

    def _give_up(self, work: Work) -> None:
        """Only the end of this process ends such a handler; its job fails after that.

        Until then the handler keeps its job and its slot, so that attempts do not overlap. Other jobs get the
        drain time; an embedded engine goes on.
        """
        outcome = halted(work)
        assert outcome is not None
        settlement = decide(work.claimed, outcome, self._policy(work), self._random)
        self._channel.send(Overdue(settlement, work.claimed.type))
        assert work.halted is not None
        overdue = JobOverdue(
            job=work.claimed.id,
            type=work.claimed.type,
            attempt=work.claimed.attempt,
            worker=self._settler.runner,
            why=work.halted.value,
            seconds=None if self._config.embedded else self._config.drain / SECOND,
        )
        self._emit(overdue)
        if not self._config.embedded:
            self.stop(self._config.drain)

    async def _report_lapse(self) -> None:
        while True:
            await self._loop.lost.wait()
            if self._locked_as is not None:
                self._channel.send(LeaseLapsed(self._locked_as))
            self._loop.lost.clear()

    async def _drain(self) -> None:
        """Requeue jobs that have not started, let the rest end, interrupt those that do not, write every outcome."""
        for work in self._slots.take_unstarted():
            self._settler.add(work, decide(work.claimed, Requeued(), self._policy(work), self._random))
        while self._slots.running and (left := self._time_left()) > 0:
            self._slots.changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, 1.0)):
                    await self._slots.changed.wait()
        for work in list(self._slots.active):
            self._slots.halt(work, Halt.DRAIN)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_GRACE):
                await self._slots.idle()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._final_notes.sent()
                await self._settler.quiet.wait()
                await self._group_ends.quiet.wait()
                await self._meters.flush()

    async def _close(self) -> None:
        """Run the stop hooks, of the handler processes and of this one, after the `on_dead` hooks."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(STOP_SECONDS, self._time_left())):
                await self._dead.quiet.wait()
        await asyncio.gather(self._processes.close(), self._lifespan.stop(self._time_left()))

    def _time_left(self) -> float:
        assert self._deadline is not None
        return (self._deadline - since_boot()) / SECOND
