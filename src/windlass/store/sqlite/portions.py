"""Portions: how many new jobs one statement takes, so that what it has to unfold in memory is bounded."""

from collections.abc import Iterator, Sequence

from windlass.core.job import NewJob

MOST_IN_STATEMENT = 10_000
MOST_TEXT = 32_000_000


def portions(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """All of them, in their order; none if there are none."""
    longest = max((len(job.payload) for job in jobs), default=0)
    step = max(1, min(MOST_IN_STATEMENT, MOST_TEXT // (longest + 1)))
    for start in range(0, len(jobs), step):
        yield jobs[start : start + step]
