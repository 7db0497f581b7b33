"""Jobs that are alike: they go into one statement, because all that differs is their own."""

from operator import attrgetter
from typing import Any

from windlass.core.job import NewJob

OWN = ("id", "payload", "idempotency_key", "concurrency_key")
"""What even jobs of one task, handed in together, do not have in common."""

own_of = attrgetter(*OWN)
kind_of = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in OWN))

LINKED = ("parent", "flow", "parents", "takes")
"""What even links of one task, handed in together, do not have in common."""

link_kind_of = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in (*OWN, *LINKED)))


def key_terms(job: NewJob) -> dict[str, Any]:
    """What a job says of its concurrency key and of what a start costs, by column; NULL is the default."""
    return {
        "key_limit": job.key_limit,
        "key_strict": job.key_strict,
        "key_rate": None if job.key_rate is None else str(job.key_rate),
        "rate_cost": job.rate_cost,
    }
