"""The supervisor: starts and replaces runners, renews their leases, and never runs user code.

So a handler that holds the interpreter for minutes keeps its lease. It is also a candidate for coordinator.
"""

import asyncio
import contextlib
import os

from windlass.core.events import DrainStarted, Emit, SchedulesUndeclared
from windlass.core.ids import new_runner_id
from windlass.core.moments import SECOND, Micros
from windlass.errors import ConfigError, StoreUnavailable, StoreUnusable, WindlassError
from windlass.observe.process import want_figures, watch_events, watch_store
from windlass.observe.systemd import READY, STOPPING, Systemd
from windlass.store.clock import since_boot
from windlass.store.records import ProcessRole
from windlass.worker.channel import Goodbye, Hello, LeaseLapsed, Overdue, StartFailed
from windlass.worker.config import WorkerConfig
from windlass.worker.processes import reaping_orphans
from windlass.worker.stop_signals import on_stop_signals
from windlass.worker.supervisor.beat import SHORT_UNREGISTER, UNREGISTER_SECONDS, LeaseKeeper, Registration, Reports
from windlass.worker.supervisor.health import Health
from windlass.worker.supervisor.metrics import WorkerMetrics
from windlass.worker.supervisor.removal import Removal
from windlass.worker.supervisor.runner_process import Restarts, RunnerProcess
from windlass.worker.supervisor.side_tasks import keep_time, lead, relay, until_empty, watch_schema
from windlass.worker.supervisor.state import SupervisorState
from windlass.worker.supervisor.watch import Watch
from windlass.worker.through_server import ask_lease, open_worker_store

KILL_AFTER = 5.0
"""A runner that should have ended is killed this many seconds after its drain time, or after its socket closed."""
LAST_MESSAGES_SECONDS = 1.0
"""For reading the last messages of a dead runner."""


class Supervisor:
    """One worker, from its first runner to its sign-off."""

    def __init__(self, config: WorkerConfig, emit: Emit) -> None:
        self._config = config
        if config.health is not None:
            want_figures()
        self._emit = emit = watch_events(emit, "supervisor")
        self._children: set[RunnerProcess] = set()
        self._metrics = WorkerMetrics(config, self._children)
        self._state = SupervisorState(new_runner_id(os.urandom), config, emit, self._children)
        self._registration = Registration(self._state)
        self._leases = LeaseKeeper(self._state)
        self._reports = Reports(self._state, self._registration)
        self._restarts: list[Restarts] = []
        self._opening_store = asyncio.Lock()
        self._registered = asyncio.Event()
        self._started = False
        """Whether a runner has had a lease."""
        self._systemd = Systemd()
        self._stopping = asyncio.Event()
        self._removal = Removal(self._state, self._stopping)
        self._second_signal = asyncio.Event()
        self._empty = False
        self._unserved: tuple[str, ...] = ()
        self._problem: WindlassError | None = None

    async def run(self) -> int:
        """Run until a signal stops it; returns the exit code."""
        on_stop_signals(self.stop)
        async with reaping_orphans():
            return await self.work()

    async def work(self) -> int:
        """Work until stopped; returns the exit code."""
        health = await self._open_health()
        try:
            known = await ask_lease(self._config, self._stopping, self._emit)
            if known is not None:
                self._config = self._state.config = known
                await self._work()
        finally:
            await health.stop()
        if self._problem is not None:
            raise self._problem
        return 0

    async def _work(self) -> None:
        keepers = [asyncio.create_task(self._keep_runner()) for _ in range(self._config.processes)]
        services = asyncio.create_task(self._serve())
        timekeeping = asyncio.create_task(keep_time(self._children))
        watchdog = asyncio.create_task(self._systemd.keep_alive())
        try:
            await self._until_stopped([*keepers, services, timekeeping])
        finally:
            self._stopping.set()
            self._systemd.notify(STOPPING)
            self._registration.draining = True
            grace = self._stop_runners()  # first, because the end of the services may wait for the store
            services.cancel()
            await asyncio.gather(services, return_exceptions=True)
            await self._end_runners(keepers, grace)
            timekeeping.cancel()
            await self._unregister()
            watchdog.cancel()

    def stop(self) -> None:
        """The first call starts the drain, the second ends the worker."""
        if self._stopping.is_set():
            self._second_signal.set()
        self._stopping.set()

    async def _until_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        stop = asyncio.create_task(self._stopping.wait())
        done, _ = await asyncio.wait([*tasks, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        for task in done:
            if task is not stop:
                task.result()  # a part that ended by itself has failed: raise its error

    # Runners.

    async def _keep_runner(self) -> None:
        """Keep one runner alive: start it, and start it again when it dies."""
        restarts = Restarts(self._config, self._stopping, self._emit)
        self._restarts.append(restarts)
        while (child := await restarts.start()) is not None:
            self._children.add(child)
            if self._stopping.is_set():
                child.stop(0)
            await self._follow(child)
            self._children.discard(child)
            self._metrics.retire(child.figures)
            await self._removal.remove(child, announce=child.runner is not None or self._problem is None)
            await restarts.pause()

    async def _follow(self, child: RunnerProcess) -> None:
        """Handle a runner's messages until its process has ended."""
        listening = asyncio.create_task(self._listen(child))
        dying = asyncio.create_task(child.process.wait())
        await asyncio.wait([listening, dying], return_when=asyncio.FIRST_COMPLETED)
        if not listening.done():
            # It is dead, and its last messages are in the socket. A process that its handlers left behind may keep
            # the
            # socket open for ever, so it is closed here.
            await asyncio.wait([listening], timeout=LAST_MESSAGES_SECONDS)
            child.channel.close()
            await self._finish(listening)
        elif not dying.done():
            # It closed the socket and still runs: a handler closed all descriptors, say. No message can reach it.
            await asyncio.wait([dying], timeout=KILL_AFTER)
            child.kill()
        await asyncio.wait([listening, dying])
        if not listening.cancelled():
            listening.result()  # raise an internal error

    async def _finish(self, listening: asyncio.Task[None]) -> None:
        """Finish handling the last messages; a stopping worker opens no lease for a dead runner."""
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([listening, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        listening.cancel()

    async def _listen(self, child: RunnerProcess) -> None:
        async for message in child.channel.from_runner():
            match message:
                case Hello():
                    await self._on_hello(child, message)
                case LeaseLapsed(runner):
                    await self._leases.replace(child, runner)
                case Overdue():
                    child.overdue.append(message)
                case Goodbye():
                    child.said_goodbye = True
                case StartFailed():
                    self._on_start_failed(child, message)

    def _on_start_failed(self, child: RunnerProcess, problem: StartFailed) -> None:
        """A runner cannot start. It is tried again while others work, or if the store has answered before."""
        child.problem, child.lacks_store = problem.text, problem.of_store
        if not self._state.serving and not (problem.of_store and self._registered.is_set()):
            self._give_up(StoreUnavailable(problem.text) if problem.of_store else ConfigError(problem.text))

    def _give_up(self, problem: WindlassError) -> None:
        self._problem = problem
        self._stopping.set()

    async def _on_hello(self, child: RunnerProcess, hello: Hello) -> None:
        async with self._opening_store:
            if not self._state.has_store:
                store = watch_store(
                    open_worker_store(self._config, hello.store, ProcessRole.SUPERVISOR), "supervisor"
                )
                store.leases.hold_liveness_lock(self._state.id)
                self._state.set_store(store, hello)
                try:
                    await self._register()
                    if hello.undeclared:
                        self._emit(SchedulesUndeclared(schedules=hello.undeclared, app=self._config.app))
                except StoreUnavailable as error:
                    self._give_up(error)
        if self._registered.is_set():
            await self._leases.open(child)
            if not self._started:
                self._started = True
                self._systemd.notify(READY)

    def _stop_runners(self) -> Micros:
        """Start the drain: no runner claims any more; returns the drain time."""
        failed = self._problem is not None and not isinstance(self._problem, StoreUnusable)
        grace = 0 if failed or self._second_signal.is_set() else self._config.drain
        if self._state.serving:
            seconds, unserved = grace / SECOND, self._unserved
            self._emit(DrainStarted(worker=self._state.id, seconds=seconds, empty=self._empty, unserved=unserved))
        for child in self._children:
            child.stop(grace if child.runner is not None else 0)
        return grace

    async def _end_runners(self, keepers: list[asyncio.Task[None]], grace: Micros) -> None:
        """Drain until a second signal or the drain time; leases are kept until the last runner has ended."""
        duties = [self._force_stop(grace / SECOND, keepers), self._end_starting()]
        if self._state.has_store:
            duties += [self._leases.run(), self._reports.run()]
        helpers = [asyncio.create_task(duty) for duty in duties]
        await asyncio.gather(*keepers, return_exceptions=True)
        for helper in helpers:
            helper.cancel()

    async def _end_starting(self) -> None:
        """A runner without a lease holds no job: kill it if its app or a start hook takes too long."""
        await asyncio.sleep(KILL_AFTER)
        for child in self._children:
            if child.runner is None:
                child.kill()

    async def _force_stop(self, seconds: float, keepers: list[asyncio.Task[None]]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._second_signal.wait()
        for child in self._children:
            child.stop(0)
        await asyncio.sleep(KILL_AFTER)
        for child in self._children:
            child.kill()
        # An absent store must not delay the end: another worker rescues the jobs that were not put back.
        await asyncio.sleep(KILL_AFTER)
        for keeper in keepers:
            keeper.cancel()

    # What goes on while runners work.

    async def _serve(self) -> None:
        await self._registered.wait()
        try:
            await self._serve_all()
        except* StoreUnusable as errors:
            # A newer version has changed the store: running jobs finish, and no more are claimed.
            self._give_up(next(error for error in errors.exceptions if isinstance(error, WindlassError)))

    async def _serve_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leases.run())
            group.create_task(self._reports.run())
            group.create_task(Watch(self._state, self._children).run())
            group.create_task(watch_schema(self._state.store, self._config.beat / SECOND, self._emit))
            group.create_task(lead(self._state))
            if self._state.store.signals.via_supervisor:
                group.create_task(relay(self._state))
            if self._config.until_empty:
                group.create_task(self._stop_when_empty())

    async def _stop_when_empty(self) -> None:
        # Deliveries of webhooks are not waited for: their receivers may be away for days.
        state, own = self._state, tuple(self._config.queues) or self._state.app_queues
        self._unserved = tuple(sorted({*await until_empty(state.store, own, self._emit)} - {*state.queues}))
        self._empty = True
        self.stop()
        await asyncio.Event().wait()

    # The beginning and the end.

    async def _register(self) -> None:
        await self._registration.register()
        self._leases.beat_at = since_boot()
        self._registered.set()

    async def _unregister(self) -> None:
        if self._state.has_store:
            # Do not wait again for a store that has just not answered, or never did.
            answers = self._registered.is_set() and not self._removal.unanswered
            await self._registration.unregister(UNREGISTER_SECONDS if answers else SHORT_UNREGISTER)

    async def _open_health(self) -> Health:
        health = Health(self._ready, started=lambda: self._started, metrics=self._metrics.expose)
        if self._config.health is not None:
            await health.start(*self._config.health)
        return health

    def _ready(self) -> bool:
        """Whether the store answers, a lease is held, no drain is on, and every runner can be kept alive."""
        failing = any(each.failing for each in self._restarts)
        return self._leases.current() and self._leases.held() and not self._stopping.is_set() and not failing
