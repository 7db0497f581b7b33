"""Idempotency keys: their hashes and holders, and conflicts when jobs are enqueued."""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.idempotency import KeyDecision, decide_key, replaced_by
from windlass.core.jobs.job import NewJob
from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.errors import KeyConflict

KeyRef = tuple[str, str]
"""A queue and the hash of a key in it."""


class Holder(msgspec.Struct, frozen=True):
    """The job with a key; without a status it has ended, within its window."""

    job: JobId
    status: Status | None


class Keyed(msgspec.Struct, frozen=True):
    """A job that ends, with its key."""

    id: JobId
    queue: str
    key: str | None
    window: Micros | None


def key_ref(queue: str, key: str) -> KeyRef:
    """The reference of a key: its hash, since keys may be long."""
    return queue, sha256(key.encode()).hexdigest()


NamedKey = tuple[str, str]
"""A queue and a key in it, as given."""


def key_refs(jobs: Sequence[NewJob]) -> dict[NamedKey, KeyRef]:
    """The keys of these jobs, with their hashes."""
    return {
        (job.queue, job.idempotency_key): key_ref(job.queue, job.idempotency_key)
        for job in jobs
        if job.idempotency_key is not None
    }


class KeyConflicts:
    """The keys of one enqueue: each job is checked against existing jobs and the earlier ones of the batch."""

    def __init__(self, held: dict[KeyRef, Holder], jobs: Sequence[NewJob]) -> None:
        self._refs = key_refs(jobs)
        self._held = dict(held)
        self.taken: dict[KeyRef, JobId] = {}
        self.replaced: dict[JobId, str] = {}

    def enter(self, job: NewJob, status: Status) -> JobId | None:
        """The id of the existing job with the key; None: this job gets it."""
        assert job.idempotency_key is not None
        ref = self._refs[job.queue, job.idempotency_key]
        holder = self._held.get(ref)
        if holder is not None:
            # The job was dropped, and its key's window is open: this is the same job again.
            verdict = (
                KeyDecision.RETURN_EXISTING if holder.job == job.id else decide_key(holder.status, job.on_conflict)
            )
            if verdict is KeyDecision.REFUSE:
                raise KeyConflict(job.idempotency_key, holder.job)
            if verdict is KeyDecision.RETURN_EXISTING:
                return holder.job
            self.replaced[holder.job] = replaced_by(job.id)
        self._held[ref] = Holder(job.id, status)
        self.taken[ref] = job.id
        return None
