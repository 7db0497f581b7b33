"""The supervisor: keeps the leases of its runners alive, and never runs user code.

So a handler that holds the interpreter for minutes loses nothing: its lease is renewed from here. The supervisor
starts runners, replaces those that die, reports what they were running, and takes care of the coordinator's duties if
this worker holds that office.
"""

import asyncio
import contextlib
import os
import signal
import socket

from windlass.coordinator.coordinator import Coordinator
from windlass.core.events import (
    DrainStarted,
    Emit,
    JobRescued,
    LeaseExpired,
    RunnerEnded,
    RunnerStarted,
    StoreTrouble,
    WorkerStarted,
    WorkerStopped,
)
from windlass.core.ids import new_runner_id
from windlass.core.moments import SECOND
from windlass.core.outcome import hand_back
from windlass.errors import ConfigError, StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import LeaseRequest, Note, RunnerEnd, WorkerInfo
from windlass.version import __version__
from windlass.worker.child import Child
from windlass.worker.config import WorkerConfig
from windlass.worker.empty import is_empty
from windlass.worker.health import Health
from windlass.worker.holdings import PATIENCE
from windlass.worker.link import Cancel, Go, Hello, Lapsed, Problem
from windlass.worker.patience import persist
from windlass.worker.table import State

WATCH_SECONDS = 0.5
EMPTY_SECONDS = 0.2
KILL_AFTER = 5.0
"""Seconds beyond the drain time after which a runner that does not end is killed."""
SLOWEST_RESTART = 5.0


class Supervisor:
    """One worker: its runners and their leases."""

    def __init__(self, config: WorkerConfig, emit: Emit) -> None:
        self._config = config
        self._emit = emit
        self._id = new_runner_id(os.urandom)
        self._children: set[Child] = set()
        self._store: Store | None = None
        self._hello: Hello | None = None
        self._opening = asyncio.Lock()
        self._registered = asyncio.Event()
        self._stopping = asyncio.Event()
        self._second = asyncio.Event()
        self._problem: str | None = None
        self._beat_at = 0
        self._pace: tuple[int, int] = (0, 0)
        self._per_minute = 0.0

    async def run(self) -> int:
        """Until stopped: the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        health = await self._open_health()
        keepers = [asyncio.create_task(self._keep_runner(i)) for i in range(self._config.processes)]
        services = [asyncio.create_task(self._serve())]
        try:
            await self._until_stopped([*keepers, *services])
        finally:
            for service in services:
                service.cancel()
            await asyncio.gather(*services, return_exceptions=True)
            await self._end_runners(keepers)
            await self._sign_off()
            await health.stop()
        if self._problem is not None:
            raise ConfigError(self._problem)
        return 0

    def stop(self) -> None:
        """The first call starts the drain, the second ends it."""
        if self._stopping.is_set():
            self._second.set()
        self._stopping.set()

    async def _until_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        stop = asyncio.create_task(self._stopping.wait())
        done, _ = await asyncio.wait([*tasks, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        for task in done:
            if task is not stop and task.exception() is not None:
                self._stopping.set()
                task.result()

    # Runners.

    async def _keep_runner(self, index: int) -> None:
        """One place for a runner: filled, and filled again when the one in it dies."""
        pause = 0.0
        while not self._stopping.is_set():
            await asyncio.sleep(pause)
            born = since_boot()
            child = await Child.start(self._config)
            self._children.add(child)
            if self._stopping.is_set():
                child.stop(0)
            await self._attend(child)
            self._children.discard(child)
            await self._bury(child)
            # A runner that dies young is likely to do so again: take it slowly.
            pause = 0.0 if since_boot() - born > 10 * SECOND else min(SLOWEST_RESTART, max(0.1, pause * 2))

    async def _attend(self, child: Child) -> None:
        """Listen to a runner until it is gone."""
        async for message in child.link.from_runner():
            match message:
                case Hello():
                    await self._welcome(child, message)
                case Lapsed(runner) if runner == child.runner:
                    await self._new_lease(child)
                case Problem(text):
                    self._problem = text
                    self._stopping.set()
        await child.process.wait()

    async def _welcome(self, child: Child, hello: Hello) -> None:
        async with self._opening:
            if self._store is None:
                self._store, self._hello = open_store(hello.store, first=True), hello
                self._store.leases.vouch(self._id)
                await self._register()
        await self._new_lease(child)

    async def _new_lease(self, child: Child) -> None:
        """A lease under a new id: ids are never used twice, so a lapsed runner cannot come back as itself."""
        store, runner = self._opened(), new_runner_id(os.urandom)
        if child.runner is not None:
            self._emit(LeaseExpired(runner=child.runner))
        request = LeaseRequest(runner=runner, worker=self._id, length=self._config.lease)
        sent = since_boot()
        await persist("opening a lease", lambda: store.leases.open(request), self._emit)
        child.table.valid_until = sent + self._config.lease
        child.runner = runner
        child.link.say(Go(runner))
        self._emit(RunnerStarted(runner=runner, pid=child.pid))

    async def _bury(self, child: Child) -> None:
        """A runner is gone: put back what it held, and say how it ended."""
        if child.runner is None:
            if not self._stopping.is_set():
                self._emit(RunnerEnded(runner="(new)", pid=child.pid, status=child.ending(), expected=False))
            child.close()
            return
        expected = child.stopping or child.process.returncode == 0
        self._emit(RunnerEnded(runner=child.runner, pid=child.pid, status=child.ending(), expected=expected))
        ended = RunnerEnd(runner=child.runner, started=child.started(), crashed=not expected)
        store = self._opened()
        rescued = await persist("putting back jobs", lambda: store.leases.end(ended), self._emit)
        for job in rescued:
            self._emit(
                JobRescued(
                    job=job.id,
                    type=job.type,
                    queue=job.queue,
                    attempt=job.attempt,
                    status=job.status,
                    outcome=job.outcome,
                    worker=job.runner,
                )
            )
        child.close()

    async def _end_runners(self, keepers: list[asyncio.Task[None]]) -> None:
        """Drain; a second signal, or time, ends it."""
        grace = 0 if self._problem or self._second.is_set() else self._config.drain
        if self._children and self._registered.is_set():
            self._emit(DrainStarted(worker=self._id, seconds=grace / SECOND))
        renewing = asyncio.create_task(self._renew_leases()) if self._registered.is_set() else None
        for child in self._children:
            child.stop(grace)
        waiting = asyncio.gather(*keepers, return_exceptions=True)
        hurry = asyncio.create_task(self._hurry(grace / SECOND))
        await waiting
        hurry.cancel()
        if renewing is not None:
            renewing.cancel()

    async def _hurry(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._second.wait()
        for child in self._children:
            child.stop(0)
        await asyncio.sleep(KILL_AFTER)
        for child in self._children:
            child.kill()

    # Leases and everything else that goes on while runners work.

    async def _serve(self) -> None:
        await self._registered.wait()
        coordinator = Coordinator(self._opened(), self._id, self._emit)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._renew_leases())
            group.create_task(self._watch())
            group.create_task(self._lead(coordinator))
            if self._config.until_empty:
                group.create_task(self._stop_when_empty())

    async def _lead(self, coordinator: Coordinator) -> None:
        try:
            await coordinator.run()
        finally:
            with contextlib.suppress(StoreUnavailable, TimeoutError):
                await asyncio.wait_for(coordinator.resign(), 2.0)

    async def _renew_leases(self) -> None:
        while True:
            await asyncio.sleep(self._config.beat / SECOND)
            try:
                await self._renew()
            except StoreUnavailable as error:
                self._emit(StoreTrouble(doing="renewing leases", problem=str(error)))
                await asyncio.sleep(min(1.0, self._config.beat / SECOND / 4))

    async def _renew(self) -> None:
        store = self._opened()
        serving = {child.runner: child for child in self._children if child.runner is not None}
        # Validity counts from before the renewal was sent: however long the reply takes, we never think we hold
        # a lease that the store thinks is over.
        sent = since_boot()
        renewal, _, _ = await asyncio.gather(
            store.leases.renew(self._id, tuple(serving), self._config.lease),
            store.workers.beat(self._info()),
            store.jobs.note(self._started_notes(serving)),
        )
        self._beat_at = since_boot()
        for runner in renewal.kept:
            serving[runner].table.valid_until = sent + self._config.lease
        for runner in renewal.lost:
            serving[runner].table.valid_until = 0
            await self._new_lease(serving[runner])

    def _started_notes(self, serving: dict[str, Child]) -> list[Note]:
        """Jobs that have been running for a while: let the store know since when."""
        notes = []
        for child in serving.values():
            started = [entry for entry in child.table.held() if entry.state is State.STARTED]
            now = {(entry.id, entry.attempt) for entry in started}
            for entry in started:
                if (entry.id, entry.attempt) not in child.noted:
                    after = max(0, entry.since - (entry.start_by - PATIENCE))
                    notes.append(Note(id=entry.id, queue="", attempt=entry.attempt, started_after=after))
            child.noted = now
        return notes

    async def _watch(self) -> None:
        """Pass on requests to stop; free jobs that are stuck behind a runner whose loop does not turn."""
        store = self._opened()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                for cancel in await store.leases.cancels(self._id):
                    for child in self._children:
                        if child.runner == cancel.runner:
                            child.link.say(Cancel(cancel.id, cancel.attempt))
                for child in list(self._children):
                    await self._free_stuck(child)
            except StoreUnavailable as error:
                self._emit(StoreTrouble(doing="watching runners", problem=str(error)))

    async def _free_stuck(self, child: Child) -> None:
        now = since_boot()
        late = [e for e in child.table.held() if e.state is State.PREFETCHED and now > e.start_by]
        stuck = {(entry.id, entry.attempt) for entry in late if child.table.take(entry.index)}
        if stuck and child.runner is not None:
            held = await self._opened().jobs.held(child.runner)
            back = [hand_back(job.id, job.queue, job.attempt) for job in held if (job.id, job.attempt) in stuck]
            await self._opened().jobs.settle(back)

    async def _stop_when_empty(self) -> None:
        queues = tuple(self._config.queues) or self._said().queues
        while not await persist("looking for work", lambda: is_empty(self._opened(), queues), self._emit):
            await self._opened().signals.wait(EMPTY_SECONDS)
        self.stop()

    # The registry, and the end.

    async def _register(self) -> None:
        await persist("registering", lambda: self._opened().workers.beat(self._info()), self._emit)
        self._beat_at = since_boot()
        self._registered.set()
        info = self._info()
        self._emit(
            WorkerStarted(
                worker=self._id,
                processes=self._config.processes,
                concurrency=self._config.concurrency,
                queues=info.queues,
                store=self._opened().address,
            )
        )

    async def _sign_off(self) -> None:
        if self._store is None:
            return
        with contextlib.suppress(StoreUnavailable, TimeoutError):
            await asyncio.wait_for(self._store.workers.forget(self._id), 5.0)
        self._store.leases.unvouch(self._id)
        await self._store.close()
        self._emit(WorkerStopped(worker=self._id, code=0))

    def _info(self) -> WorkerInfo:
        said = self._said()
        held = [entry for child in self._children for entry in child.table.held()]
        self._measure()
        return WorkerInfo(
            id=self._id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            queues=tuple(self._config.queues) or said.queues,
            types=said.types,
            processes=self._config.processes,
            slots=self._config.processes * self._config.concurrency,
            running=sum(1 for entry in held if entry.state is State.STARTED),
            per_minute=round(self._per_minute, 1),
            draining=self._stopping.is_set(),
        )

    def _measure(self) -> None:
        done, now = sum(child.table.completed for child in self._children), since_boot()
        before, then = self._pace
        if then and now - then > SECOND // 10:
            self._per_minute = max(0, done - before) * 60 * SECOND / (now - then)
        self._pace = (done, now)

    async def _open_health(self) -> Health:
        health = Health(self._live, self._ready)
        if self._config.health is not None:
            try:
                await health.start(*self._config.health)
            except OSError as error:
                host, port = self._config.health
                raise ConfigError(f"--health {host}:{port}: {error.strerror or error}") from None
        return health

    def _live(self) -> bool:
        """The last good beat is no older than a lease; before the first one, we are starting."""
        return self._beat_at == 0 or since_boot() - self._beat_at < self._config.lease + self._config.beat

    def _ready(self) -> bool:
        serving = any(child.runner is not None for child in self._children)
        return serving and not self._stopping.is_set() and self._live()

    def _opened(self) -> Store:
        assert self._store is not None, "the first runner's hello opens the store"
        return self._store

    def _said(self) -> Hello:
        assert self._hello is not None
        return self._hello
