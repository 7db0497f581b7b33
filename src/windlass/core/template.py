"""The job of every tick of a schedule, without what belongs to one job. Pure.

It is kept as text, and somebody may edit it by hand: what no store could take must show before it is handed in
together with the jobs of others.
"""

from operator import attrgetter

from windlass.core.codec import INLINE_LIMIT, size_of
from windlass.core.job import HIGHEST_PRIORITY, LOWEST_PRIORITY, MOST_ATTEMPTS, MOST_COST, MOST_PER_KEY, NewJob
from windlass.core.moments import LATEST
from windlass.core.names import LONGEST_CONCURRENCY_KEY, check_key
from windlass.errors import InvalidOption, PayloadTooLarge

_OF_ONE_JOB = {
    "run_at": "when it runs is said by the schedule",
    "delay": "when it runs is said by the schedule; jitter= spreads it",
    "idempotency_key": "the job of a tick has a key of its own; overlap=False lets only one run at a time",
    "expires_at": "give a length: expires=600",
    "parent": "the jobs of a schedule come from none",
    "parents": "the jobs of a schedule come from none",
    "takes": "PREVIOUS is for links of a chain",
}
_BOUNDS = {
    "priority": (LOWEST_PRIORITY, HIGHEST_PRIORITY),
    "max_attempts": (1, MOST_ATTEMPTS),
    "key_limit": (1, MOST_PER_KEY),
    "rate_cost": (1, MOST_COST),
    "timeout": (0, LATEST),
    "expires": (1, LATEST),
}
_INDEXED = ("queue", "type", "tenant", "concurrency_key")
_of_one_job, _bounded, _indexed = attrgetter(*_OF_ONE_JOB), attrgetter(*_BOUNDS), attrgetter(*_INDEXED)


def template(job: object) -> NewJob:
    """What a program gave. A schedule says when, and that is all that it says."""
    if not isinstance(job, NewJob):
        raise InvalidOption("job", f"is not a job but {type(job).__name__}; make it with task.job(...)")
    fields = {name: getattr(job, name) for name in NewJob.__struct_fields__}
    made = NewJob(**{**fields, "id": "", "fresh": ""})
    check_template(made)
    return made


def check_template(job: NewJob) -> None:
    """Whether every tick can be handed in as this."""
    for name, value in zip(_OF_ONE_JOB, _of_one_job(job), strict=True):
        if value not in (None, 0, ()):
            raise InvalidOption(
                "expires" if name == "expires_at" else name, f"belongs to one job; {_OF_ONE_JOB[name]}"
            )
    if size_of(job.payload) > INLINE_LIMIT:
        raise PayloadTooLarge(
            "payload", f"of a schedule's job is {size_of(job.payload):,} bytes, the limit is {INLINE_LIMIT:,}"
        )
    for value, (name, (least, most)) in zip(_bounded(job), _BOUNDS.items(), strict=True):
        if value is not None and not least <= value <= most:
            raise InvalidOption(name, f"must be a whole number from {least} to {most}, not {value}")
    for name, text in zip(_INDEXED, _indexed(job), strict=True):
        if text is not None:
            check_key(text, name, LONGEST_CONCURRENCY_KEY)
    for name, text in (("payload", job.payload), ("meta", job.meta), ("flow", job.flow)):
        if text is not None and "\x00" in text:
            raise InvalidOption(name, "must be text without NUL")
