"""replace: read, decide in core, and put the decided record in the place of the one it was decided from.

What people do with jobs, and every ending that is not a plain completion, goes this way. The decision is code that
all stores share; a script applies it only where nothing has changed since, and who comes too late decides again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from windlass.core.ids import JobId
from windlass.errors import StoreUnavailable
from windlass.store.redis.access import Access
from windlass.store.redis.look import Found, find
from windlass.store.redis.record import Flag, More, Record, encode, pack

T = TypeVar("T")

MOST_TRIES = 50


async def replace(access: Access, queue: str, records: Sequence[tuple[Record, Record]]) -> list[JobId]:
    """Pairs of a record as it was read, and as it shall be: all or none. Who has changed since, if anybody."""
    entries, blobs = [], []
    for before, after in records:
        more = after.more != More()
        after.flags = after.flags | Flag.MORE if more else after.flags & ~Flag.MORE
        entries.append((before.id, before.version, 1 if more else 2))
        blobs.append(pack(after))
        if more:
            blobs.append(encode(after.more))
    changed: list[bytes] = await access.call("replace", queue, entries, *blobs)
    return [id_.decode() for id_ in changed]


async def decided(
    access: Access, id_: JobId, decide: Callable[[Found], Awaitable[tuple[Record | None, T]]], nothing: T
) -> T:
    """Let `decide` say what becomes of a job as it is now (None: it stays), until nobody comes between."""
    for _ in range(MOST_TRIES):
        found = (await find(access, [id_])).get(id_)
        if found is None:
            return nothing
        before = msgspec.structs.replace(found.record)
        after, answer = await decide(found)
        if after is None or not await replace(access, found.queue, [(before, after)]):
            return answer
    raise StoreUnavailable(f"{access.server.shown}: job {id_} is changed by others all the time")
