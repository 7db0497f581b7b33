"""Idempotency keys: where a key has its place, and who is under it."""

from hashlib import sha256

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.status import Status

Place = tuple[str, str]
"""A queue and the hash of a key in it."""


class Holder(msgspec.Struct, frozen=True):
    """The job under a key; without a status it has ended, within its window."""

    job: JobId
    status: Status | None


class Keyed(msgspec.Struct, frozen=True):
    """A job that ends, with the key that it had."""

    id: JobId
    queue: str
    key: str | None
    window: Micros | None


def place_of(queue: str, key: str) -> Place:
    """Keys may be long; their hashes are the index."""
    return queue, sha256(key.encode()).hexdigest()
