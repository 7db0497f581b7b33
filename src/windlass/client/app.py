"""The app: a store address plus its tasks."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from windlass.blobs.offload import Offload
from windlass.blobs.open import open_blobs
from windlass.client.elsewhere import APP, no_attribute
from windlass.client.embedded import worker
from windlass.client.flows import new_flow, open_group
from windlass.client.producer import Producer
from windlass.client.runtime.location import Location
from windlass.client.runtime.portal import Portal
from windlass.client.runtime.store_handle import memory_handle, production_handle
from windlass.client.tasks.hooks import State, hook_of
from windlass.client.tasks.middleware import middleware_of
from windlass.client.tasks.registry import Registry, define
from windlass.client.tasks.task import Task, task_of
from windlass.client.tasks.taskset import TaskSet
from windlass.client.verbs.actions import Actions
from windlass.client.verbs.audit import process_actor
from windlass.client.verbs.audit_log import Audit
from windlass.client.verbs.flows import Flows
from windlass.client.verbs.jobs import Jobs
from windlass.client.verbs.queues import Queues
from windlass.client.verbs.schedules import Schedules
from windlass.client.verbs.stats import Stats, Workers
from windlass.client.verbs.tokens import Tokens
from windlass.client.verbs.webhooks import Webhooks
from windlass.core.codec import INLINE_LIMIT
from windlass.core.flow.queue import QueueOptions, settings
from windlass.core.jobs.job import DEFAULT_QUEUE
from windlass.core.moments import SECOND, Duration, duration
from windlass.core.reference import MAX_BLOB_SIZE
from windlass.core.webhooks.addresses import Network
from windlass.errors import ConfigError, WindlassError
from windlass.store.clock import ManualClock
from windlass.store.contract import Store
from windlass.store.open import MEMORY_ADDRESS, redact

F = TypeVar("F", bound=Callable[..., Any])

CLIENT_DEADLINE = 5.0
"""Seconds after which a client's call gives up: a web request must not hang on an unreachable store."""


class App(Producer):
    """Registers tasks and enqueues jobs.

    Creating it and decorating functions does no I/O: the first verb opens the store. One app may be used from any
    number of threads and event loops; after a fork it opens the store anew.

    The `store` is the given address, else `WINDLASS_STORE`, else `store` in windlass.toml, or in [tool.windlass] of
    pyproject.toml, else sqlite:///windlass.db. A relative path and the settings file are those of the current folder
    when the app is created.

    `blobs` is a folder for payloads and results over 64 KiB, such as "./blobs" or "file:///srv/shop/blobs", found by
    the same rule (`WINDLASS_BLOBS`). All processes that use the store need the same folder, on a shared mount if they
    are on several machines.

    In a worker, what handlers log with `logging` at the level `keep_logs` or above is kept with their job, like lines
    of `ctx.log`; None keeps nothing. If the app configures no logging, a worker shows INFO and above.

    `state` is what handlers find as `ctx.state`: a State, or an instance of your subclass with typed attributes.
    """

    _declares = True
    """Whether the first verb writes the declarations; commands that only read do not."""

    def __init__(
        self,
        store: str | None = None,
        *,
        blobs: str | None = None,
        deadline: Duration | None = CLIENT_DEADLINE,
        keep_logs: int | None = logging.INFO,
        state: State | None = None,
    ) -> None:
        super().__init__()
        self._location = Location(store, blobs)
        self.registry = Registry(self)
        self.state = State() if state is None else state
        self.keep_logs = keep_logs
        self.jobs = Jobs(self)
        self.flows = Flows(self)
        self.queues = Queues(self)
        self.schedules = Schedules(self)
        self.workers = Workers(self)
        self.stats = Stats(self)
        self.tokens = Tokens(self)
        self.webhooks = Webhooks(self)
        self.actions = Actions(self)
        self.audit = Audit(self)
        self.actor = process_actor()
        self._offload: Offload | None = None
        self._deadline = None if deadline is None else duration(deadline, "deadline") / SECOND
        self._store_handle = production_handle(lambda: self._location.store.address, self._deadline)
        self._guard, self._guard_of = threading.RLock(), os.getpid()
        self._opened_portal: Portal | None = None

    @classmethod
    def testing(cls, clock: ManualClock | None = None) -> "App":
        """An app for tests: its jobs are in the memory of this process, and the test moves its clock.

        No worker sees its jobs; `windlass.testing.run_all(app)` runs them. For an existing app, see
        `windlass.testing.sandbox`.
        """
        app = cls(MEMORY_ADDRESS)
        app._store_handle = memory_handle(clock)
        return app

    @property
    def store(self) -> str:
        """The absolute address of its store. May read the settings file; raises ConfigError."""
        return self._store_handle.address

    @property
    def blobs(self) -> str | None:
        """The absolute folder for large payloads and results; None without one."""
        return self._location.blobs if self._store_handle.server_limit is None else None

    @property
    def clock(self) -> ManualClock:
        """The clock of an app under test; raises ConfigError for any other app."""
        if self._store_handle.clock is None:
            raise ConfigError(
                f"{self!r} is not under test: its jobs and its clock are real. "
                "Make it with App.testing(), or put it into windlass.testing.sandbox(app)"
            )
        return self._store_handle.clock

    @property
    def webhook_networks(self) -> tuple[Network, ...]:
        """Networks that webhooks may reach although they are not public; raises ConfigError."""
        return self._location.webhook_networks

    def __repr__(self) -> str:
        known = self._location.known if self._store_handle.clock is None else self.store
        shown = "store not looked up yet" if known is None else repr(redact(known))
        return f"App({shown}, {len(self.registry.types)} tasks)"

    def _register(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Task[Any, Any, Any]:
        """Make a task of a function and register it."""
        definition = define(function, options)
        self.registry.add(definition)
        self._tasks[definition.type] = task_of(self, definition)
        return self._tasks[definition.type]

    def include(self, *sets: TaskSet) -> None:
        """Add the tasks, hooks and schedules of task sets; a set belongs to one app."""
        for each in sets:
            if not isinstance(each, TaskSet):
                raise ConfigError(
                    f"include takes a TaskSet, not {type(each).__name__}; for a module, give its set: mail.tasks"
                )
            each._join(self, self.registry)
            self.hooks.absorb(each.hooks)
            each.hooks = self.hooks
            self._declared.absorb(each._declared)
            each._declared = self._declared
            self._tasks |= each._tasks
            each._tasks = self._tasks

    def on_dead(self, function: F, /) -> F:
        """Run a function when a job has died: `def alert(job): …`, or `(job, state)`; `job.error` is the error.

        A runner calls it after one of its own attempts made a job dead and that is stored: at most once, `def` in the
        thread of the hooks, `async def` on the event loop, each for at most 10 s. What it raises is logged and
        changes nothing. It does not run for jobs that died by a crash or hang of their runner, nor if the runner ends
        first. To miss none, poll `app.jobs.list(status="dead")`.
        """
        self.hooks.dead.append(hook_of("on_dead", function, "job", "state"))
        return function

    @overload
    def middleware(self, function: F, /) -> F: ...
    @overload
    def middleware(self, *, skip_others: bool = False) -> Callable[[F], F]: ...
    def middleware(self, function: Callable[..., Any] | None = None, /, *, skip_others: bool = False) -> Any:  # type: ignore[misc]
        """Wrap a function around every attempt; the first that is registered is the outermost. Three forms:

        - `def m(ctx)` with one `yield`, which returns the result or raises the error: around every task.
        - `async def m(ctx, call_next)`: around `async def` tasks.
        - `def m(ctx, call_next)`: around `def` tasks.

        An app with a task that a middleware does not fit is refused, unless the middleware was registered with
        `@app.middleware(skip_others=True)`. What a middleware returns becomes the result, also after an error; None
        leaves the outcome unchanged, so no error is swallowed by accident. It may raise what a handler may. It runs
        where the handler runs, within its timeout; not if the stored arguments do not fit the task.
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

    group = open_group
    flow = new_flow
    worker = worker

    if not TYPE_CHECKING:  # a type checker would assume that every name exists

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, APP)

    async def aclose(self) -> None:
        """Close the store; the next verb opens it again."""
        await self._store_handle.close()

    def close(self) -> None:
        """Close the store and end the threads behind the blocking verbs."""
        portal, self._opened_portal = self._portal(), None
        portal.run(self.aclose(), waits=True)
        portal.close()

    async def declare(self, store: Store | None = None) -> None:
        """Write the declarations now instead of with the first verb; a given store may have a longer deadline."""
        handle = self._store_handle
        handle.written = await self._declared.write(store or handle.connect())

    async def _ready(self) -> Store:
        """The store, with the declarations written to it."""
        store = self._store_handle.connect()
        if self._declares and self._store_handle.written != self._declared.version:
            await self.declare(store)
        return store

    def adopt(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        """Use a runner's open store: its handlers share the connections, also in threads, on its event loop."""
        self._store_handle.adopt(store if self._deadline is None else store.with_timeout(self._deadline))
        self._opened_portal = Portal(self._works_without_loop, loop)

    def _relocate(self, store: str) -> None:
        """Use another store than the code names, for a command; before any is open."""
        self._location = Location(store, self._location.blobs)

    @property
    def payload_limit(self) -> int:
        """The maximum size of a payload, in bytes of JSON."""
        return self._store_handle.server_limit or self.result_limit

    @property
    def result_limit(self) -> int:
        """The maximum size of a result, in bytes of JSON."""
        return INLINE_LIMIT if self.blobs is None else MAX_BLOB_SIZE

    def offload(self) -> Offload | None:
        """The blob store for payloads and results that are too large for a row; None without `blobs`.

        None also under test: all payloads of a test stay in memory.
        """
        if self.blobs is None or self._store_handle.clock is not None:
            return None
        if self._offload is None:
            self._offload = open_blobs(self.blobs)
        return self._offload

    def _portal(self) -> Portal:
        opened = self._opened_portal
        if opened is not None and opened.pid == os.getpid():
            return opened
        # A lock that another thread held at a fork stays locked in the child: the child needs a new one.
        if self._guard_of != os.getpid():
            self._guard, self._guard_of = threading.RLock(), os.getpid()
        with self._guard:
            if self._opened_portal is None or self._opened_portal.pid != os.getpid():
                self._opened_portal = Portal(self._works_without_loop, begins_without_loop=self._begins_without_loop)
            return self._opened_portal

    def _works_without_loop(self) -> bool:
        try:
            return self._store_handle.connect().works_without_loop
        except WindlassError:
            return False  # the verb meets the same error and reports it

    def _begins_without_loop(self) -> bool:
        # A span that begins here could not end on the loop.
        opened = self._store_handle.opened
        return self._tracing is None and opened is not None and opened[1].begins_without_loop
