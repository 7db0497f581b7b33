"""A runner: one process of a worker, in which handlers run. It claims, runs and settles for itself.

Started fresh by its supervisor (never forked), with one end of a socket pair and the shared table. If the
supervisor goes away, the line ends: the runner claims nothing more, finishes within its lease, and exits.
"""

import asyncio
import contextlib
import functools
import os
import signal
import socket
import sys
import traceback
from random import Random

import msgspec

from windlass.client.app import App
from windlass.core.events import Emit
from windlass.core.moments import SECOND, Micros
from windlass.core.outcome import HandedBack, Outcome, Policy, Settlement, decide
from windlass.core.queue import QueueRules, QueueSettings, merge
from windlass.errors import StoreUnavailable, WindlassError
from windlass.observe.logs import log_events
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.worker.claim import ClaimLoop
from windlass.worker.config import WorkerConfig
from windlass.worker.holdings import Holdings
from windlass.worker.link import Bye, Cancel, Go, Hello, Lapsed, Link, Problem, Stop
from windlass.worker.load import import_trouble, load_app
from windlass.worker.notes import Notes
from windlass.worker.pace import MOST_PREFETCHED
from windlass.worker.patience import persist
from windlass.worker.settle import Settler
from windlass.worker.slots import Slots
from windlass.worker.table import Table
from windlass.worker.work import Work

TICK_SECONDS = 0.1
RULES_EVERY = 1.0
CANCEL_GRACE = 1.0
"""How long a cancelled `async def` handler may clean up before the process ends without it."""
FLUSH_SECONDS = 10.0
"""How long a stopping runner tries to write its last outcomes to a store that does not answer."""
SHORTEST_END = 0.05
"""Seconds before the end of its lease at which an orphan is over, at the latest."""
_NO_RULES = merge(QueueSettings(), QueueSettings())


class RunnerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor tells a runner on its command line."""

    worker: WorkerConfig
    line: int
    """The descriptor of its end of the socket pair."""
    table: int
    """The descriptor of the shared table."""


def table_size(config: WorkerConfig) -> int:
    """Entries for all that a runner may hold at once: slots, prefetched jobs, outcomes on their way."""
    return 2 * (config.concurrency + MOST_PREFETCHED)


class Runner:
    """Wires the parts together and stops them in order."""

    def __init__(self, app: App, store: Store, config: WorkerConfig, table: Table, link: Link, emit: Emit) -> None:
        self._app = app
        self._store = store
        self._config = config
        self._table = table
        self._link = link
        self._random = Random()
        self._rules: dict[str, QueueRules] = {}
        self._notes = Notes(store.jobs, emit)
        self._holdings = Holdings(app.registry, table, self._notes.unsent)
        self._settler = Settler(store.jobs, emit, self._holdings.remove, verbose=config.verbose)
        self._slots = Slots(config.concurrency, table, self._ended)
        self._loop = ClaimLoop(
            store,
            self._slots,
            self._holdings,
            self._settler,
            table,
            emit,
            reconcile_every=config.lease / SECOND,
        )
        self._vouched: str | None = None
        self._last_words: set[asyncio.Task[None]] = set()
        self._deadline: Micros | None = None
        self._stopping = asyncio.Event()
        self.orphan = False
        """Whether the supervisor has gone before us."""

    async def run(self) -> None:
        """Until told to stop, or orphaned."""
        queues = self._config.queues or dict.fromkeys(self._app.queue_names)
        types = self._app.registry.types
        await self._refresh_rules()
        tasks = [
            asyncio.create_task(self._loop.run(queues, types)),
            asyncio.create_task(self._settler.run()),
            asyncio.create_task(self._notes.run()),
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

    async def _listen(self) -> None:
        async for message in self._link.from_supervisor():
            match message:
                case Go(runner, lease):
                    self._serve(runner, lease)
                case Cancel(id=id_, attempt=attempt):
                    if (work := self._holdings.find(id_, attempt)) is not None:
                        work.cancelled = True
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
        settlement = decide(work.claimed, outcome, self._policy(work), self._random)
        settlement = msgspec.structs.replace(settlement, started_after=work.started_after)
        if work in self._notes.unsent:
            last_words = asyncio.create_task(self._note_then_settle(work, settlement))
            self._last_words.add(last_words)
            last_words.add_done_callback(self._last_words.discard)
        else:
            self._settler.add(work, settlement)

    async def _note_then_settle(self, work: Work, settlement: Settlement) -> None:
        # Notes are fenced by the running attempt, so the last ones go first.
        try:
            await self._notes.send({work})
        finally:
            self._settler.add(work, settlement)

    def _policy(self, work: Work) -> Policy:
        rules = self._rules.get(work.claimed.queue, _NO_RULES)
        return work.definition.policy(rules.retry)

    async def _tick(self) -> None:
        """Show the supervisor that the loop turns; keep the queues' rules fresh."""
        refreshed = since_boot()
        while True:
            self._table.tick = since_boot()
            await asyncio.sleep(TICK_SECONDS)
            self._slots.feed()
            if since_boot() - refreshed > RULES_EVERY * SECOND:
                refreshed = since_boot()
                await self._refresh_rules()

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
        self._slots.break_off(self._holdings)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_GRACE):
                await self._slots.idle()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await asyncio.gather(*self._last_words, return_exceptions=True)
                await self._settler.quiet.wait()

    def _time_left(self) -> float:
        assert self._deadline is not None
        return (self._deadline - since_boot()) / SECOND


async def serve(config: RunnerConfig) -> None:
    """Load the app, say hello, and run."""
    end = socket.socket(fileno=config.line)
    link = await Link.over(end)
    emit = log_events(verbose=config.worker.verbose)
    try:
        app = load_app(config.worker.app)
        # Handlers must not freeze the whole process on a store that is away; the runner itself has patience.
        store = open_store(app.store)
        app.adopt(store)
        await persist("opening the store", lambda: app.declare(store), emit, hopeful=False)
    except WindlassError as error:
        link.say(Problem(str(error)))
        return
    except BaseException as error:
        link.say(Problem(import_trouble(config.worker.app, error)))
        return
    table = Table(config.table, table_size(config.worker))
    runner = Runner(app, store, config.worker, table, link, emit)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, functools.partial(runner.stop, config.worker.drain))
    link.say(Hello(store.address, app.queue_names, app.registry.types))
    await runner.run()
    if not runner.orphan:
        link.say(Bye())
        await link.drain()
        await store.close()
    # An orphan leaves without a word: its lock, free without being cleared away, tells the others that it is dead.


def main() -> None:
    """The process's own main; ends hard, because a deaf thread must not keep it alive."""
    config = msgspec.json.decode(sys.argv[1], type=RunnerConfig)
    # Ctrl-C in a terminal reaches every process of the group; the supervisor speaks for us all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = 0
    # Never closed: that would wait for threads and tasks of handlers, for as long as they like.
    runner = asyncio.Runner(loop_factory=loop_factory())
    try:
        runner.run(serve(config))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    """uvloop where it is installed: the same loop, half the cost."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


if __name__ == "__main__":
    main()
