"""A context for unit tests of handlers that take one."""

from datetime import UTC, datetime

import msgspec

from windlass.client.app import App
from windlass.client.runtime.portal import is_on_loop
from windlass.client.tasks.context import Context
from windlass.client.tasks.registry import define
from windlass.core.codec import encode
from windlass.core.ids import new_id
from windlass.core.jobs.job import DEFAULT_MAX_ATTEMPTS, Claimed, NewJob, Progress
from windlass.core.moments import to_micros
from windlass.store.clock import since_boot
from windlass.worker.handlers.work import Work


class RecordedContext(Context):
    """A Context that records what the handler reports, and stores nothing."""

    def __init__(self, work: "_Recorded") -> None:
        super().__init__(work)
        self._work = work

    @property
    def reports(self) -> list[Progress]:
        """The arguments of `progress`, in order."""
        return self._work.reports

    @property
    def lines(self) -> list[str]:
        """The arguments of `log`, in order."""
        return [line.text for line in self._work.lines]

    def cancel(self) -> None:
        """Ask the handler to stop: `cancelled` is true, and `sleep` raises Cancel."""
        self._work.cancel()


def context(app: App | None = None, job: NewJob | None = None, *, attempt: int = 1) -> RecordedContext:
    """A Context for a plain call: `render(context(), 7)`, or `await crawl(context(app), url)`.

    With an app, such as `App.testing()`, its children are enqueued there and `ctx.state` is the app's; without one
    they go to a store in memory of its own. `ctx.job` is the given job (`render.job(7)`), or an empty one.
    """
    job = job or NewJob(id=new_id(), type="test", payload="{}")
    return RecordedContext(_recorded(app or App.testing(), job, attempt))


class _Recorded(Work, eq=False):
    reports: list[Progress] = msgspec.field(default_factory=list)

    @property
    def is_async(self) -> bool:
        """An `async def` handler is called on a loop."""
        return is_on_loop()

    def progress(self, progress: Progress) -> None:
        """Record the progress that the handler reports."""
        Work.progress(self, progress)
        self.reports.append(progress)


def _recorded(app: App, job: NewJob, attempt: int) -> _Recorded:
    budget, failures, now = job.max_attempts or DEFAULT_MAX_ATTEMPTS, attempt - 1, to_micros(datetime.now(UTC))
    counters = (failures, 0, 0, 0, 0, 0)
    claimed = Claimed(
        *(job.id, job.queue, job.type, job.payload, attempt, budget, *counters, job.priority, now, now, now),
        *(job.idempotency_key, job.concurrency_key, job.tenant, job.parent),
        tags=encode(job.tags, "tags"),
        meta=job.meta,
    )
    return _Recorded(claimed, msgspec.structs.replace(define(_no_handler, {}), home=app), -1, since_boot())


def _no_handler() -> None:
    """The test calls the handler itself."""
