"""Middleware: functions of the user's that go round every attempt.

Three forms, one rule: what a middleware returns replaces the outcome, None leaves it as it was.

    def timed(ctx):                     a generator that yields once: round every task
        result = yield

    async def traced(ctx, call_next):   round `async def` tasks
        return await call_next()

    def locked(ctx, call_next):         round `def` tasks
        return call_next()
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Any

import msgspec

from windlass.client.context import Context
from windlass.client.current import current_context
from windlass.client.hooks import place
from windlass.client.passage import Passage, Steps
from windlass.errors import ConfigError

Handler = Callable[..., Any]
Call = Callable[[Context, dict[str, Any]], Any]
AsyncCall = Callable[[Context, dict[str, Any]], Awaitable[Any]]


class Form(Enum):
    """Which tasks a middleware can go round."""

    GENERATOR = "every task"
    ASYNC = "`async def` tasks"
    PLAIN = "`def` tasks"


class Middleware(msgspec.Struct, frozen=True):
    """One middleware, as it was registered."""

    function: Callable[..., Any]
    form: Form
    skip_others: bool

    def __str__(self) -> str:
        return f"{self.function.__qualname__} ({place(self.function)})"

    def fits(self, *, is_async: bool) -> bool:
        """Whether it can go round a task of this kind."""
        return self.form is Form.GENERATOR or (self.form is Form.ASYNC) == is_async


def middleware_of(function: Callable[..., Any], *, skip_others: bool) -> Middleware:
    """A middleware, if the function has one of the three forms."""
    if not inspect.isroutine(inspect.unwrap(function)) or not hasattr(function, "__qualname__"):
        raise ConfigError(f"a middleware is a function, not {type(function).__name__}")
    if inspect.isgeneratorfunction(function):
        form = Form.GENERATOR
    else:
        form = Form.ASYNC if inspect.iscoroutinefunction(function) else Form.PLAIN
    given = ["ctx"] if form is Form.GENERATOR else ["ctx", "call_next"]
    middleware = Middleware(function, form, skip_others)
    try:
        inspect.signature(function).bind(*given)
        fits = not inspect.isasyncgenfunction(function)
    except TypeError:
        fits = False
    if not fits:
        raise ConfigError(
            f"middleware {middleware} has none of the three forms: "
            "`def m(ctx)` with one `yield` goes round every task, "
            "`async def m(ctx, call_next)` round `async def` tasks, `def m(ctx, call_next)` round `def` tasks"
        )
    return middleware


def fitting(middlewares: Sequence[Middleware], *, is_async: bool, task: str) -> list[Middleware]:
    """Those that go round a task; one that cannot, and was not told to skip it, is a mistake."""
    wrong = [each for each in middlewares if not each.skip_others and not each.fits(is_async=is_async)]
    if wrong:
        raise ConfigError(
            f"middleware {wrong[0]} goes round {wrong[0].form.value}, and {task} is "
            f"{'an `async def`' if is_async else 'a `def`'}: "
            "write it as a generator (`def m(ctx)` with one `yield`), which goes round both, "
            "or register it with @app.middleware(skip_others=True)"
        )
    return [each for each in middlewares if each.fits(is_async=is_async)]


def wrap(
    function: Callable[..., Any], middlewares: Sequence[Middleware], context: str | None, *, is_async: bool
) -> Callable[..., Any]:
    """The function with all of them round it, the first one outermost; `context` names its Context parameter.

    Made once, when it is registered: an attempt without middleware costs nothing more.
    """
    if not middlewares:
        return function
    return _wrap_async(function, middlewares, context) if is_async else _wrap_plain(function, middlewares, context)


def _wrap_async(function: Callable[..., Any], middlewares: Sequence[Middleware], context: str | None) -> Handler:
    async def innermost(ctx: Context, arguments: dict[str, Any]) -> Any:
        return await function(**arguments)

    chain: AsyncCall = innermost
    for middleware in reversed(middlewares):
        chain = (_steps_async if middleware.form is Form.GENERATOR else _around_async)(middleware, chain)

    async def outermost(**arguments: Any) -> Any:
        return await chain(arguments[context] if context else current_context(), arguments)

    return outermost


def _wrap_plain(function: Callable[..., Any], middlewares: Sequence[Middleware], context: str | None) -> Handler:
    def innermost(ctx: Context, arguments: dict[str, Any]) -> Any:
        return function(**arguments)

    chain: Call = innermost
    for middleware in reversed(middlewares):
        chain = (_steps_plain if middleware.form is Form.GENERATOR else _around_plain)(middleware, chain)

    def outermost(**arguments: Any) -> Any:
        return chain(arguments[context] if context else current_context(), arguments)

    return outermost


def _steps_async(middleware: Middleware, inner: AsyncCall) -> AsyncCall:
    async def run(ctx: Context, arguments: dict[str, Any]) -> Any:
        steps = Steps(middleware.function(ctx), str(middleware))
        if steps.begin():
            try:
                result = await inner(ctx, arguments)
            except BaseException as error:
                return steps.failed(error)
            steps.done(result)
        return steps.result

    return run


def _steps_plain(middleware: Middleware, inner: Call) -> Call:
    def run(ctx: Context, arguments: dict[str, Any]) -> Any:
        steps = Steps(middleware.function(ctx), str(middleware))
        if steps.begin():
            try:
                result = inner(ctx, arguments)
            except BaseException as error:
                return steps.failed(error)
            steps.done(result)
        return steps.result

    return run


def _around_async(middleware: Middleware, inner: AsyncCall) -> AsyncCall:
    async def run(ctx: Context, arguments: dict[str, Any]) -> Any:
        passage = Passage(str(middleware))

        async def call_next() -> Any:
            with passage:
                passage.result = await inner(ctx, arguments)
            return passage.result

        return passage.outcome(await middleware.function(ctx, call_next))

    return run


def _around_plain(middleware: Middleware, inner: Call) -> Call:
    def run(ctx: Context, arguments: dict[str, Any]) -> Any:
        passage = Passage(str(middleware))

        def call_next() -> Any:
            with passage:
                passage.result = inner(ctx, arguments)
            return passage.result

        return passage.outcome(middleware.function(ctx, call_next))

    return run
