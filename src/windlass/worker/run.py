"""One attempt: from the stored payload to its outcome. Whatever a handler does, there is an outcome."""

import traceback
from typing import Any

from windlass.client.context import Context
from windlass.core.codec import check_json, check_size, encode
from windlass.core.control import Dead
from windlass.core.job import JobError
from windlass.core.outcome import Done, HandedBack, Outcome, Raised
from windlass.core.text import cut, printable
from windlass.errors import InvalidInput
from windlass.worker.work import Work

LONGEST_MESSAGE = 4_000
LONGEST_TRACEBACK = 16_000


async def run_async(work: Work) -> Outcome:
    """Run an `async def` handler on the loop."""
    try:
        arguments = _arguments(work)
    except InvalidInput as error:
        return _misfit(error)
    try:
        result = await work.definition.function(**arguments)
    except BaseException as error:
        # Everything, also SystemExit and CancelledError: the attempt failed, the runner goes on.
        return HandedBack() if work.broken_off else Raised(error, report(error))
    return Done(_result(result))


def run_sync(work: Work) -> Outcome:
    """Run a `def` handler, in the thread that calls this."""
    try:
        arguments = _arguments(work)
    except InvalidInput as error:
        return _misfit(error)
    try:
        result = work.definition.function(**arguments)
    except BaseException as error:
        return Raised(error, report(error))
    return Done(_result(result))


def report(error: BaseException) -> JobError:
    """The error as bounded, printable text; an error that cannot be printed is still reported."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return JobError(name, cut(_message(error), LONGEST_MESSAGE), _traceback(error))


def _message(error: BaseException) -> str:
    try:
        return printable(str(error))
    except Exception as second:
        return f"(its message cannot be shown: {type(second).__name__})"


def _traceback(error: BaseException) -> str | None:
    try:
        # The first frame is ours; what people look for begins in their handler.
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        text = "".join(traceback.format_exception(type(error), error, frames, limit=-50))
    except Exception:
        return None
    # The end says what happened, so that is what is kept.
    return printable(text if len(text) <= LONGEST_TRACEBACK else "…" + text[-LONGEST_TRACEBACK:])


def _arguments(work: Work) -> dict[str, Any]:
    signature = work.definition.signature
    arguments = signature.decode(work.claimed.payload)
    if signature.context is not None:
        arguments[signature.context] = Context(work.claimed, work)
    return arguments


def _misfit(error: InvalidInput) -> Raised:
    """The code has changed since the job was handed in: trying again will not help, a person may."""
    reason = f"the stored arguments do not fit the task: {error}"
    return Raised(Dead(reason), JobError(type(error).__name__, reason))


def _result(result: Any) -> str | None:
    if result is None:
        return "null"
    try:
        check_json(result, "result", typed=True)
        return check_size(encode(result, "result"), "result")
    except InvalidInput as error:
        # The work is done; a result that cannot be kept does not undo it.
        return encode({"unstorable_result": cut(str(error), 500)}, "result")
