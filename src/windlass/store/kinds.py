"""Jobs that are alike: they go into one statement, because all that differs is their own."""

from operator import attrgetter

from windlass.core.job import NewJob

OWN = ("id", "payload", "idempotency_key", "concurrency_key")
"""What even jobs of one task, handed in together, do not have in common."""

own_of = attrgetter(*OWN)
kind_of = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in OWN))
