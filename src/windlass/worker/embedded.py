"""An embedded worker: a runner, and the tasks of a supervisor, in the caller's process and on its event loop.

It has no supervisor process: a handler that blocks the loop delays the renewals of the lease, and the end of the
process ends the runner. docs/guides/embedded-worker.md states the consequences. The host handles signals.
"""

import asyncio
import contextlib
import contextvars
import os
import secrets
import socket
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from weakref import WeakSet

from windlass.client.app import App
from windlass.core.events import InternalError
from windlass.core.ids import new_runner_id
from windlass.core.moments import SECOND, Duration, duration
from windlass.errors import ConfigError, StoreUnusable
from windlass.native import require_threads
from windlass.observe.logs import log_event
from windlass.observe.process import watch_events, watch_store
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.open import redact
from windlass.store.records import ProcessRole
from windlass.worker.channel import Channel, LeaseLapsed, Overdue
from windlass.worker.config import WorkerConfig, parse_queues
from windlass.worker.handlers.attempt import describe_internal_error
from windlass.worker.handlers.imports import with_imports
from windlass.worker.handlers.job_logging import add_job_to_records, keeping_job_logs
from windlass.worker.processes import MARK, kill_marked
from windlass.worker.runner.engine import Engine
from windlass.worker.runner.process import hello, open_with_app, table_size
from windlass.worker.shared_table import SharedTable, State
from windlass.worker.store_retry import retry_within
from windlass.worker.supervisor.beat import UNREGISTER_SECONDS, LeaseKeeper, Registration, Reports
from windlass.worker.supervisor.removal import end_lease
from windlass.worker.supervisor.runner_process import Runner
from windlass.worker.supervisor.side_tasks import keep_time, lead, relay, watch_schema
from windlass.worker.supervisor.state import SupervisorState
from windlass.worker.supervisor.watch import Watch
from windlass.worker.through_server import open_worker_store, redirect_app, with_servers_lease

END_SECONDS = 5.0
"""How long the end of a runner waits for the store; jobs that it could not requeue are rescued after its lease."""
RESTART_SECONDS = 1.0

_running: WeakSet[App] = WeakSet()
"""Apps with an embedded worker in this process: one each, because an app has one set of hooks and one state."""


def embedded_worker(
    app: App,
    concurrency: int,
    queues: Iterable[str] | None,
    lease: Duration,
    drain: Duration,
    *,
    server: str = "",
    token: str = "",
) -> AbstractAsyncContextManager[None]:
    """The worker behind `App.worker`, and behind `windlass.remote.Worker` with a server; raises ConfigError."""
    given = queues.split(",") if isinstance(queues, str) else queues
    config = WorkerConfig(
        app="",
        embedded=True,
        queues={} if given is None else parse_queues(given, "queues"),
        concurrency=concurrency,
        lease=duration(lease, "lease"),
        drain=duration(drain, "drain"),
        server=server,
        token=token,
    )
    return EmbeddedWorker(app, config.checked(""))


class EmbeddedWorker(AbstractAsyncContextManager[None]):
    """Works from the entry of the context, once it has a lease, until its exit."""

    def __init__(self, app: App, config: WorkerConfig) -> None:
        self._app = app
        self._config = config
        self._emit = watch_events(log_event, "runner")
        self._runners: set[Runner] = set()
        self._state = SupervisorState(new_runner_id(os.urandom), config, self._emit, self._runners)
        self._registration = Registration(self._state)
        self._leases = LeaseKeeper(self._state)
        self._engine: Engine | None = None
        self._ready = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._task is not None:
            raise RuntimeError("an embedded worker is entered once: app.worker() makes another")
        # In a new context: handlers inherit nothing that the caller has set.
        task = self._task = asyncio.create_task(self._live(), name="windlass worker", context=contextvars.Context())
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            ready.cancel()
        if task.done():
            task.result()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drain to the end, also in a task that is cancelled meanwhile; the cancellation is raised afterwards."""
        task, cancelled = self._task, None
        assert task is not None
        self._stop()
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as found:
                cancelled = found
        if cancelled is not None:
            raise cancelled
        if error is None:
            task.result()

    def _stop(self) -> None:
        """Stop claiming; running jobs get the drain time."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._registration.draining = True
            if self._engine is not None:
                self._engine.stop(self._config.drain)

    async def _live(self) -> None:
        app, state = self._app, self._state
        with _only_one(app), keeping_job_logs(app.keep_logs, app):
            config = with_imports(app, self._config)
            ask = partial(with_servers_lease, config)
            config = await retry_within(app._deadline, config.server, "asking the server", ask, self._emit)
            self._config = state.config = config
            require_threads()
            add_job_to_records()
            app.offload()  # a relative folder is the one here, wherever handlers may go
            # Two stores, as supervisor and runner have: renewals never wait behind claims and settlements.
            redirect_app(app, self._config.server, self._config.token)
            store = watch_store(open_worker_store(self._config, app.store, ProcessRole.RUNNER), "runner")
            try:
                where, opening = redact(app.store), partial(open_with_app, app, store)
                await retry_within(app._deadline, where, "opening the store", opening, self._emit)
                beside = open_worker_store(self._config, app.store, ProcessRole.SUPERVISOR)
                await self._register(watch_store(beside, "supervisor"))
                await self._work(store)
            finally:
                if state.has_store:
                    await self._registration.unregister(UNREGISTER_SECONDS)
                await store.close()

    async def _register(self, store: Store) -> None:
        self._state.set_store(store, hello(self._app, store, self._config))
        store.leases.hold_liveness_lock(self._state.id)
        await self._registration.register()
        self._leases.beat_at = since_boot()

    async def _work(self, store: Store) -> None:
        """Until stopped, or until a part has failed; leases are renewed until the last job has ended."""
        beside = [asyncio.create_task(each) for each in (self._leases.run(), keep_time(self._runners), self._serve())]
        work = asyncio.create_task(self._keep_runner(store))
        try:
            done, _ = await asyncio.wait([work, *beside], return_when=asyncio.FIRST_COMPLETED)
            for error in filter(None, (each.exception() for each in done)):
                # Emitted now: the caller's block may last for days before this error ends it.
                problem = describe_internal_error(error)
                self._emit(InternalError(doing="running an embedded worker, which stops", problem=problem))
            self._stop()
            await asyncio.wait([work])
            for each in (*beside, work):
                if each.done():
                    each.result()
        finally:
            for each in (work, *beside):
                each.cancel()
            await asyncio.wait([work, *beside])

    async def _serve(self) -> None:
        """Do all that goes on beside the leases; raises the error of a part that failed."""
        state = self._state
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(Reports(state, self._registration).run())
                group.create_task(Watch(state).run())
                group.create_task(watch_schema(state.store, self._config.beat / SECOND, self._emit))
                group.create_task(lead(state))
                if state.store.signals.via_supervisor:
                    group.create_task(relay(state))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _keep_runner(self, store: Store) -> None:
        """Keep one runner: after an internal error another is started; errors of handlers end none."""
        while not self._stopping.is_set():
            try:
                await self._run(store)
            except StoreUnusable:
                raise
            except Exception as error:
                if not self._ready.is_set():
                    raise
                self._emit(InternalError(doing="running jobs", problem=describe_internal_error(error)))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RESTART_SECONDS):
                        await self._stopping.wait()

    async def _run(self, store: Store) -> None:
        """One runner, from its start hooks to the end of its lease."""
        ends = [await Channel.over(each) for each in socket.socketpair()]
        table, mark = SharedTable.create(table_size(self._config)), secrets.token_hex(8)
        runner = Runner(os.getpid(), ends[0], table)
        engine = Engine(self._app, self._app._traced(store), self._config, table, ends[1], self._emit, mark)
        tasks: list[asyncio.Task[None]] = []
        try:
            await engine.start()
            self._engine = engine
            self._runners.add(runner)
            tasks += [asyncio.create_task(engine.run()), asyncio.create_task(self._listen(runner))]
            await self._leases.open(runner)
            self._ready.set()
            if self._stopping.is_set():
                engine.stop(0)
            await tasks[0]
            if engine.failure is not None:
                raise engine.failure
        finally:
            self._engine = None
            for each in tasks:
                each.cancel()
            if tasks:
                await asyncio.wait(tasks)
            engine.kill_processes()
            await self._end(runner, mark)
            for channel in ends:
                channel.close()
            table.close()

    async def _listen(self, runner: Runner) -> None:
        async for message in runner.channel.from_runner():
            match message:
                case LeaseLapsed(lost):
                    await self._leases.replace(runner, lost)
                case Overdue():
                    # Handlers that ended after all are settled already.
                    running = runner.attempts(State.STARTED)
                    still = [each for each in runner.overdue if _attempt(each) in running]
                    runner.overdue = [*still, message]

    async def _end(self, runner: Runner, mark: str) -> None:
        """Requeue the jobs that the runner still holds, without counting a failure."""
        self._runners.discard(runner)
        await asyncio.to_thread(kill_marked, f"{MARK}={mark}.")
        if runner.runner is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await end_lease(self._state, runner, runner.runner, crashed=False)


def _attempt(overdue: Overdue) -> tuple[str, int]:
    return overdue.settlement.id, overdue.settlement.attempt


@contextlib.contextmanager
def _only_one(app: App) -> Iterator[None]:
    if app in _running:
        raise ConfigError(f"{app!r} has an embedded worker in this process already: give that one more `concurrency`")
    _running.add(app)
    try:
        yield
    finally:
        _running.discard(app)
