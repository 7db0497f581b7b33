"""The engine of a runner: its parts, wired together, and stopped in order."""

import asyncio
import contextlib
import signal
from random import Random

import msgspec

from windlass.client.app import App
from windlass.core.events import Emit, JobOverdue
from windlass.core.moments import SECOND, Micros
from windlass.core.outcome import Done, HandedBack, Outcome, Policy, Settlement, completed, decide
from windlass.core.queue import QueueRules, QueueSettings, merge
from windlass.core.retry import StoredPolicy
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.worker.cells import Cells
from windlass.worker.claim import ClaimLoop
from windlass.worker.config import WorkerConfig
from windlass.worker.dead import DeadHooks
from windlass.worker.deadlines import Deadlines
from windlass.worker.holdings import Holdings
from windlass.worker.lifespan import STOP_SECONDS, Lifespan
from windlass.worker.link import Cancel, Go, Lapsed, Link, Look, Overdue, Stop
from windlass.worker.meter import Meters
from windlass.worker.notes import Notes
from windlass.worker.run import halted
from windlass.worker.settle import Settler
from windlass.worker.slots import Slots
from windlass.worker.table import Table
from windlass.worker.work import Halt, Work

TICK_SECONDS = 0.1
RULES_EVERY = 1.0
CANCEL_GRACE = 1.0
"""How long a cancelled `async def` handler may clean up before the process ends without it."""
FLUSH_SECONDS = 10.0
"""How long a stopping runner tries to write its last outcomes to a store that does not answer."""
SHORTEST_END = 0.05
"""Seconds before the end of its lease at which an orphan is over, at the latest."""
_NO_RULES = merge(QueueSettings(), QueueSettings())


class Engine:
    """Claims, runs and settles until it is told to stop, or orphaned."""

    def __init__(self, app: App, store: Store, config: WorkerConfig, table: Table, link: Link, emit: Emit) -> None:
        self._app = app
        self._store = store
        self._config = config
        self._table = table
        self._link = link
        self._random = Random()
        self._emit = emit
        self._lifespan = Lifespan(app, emit)
        self._dead = DeadHooks(app, store, self._lifespan, emit)
        self._rules: dict[str, QueueRules] = {}
        self._notes = Notes(store.jobs, emit)
        self._holdings = Holdings(app.registry, table, self._notes.unsent)
        heard = self._dead.listening(emit)
        self._meters = Meters(store.stats, emit)
        self._settler = Settler(
            store.jobs,
            heard,
            self._holdings.remove,
            self._flowing,
            verbose=config.verbose,
            measure=self._meters.measure,
        )
        self._cells = Cells(config, stop_seconds=STOP_SECONDS if app.hooks.stop else 0)
        self._slots = Slots(config.concurrency, table, self._cells, retry=self._queue_retry, ended=self._ended)
        self._loop = ClaimLoop(
            store,
            self._slots,
            self._holdings,
            self._settler,
            table,
            emit,
            reconcile_every=config.lease / SECOND,
        )
        self._deadlines = Deadlines(self._slots)
        self._vouched: str | None = None
        self._noting = False
        self._parting: list[tuple[Work, Settlement]] = []
        self._last_words: set[asyncio.Task[None]] = set()
        self._deadline: Micros | None = None
        self._stopping = asyncio.Event()
        self.orphan = False
        """Whether the supervisor has gone before us."""

    async def start(self) -> None:
        """Run the start hooks; raises ConfigError."""
        await self._lifespan.start()

    async def run(self) -> None:
        """Until told to stop, or orphaned."""
        queues = self._config.queues or dict.fromkeys(self._app.queue_names)
        types = self._app.registry.types
        await self._refresh_rules()
        tasks = [
            asyncio.create_task(self._loop.run(queues, types)),
            asyncio.create_task(self._settler.run()),
            asyncio.create_task(self._notes.run()),
            asyncio.create_task(self._dead.run()),
            asyncio.create_task(self._meters.run()),
            asyncio.create_task(self._tick()),
            asyncio.create_task(self._report_lapse()),
            asyncio.create_task(self._listen()),
        ]
        stop = asyncio.create_task(self._stopping.wait())
        done, _ = await asyncio.wait([*tasks, stop], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task is not stop:
                task.result()  # a part that ended by itself has failed: let it be seen
        tasks[0].cancel()
        await self._drain()
        await self._close()

    async def _listen(self) -> None:
        async for message in self._link.from_supervisor():
            match message:
                case Go(runner, lease):
                    self._serve(runner, lease)
                case Cancel(id=id_, attempt=attempt):
                    if (work := self._holdings.find(id_, attempt)) is not None:
                        work.cancel()
                        self._cells.leave(work)
                case Look():
                    self._store.signals.hear()
                case Stop(grace):
                    self.stop(grace)
        self._be_orphan()
        await asyncio.Event().wait()

    def _be_orphan(self) -> None:
        """The supervisor is gone, and with it our renewals: what is left is the rest of the lease.

        Its last quarter is for breaking off what does not end. Then the kernel ends us, whatever the handlers do:
        whoever rescues our jobs at the end of the lease must find nobody who still runs them.
        """
        self.orphan = True
        left = self._table.valid_until - since_boot()
        self.stop(max(0, left - self._config.lease // 4))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(SHORTEST_END, left / SECOND - SHORTEST_END))

    def stop(self, grace: Micros) -> None:
        """Claim nothing more; a second call can only shorten the time."""
        deadline = since_boot() + grace
        self._deadline = deadline if self._deadline is None else min(deadline, self._deadline)
        self._stopping.set()
        self._slots.changed.set()

    def end_cells(self) -> None:
        """Nothing of us outlives us."""
        self._cells.kill_all()

    def _serve(self, runner: str, lease: int) -> None:
        self._store.leases.vouch(runner)
        if self._vouched is not None:
            # The old lease is gone and its jobs are other people's: start none of them.
            for work in self._slots.take_unstarted():
                self._holdings.remove(work)
            self._store.leases.unvouch(self._vouched)
        self._vouched = self._settler.runner = runner
        self._table.serving = lease
        self._loop.serve(runner)

    def _ended(self, work: Work, outcome: Outcome) -> None:
        """A handler has returned: decide what becomes of its job, and have it written.

        One that was broken off is put back by whoever sees this process end, and not before: something of it, such
        as a thread it waited for, may still be running here.
        """
        if isinstance(outcome, HandedBack):
            return
        self._table.completed += 1
        work.ended_on = since_boot()
        if isinstance(outcome, Done):
            settlement = completed(work.claimed, outcome.result, work.started_after)
        else:
            settlement = decide(work.claimed, outcome, self._policy(work), self._random)
            settlement = msgspec.structs.replace(settlement, started_after=work.started_after)
        if work in self._notes.unsent:
            self._parting.append((work, settlement))
            if not self._noting:
                self._noting = True
                last_words = asyncio.create_task(self._note_then_settle())
                self._last_words.add(last_words)
                last_words.add_done_callback(self._last_words.discard)
        else:
            self._settler.add(work, settlement)

    async def _note_then_settle(self) -> None:
        """Notes are fenced by the running attempt, so the last ones go first; all that have gathered, together."""
        while self._parting:
            parting, self._parting = self._parting, []
            try:
                await self._notes.send({work for work, _ in parting})
            finally:
                for work, settlement in parting:
                    self._settler.add(work, settlement)
        # Here, and not when the task is seen to be done: one that ends in between must find somebody.
        self._noting = False

    def _flowing(self) -> bool:
        """Whether another claim is near: jobs come faster than one by one."""
        return self._loop.asking or self._slots.buffered > 0

    def _policy(self, work: Work) -> Policy:
        return work.definition.policy(self._queue_retry(work))

    def _queue_retry(self, work: Work) -> StoredPolicy:
        return self._rules.get(work.claimed.queue, _NO_RULES).retry

    async def _tick(self) -> None:
        """Show the supervisor that the loop turns; keep the queues' rules fresh."""
        refreshed = since_boot()
        while True:
            self._table.tick = since_boot()
            await asyncio.sleep(TICK_SECONDS)
            self._slots.feed()
            for deaf in self._deadlines.sweep(since_boot()):
                self._give_up(deaf)
            if since_boot() - refreshed > RULES_EVERY * SECOND:
                refreshed = since_boot()
                await self._refresh_rules()

    def _give_up(self, work: Work) -> None:
        """A handler that will not end can only be ended with this process; its job fails when that has happened.

        Until then it keeps its job and its slot, so that no attempt overlaps the next. The others get the drain time.
        """
        outcome = halted(work)
        assert outcome is not None
        settlement = decide(work.claimed, outcome, self._policy(work), self._random)
        self._link.say(Overdue(settlement, work.claimed.type))
        self._emit(self._overdue(work))
        self.stop(self._config.drain)

    def _overdue(self, work: Work) -> JobOverdue:
        assert work.halted is not None
        return JobOverdue(
            job=work.claimed.id,
            type=work.claimed.type,
            attempt=work.claimed.attempt,
            worker=self._settler.runner,
            why=work.halted.value,
            seconds=self._config.drain / SECOND,
        )

    async def _refresh_rules(self) -> None:
        with contextlib.suppress(StoreUnavailable):
            self._rules = {queue.name: queue.rules for queue in await self._store.queues.list()}

    async def _report_lapse(self) -> None:
        while True:
            await self._loop.lost.wait()
            if self._vouched is not None:
                self._link.say(Lapsed(self._vouched))
            self._loop.lost.clear()

    async def _drain(self) -> None:
        """Hand back what has not started, let the rest end, break off what does not, write every outcome."""
        for work in self._slots.take_unstarted():
            self._settler.add(work, decide(work.claimed, HandedBack(), self._policy(work), self._random))
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
                await asyncio.gather(*self._last_words, return_exceptions=True)
                await self._settler.quiet.wait()
                await self._meters.flush()

    async def _close(self) -> None:
        """The stop hooks, of the cells and our own, once the `on_dead` hooks have had their say."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(STOP_SECONDS, self._time_left())):
                await self._dead.quiet.wait()
        await asyncio.gather(self._cells.close(), self._lifespan.stop(self._time_left()))

    def _time_left(self) -> float:
        assert self._deadline is not None
        return (self._deadline - since_boot()) / SECOND
