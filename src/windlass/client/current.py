"""The job that the running code belongs to, for code that is not handed a context."""

from contextvars import ContextVar

from windlass.client.context import Context, Link
from windlass.core.job import Job
from windlass.errors import NotInJob

entered: ContextVar[Link] = ContextVar("windlass_job")
"""Set by a runner round each attempt. It follows `await`, tasks and `asyncio.to_thread`, not bare threads."""


def current_context() -> Context:
    """The context of the attempt that this code runs in; raises NotInJob outside a handler."""
    link = entered.get(None)
    if link is None:
        raise NotInJob
    return Context(link)


def current_job() -> Job:
    """The job whose handler this code runs in, as it was when it was claimed; raises NotInJob outside a handler.

    It works on the loop, in the threads and in the processes of a worker, in tasks that a handler starts and under
    `asyncio.to_thread`. A bare `threading.Thread` does not inherit it: hand it what it needs.
    """
    return current_context().job
