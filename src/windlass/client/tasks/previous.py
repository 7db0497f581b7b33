"""PREVIOUS, and other values that represent the result of a job in the arguments of another."""

from collections.abc import Iterable
from typing import Any

from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob, ResultParam
from windlass.errors import InvalidPayload


class Placeholder:
    """Represents the result of a job: a whole argument, which no payload can contain."""

    source: JobId = ""
    """The job; empty: the one before it in a chain."""

    def __format__(self, spec: str) -> str:
        """Refuse: an f-string would store the name of the result instead of its value."""
        raise InvalidPayload(repr(self), "has no value yet: give it as an argument of its own, not within a text")


class _Previous(Placeholder):
    """Stands for the result of the link before, in `chain(...)`. A singleton; no payload can contain it."""

    def __repr__(self) -> str:
        return "PREVIOUS"

    def __reduce__(self) -> str:
        return "PREVIOUS"


PREVIOUS: Any = _Previous()
"""In `chain(...)`: the result of the link before, as an argument. To a type checker it is Any."""


def take_placeholders(given: dict[str, Any]) -> tuple[ResultParam, ...]:
    """Remove the arguments that get a result later; returns them, each with the job whose result it gets."""
    later = tuple((name, value.source) for name, value in given.items() if isinstance(value, Placeholder))
    for name, _ in later:
        del given[name]
    return later


def check_no_previous(jobs: Iterable[NewJob]) -> None:
    """Refuse a job that uses PREVIOUS, or the result of a node, but has no parent."""
    for job in jobs:
        if job.result_params and not job.parents:
            problem = "is PREVIOUS, the result of the link before it, which exists only in chain(...)"
            if job.result_params[0][1]:
                problem = "is the result of a node, which only jobs of the same flow can take: flow.add(...)"
            raise InvalidPayload(job.result_params[0][0], f"{problem} (task {job.type})")
