"""Operator verbs: all jobs of a call are read, decided about, and written together."""

from collections.abc import Awaitable, Callable, Sequence

from windlass.core.ids import JobId
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.jobs.version import version_of as core_version
from windlass.store.records import Transition
from windlass.store.redis.connection.access import Access
from windlass.store.redis.dependencies.dependents import notify_dependents, replace_and_notify
from windlass.store.redis.operator.read_records import FoundJob, read_anywhere
from windlass.store.redis.operator.replace import (
    MAX_TRIES,
    Numbered,
    Replaced,
    contended,
    first_of_each,
    pairs_by_queue,
)
from windlass.store.redis.records.record import Flag, Record

Decide = Callable[[FoundJob], Record | None]
"""The new record; the same one if nothing changes, None if the status does not allow it."""

Decided = Sequence[tuple[FoundJob, Record]]
Apply = Callable[[Access, Decided], Awaitable[dict[JobId, Replaced]]]
"""Write what was decided, each job on its own."""


async def replace_decided(access: Access, decided: Decided) -> dict[JobId, Replaced]:
    """Write decisions to the queues where the jobs are."""
    return await replace_and_notify(
        access, pairs_by_queue([(seen.queue, (seen.record, after)) for seen, after in decided])
    )


def version_of(record: Record) -> str:
    """The version that users see; the record's own version also grows with notes."""
    return core_version(record.attempt, record.updated_at, record.payload)


async def decide_all(
    access: Access,
    ids: Sequence[JobId],
    decide: Decide,
    apply: Apply = replace_decided,
    versions: Versions = ANY_VERSION,
) -> list[Transition | None]:
    """The answer for each id. A job that changed meanwhile is decided again; repeated ids one after the other."""
    asked = dict(enumerate(ids))
    answers: dict[int, Transition | None] = {}
    for _ in range(len(asked) + MAX_TRIES):
        portion = first_of_each({i: id_ for i, id_ in asked.items() if i not in answers})
        if not portion:
            return [answers[i] for i in asked]
        answers |= await _decide_some(access, portion, decide, apply, versions)
    raise contended(access, next(id_ for i, id_ in asked.items() if i not in answers))


async def _decide_some(
    access: Access, portion: Numbered, decide: Decide, apply: Apply, versions: Versions
) -> dict[int, Transition | None]:
    """Decide about each id once; returns the answers for jobs that did not change meanwhile."""
    view = await read_anywhere(access, portion.values())
    answers: dict[int, Transition | None] = {}
    wanted: dict[int, tuple[FoundJob, Record]] = {}
    for i, id_ in portion.items():
        seen = view.jobs.get(id_)
        if seen is None:
            answers[i] = None
            continue
        if id_ in versions and version_of(seen.record) != versions[id_]:
            answers[i] = Transition(id_, seen.record.status, done=False, stale=True)
            continue
        after = decide(seen)
        if after is None or after is seen.record:
            answers[i] = Transition(id_, seen.record.status, done=after is not None)
        else:
            wanted[i] = seen, after
    replaced = await apply(access, list(wanted.values()))
    # The process that changed it may have died before it notified the dependents.
    settled = [view.jobs[id_] for i, id_ in portion.items() if i not in wanted and id_ in view.jobs]
    await notify_dependents(access, {seen.queue for seen in settled if seen.record.flags & Flag.HAS_DEPENDENTS})
    for i, (seen, _) in wanted.items():
        answer = _moved(seen.record, replaced[seen.record.id])
        if answer is not None:
            answers[i] = answer
    return answers


def _moved(before: Record, replaced: Replaced) -> Transition | None:
    """The answer; None: the job has changed, and must be decided again."""
    if replaced.status is not None:
        return Transition(before.id, replaced.status, done=True)
    if replaced.holder is not None:
        return Transition(before.id, before.status, done=False, holder=replaced.holder)
    if replaced.parent is not None:
        return Transition(before.id, before.status, done=False, parent=replaced.parent)
    return None
