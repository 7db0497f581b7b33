"""replace: read, decide in core, and put the decided record in the place of the one it was decided from.

What people do with jobs, and every ending that is not a completion, goes this way. The decision is code that all
stores share; a script applies it only where nothing has changed since, and who comes too late decides again. Many at
once: all are read in one trip, and written in one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.redis.access import Access
from windlass.store.redis.record import STATUS, Flag, More, Record, encode, pack

MOST_TRIES = 50

Pair = tuple[Record, Record]
"""A record as it was read, and as it shall be."""


class Replaced(msgspec.Struct, frozen=True):
    """What became of one: without a status it was not done."""

    status: Status | None
    holder: JobId | None = None
    """Another job that has its idempotency key."""
    parent: JobId | None = None
    """A parent that it would wait for in vain. Without either, if it was not done, it has changed meanwhile."""


async def replace_all(access: Access, changes: Mapping[str, Sequence[Pair]]) -> dict[JobId, Replaced]:
    """Pairs by queue, each of them on its own: one trip. Up to a few hundred of a queue, each job once."""
    requests = {queue: _request(pairs) for queue, pairs in changes.items() if pairs}
    replies = await access.calls("replace", requests)
    return {
        before.id: _replaced(reply)
        for queue, answers in replies.items()
        for (before, _), reply in zip(changes[queue], answers, strict=True)
    }


def _replaced(reply: int | bytes) -> Replaced:
    if isinstance(reply, bytes):
        return Replaced(None, reply.decode())
    return Replaced(STATUS[reply] if reply else None)


def _request(pairs: Sequence[Pair]) -> tuple[Any, ...]:
    """The request of replace.lua, and its blobs."""
    entries, blobs = [], []
    for before, after in pairs:
        more = after.more != More()
        after.flags = after.flags | Flag.MORE if more else after.flags & ~Flag.MORE
        had = bool(before.flags & Flag.MORE)
        change = int(more) if after.more != before.more else 0
        entries.append((before.id, before.version, 2 if had and not more else change))
        blobs.append(pack(after))
        if change == 1:
            blobs.append(encode(after.more))
    return entries, *blobs


def busy(access: Access, id_: JobId) -> StoreUnavailable:
    """Nobody changes a job so often."""
    return StoreUnavailable(f"{access.server.shown}: job {id_} is changed by others all the time")


def by_queue(pairs: Sequence[tuple[str, Pair]]) -> dict[str, list[Pair]]:
    """As `replace_all` takes them."""
    grouped: dict[str, list[Pair]] = defaultdict(list)
    for queue, pair in pairs:
        grouped[queue].append(pair)
    return grouped
