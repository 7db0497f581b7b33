"""get: jobs by their ids, wherever they are in their lives."""

from collections.abc import Iterable, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.store.redis.access import Access
from windlass.store.redis.record import Record, row_of, unpack
from windlass.store.rows import to_job


class Found(msgspec.Struct, frozen=True):
    """A job, and where it is."""

    queue: str
    record: Record
    notes: bytes


async def find(access: Access, ids: Iterable[JobId], queues: Sequence[str] | None = None) -> dict[JobId, Found]:
    """Where jobs are: an id does not tell, so every queue is asked, all of them in one trip."""
    wanted = list(dict.fromkeys(ids))
    names = await access.queue_names() if queues is None else queues
    if not wanted or not names:
        return {}
    replies = await access.calls("look", dict.fromkeys(names, (wanted,)))
    return {
        id_.decode(): Found(queue, unpack(id_.decode(), value, more), notes)
        for queue, (_, *found) in replies.items()
        for id_, value, more, notes in found
    }


async def get(access: Access, ids: Sequence[JobId]) -> list[Job | None]:
    """In the order of the ids."""
    found = await find(access, ids)
    return [to_job(row_of(each.record, each.queue)) if (each := found.get(id_)) else None for id_ in ids]
