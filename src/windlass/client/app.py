"""The app: a store address plus its tasks."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack, overload

from windlass.blobs.offload import Offload
from windlass.blobs.open import BLOBS_VARIABLE, open_blobs
from windlass.client.aside import are_inline, enqueue_large
from windlass.client.berth import berth_at, berth_in_memory
from windlass.client.blocking import Portal, blocking
from windlass.client.handle import Handle
from windlass.client.hooks import hook_of
from windlass.client.jobs import Jobs
from windlass.client.middleware import middleware_of
from windlass.client.overview import Stats, Workers
from windlass.client.previous import check_no_previous
from windlass.client.queues import Queues
from windlass.client.registrar import Registrar
from windlass.client.registry import Registry, define
from windlass.client.schedules import Schedules
from windlass.client.state import State
from windlass.client.task import Task
from windlass.client.taskset import TaskSet
from windlass.core.codec import INLINE_LIMIT
from windlass.core.job import DEFAULT_QUEUE, Enqueued, NewJob
from windlass.core.queue import QueueOptions, settings
from windlass.core.reference import LARGEST_BLOB
from windlass.errors import (
    ConfigError,
    EnqueueFailed,
    EnqueueUnknown,
    InvalidOption,
    SchemaMismatch,
    StoreUnavailable,
    WindlassError,
)
from windlass.store.contract import Store
from windlass.store.manual import ManualClock
from windlass.store.open import DEFAULT_ADDRESS, redact

F = TypeVar("F", bound=Callable[..., Any])

CLIENT_DEADLINE = 5.0
"""Seconds after which a client's call gives up: a web request must not hang on a store that is away."""


class App(Registrar):
    """Where tasks are registered and jobs are handed in.

    Making it and decorating functions does no I/O: the store is opened by the first verb. One app may be used
    from any number of threads and event loops; after a fork it opens the store anew.

    `blobs` is a folder for payloads and results over 64 KiB, such as "./blobs" or "file:///srv/shop/blobs": the same
    one for every process that uses the store, on a shared mount if those are on several machines.

    In a worker, what handlers log with `logging` at the level `keep_logs` or above is kept with their job, like lines
    of `ctx.log`; None keeps nothing. Levels of loggers are left as they are.
    """

    def __init__(
        self,
        store: str | None = None,
        *,
        blobs: str | None = None,
        deadline: float | None = CLIENT_DEADLINE,
        keep_logs: int | None = logging.INFO,
    ) -> None:
        super().__init__()
        self.blobs = blobs or os.environ.get(BLOBS_VARIABLE) or None
        self.registry = Registry(self)
        self.state = State()
        self.keep_logs = keep_logs
        self.jobs = Jobs(self)
        self.queues = Queues(self)
        self.schedules = Schedules(self)
        self.workers = Workers(self)
        self.stats = Stats(self)
        self._offload: Offload | None = None
        self._deadline = deadline
        self._berth = berth_at(store or os.environ.get("WINDLASS_STORE") or DEFAULT_ADDRESS, deadline)
        self._guard, self._guard_of = threading.RLock(), os.getpid()
        self._door: Portal | None = None

    @classmethod
    def testing(cls, clock: ManualClock | None = None) -> "App":
        """An app for tests: its jobs are in the memory of this process, its time stands still until moved.

        No worker sees its jobs; `windlass.testing.run_all(app)` runs them. For an app that is there already, see
        `windlass.testing.sandbox`.
        """
        app = cls()
        app._berth = berth_in_memory(clock)
        return app

    @property
    def store(self) -> str:
        """The address of its store."""
        return self._berth.address

    @property
    def clock(self) -> ManualClock:
        """The clock of an app under test; any other has the machine's time, and none to give."""
        if self._berth.clock is None:
            raise ConfigError(
                f"{self!r} is not under test: its jobs are real and so is its time. "
                "Make it with App.testing(), or put it into windlass.testing.sandbox(app)"
            )
        return self._berth.clock

    def __repr__(self) -> str:
        return f"App({redact(self.store)!r}, {len(self.registry.types)} tasks)"

    def _register(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Task[Any, Any, Any]:
        """Make a task of a function and keep it."""
        definition = define(function, options)
        self.registry.add(definition)
        return Task(self, definition)

    def include(self, *sets: TaskSet) -> None:
        """Take in the tasks, hooks and schedules of task sets; a set belongs to one app."""
        for each in sets:
            each._join(self, self.registry)
            self.hooks.absorb(each.hooks)
            each.hooks = self.hooks
            self._declared.absorb(each._declared)
            each._declared = self._declared

    def on_dead(self, function: F, /) -> F:
        """Run a function when a job has died here: `def alert(job): …`, or `(job, state)`; `job.error` says of what.

        A runner calls it after one of its own attempts has made a job dead, when that is stored: at most once, `def`
        in the thread of the hooks, `async def` on the loop, each for at most 10 s. What it raises is logged and
        changes nothing. It does not run for jobs that died otherwise: by a crash or a hang of their runner, or when
        a runner ends before it comes to it. To miss none, look at `app.jobs.list(status="dead")` now and then.
        """
        self.hooks.dead.append(hook_of("on_dead", function, "job", "state"))
        return function

    @overload
    def middleware(self, function: F, /) -> F: ...
    @overload
    def middleware(self, *, skip_others: bool = False) -> Callable[[F], F]: ...
    def middleware(self, function: Callable[..., Any] | None = None, /, *, skip_others: bool = False) -> Any:  # type: ignore[misc]
        """Put a function round every attempt; the first that is registered is the outermost. Three forms:

        - `def m(ctx)` with one `yield`, whose value is the result and at which errors are raised: round every task.
        - `async def m(ctx, call_next)`: round `async def` tasks.
        - `def m(ctx, call_next)`: round `def` tasks.

        An app with a task that a middleware cannot go round is refused, unless the middleware was registered with
        `@app.middleware(skip_others=True)`. What a middleware returns becomes the result, also after an error; None
        leaves the outcome as it was, so no error is swallowed by accident. It may raise what a handler may. It runs
        where the handler runs, within its timeout; not for stored arguments that do not fit, which no handler sees.
        """

        def add(function: F) -> F:
            self.registry.surround(middleware_of(function, skip_others=skip_others))
            return function

        return add if function is None else add(function)

    def queue(self, name: str, **options: Unpack[QueueOptions]) -> None:
        """Declare a queue's settings; the first call to the store writes them, an operator's change wins."""
        self._declared.add_queue(name, settings(**options))

    @property
    def queue_names(self) -> tuple[str, ...]:
        """Every queue that this app names, and `default`."""
        named = [definition.defaults.get("queue", DEFAULT_QUEUE) for definition in self.registry]
        return tuple(dict.fromkeys([DEFAULT_QUEUE, *named, *self._declared.queue_names]))

    async def aenqueue_many(self, jobs: Sequence[NewJob], *, connection: object = None) -> list[Handle[Any]]:
        """Hand in many jobs (`task.job(...)`), all or none.

        With a `connection` of yours to the same database they are part of its transaction: your commit decides.
        """
        wrong = [i for i, job in enumerate(jobs) if not isinstance(job, NewJob)]
        if wrong:
            raise InvalidOption(f"jobs[{wrong[0]}]", "is not a job; make it with task.job(...)")
        returns = {type_: self._returns(type_) for type_ in {job.type for job in jobs}}
        return await self._hand_in(list(jobs), [returns[job.type] for job in jobs], connection)

    enqueue_many = blocking(aenqueue_many, here=lambda *_, connection=None, **__: connection is not None)

    async def aclose(self) -> None:
        """Close the store; the next verb opens it again."""
        await self._berth.close()

    def close(self) -> None:
        """Close the store and end the threads behind the blocking verbs."""
        portal, self._door = self._portal(), None
        portal.run(self.aclose(), waits=True)
        portal.close()

    async def declare(self, store: Store | None = None) -> None:
        """Write what the code declares now, instead of with the first verb; a given store may have more patience."""
        berth = self._berth
        berth.written = await self._declared.write(store or berth.connect())

    async def _ready(self) -> Store:
        """The store, with what the code declares written to it."""
        store = self._berth.connect()
        if self._berth.written != self._declared.version:
            await self.declare(store)
        return store

    def adopt(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        """Use a store that is open already, on the loop that it is used on.

        A runner's handlers share its connections: also those in threads, whose verbs are run on its loop.
        """
        self._berth.adopt(store if self._deadline is None else store.bounded(self._deadline))
        self._door = Portal(self._loopless, loop)

    def _returns(self, type_: str) -> Any:
        return self.registry.get(type_).returns if type_ in self.registry else Any

    @property
    def payload_limit(self) -> int:
        """Bytes of JSON that a payload or result may have here."""
        return INLINE_LIMIT if self.blobs is None else LARGEST_BLOB

    def offload(self) -> Offload | None:
        """Where payloads and results are kept that are too large for a row; None without `blobs`.

        None also under test: what a test hands in stays in its memory, however large.
        """
        if self.blobs is None or self._berth.clock is not None:
            return None
        if self._offload is None:
            self._offload = open_blobs(self.blobs)
        return self._offload

    async def _hand_in(self, jobs: list[NewJob], returns: list[Any], connection: object = None) -> list[Handle[Any]]:
        check_no_previous(jobs)
        enqueue = partial(self._enqueue, connection=connection)
        jobs = self._berth.told(jobs)
        if are_inline(jobs):
            answers = await enqueue(jobs)
        else:
            answers = await enqueue_large(self.offload(), jobs, self.payload_limit, enqueue)
        return [Handle(self, answer.id, answer.existing, kind) for answer, kind in zip(answers, returns, strict=True)]

    async def _enqueue(self, jobs: Sequence[NewJob], connection: object = None) -> list[Enqueued]:
        store = None
        try:
            if connection is None:
                store = await self._ready()
                return await store.jobs.enqueue(jobs)
            # Whether that is committed we never learn: what is declared goes along until it is written.
            declared = {} if self._berth.written == self._declared.version else dict(self._declared.queues)
            return await self._berth.connect().jobs.enqueue_inside(connection, jobs, declared)
        except SchemaMismatch:
            raise
        except StoreUnavailable as error:
            if error.maybe_done and store is not None:
                raise EnqueueUnknown([job.id for job in jobs], str(error)) from error
            raise EnqueueFailed(f"nothing was stored: {error}") from error

    def _portal(self) -> Portal:
        # A lock that another thread held at a fork is held for ever in the child: it takes a new one.
        if self._guard_of != os.getpid():
            self._guard, self._guard_of = threading.RLock(), os.getpid()
        with self._guard:
            if self._door is None or self._door.pid != os.getpid():
                self._door = Portal(self._loopless)
            return self._door

    def _loopless(self) -> bool:
        try:
            return self._berth.connect().loopless
        except WindlassError:
            return False  # the verb that is about to be run meets the same trouble, and tells of it in its own words
