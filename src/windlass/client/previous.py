"""PREVIOUS: what stands, in a link of a chain, for the result of the link before it."""

from collections.abc import Iterable
from typing import Any

from windlass.core.job import NewJob
from windlass.errors import InvalidPayload


class _Previous:
    """Stands for the result of the link before, in `chain(...)`. One of a kind; no payload can hold it."""

    def __repr__(self) -> str:
        return "PREVIOUS"

    def __reduce__(self) -> str:
        return "PREVIOUS"


PREVIOUS: Any = _Previous()
"""In `chain(...)`: the result of the link before, as an argument. To a type checker it is whatever is wanted."""


def check_no_previous(jobs: Iterable[NewJob]) -> None:
    """Refuse a job that takes the result of another and comes after none."""
    for job in jobs:
        if job.takes and not job.parents:
            problem = "is PREVIOUS, the result of the link before it, which there is only in chain(...)"
            raise InvalidPayload(job.takes[0][0], f"{problem} (task {job.type})")
