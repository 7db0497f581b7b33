"""One attempt: from the stored payload to its outcome. Whatever a handler does, there is an outcome."""

import asyncio
import inspect
import os
import traceback
from typing import Any, NoReturn

from windlass.blobs.offload import off_loop
from windlass.client.runtime.process_id import FORKS
from windlass.client.tasks import middleware
from windlass.client.tasks.context import Context, entered
from windlass.core.codec import INLINE_LIMIT, check_json, check_size, encode, size_of
from windlass.core.control import Cancel, Dead
from windlass.core.jobs.dependencies import is_parent_result
from windlass.core.jobs.job import JobError
from windlass.core.jobs.outcome import Done, OtherVersion, Outcome, Raised, Requeued
from windlass.core.moments import Micros, show_duration
from windlass.core.text import cut, printable
from windlass.errors import InvalidInput, StoreUnavailable
from windlass.observe.history import record_run
from windlass.worker.handlers.offloaded import (
    fetch_payload,
    insert_parent_results,
    is_offloaded,
    missing_result,
    offload_result,
    unstorable,
)
from windlass.worker.handlers.unawaited import notice_unawaited
from windlass.worker.handlers.work import Halt, Work

MAX_NAME_LENGTH = 200
MAX_MESSAGE_LENGTH = 4_000
MAX_TRACEBACK_LENGTH = 16_000
MAX_FRAMES = 50
MISFIT = "the stored arguments do not fit the task"
MISFIT_RESULT = "the result of its parent does not fit the task"
NOT_KEPT = "the result of its parent was not kept"
NO_RESULT = Done("null")
_PUBLIC = {"builtins": "", Dead.__module__: "windlass."}
"""Module → the prefix of its public names."""
_OURS = frozenset([middleware.__file__])


@record_run
async def run_async(work: Work) -> Outcome:
    """Run an `async def` handler on the loop. The outcome is kept with the work too: see `Run`."""
    notice_unawaited()
    token, forks = entered.set(work), FORKS.count
    try:
        if is_offloaded(work):
            await off_loop(fetch_payload, [work])
        result = _checked(await work.definition.handler(**_arguments(work)), work)
    except _Misfit as error:
        work.outcome = error.outcome if not error.unknown else await _left_to_another(work, error)
        return work.outcome
    except BaseException as error:
        # All errors, also SystemExit and CancelledError: the attempt failed, the runner goes on.
        work.outcome = halted(work) or Raised(error, report(error))
        return work.outcome
    finally:
        entered.reset(token)
        if FORKS.count != forks:
            _end_copy()
    if result is None:
        work.outcome = NO_RESULT
        return work.outcome
    text = _result(result, work)
    work.outcome = Done(text if size_of(text) <= INLINE_LIMIT else await _off_loop_result(work, text))
    return work.outcome


def halted(work: Work) -> Outcome | None:
    """The outcome of a halted handler; None if it was not halted."""
    match work.halted:
        case Halt.DRAIN:
            return Requeued()
        case Halt.CANCEL:
            return Raised(Cancel(""), JobError("Cancelled", "cancelled while running"))
        case Halt.TIMEOUT:
            return timed_out(work.claimed.timeout or 0)
        case None:
            return None


def timed_out(timeout: Micros) -> Raised:
    """The outcome of an attempt that took too long."""
    text = f"it took longer than its timeout of {show_duration(timeout)}; timeout=None allows any length"
    return Raised(TimeoutError(text), JobError("TimeoutError", text))


@record_run
def run_sync(work: Work) -> Outcome:
    """Run a `def` handler, in the thread that calls this."""
    notice_unawaited()
    token, forks = entered.set(work), FORKS.count
    try:
        if is_offloaded(work):
            fetch_payload(work)
        result = _checked(work.definition.handler(**_arguments(work)), work)
    except _Misfit as error:
        return error.outcome if not error.unknown else work.home._portal().run(_left_to_another(work, error))
    except BaseException as error:
        return Raised(error, report(error))
    finally:
        entered.reset(token)
        if FORKS.count != forks:
            _end_copy()
    if result is None:
        return NO_RESULT
    text = _result(result, work)
    return Done(text if size_of(text) <= INLINE_LIMIT else offload_result(work, text))


def _end_copy() -> NoReturn:
    """End the copy of a process that a handler forked: only the process that began the attempt may return from it."""
    os._exit(0)


def report(error: BaseException) -> JobError:
    """The error as bounded, printable text; an error that cannot be printed is still reported."""
    kind = type(error)
    home = _PUBLIC.get(kind.__module__, f"{kind.__module__}.")
    return JobError(_shown(f"{home}{kind.__qualname__}", MAX_NAME_LENGTH), _message(error), _traceback(error))


def describe_internal_error(error: BaseException) -> str:
    """An error of Windlass, in one line: what and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {_message(error)}{where}"


def _message(error: BaseException) -> str:
    try:
        return _shown(str(error), MAX_MESSAGE_LENGTH)
    except BaseException as second:
        return f"(its message cannot be shown: {type(second).__name__})"


def _shown(text: str, limit: int) -> str:
    # Cut before and after: a huge text costs nothing, and escapes are longer than the characters they replace.
    return cut(printable(cut(text, limit)), limit)


def _traceback(error: BaseException) -> str | None:
    try:
        # The first frame is Windlass's; people look for the frames of their handler.
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        report = traceback.TracebackException(type(error), error, frames, limit=-MAX_FRAMES)
        text = "".join(_without_ours(report).format())
    except BaseException:
        return None
    # The end names the error, so the end is kept.
    return _end_of(printable(_end_of(text)))


def _without_ours(report: traceback.TracebackException) -> traceback.TracebackException:
    """Remove Windlass's frames between a middleware and the handler."""
    link: traceback.TracebackException | None = report
    for _ in range(MAX_FRAMES):
        if link is None:
            break
        link.stack[:] = [frame for frame in link.stack if frame.filename not in _OURS]
        link = link.__cause__ or link.__context__
    return report


def _end_of(text: str) -> str:
    return text if len(text) <= MAX_TRACEBACK_LENGTH else "…" + text[1 - MAX_TRACEBACK_LENGTH :]


class _Misfit(Exception):
    """The code has changed since the job was enqueued: a retry does not help."""

    def __init__(self, error: InvalidInput, reason: str, unknown: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.unknown = unknown
        """Arguments that a newer version of the task may have."""
        self.outcome = Raised(Dead(reason), JobError(type(error).__name__, str(error)))


def _arguments(work: Work) -> dict[str, Any]:
    signature, takes = work.definition.signature, work.claimed.result_params
    if takes is not None:
        if (lost := missing_result(work)) is not None:
            raise _Misfit(lost, NOT_KEPT)
        insert_parent_results(work)
    try:
        arguments = signature.decode(work.claimed.payload)
    except InvalidInput as error:
        of_result = takes is not None and is_parent_result(error.field, takes)
        unknown = signature.unknown(work.claimed.payload)
        raise _Misfit(error, MISFIT_RESULT if of_result else MISFIT, unknown) from None
    if signature.context is not None:
        arguments[signature.context] = Context(work)
    return arguments


async def _left_to_another(work: Work, misfit: _Misfit) -> Outcome:
    """Whether a live worker knows the arguments, as in a rolling deploy: then the job is left to it without a
    failure.
    """
    job = work.claimed
    try:
        workers = await (await work.home._ready()).workers.list()
    except StoreUnavailable:
        return OtherVersion(misfit.unknown)  # not known: the next attempt asks again
    able = any(worker.takes(job.queue, job.type, misfit.unknown) for worker in workers)
    return OtherVersion(misfit.unknown) if able else misfit.outcome


def _checked(result: Any, work: Work) -> Any:
    """The handler's return value; a coroutine that is not awaited must not count as a result."""
    if result is not None and inspect.iscoroutine(result):
        result.close()
        advice = "write `return await …`" if work.is_async else "make the task, or what wraps it, an `async def`"
        raise TypeError(f"the handler returned a coroutine, which is never awaited: {advice}")
    if work.unawaited is not None:
        raise RuntimeError(
            f"{work.unawaited}(…) was called, and never awaited: write `await …`, or in a `def` handler call the "
            "form that blocks"
        )
    return result


def _result(result: Any, work: Work) -> str:
    limit = work.home.result_limit
    try:
        check_json(result, "result", typed=True, most=limit)
        return check_size(encode(result, "result"), "result", limit)
    except BaseException as error:
        # All errors: encoding a result runs code of its class.
        return unstorable(error)


async def _off_loop_result(work: Work, text: str) -> str:
    keeping = asyncio.ensure_future(off_loop(lambda each: offload_result(work, each), [text]))
    while True:
        try:
            return (await asyncio.shield(keeping))[0]
        except asyncio.CancelledError as error:
            # By a drain or a timeout; a cancellation that the handler left behind is ignored.
            if work.halted is not None or keeping.cancelled():
                return unstorable(error)
        except BaseException as error:
            return unstorable(error)
