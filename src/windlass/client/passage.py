"""One attempt on its way through one middleware: no outcome is lost there by accident."""

import inspect
from collections.abc import Generator
from types import TracebackType
from typing import Any

Kind = type[BaseException] | None


class Passage:
    """What happened beyond `call_next`. Entered for each call: the last one counts."""

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
        """What the middleware returned; None leaves what happened as it was, be it a result or an error."""
        if inspect.iscoroutine(returned):
            returned.close()
            raise TypeError(f"middleware {self._middleware} returned a coroutine: say `return await call_next()`")
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
    """The same for a middleware that is a generator: up to its `yield`, and from there to its end."""

    def __init__(self, generator: Generator[Any, Any, Any], middleware: str) -> None:
        self._generator = generator
        self._middleware = middleware
        self.result: Any = None

    def begin(self) -> bool:
        """Up to the `yield`; false if it returned a result before it, so that the handler must not run."""
        try:
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
        """The handler has returned."""
        self.result = result
        try:
            self._generator.send(result)
        except StopIteration as end:
            if end.value is not None:
                self.result = end.value
            return
        self._refuse_second()

    def failed(self, error: BaseException) -> Any:
        """The handler has raised: the middleware sees it at its `yield`. It stands, unless a value is returned."""
        try:
            self._generator.throw(error)
        except StopIteration as end:
            if end.value is not None:
                return end.value
        except RuntimeError as other:
            # What Python makes of a StopIteration that passes through a generator.
            if not isinstance(error, StopIteration) or other.__cause__ is not error:
                raise
        else:
            self._refuse_second()
        # Raised here, outside of `except`: it keeps the cause that it came with.
        raise error

    def _refuse_second(self) -> None:
        self._generator.close()
        raise RuntimeError(f"middleware {self._middleware} yields twice; the handler runs at the one `yield`")
