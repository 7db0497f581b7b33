"""timed: new jobs that each have a time of their own, such as reminders; what is else alike goes by one statement."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from windlass.core.job import NewJob
from windlass.store.kinds import OWN, kind_of
from windlass.store.postgres import packing

_TIMES = ("run_at", "delay")
_like_of = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in (*OWN, *_TIMES)))


def is_timed(job: NewJob) -> bool:
    """Whether it goes that way: who has a concurrency key, or may be there already, is looked at more closely."""
    return bool(job.fresh and (job.delay or job.run_at is not None) and job.concurrency_key is None)


def statement_of(job: NewJob) -> Any:
    """Jobs of which this is the same go into one statement."""
    return _like_of(job) if is_timed(job) else kind_of(job)


def times_of(jobs: Sequence[NewJob]) -> dict[str, Any]:
    """When each is due: at a moment, or so long after it is stored."""
    return {
        "run_ats": packing.numbers(job.run_at for job in jobs),
        "delays": packing.numbers(job.delay for job in jobs),
    }
