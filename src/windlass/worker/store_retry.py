"""Calls that must succeed in the end: repeated with growing, jittered pauses until the store is back."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from windlass.core.events import Emit, Event, StoreFailed, StoreRecovered
from windlass.errors import StoreUnavailable, StoreUnusable

T = TypeVar("T")

MIN_PAUSE, MAX_PAUSE = 0.05, 2.0
MAX_UNEXPECTED = 10
"""Max retries in a row after an error that is not the store's; then it is raised."""


async def retry_until_done(doing: str, call: Callable[[], Awaitable[T]], emit: Emit, *, hopeful: bool = True) -> T:
    """The call's answer, however long the store is away: every verb is safe to repeat.

    With `hopeful=False` a permanent failure is raised at once.
    """
    pause, failing, unexpected = MIN_PAUSE, False, 0
    while True:
        try:
            answer = await call()
        except StoreUnusable:
            raise
        except Exception as error:
            unexpected = 0 if isinstance(error, StoreUnavailable) else unexpected + 1
            if unexpected > MAX_UNEXPECTED or (is_lasting(error) and not hopeful):
                raise
            if not failing:
                emit(StoreFailed(doing=doing, problem=describe_error(error)))
            failing = True
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, MAX_PAUSE)
        else:
            if failing:
                emit(StoreRecovered(doing=doing))
            return answer


async def retry_within(
    seconds: float | None, where: str, doing: str, call: Callable[[], Awaitable[T]], emit: Emit
) -> T:
    """The call's answer, if the store is there in time; else StoreUnavailable with the last problem."""
    problem = "it does not answer"

    def note(event: Event) -> None:
        nonlocal problem
        if isinstance(event, StoreFailed):
            problem = event.problem
        emit(event)

    try:
        async with asyncio.timeout(seconds):
            return await retry_until_done(doing, call, note, hopeful=False)
    except TimeoutError:
        raise StoreUnavailable(f"{where}: {doing} took longer than {seconds:g} s: {problem}") from None


async def repeat(
    doing: str, call: Callable[[], Awaitable[object]], emit: Emit, *, every: float, after_failure: float | None = None
) -> None:
    """Call it every `every` seconds until cancelled, despite errors; emits the first failure and its end."""
    failing = False
    while True:
        await asyncio.sleep(every if after_failure is None or not failing else after_failure)
        try:
            await call()
        except Exception as error:
            if not failing:
                emit(StoreFailed(doing=doing, problem=describe_error(error)))
            failing = True
        else:
            if failing:
                emit(StoreRecovered(doing=doing))
            failing = False


class MemoryErrors:
    """Counts MemoryErrors in a row. A few may pass with one job; more than MAX_UNEXPECTED end the process, which
    frees the memory that its handlers keep.
    """

    def __init__(self) -> None:
        self._count = 0

    def count(self, error: Exception) -> None:
        """Raise the error if it is one MemoryError too many; other errors do not count."""
        self._count += isinstance(error, MemoryError)
        if self._count > MAX_UNEXPECTED:
            raise error

    def end(self) -> None:
        """A call succeeded: count from 0 again."""
        self._count = 0


def is_lasting(error: Exception) -> bool:
    """Whether trying again is unlikely to help."""
    return error.lasting if isinstance(error, StoreUnavailable) else True


def describe_error(error: Exception) -> str:
    """An error as text: the store's own are sentences, others need their type."""
    return str(error) if isinstance(error, StoreUnavailable) else f"{type(error).__name__}: {error}"


class FailureReports:
    """Emits a failure once for as long as it stays the same."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._reported: dict[str, str] = {}

    def failed(self, doing: str, problem: str, *, retried: bool = True) -> None:
        """Note a failure."""
        if self._reported.get(doing) != problem:
            self._reported[doing] = problem
            self._emit(StoreFailed(doing=doing, problem=problem, retried=retried))

    def succeeded(self, doing: str) -> None:
        """Note a success."""
        self._reported.pop(doing, None)
