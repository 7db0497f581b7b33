"""The beginning and the end of a process that runs handlers: the user's hooks, and the state they make."""

import asyncio
import inspect
import traceback
from concurrent.futures import ThreadPoolExecutor

from windlass.client.app import App
from windlass.client.hooks import Hook, code_of
from windlass.core.events import Emit, HookFailed
from windlass.errors import ConfigError

STOP_SECONDS = 3.0
"""How long stop hooks have together, at least; what is left of the drain time may be more."""
LONGEST_PROBLEM = 300


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
                # Everything, also SystemExit: without its pool a process is of no use.
                raise ConfigError(f"the {hook} failed:\n{_trouble(hook, error)}") from None

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Run the stop hooks in reverse, each whatever became of the others, all within this time."""
        end = asyncio.get_running_loop().time() + max(seconds, STOP_SECONDS)
        for hook in reversed(self._app.hooks.stop):
            await self.attempt(hook, self._app.state, end=end)

    async def attempt(self, hook: Hook, *given: object, end: float, job: str | None = None) -> None:
        """Call a hook; what it raises, or that it takes too long, is told and otherwise ignored."""
        try:
            async with asyncio.timeout_at(end):
                await self.call(hook, *given)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _being_cancelled():
                raise
            late = isinstance(error, TimeoutError) and asyncio.get_running_loop().time() >= end
            problem = "it took too long" if late else f"{type(error).__name__}: {error}"
            self._emit(HookFailed(hook=str(hook), job=job, problem=problem[:LONGEST_PROBLEM]))

    async def call(self, hook: Hook, *given: object) -> None:
        """Call a hook where its kind belongs."""
        if hook.is_async:
            await hook(*given)
        else:
            result = await asyncio.get_running_loop().run_in_executor(self._thread, hook, *given)
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError("a plain function returned a coroutine, which nobody awaits: make it an `async def`")


def _trouble(hook: Hook, error: BaseException) -> str:
    """The traceback from the hook on: the frames before it are ours."""
    frames, code = error.__traceback__, code_of(hook.function)
    while frames is not None and frames.tb_frame.f_code is not code:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames, limit=-10))


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())
