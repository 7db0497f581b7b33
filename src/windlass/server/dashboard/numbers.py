"""Numbers of jobs within the caller's limits."""

from typing import Any

from windlass.core.stats.meter import Recent
from windlass.core.status import Status
from windlass.server.api.stats import JobCount, JobCountQuery, StatsQuery, StatsRecord, count_jobs, get_stats
from windlass.server.dashboard.page import View

MAX_COUNTED = 10_000
"""Where counting for a page ends."""


async def read_stats(view: View, query: StatsQuery) -> StatsRecord:
    """Statistics; a token that is limited to types gets only counts, because the rest is of whole queues."""
    if not view.caller.rights.types:
        return (await view.ask(get_stats, query=query)).body  # type: ignore[no-any-return]
    totals = {str(status): (await count(view, {"status": (status,)})).count for status in Status}
    return StatsRecord(queues={}, totals=totals, oldest={}, recent=Recent(0, ()))


async def count(view: View, wanted: dict[str, Any], most: int = MAX_COUNTED) -> JobCount:
    """How many jobs match."""
    query = JobCountQuery(**{**wanted, "status": tuple(map(Status, wanted.get("status", ())))}, most=most)
    return (await view.ask(count_jobs, query=query)).body  # type: ignore[no-any-return]


def counted(found: JobCount) -> str:
    """A count in words."""
    return f"{found.count:,}" if found.exact else f"{found.count:,} or more"
