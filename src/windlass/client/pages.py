"""Verbs by filter: over all jobs that match, page by page."""

from collections.abc import Awaitable, Callable, Sequence

from windlass.core.ids import JobId
from windlass.store.contract import OperatorStore
from windlass.store.records import JobFilter, Moved

PAGE = 500


async def each_page(
    operator: OperatorStore,
    wanted: JobFilter,
    verb: Callable[[OperatorStore, Sequence[JobId]], Awaitable[Sequence[Moved | None]]],
) -> int:
    """Do it to every job that matches, from the oldest: how many it was done to.

    Each page is atomic, the whole is not, and no job is met twice.
    """
    after, done = None, 0
    while ids := await operator.select(wanted, PAGE, after):
        done += sum(1 for each in await verb(operator, ids) if each is not None and each.done)
        after = ids[-1]
    return done
