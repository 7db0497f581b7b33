"""PREVIOUS: stands for the result of the link before, in a link of a chain."""

from collections.abc import Iterable
from typing import Any

from windlass.core.jobs.job import NewJob
from windlass.errors import InvalidPayload


class _Previous:
    """Stands for the result of the link before, in `chain(...)`. A singleton; no payload can contain it."""

    def __repr__(self) -> str:
        return "PREVIOUS"

    def __reduce__(self) -> str:
        return "PREVIOUS"


PREVIOUS: Any = _Previous()
"""In `chain(...)`: the result of the link before, as an argument. To a type checker it is Any."""


def check_no_previous(jobs: Iterable[NewJob]) -> None:
    """Refuse a job that uses PREVIOUS but has no parent."""
    for job in jobs:
        if job.result_params and not job.parents:
            problem = "is PREVIOUS, the result of the link before it, which there is only in chain(...)"
            raise InvalidPayload(job.result_params[0][0], f"{problem} (task {job.type})")
