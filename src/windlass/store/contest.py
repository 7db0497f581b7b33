"""The contest for idempotency keys, when jobs are handed in."""

from collections.abc import Sequence

from windlass.core.idempotency import Verdict, judge, replaced_by
from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.status import Status
from windlass.errors import KeyConflict
from windlass.store.keys import Holder, Place, place_of

Named = tuple[str, str]
"""A queue and a key in it, as people write it."""


def places_of(jobs: Sequence[NewJob]) -> dict[Named, Place]:
    """The keys that these jobs want: who has them is looked up before the contest."""
    return {
        (job.queue, job.idempotency_key): place_of(job.queue, job.idempotency_key)
        for job in jobs
        if job.idempotency_key is not None
    }


class Contest:
    """The keys of one hand-in: its jobs meet who has them, and each other, in their order."""

    def __init__(self, held: dict[Place, Holder], jobs: Sequence[NewJob]) -> None:
        self._places = places_of(jobs)
        self._held = dict(held)
        self.taken: dict[Place, JobId] = {}
        self.replaced: dict[JobId, str] = {}

    def enter(self, job: NewJob, status: Status) -> JobId | None:
        """None: the job has its key, and stands. Else the id of the one that stands instead of it."""
        assert job.idempotency_key is not None
        place = self._places[job.queue, job.idempotency_key]
        holder = self._held.get(place)
        if holder is not None:
            # Its own window, after its id was forgotten: still the same job.
            verdict = Verdict.ANSWER if holder.job == job.id else judge(holder.status, job.on_conflict)
            if verdict is Verdict.REFUSE:
                raise KeyConflict(job.idempotency_key, holder.job)
            if verdict is Verdict.ANSWER:
                return holder.job
            self.replaced[holder.job] = replaced_by(job.id)
        self._held[place] = Holder(job.id, status)
        self.taken[place] = job.id
        return None
