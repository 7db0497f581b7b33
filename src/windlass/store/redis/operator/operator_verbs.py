"""cancel, retry, run_now, delete, change. What the status does not allow changes nothing."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from windlass.core.flow.key_slots import key_slot_after, or_waiting_for_key
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange, Timing, may_change, may_run_now, reschedule
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT, ParentEffect, effect_of, pending_parents
from windlass.core.jobs.version import ANY_VERSION, Versions
from windlass.core.moments import Micros
from windlass.core.status import RETRYABLE, Status
from windlass.store.records import Transition
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.portion import MAX_WRITTEN, call_in_portions, first_portion
from windlass.store.redis.dependencies.dependents import notify_dependents, register_children
from windlass.store.redis.operator.decide import Decided, decide_all, replace_decided, version_of
from windlass.store.redis.operator.move import move_all
from windlass.store.redis.operator.read_records import FoundJob, read_anywhere
from windlass.store.redis.operator.replace import Replaced, pairs_by_queue, text_of
from windlass.store.redis.records.ending import cancelled, reset_ageing, row_of, set_status
from windlass.store.redis.records.record import NO_KEY_SLOT, STATUS, Flag, Letter, Record
from windlass.store.rows import FINISHED_COLUMNS, add_attempt, last_attempt

_ANY = -1
"""Instead of a version: drop the job at any version."""


async def cancel(
    access: Access, ids: Sequence[JobId], reason: str, versions: Versions = ANY_VERSION
) -> list[Transition | None]:
    """Cancel waiting jobs, all before any key slot is reassigned; running ones get a cancel request."""

    def decide(seen: FoundJob) -> Record | None:
        record = seen.record
        if record.finished:
            return None
        if record.status is not Status.RUNNING:
            return cancelled(record, reason, seen.now)
        asked = msgspec.structs.replace(record, flags=record.flags | Flag.CANCEL_REQUESTED, updated_at=seen.now)
        set_status(asked, Status.RUNNING, reason)
        return asked

    return await decide_all(access, ids, decide, versions=versions)


async def retry(access: Access, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Make jobs pending, or waiting for their key, with a fresh budget; each takes its idempotency key again.

    A job with a pending parent waits for it; with a failed parent it stays, as that must be retried first.
    """

    def decide(seen: FoundJob) -> Record | None:
        record = seen.record
        if record.status not in RETRYABLE:
            return None
        after = _retried(seen) if record.finished else msgspec.structs.replace(record)
        after.failures, after.crashes, after.expires_at = 0, 0, 0
        if record.flags & Flag.WAITS_FOR_PARENTS:
            set_status(after, Status.BLOCKED, WAITING_FOR_PARENT)
            after.updated_at = seen.now
        else:
            make_due_now(after, seen.now)
        return after

    return await decide_all(access, ids, decide, replace_waiting, versions)


def _retried(seen: FoundJob) -> Record:
    """A finished job that becomes live again; its attempts are kept."""
    after = msgspec.structs.replace(
        seen.record,
        flags=seen.record.flags & ~Flag.CANCEL_REQUESTED,
        runner="",
        claim=0,
        claimed_at=0,
        started_at=0,
        key_slot=NO_KEY_SLOT,
        result=None,
        details=msgspec.structs.replace(seen.record.details, attempts=_all_attempts(seen)),
    )
    reset_ageing(after)
    return after


def _all_attempts(seen: FoundJob) -> str | None:
    """The ended attempts, with the last one if only the record's head has it: that is overwritten."""
    fields = dict(zip(FINISHED_COLUMNS.split(", "), row_of(seen.record, seen.queue), strict=True))
    newest = last_attempt(fields)
    kept = seen.record.details.attempts
    return add_attempt(kept, newest) if newest else kept


async def run_now(access: Access, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Make jobs pending, or waiting for their key, behind those that wait already; a pending job keeps its rank."""

    def decide(seen: FoundJob) -> Record | None:
        record = seen.record
        if not may_run_now(record.status):
            return None
        if record.status is Status.PENDING:
            return record
        after = msgspec.structs.replace(record)
        make_due_now(after, seen.now)
        return after

    return await decide_all(access, ids, decide, versions=versions)


def make_due_now(record: Record, now: Micros) -> None:
    """Make a job due now; with a concurrency key and no key slot it waits for its key."""
    due = Timing(Status.PENDING, None, now, now)
    apply_timing(record, or_waiting_for_key(due, record.fields.concurrency_key, key_slot_of(record)), now)


def apply_timing(record: Record, timing: Timing, now: Micros) -> None:
    """Set the status and times that were decided."""
    set_status(record, timing.status, timing.reason)
    record.run_at, record.rank, record.updated_at = timing.run_at, timing.rank, now


def key_slot_of(record: Record) -> int | None:
    """The key slot of a job, if any."""
    return None if record.key_slot == NO_KEY_SLOT else record.key_slot


async def delete(access: Access, ids: Sequence[JobId], versions: Versions = ANY_VERSION) -> list[Transition | None]:
    """Drop finished jobs; a live one must be cancelled first. Of a repeated id the first is answered as deleted."""
    if versions:
        return await _delete_unchanged(access, ids, versions)
    by_queue = access.server.job_locations.by_queue(ids)
    found = await _drop(access, {queue: [(id_, _ANY) for id_ in some] for queue, some in by_queue.items()})
    if missing := [(id_, _ANY) for id_ in dict.fromkeys(ids) if id_ not in found]:
        found |= await _drop(access, dict.fromkeys(await access.queue_names(), missing))
    return [_dropped(found, id_) for id_ in ids]


async def _delete_unchanged(access: Access, ids: Sequence[JobId], versions: Versions) -> list[Transition | None]:
    """Read, compare versions, and drop records that have not changed since."""
    seen = (await read_anywhere(access, ids)).jobs
    stale = {id_ for id_, job in seen.items() if id_ in versions and version_of(job.record) != versions[id_]}
    wanted: dict[str, list[tuple[JobId, int]]] = defaultdict(list)
    for id_, job in seen.items():
        if id_ not in stale:
            wanted[job.queue].append((id_, job.record.version))
    found = await _drop(access, wanted)
    stale |= {id_ for id_ in seen if id_ not in found}
    return [
        Transition(id_, seen[id_].record.status, done=False, stale=True) if id_ in stale else _dropped(found, id_)
        for id_ in ids
    ]


def _dropped(found: dict[JobId, int], id_: JobId) -> Transition | None:
    letter = found.get(id_, 0)
    if letter > 0:
        del found[id_]
    return Transition(id_, STATUS[abs(letter)], done=letter > 0) if letter else None


async def _drop(access: Access, wanted: Mapping[str, Sequence[tuple[JobId, int]]]) -> dict[JobId, int]:
    """Drop jobs at their versions: the letters that they had, negative for unfinished jobs, which stay."""
    found: dict[JobId, int] = {}
    async for _, some, letters in call_in_portions(access, "drop_jobs", wanted):
        found |= {id_: letter for (id_, _), letter in zip(some, letters, strict=True) if letter}
    return found


async def replace_waiting(access: Access, decided: Decided) -> dict[JobId, Replaced]:
    """Write decisions; jobs with a failed parent stay as they are, the others register with their parents."""
    waiting = [seen for seen, after in decided if after.letter == Letter.BLOCKED]
    failed = await _failed_parents(access, waiting) if waiting else {}
    replaced = await replace_decided(
        access, [(seen, after) for seen, after in decided if seen.record.id not in failed]
    )
    to_register: dict[str, list[JobId]] = defaultdict(list)
    for seen in waiting:
        if seen.record.id not in failed and replaced[seen.record.id].status is not None:
            to_register[seen.queue].append(seen.record.id)
    await register_children(access, to_register)
    return replaced | {id_: Replaced(None, parent=parent) for id_, parent in failed.items()}


async def _failed_parents(access: Access, links: Sequence[FoundJob]) -> dict[JobId, JobId]:
    """By job: a parent that failed, or is dropped."""
    left = {
        seen.record.id: pending_parents(seen.record.fields.parents or "[]", seen.record.parent_results)
        for seen in links
    }
    found = (await read_anywhere(access, {parent for parents in left.values() for parent in parents})).jobs
    failed: dict[JobId, JobId] = {}
    for seen in links:
        when_ended = bool(seen.record.flags & Flag.WHEN_ENDED)
        for parent in left[seen.record.id]:
            status = found[parent].record.status if parent in found else Status.CANCELLED
            if effect_of(status, when_ended) is ParentEffect.CANCEL:
                failed.setdefault(seen.record.id, parent)
    return failed


async def change(
    access: Access, ids: Sequence[JobId], wanted: JobChange, versions: Versions = ANY_VERSION
) -> list[Transition | None]:
    """Change each job completely or not at all; a job that moves keeps its idempotency key."""

    async def apply(access: Access, decided: Decided) -> dict[JobId, Replaced]:
        there = [(seen, after) for seen, after in decided if _moves(seen, wanted)]
        replaced = await replace_decided(access, [(s, after) for s, after in decided if not _moves(s, wanted)])
        if wanted.queue is not None and there:
            leaving = [(seen.queue, (seen.record, after)) for seen, after in there]
            while leaving:
                some = first_portion(leaving, lambda each: text_of(each[1]), len(leaving), MAX_WRITTEN)
                replaced |= await move_all(access, wanted.queue, pairs_by_queue(some))
                leaving = leaving[len(some) :]
            await _find_again(access, wanted.queue, [seen for seen, _ in there])
        return replaced

    return await decide_all(access, ids, lambda seen: _changed(seen, wanted), apply, versions)


async def _find_again(access: Access, queue: str, moved: Sequence[FoundJob]) -> None:
    """Moved jobs register with their parents again, and their dependents with them."""
    await register_children(
        access, {queue: [seen.record.id for seen in moved if seen.record.flags & Flag.WAITS_FOR_PARENTS]}
    )
    await notify_dependents(access, {seen.queue for seen in moved if seen.record.flags & Flag.HAS_DEPENDENTS})


def _moves(seen: FoundJob, wanted: JobChange) -> bool:
    return wanted.queue not in (None, seen.queue)


def _changed(seen: FoundJob, wanted: JobChange) -> Record | None:
    """The job after the change; ageing is reset when it is rescheduled, moved, or given a priority."""
    record, moves = seen.record, _moves(seen, wanted)
    if not may_change(record.status, wanted):
        return None
    payload = record.payload if wanted.payload is None else wanted.payload
    if record.status is Status.DEAD:
        return msgspec.structs.replace(record, payload=payload)
    timing = reschedule(Timing(record.status, record.reason, record.run_at, record.rank), wanted, seen.now)
    key_slot = key_slot_after(key_slot_of(record), timing, wanted, moves)
    timing = or_waiting_for_key(timing, record.fields.concurrency_key, key_slot)
    after = msgspec.structs.replace(
        record,
        key_slot=NO_KEY_SLOT if key_slot is None else key_slot,
        payload=payload,
    )
    if wanted.priority is not None:
        after.sort_priority, after.aged_by = -wanted.priority, 0
    elif timing.status is Status.SCHEDULED or moves:
        reset_ageing(after)
    apply_timing(after, timing, seen.now)
    if record.flags & Flag.WAITS_FOR_PARENTS and wanted.is_timed:
        after.rank = 0  # the delay after its parents
    if after.letter == Letter.THROTTLED and key_slot is None:
        # It waits for its time only: a job without a key slot is not among the throttled ones of its key.
        after.letter = Letter.SCHEDULED
    return after
