"""The start and the end of a process that runs handlers: the app's hooks, and the state that they make."""

import asyncio
import contextvars
import inspect
import traceback
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from windlass.client.app import App
from windlass.client.runtime.offloaded import with_values
from windlass.client.tasks.hooks import Hook, code_of
from windlass.core.events import AttemptEnded, Emit, Event, HookFailed, StoreFailed
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.errors import ConfigError
from windlass.store.contract import Store
from windlass.worker.store_retry import describe_error, retry_until_done

STOP_SECONDS = 3.0
"""Min time for all stop hooks together; the rest of the drain time may be longer."""
MAX_PROBLEM_LENGTH = 300
HOOK_SECONDS = 10.0
"""How long one call may take: the next dead job waits for it."""


class Lifespan:
    """Calls hooks: `async def` on the loop that it is used on, `def` in one thread.

    One thread for all of them, because some connections may only be closed where they were opened.
    """

    def __init__(self, app: App, emit: Emit) -> None:
        self._app = app
        self._emit = emit
        self._thread = ThreadPoolExecutor(1, "windlass-hooks")

    async def start(self) -> None:
        """Run the start hooks in order; raises ConfigError with the traceback of the first that fails."""
        for hook in self._app.hooks.start:
            try:
                await self.call(hook, self._app.state)
            except BaseException as error:
                # All errors, also SystemExit: handlers need what the hooks prepare.
                raise ConfigError(f"the {hook} failed:\n{_hook_traceback(hook, error)}") from None

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Run the stop hooks in reverse, all of them even if one raises, within this time."""
        end = asyncio.get_running_loop().time() + max(seconds, STOP_SECONDS)
        for hook in reversed(self._app.hooks.stop):
            await self.attempt(hook, self._app.state, end=end)
        self._thread.shutdown(wait=False)

    async def attempt(self, hook: Hook, *given: object, end: float, job: str | None = None) -> None:
        """Call a hook; an error or a timeout is emitted and otherwise ignored."""
        try:
            async with asyncio.timeout_at(end):
                await self.call(hook, *given)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _being_cancelled():
                raise
            late = isinstance(error, TimeoutError) and asyncio.get_running_loop().time() >= end
            problem = "it took too long" if late else f"{type(error).__name__}: {error}"
            self._emit(HookFailed(hook=str(hook), job=job, problem=problem[:MAX_PROBLEM_LENGTH]))

    async def call(self, hook: Hook, *given: object) -> None:
        """Call a hook in the thread or on the loop of its kind."""
        if hook.is_async:
            await hook(*given)
        else:
            # In a new context: what one hook sets must not be there for the next one.
            run = contextvars.copy_context().run
            result = await asyncio.get_running_loop().run_in_executor(self._thread, run, hook, *given)
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError(
                    "a plain function returned a coroutine, which is never awaited: make it an `async def`"
                )


def _hook_traceback(hook: Hook, error: BaseException) -> str:
    """The traceback from the hook on: the frames before it are Windlass's."""
    frames, code = error.__traceback__, code_of(hook.function)
    while frames is not None and frames.tb_frame.f_code is not code:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames, limit=-10))


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())


class DeadHooks:
    """Calls the `on_dead` hooks for settlements that are durable, beside the work."""

    def __init__(self, app: App, store: Store, lifespan: Lifespan, emit: Emit) -> None:
        self._app = app
        self._store = store
        self._lifespan = lifespan
        self._emit = emit
        self._waiting: deque[JobId] = deque()
        self._added = asyncio.Event()
        self.quiet = asyncio.Event()
        self.quiet.set()

    def listening(self, emit: Emit) -> Emit:
        """A listener that also collects dead jobs; the same listener if there are no hooks."""
        if not self._app.hooks.dead:
            return emit

        def both(event: Event) -> None:
            emit(event)
            if isinstance(event, AttemptEnded) and event.status is Status.DEAD:
                self._waiting.append(event.job)
                self.quiet.clear()
                self._added.set()

        return both

    async def run(self) -> None:
        """Run hooks until cancelled."""
        while True:
            await self._added.wait()
            await self._call_hooks(self._waiting.popleft())
            if not self._waiting:
                self._added.clear()
                self.quiet.set()

    async def _call_hooks(self, id_: JobId) -> None:
        doing = f"calling the on_dead hooks for {id_}"
        try:
            job = (await retry_until_done(doing, lambda: self._store.operator.get([id_]), self._emit))[0]
        except Exception as error:
            self._emit(StoreFailed(doing=doing, problem=describe_error(error), retried=False))
            return
        # It may have been retried or deleted by now.
        if job is not None and job.status is Status.DEAD:
            with_payload = await with_values(self._app.offload(), job)
            for hook in self._app.hooks.dead:
                await self._call(hook, with_payload)

    async def _call(self, hook: Hook, job: Job) -> None:
        """Call a hook in a task of its own, so that its context and tasks do not affect the next one."""
        end = asyncio.get_running_loop().time() + HOOK_SECONDS
        call = asyncio.create_task(self._lifespan.attempt(hook, job, self._app.state, end=end, job=job.id))
        await asyncio.wait([call])
        if call.cancelled():
            self._emit(HookFailed(hook=str(hook), job=job.id, problem="it cancelled its own task"))
