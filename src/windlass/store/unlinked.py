"""Stores that know no chains say so: a job that ran without waiting for its parents would be worse."""

from collections.abc import Iterable

from windlass.core.job import NewJob
from windlass.errors import InvalidOption


def refuse_links(jobs: Iterable[NewJob], store: str) -> None:
    """Raise InvalidOption if any of them has parents."""
    if any(job.parents for job in jobs):
        raise InvalidOption("parents", f"jobs on {store} cannot wait for others in this version; SQLite has chains")
