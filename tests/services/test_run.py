"""One attempt: whatever a handler does, there is an outcome, bounded and storable."""

import asyncio
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from tests.services.parts import claimed, one_work
from tests.support.seed import nothing
from windlass import App, Context, Dead, InvalidOption
from windlass.core.codec import INLINE_LIMIT, decode
from windlass.core.jobs.outcome import Done, Outcome, Raised, Requeued
from windlass.worker.handlers.attempt import MAX_MESSAGE_LENGTH, MAX_TRACEBACK_LENGTH, report, run_async, run_sync
from windlass.worker.handlers.start import run_attempt
from windlass.worker.handlers.work import Halt, Work


@pytest.fixture
def app() -> App:
    """Never opened."""
    return App("sqlite:///never-opened.db")


async def attempt(app: App, function: Callable[..., Any], payload: str = "{}") -> Outcome:
    """Run a handler as a slot would."""
    task = app.task(type="t")(function)
    work = one_work(app, claimed(type="t", payload=payload))
    return await run_async(work) if task.definition.is_async else await asyncio.to_thread(run_sync, work)


async def test_arguments_are_restored_and_the_result_is_json(app: App) -> None:
    def next_day(day: date, *, days: int = 1) -> date:
        return day.replace(day=day.day + days)

    assert await attempt(app, next_day, '{"day":"2026-01-02"}') == Done('"2026-01-03"')


async def test_an_async_handler_is_awaited(app: App) -> None:
    async def double(number: int) -> int:
        return 2 * number

    assert await attempt(app, double, '{"number":4}') == Done("8")


@pytest.mark.parametrize("payload", ["{}", '{"number":"4"}', '{"number":4,"more":1}', "not JSON", "[4]", "null", ""])
@pytest.mark.parametrize("kind", ["async", "def"])
async def test_stored_arguments_that_do_not_fit_are_dead_at_once(kind: str, payload: str) -> None:
    app = App.testing()

    async def handle_async(number: int) -> None: ...

    def handle_sync(number: int) -> None: ...

    outcome = await attempt(app, handle_async if kind == "async" else handle_sync, payload)
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, Dead)
    assert outcome.error.reason == "the stored arguments do not fit the task"


class Grumpy:
    """Its validation fails with an unexpected error."""

    @classmethod
    def model_validate_json(cls, value: bytes) -> "Grumpy":
        raise KeyError("not today")


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_a_validator_that_fails_of_something_else_does_not_hurt_the_runner(app: App, kind: str) -> None:
    async def handle_async(thing: Grumpy) -> None: ...

    def handle_sync(thing: Grumpy) -> None: ...

    outcome = await attempt(app, handle_async if kind == "async" else handle_sync, '{"thing":{}}')
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, Dead)
    assert "KeyError: 'not today'" in outcome.report.message


class Undumpable:
    def model_dump(self, *, mode: str, by_alias: bool) -> Any:
        raise KeyError("not today")


def returning(result: Any) -> Callable[[], Any]:
    def handle() -> Any:
        return result

    return handle


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "result",
    [
        float("nan"),
        2**64,
        object(),
        "x" * INLINE_LIMIT,
        "\ud800",
        {"a": {"b": object()}},
        {1: 2, (1, 2): 3},
        cyclic(),
        Undumpable(),
        lambda: None,
    ],
    ids=lambda result: str(result)[:20].encode("ascii", "replace").decode(),
)
async def test_a_result_that_cannot_be_kept_does_not_undo_the_work(app: App, result: Any) -> None:
    outcome = await attempt(app, returning(result))
    assert isinstance(outcome, Done)
    assert outcome.result is not None
    (note,) = decode(outcome.result).items()
    assert note[0] == "unstorable_result"
    assert 5 < len(note[1]) <= 500


async def test_no_result_is_null(app: App) -> None:
    assert await attempt(app, nothing) == Done("null")


async def test_a_coroutine_that_is_never_awaited_is_a_failure(app: App) -> None:
    """A plain wrapper round an async function would do nothing, and look as if it had."""

    async def real() -> None: ...

    def wrapper() -> Any:
        return real()

    outcome = await attempt(app, wrapper)
    assert isinstance(outcome, Raised)
    assert "returned a coroutine" in outcome.report.message


async def test_a_cancelled_handler_is_requeued_whatever_it_raises(app: App) -> None:
    async def handle() -> None:
        raise ValueError("interrupted while cleaning up")

    app.task(type="t")(handle)
    work = one_work(app, claimed(type="t"))
    work.halt(Halt.DRAIN)
    assert await run_async(work) == Requeued()


async def test_the_traceback_begins_in_the_handler(app: App) -> None:
    def handler_of_mine() -> None:
        raise ValueError("no luck")

    outcome = await attempt(app, handler_of_mine)
    assert isinstance(outcome, Raised)
    traceback = outcome.report.traceback or ""
    assert (outcome.report.type, outcome.report.message) == ("ValueError", "no luck")
    assert "handler_of_mine" in traceback
    assert "worker/handlers/attempt.py" not in traceback


class Unprintable(Exception):
    def __init__(self, how: Any) -> None:
        self._how = how

    def __str__(self) -> str:
        if isinstance(self._how, BaseException):
            raise self._how
        return self._how  # type: ignore[no-any-return]

    __repr__ = __str__


@pytest.mark.parametrize("how", [ValueError("no"), 42, None, KeyboardInterrupt(), RecursionError()], ids=repr)
def test_an_error_that_cannot_be_printed_is_still_reported(how: Any) -> None:
    reported = report(raised(Unprintable(how)))
    assert reported.type.endswith("Unprintable")
    assert reported.message.startswith("(its message cannot be shown: ")


def raised(error: BaseException) -> BaseException:
    """The error, with a traceback."""
    try:
        raise error
    except BaseException as caught:
        return caught


def test_a_cycle_of_causes_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    reported = report(raised(first))
    assert (reported.message, "second" in (reported.traceback or "")) == ("first", True)


def test_a_long_chain_of_causes_is_bounded() -> None:
    error: BaseException = ValueError("root")
    for number in range(2000):
        following = ValueError(f"number {number}")
        following.__cause__ = error
        error = following
    reported = report(raised(error))
    assert reported.message == "number 1999"
    assert len(reported.traceback or "") <= MAX_TRACEBACK_LENGTH


@pytest.mark.parametrize("text", ["x" * 10_000_000, "\ud800" * 100_000, "\x1b" * 100_000, "\U0010ffff" * 100_000])
def test_a_huge_message_is_bounded_and_printable(text: str) -> None:
    reported = report(raised(ValueError(text)))
    assert len(reported.message) <= MAX_MESSAGE_LENGTH
    assert len(reported.traceback or "") <= MAX_TRACEBACK_LENGTH
    assert f"{len(text):,} characters" in reported.message or "…" in reported.message
    assert reported.message.isprintable()
    reported.message.encode()


def test_an_error_from_a_module_is_named_in_full() -> None:
    kind = type("E" * 1000, (Exception,), {"__module__": "shop\x1b[31m.errors"})
    reported = report(raised(kind("x")))
    assert reported.type.startswith("shop\\x1b[31m.errors.E")
    assert len(reported.type) <= 200


def test_a_group_of_errors_is_reported_with_its_members() -> None:
    reported = report(raised(ExceptionGroup("several", [ValueError("one"), KeyError("two")])))
    assert "several (2 sub-exceptions)" in reported.message
    assert "ValueError: one" in (reported.traceback or "")


@pytest.fixture
def said(app: App) -> tuple[Context, Work]:
    """A context, and the job that it speaks for."""
    app.task(type="t")(nothing)
    work = one_work(app, claimed(type="t"))
    return Context(work), work


def test_what_a_handler_says_is_kept_as_text_that_can_be_stored(said: tuple[Context, Work]) -> None:
    ctx, work = said
    ctx.log("\ud800 \x1b[31m")
    ctx.log("x" * 100_000)
    ctx.progress(1, 2, note="\ud800" * 1000)
    assert work.lines[0].text == "\\ud800 \\x1b[31m"
    assert 900 < len(work.lines[1].text) <= 1000
    assert work.latest_progress is not None
    assert work.latest_progress.note is not None
    assert len(work.latest_progress.note) <= 500
    work.latest_progress.note.encode()


@pytest.mark.parametrize("done", [float("nan"), float("inf"), "half", 10**400, None])
def test_progress_is_a_finite_number(said: tuple[Context, Work], done: Any) -> None:
    ctx, work = said
    with pytest.raises(InvalidOption, match=r"^progress\.done: must be a finite number"):
        ctx.progress(done)
    assert work.latest_progress is None


async def test_what_is_said_may_be_awaited_or_not(said: tuple[Context, Work]) -> None:
    ctx, work = said
    await ctx.progress(1)
    await ctx.log("a line")
    ctx.log("another")
    assert [line.text for line in work.lines] == ["a line", "another"]


def test_what_a_handler_decided_is_reported_by_its_public_name() -> None:
    assert report(raised(Dead("hopeless"))).type == "windlass.Dead"
    assert report(raised(InvalidOption("a", "b"))).type == "windlass.errors.InvalidOption"


class Sulky(dict[str, int]):
    """Reading it raises SystemExit."""

    def items(self) -> Any:
        raise SystemExit

    __iter__ = __len__ = items


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_a_result_that_raises_anything_when_it_is_looked_at_undoes_nothing(app: App, kind: str) -> None:
    async def on_loop() -> Any:
        return Sulky(a=1)

    def in_thread() -> Any:
        return Sulky(a=1)

    outcome = await attempt(app, on_loop if kind == "async" else in_thread)
    assert isinstance(outcome, Done)
    assert "SystemExit" in str(outcome.result)


async def test_an_attempt_that_is_waited_for_survives_what_its_handler_leaves_behind(app: App) -> None:
    async def leave() -> int:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return 7

    app.task(type="t")(leave)
    before = asyncio.current_task()
    assert await run_attempt(one_work(app, claimed(type="t"))) == Done("7")
    assert before is not None
    assert not before.cancelling()
