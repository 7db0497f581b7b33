"""The result of an operator's verb on one job, or the error that says why nothing changed."""

from windlass.client.verbs.links import cause_of
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.errors import ChangedSince, JobNotFound, KeyConflict, NotAllowedNow
from windlass.store.contract import OperatorStore
from windlass.store.records import Transition


async def require_done(operator: OperatorStore, verb: str, id_: JobId, moved: Transition | None) -> None:
    """Raise unless the verb took effect."""
    if moved is None:
        raise JobNotFound(id_)
    if moved.stale:
        raise ChangedSince(f"job {id_}", (await _look(operator, id_)).version)
    if moved.holder is not None:
        raise KeyConflict((await _look(operator, id_)).idempotency_key or "", moved.holder)
    if not moved.done:
        first = await _cause(operator, moved.parent)
        if first is not None and first.status is Status.COMPLETED and first.id != moved.parent:
            raise NotAllowedNow(verb, id_, moved.status, first=first.id)
        raise NotAllowedNow(verb, id_, moved.status, parent=moved.parent, first=None if first is None else first.id)


async def _look(operator: OperatorStore, id_: JobId) -> Job:
    job = (await operator.get([id_]))[0]
    if job is None:
        raise JobNotFound(id_)
    return job


async def _cause(operator: OperatorStore, parent: str | None) -> Job | None:
    """The job to retry for one that was cancelled with its parent. None: it is not kept."""
    found = None if parent is None else (await operator.get([parent]))[0]
    if found is None:
        return None
    cause = await cause_of(operator, found)
    return found if cause is None else cause
