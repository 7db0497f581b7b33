"""The supervisor: keeps the leases of its runners alive, and never runs user code.

So a handler that holds the interpreter for minutes loses nothing: its lease is renewed from here. The supervisor
starts runners, replaces those that die, reports what they were running, and takes care of the coordinator's duties if
this worker holds that office.
"""

import asyncio
import contextlib
import os
import signal

from windlass.coordinator.coordinator import Coordinator
from windlass.coordinator.duties import tell_rescued
from windlass.core.events import DrainStarted, Emit, RunnerEnded, WorkerStarted, WorkerStopped
from windlass.core.ids import new_runner_id
from windlass.core.moments import SECOND
from windlass.errors import ConfigError, StoreUnavailable
from windlass.observe.history import heard, recorded
from windlass.store.clock import since_boot
from windlass.store.open import open_store, redact
from windlass.store.opener import Opener
from windlass.store.records import RunnerEnd, Settled
from windlass.worker.child import Child
from windlass.worker.config import WorkerConfig
from windlass.worker.crew import Crew
from windlass.worker.empty import is_empty
from windlass.worker.health import Health
from windlass.worker.leases import LeaseKeeper
from windlass.worker.link import Bye, Hello, Lapsed, Overdue, Problem
from windlass.worker.patience import persist
from windlass.worker.registration import Registration
from windlass.worker.relay import relay
from windlass.worker.settle import attempt_ended
from windlass.worker.table import State
from windlass.worker.watch import Watch

EMPTY_SECONDS = 0.2
KILL_AFTER = 5.0
"""Seconds beyond the drain time, or without a line to us, after which a runner that does not end is killed."""
LAST_WORDS = 1.0
"""Seconds in which we read what a dead runner has said."""
SHORTEST_RESTART, LONGEST_RESTART = 0.1, 5.0
GOOD_AGE = 10 * SECOND
"""A runner that lived so long is replaced at once; younger ones are likely to die again, so that waits."""


class Supervisor:
    """One worker, from its first runner to its sign-off."""

    def __init__(self, config: WorkerConfig, emit: Emit) -> None:
        self._config = config
        self._emit = emit = heard(emit, "supervisor")
        self._crew = Crew(new_runner_id(os.urandom), config, emit)
        self._registration = Registration(self._crew)
        self._leases = LeaseKeeper(self._crew, self._registration)
        self._meeting = asyncio.Lock()
        self._registered = asyncio.Event()
        self._stopping = asyncio.Event()
        self._hurried = asyncio.Event()
        self._empty = False
        self._problem: str | None = None

    async def run(self) -> int:
        """Until a signal stops it: the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        return await self.work()

    async def work(self) -> int:
        """Until stopped: the exit code."""
        health = await self._open_health()
        places = [asyncio.create_task(self._keep_runner()) for _ in range(self._config.processes)]
        services = asyncio.create_task(self._serve())
        try:
            await self._until_stopped([*places, services])
        finally:
            self._stopping.set()
            self._registration.draining = True
            services.cancel()
            await asyncio.gather(services, return_exceptions=True)
            await self._end_runners(places)
            await self._sign_off()
            await health.stop()
        if self._problem is not None:
            raise ConfigError(self._problem)
        return 0

    def stop(self) -> None:
        """The first call starts the drain, the second ends it."""
        if self._stopping.is_set():
            self._hurried.set()
        self._stopping.set()

    async def _until_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        stop = asyncio.create_task(self._stopping.wait())
        done, _ = await asyncio.wait([*tasks, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        for task in done:
            if task is not stop:
                task.result()  # a part that ended by itself has failed: let it be seen

    # Runners.

    async def _keep_runner(self) -> None:
        """One place for a runner: filled, and filled again when the one in it dies."""
        pause = 0.0
        while not self._stopping.is_set():
            born = since_boot()
            child = await Child.start(self._config)
            self._crew.children.add(child)
            if self._stopping.is_set():
                child.stop(0)
            await self._attend(child)
            self._crew.children.discard(child)
            await self._bury(child)
            old = since_boot() - born > GOOD_AGE
            pause = 0.0 if old else min(LONGEST_RESTART, max(SHORTEST_RESTART, pause * 2))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def _attend(self, child: Child) -> None:
        """Listen to a runner until it is gone."""
        listening = asyncio.create_task(self._listen(child))
        dying = asyncio.create_task(child.process.wait())
        await asyncio.wait([listening, dying], return_when=asyncio.FIRST_COMPLETED)
        if not listening.done():
            # It is dead, and its last words are on the line. A process that its handlers left behind may keep the
            # line open for ever: so it is we who hang up.
            await asyncio.wait([listening], timeout=LAST_WORDS)
            child.link.close()
        elif not dying.done():
            # It hung up and lives on: a handler closed all descriptors, say. It can neither work nor be told to end.
            await asyncio.wait([dying], timeout=KILL_AFTER)
            child.kill()
        await listening
        await dying

    async def _listen(self, child: Child) -> None:
        async for message in child.link.from_runner():
            match message:
                case Hello():
                    await self._welcome(child, message)
                case Lapsed(runner):
                    await self._leases.replace(child, runner)
                case Overdue():
                    child.overdue.append(message)
                case Bye():
                    child.said_bye = True
                case Problem(text):
                    self._hear_problem(child, text)

    def _hear_problem(self, child: Child, text: str) -> None:
        """A runner cannot start. While others work, that is no reason to end them: it is tried again."""
        child.problem = text
        if not self._crew.serving:
            self._problem = text
            self._stopping.set()

    async def _welcome(self, child: Child, hello: Hello) -> None:
        async with self._meeting:
            if not self._crew.met:
                store = recorded(open_store(hello.store, opener=Opener.SUPERVISOR), "supervisor")
                store.leases.vouch(self._crew.id)
                self._crew.meet(store, hello)
                await self._register()
        await self._leases.open(child)

    async def _bury(self, child: Child) -> None:
        """A runner is gone: put back what it held, and say how it ended."""
        expected = child.stopping or child.said_bye or child.hung
        if child.runner is not None or self._problem is None:
            runner = child.runner or "(without a lease)"
            self._emit(RunnerEnded(runner=runner, pid=child.pid, status=child.ending(), expected=expected))
        if child.runner is not None:
            await self._settle_overdue(child)
            ended = RunnerEnd(
                runner=child.runner,
                started=child.attempts(State.STARTED),
                returned=child.attempts(State.ENDED),
                crashed=not expected,
            )
            leases = self._crew.store.leases
            tell_rescued(await persist("putting back jobs", lambda: leases.end(ended), self._emit), self._emit)
        child.close()

    async def _settle_overdue(self, child: Child) -> None:
        """Now that their process is gone, jobs that took too long have failed; one that ended after all is stale."""
        if child.overdue:
            jobs, overdue = self._crew.store.jobs, [each.settlement for each in child.overdue]
            answers = await persist("settling overdue jobs", lambda: jobs.settle(overdue), self._emit)
            for each, answer in zip(child.overdue, answers, strict=True):
                if answer is Settled.SETTLED:
                    self._emit(attempt_ended(each.settlement, each.job_type, child.runner or "", None))

    async def _end_runners(self, places: list[asyncio.Task[None]]) -> None:
        """Drain; a second signal, or time, ends it. The leases are kept until the last runner is gone."""
        grace = 0 if self._problem or self._hurried.is_set() else self._config.drain
        if self._crew.serving:
            self._emit(DrainStarted(worker=self._crew.id, seconds=grace / SECOND, empty=self._empty))
        for child in self._crew.children:
            child.stop(grace)
        helpers = [asyncio.create_task(self._hurry(grace / SECOND, places))]
        if self._crew.met:
            helpers.append(asyncio.create_task(self._leases.run()))
        await asyncio.gather(*places, return_exceptions=True)
        for helper in helpers:
            helper.cancel()

    async def _hurry(self, seconds: float, places: list[asyncio.Task[None]]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurried.wait()
        for child in self._crew.children:
            child.stop(0)
        await asyncio.sleep(KILL_AFTER)
        for child in self._crew.children:
            child.kill()
        # A store that is away must not keep us: whoever comes next rescues what we could not put back.
        await asyncio.sleep(KILL_AFTER)
        for place in places:
            place.cancel()

    # What goes on while runners work.

    async def _serve(self) -> None:
        await self._registered.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leases.run())
            group.create_task(Watch(self._crew).run())
            group.create_task(self._lead())
            if self._crew.store.signals.relayed:
                group.create_task(relay(self._crew))
            if self._config.until_empty:
                group.create_task(self._stop_when_empty())

    async def _lead(self) -> None:
        coordinator = Coordinator(self._crew.store, self._crew.id, self._emit, blobs=self._crew.blobs)
        try:
            await coordinator.run()
        finally:
            with contextlib.suppress(StoreUnavailable, TimeoutError):
                await asyncio.wait_for(coordinator.resign(), 2.0)

    async def _stop_when_empty(self) -> None:
        store, queues = self._crew.store, self._crew.queues
        # No hint is waited for: while jobs flow there is one after every commit, and looking takes longer than that.
        while not await persist("looking for work", lambda: is_empty(store, queues), self._emit):  # noqa: ASYNC110
            await asyncio.sleep(EMPTY_SECONDS)
        self._empty = True
        self.stop()
        await asyncio.Event().wait()

    # The beginning and the end.

    async def _register(self) -> None:
        crew = self._crew
        await persist("registering", lambda: crew.store.workers.beat(self._registration.info()), self._emit)
        self._leases.beat_at = since_boot()
        self._registered.set()
        started = WorkerStarted(
            worker=crew.id,
            processes=self._config.processes,
            concurrency=self._config.concurrency,
            queues=crew.queues,
            store=redact(crew.store.address),
        )
        self._emit(started)

    async def _sign_off(self) -> None:
        if not self._crew.met:
            return
        store, worker = self._crew.store, self._crew.id
        with contextlib.suppress(StoreUnavailable, TimeoutError):
            await asyncio.wait_for(store.workers.forget(worker), 5.0)
        store.leases.unvouch(worker)
        await store.close()
        self._emit(WorkerStopped(worker=worker, code=0))

    async def _open_health(self) -> Health:
        health = Health(self._leases.live, self._ready)
        if self._config.health is not None:
            try:
                await health.start(*self._config.health)
            except OSError as error:
                host, port = self._config.health
                raise ConfigError(f"--health {host}:{port}: {error.strerror or error}") from None
        return health

    def _ready(self) -> bool:
        return bool(self._crew.serving) and not self._stopping.is_set() and self._leases.live()
