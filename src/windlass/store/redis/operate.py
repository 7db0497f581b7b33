"""cancel, retry, run_now, delete: what people do with jobs. What the status does not allow changes nothing."""

from collections.abc import Mapping, Sequence

import msgspec

from windlass.core.chain import AWAITING
from windlass.core.change import Timing, may_run_now
from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.slots import seated
from windlass.core.status import RETRYABLE, Status
from windlass.store.attempts import add_attempt, last_attempt
from windlass.store.records import Moved
from windlass.store.redis.access import Access
from windlass.store.redis.decide import decide_all
from windlass.store.redis.ending import called_off, lay_down, stand
from windlass.store.redis.record import NOBODY, STATUS, Flag, Record
from windlass.store.redis.row import row_of
from windlass.store.redis.sight import MOST_SEEN, Seen
from windlass.store.redis.waiting import replace_waiting
from windlass.store.rows import FINISHED_COLUMNS


async def cancel(access: Access, ids: Sequence[JobId], reason: str) -> list[Moved | None]:
    """Waiting jobs end now, all at once: none of them moves up in a line first. Running ones are asked to stop."""

    def decide(seen: Seen) -> Record | None:
        record = seen.record
        if record.finished:
            return None
        if record.status is not Status.RUNNING:
            return called_off(record, reason, seen.now)
        asked = msgspec.structs.replace(record, flags=record.flags | Flag.CANCELLING, updated_at=seen.now)
        stand(asked, Status.RUNNING, reason)
        return asked

    return await decide_all(access, ids, decide)


async def retry(access: Access, ids: Sequence[JobId]) -> list[Moved | None]:
    """Pending or in line at once, with a fresh budget; the attempt number goes on, the key is taken again.

    One that waits for a parent goes on waiting, unless it waits in vain: then that one must be retried first.
    """

    def decide(seen: Seen) -> Record | None:
        record = seen.record
        if record.status not in RETRYABLE:
            return None
        after = _revived(seen) if record.finished else msgspec.structs.replace(record)
        after.failures, after.crashes, after.expires_at = 0, 0, 0
        if record.flags & Flag.WAITS:
            stand(after, Status.BLOCKED, AWAITING)
            after.updated_at = seen.now
        else:
            run_at_once(after, seen.now)
        return after

    return await decide_all(access, ids, decide, replace_waiting)


def _revived(seen: Seen) -> Record:
    """A finished job among the living; its attempts are not forgotten."""
    after = msgspec.structs.replace(
        seen.record,
        flags=seen.record.flags & ~Flag.CANCELLING,
        runner="",
        claim=0,
        claimed_at=0,
        started_at=0,
        slot=NOBODY,
        result=None,
        more=msgspec.structs.replace(seen.record.more, attempts=_all_attempts(seen)),
    )
    lay_down(after)
    return after


def _all_attempts(seen: Seen) -> str | None:
    """The ended attempts, including the last one if only the record's head tells of it: it will be overwritten."""
    fields = dict(zip(FINISHED_COLUMNS.split(", "), row_of(seen.record, seen.queue), strict=True))
    newest = last_attempt(fields)
    kept = seen.record.more.attempts
    return add_attempt(kept, newest) if newest else kept


async def run_now(access: Access, ids: Sequence[JobId]) -> list[Moved | None]:
    """Pending or in line at once, behind those that wait already; one that is pending stays where it is."""

    def decide(seen: Seen) -> Record | None:
        record = seen.record
        if not may_run_now(record.status):
            return None
        if record.status is Status.PENDING:
            return record
        after = msgspec.structs.replace(record)
        run_at_once(after, seen.now)
        return after

    return await decide_all(access, ids, decide)


def run_at_once(record: Record, now: Micros) -> None:
    """It is due now; with a key and no slot it goes to the line."""
    due = Timing(Status.PENDING, None, now, now)
    sit_down(record, seated(due, record.fields.concurrency_key, slot_of(record)), now)


def sit_down(record: Record, timing: Timing, now: Micros) -> None:
    """Let it stand where it was decided."""
    stand(record, timing.status, timing.reason)
    record.run_at, record.rank, record.updated_at = timing.run_at, timing.rank, now


def slot_of(record: Record) -> int | None:
    """The slot that it has of its key."""
    return None if record.slot == NOBODY else record.slot


async def delete(access: Access, ids: Sequence[JobId]) -> list[Moved | None]:
    """Finished jobs only: a live one must be cancelled first. Of one that comes twice, the first goes."""
    found = await _drop(access, access.server.seen.places(ids))
    if missing := [id_ for id_ in dict.fromkeys(ids) if id_ not in found]:
        found |= await _drop(access, dict.fromkeys(await access.queue_names(), missing))
    return [_dropped(found, id_) for id_ in ids]


def _dropped(found: dict[JobId, int], id_: JobId) -> Moved | None:
    letter = found.get(id_, 0)
    if letter > 0:
        del found[id_]
    return Moved(id_, STATUS[abs(letter)], done=letter > 0) if letter else None


async def _drop(access: Access, wanted: Mapping[str, Sequence[JobId]]) -> dict[JobId, int]:
    """The letters that they had; less than nothing for those that may not go."""
    found: dict[JobId, int] = {}
    for start in range(0, max(map(len, wanted.values()), default=0), MOST_SEEN):
        some = {queue: part for queue, ids in wanted.items() if (part := ids[start : start + MOST_SEEN])}
        replies = await access.calls("drop", {queue: (ids,) for queue, ids in some.items()})
        for queue, letters in replies.items():
            found |= {id_: letter for id_, letter in zip(some[queue], letters, strict=True) if letter}
    return found
