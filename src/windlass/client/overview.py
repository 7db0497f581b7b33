"""app.workers and app.stats: who works, and how much of what; each verb also with an `a`."""

from datetime import timedelta

from windlass.client.blocking import blocking
from windlass.client.course import Asked, Step, read_course
from windlass.client.verbs import Verbs
from windlass.core.course import By, Course
from windlass.core.meter import KEPT, Recent
from windlass.core.moments import SECOND, duration
from windlass.errors import InvalidOption
from windlass.store.records import Counts, WorkerInfo


class Workers(Verbs):
    """Who works."""

    async def alist(self) -> list[WorkerInfo]:
        """The workers that are alive."""
        store = await self._home._ready()
        return await store.workers.list()

    list = blocking(alist)


class Stats(Verbs):
    """How much of what."""

    async def acounts(self) -> Counts:
        """Jobs by queue and status, exact."""
        store = await self._home._ready()
        return await store.operator.counts()

    async def arecent(self, length: float | timedelta = 300) -> Recent:
        """What ended in the last seconds, at most an hour: by slots of time, queue and type.

        Statistics, not a ledger: runners hand them in every two seconds, and one that dies takes the last ones along.
        """
        micros = duration(length, "length")
        if not 0 < micros <= KEPT:
            raise InvalidOption("length", f"must be up to {KEPT // SECOND} seconds, and more than none")
        store = await self._home._ready()
        return await store.stats.recent(micros)

    async def aoldest(self) -> dict[str, float]:
        """How many seconds the pending job that waits longest has waited, for each queue that has any."""
        store = await self._home._ready()
        return {queue: micros / SECOND for queue, micros in (await store.stats.oldest()).items()}

    async def acourse(
        self,
        length: float | timedelta = 6 * 3600,
        *,
        by: By = "queue",
        step: Step | None = None,
        points: int | None = None,
        queue: str | None = None,
        type: str | None = None,
    ) -> Course:
        """How it went in the last seconds, for each queue or type, as the coordinator sampled it.

        By the minute for 7 days, by the hour for 400; `points` puts neighbours together until there are no more than
        so many. The minute that is not over yet, and one that is just being sampled, are not in it.
        """
        asked = Asked(length=length, by=by, step=step, points=points, queue=queue, type=type)
        micros = asked.check()
        return await read_course(await self._home._ready(), asked, micros)

    counts = blocking(acounts)
    recent = blocking(arecent)
    oldest = blocking(aoldest)
    course = blocking(acourse)
