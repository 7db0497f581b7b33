"""Middleware: user functions that go round every attempt.

Three forms, one rule: what a middleware returns replaces the outcome, None leaves it as it was.

    def timed(ctx):                     a generator that yields once: round every task
        result = yield

    async def traced(ctx, call_next):   round `async def` tasks
        return await call_next()

    def locked(ctx, call_next):         round `def` tasks
        return call_next()
"""

import inspect
from collections.abc import Awaitable, Callable, Generator, Sequence
from enum import Enum
from types import TracebackType
from typing import Any

import msgspec

from windlass.client.tasks.context import Context, current_context
from windlass.client.tasks.hooks import is_function, location
from windlass.errors import ConfigError

Handler = Callable[..., Any]
Call = Callable[[Context, dict[str, Any]], Any]
AsyncCall = Callable[[Context, dict[str, Any]], Awaitable[Any]]


class Form(Enum):
    """The tasks that a middleware fits."""

    GENERATOR = "every task"
    ASYNC = "`async def` tasks"
    PLAIN = "`def` tasks"


class Middleware(msgspec.Struct, frozen=True):
    """One middleware, as registered."""

    function: Callable[..., Any]
    form: Form
    skip_others: bool

    def __str__(self) -> str:
        return f"{self.function.__qualname__} ({location(self.function)})"

    def fits(self, *, is_async: bool) -> bool:
        return self.form is Form.GENERATOR or (self.form is Form.ASYNC) == is_async


def middleware_of(function: Callable[..., Any], *, skip_others: bool) -> Middleware:
    """A middleware, if the function has one of the three forms."""
    if not is_function(function):
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
    """The middlewares that fit a task; one that neither fits nor may be skipped is an error."""
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
    """The function wrapped in all of them, the first one outermost; `context` names its Context parameter.

    Done once, at registration: an attempt without middleware costs nothing more.
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
        steps = Steps(middleware.function(ctx), ctx, str(middleware))
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
        steps = Steps(middleware.function(ctx), ctx, str(middleware))
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
        call = CallNext(str(middleware))

        async def call_next() -> Any:
            with call:
                call.result = await inner(ctx, arguments)
            return call.result

        return call.outcome(await middleware.function(ctx, call_next))

    return run


def _around_plain(middleware: Middleware, inner: Call) -> Call:
    def run(ctx: Context, arguments: dict[str, Any]) -> Any:
        call = CallNext(str(middleware))

        def call_next() -> Any:
            with call:
                call.result = inner(ctx, arguments)
            return call.result

        return call.outcome(middleware.function(ctx, call_next))

    return run


Kind = type[BaseException] | None


class CallNext:
    """The outcome of `call_next`; if it is called again, that of the last call."""

    def __init__(self, middleware: str) -> None:
        self._middleware = middleware
        self._called = False
        self._error: BaseException | None = None
        self.result: Any = None

    def __enter__(self) -> None:
        self._called, self._error = True, None

    def __exit__(self, kind: Kind, error: BaseException | None, at: TracebackType | None) -> None:
        self._error = error

    def outcome(self, returned: Any) -> Any:
        """The middleware's return value; None keeps the outcome, a result or an error."""
        if inspect.iscoroutine(returned):
            returned.close()
            raise TypeError(f"middleware {self._middleware} returned a coroutine: write `return await call_next()`")
        if returned is not None:
            return returned
        if not self._called:
            raise RuntimeError(
                f"middleware {self._middleware} returned None without calling call_next(): the handler did not run. "
                "To end the attempt without it, return a value or raise Cancel, Dead, Retry or Snooze"
            )
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self.result


class Steps:
    """The steps of a middleware generator: up to its `yield`, and from there to its end."""

    def __init__(self, generator: Generator[Any, Any, Any], ctx: Context, middleware: str) -> None:
        self._generator = generator
        self._ctx = ctx
        self._middleware = middleware
        self.result: Any = None

    def begin(self) -> bool:
        """Run to the `yield`; false if it returned a result before, so that the handler must not run."""
        try:
            with self._ctx._without_await():
                next(self._generator)
        except StopIteration as end:
            if end.value is None:
                raise RuntimeError(
                    f"middleware {self._middleware} ended before its `yield`: the handler did not run. "
                    "To end the attempt without it, return a value or raise Cancel, Dead, Retry or Snooze"
                ) from None
            self.result = end.value
            return False
        return True

    def done(self, result: Any) -> None:
        """Resume the generator with the handler's result."""
        self.result = result
        try:
            with self._ctx._without_await():
                self._generator.send(result)
        except StopIteration as end:
            if end.value is not None:
                self.result = end.value
            return
        self._refuse_second()

    def failed(self, error: BaseException) -> Any:
        """Throw the handler's error at the `yield`; it is raised again, unless the middleware returns a value."""
        try:
            with self._ctx._without_await():
                self._generator.throw(error)
        except StopIteration as end:
            if end.value is not None:
                return end.value
        except RuntimeError as other:
            # Python converts a StopIteration that passes through a generator.
            if not isinstance(error, StopIteration) or other.__cause__ is not error:
                raise
        else:
            self._refuse_second()
        # Raised outside of `except`, so that it keeps its cause.
        raise error

    def _refuse_second(self) -> None:
        self._generator.close()
        raise RuntimeError(f"middleware {self._middleware} yields twice; the handler runs at the one `yield`")
