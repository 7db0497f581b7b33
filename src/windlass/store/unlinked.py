"""Stores that know no chains yet say so: a job that ran without waiting for its parents would be worse."""

from collections.abc import Iterable

from windlass.core.job import NewJob


def refuse_links(jobs: Iterable[NewJob], store: str) -> None:
    """Raise NotImplementedError if any of them has parents."""
    if any(job.parents for job in jobs):
        raise NotImplementedError(f"chains on {store}")
