"""park: park jobs whose type no live worker knows, and unpark them when a worker does.

A queue counts the pending jobs of each type, so unknown types are found without reading jobs.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.errors import QueueErrors
from windlass.store.redis.duties.queue_rotation import QueueRotation
from windlass.store.redis.liveness.workers import registered

PORTION = 100
"""Jobs in one call of a script: it blocks the server."""
MAX_PARKED = 1000
"""Per queue; the coordinator calls again."""
MAX_FREED = 10_000
"""Per queue; the next heartbeat or the coordinator continues."""


class _Waiting(msgspec.Struct, frozen=True):
    """Types of a queue with waiting jobs."""

    pending: list[str]
    parked: list[str]


async def park(access: Access, rounds: QueueRotation) -> dict[str, int]:
    """Park jobs of unknown types: {type: jobs}. Without a live worker nothing is parked.

    A job that was parked while a worker with its type registered is freed too: the heartbeat may have been too early.
    """
    known = {type_ for worker in await registered(access) for type_ in worker.types}
    if not known:
        return {}
    waiting, troubles = await _waiting(access, await rounds.take(access, "park"))
    parked: Counter[str] = Counter()
    for queue, types in waiting.items():
        with troubles.collected():
            if strange := sorted(set(types.pending) - known):
                parked.update(await _park(access, queue, strange))
            await _unpark(access, queue, known.intersection(types.parked))
    if troubles and not parked:
        raise troubles[0]
    return dict(parked)


async def parked_types(access: Access) -> list[str]:
    """The types with parked jobs, in the queues that can be reached."""
    names = [name.decode() for name in await access.command("SMEMBERS", "parked_queues")]
    found, _ = await _waiting(access, names)
    return sorted({type_ for waiting in found.values() for type_ in waiting.parked})


async def unpark(access: Access, types: Sequence[str]) -> None:
    """Make parked jobs of these types pending again, since a worker knows them.

    Unreachable queues are left to a later heartbeat, or to `park`.
    """
    names = [name.decode() for name in await access.command("SMEMBERS", "parked_queues")]
    found, _ = await _waiting(access, names)
    for queue, waiting in found.items():
        with contextlib.suppress(StoreUnavailable):
            await _unpark(access, queue, set(types).intersection(waiting.parked))


async def _waiting(access: Access, queues: Iterable[str]) -> tuple[dict[str, _Waiting], QueueErrors]:
    replies, troubles = await access.call_reachable("waiting_types", dict.fromkeys(queues, ((),)))
    waiting = {
        queue: _Waiting([name.decode() for name in pending], [name.decode() for name in parked])
        for queue, (pending, parked) in replies.items()
    }
    return waiting, troubles


async def _park(access: Access, queue: str, types: Sequence[str]) -> Counter[str]:
    """The queue is listed in `parked_queues` first, so that no worker misses its jobs."""
    await access.call_global("add_queue_names", ("parked_queues", [queue]))
    parked: Counter[str] = Counter()
    while parked.total() < MAX_PARKED:
        jobs: list[int] = await access.call("park", queue, (types, PORTION))
        parked.update({type_: count for type_, count in zip(types, jobs, strict=True) if count})
        if not any(jobs):
            break
    return parked


async def _unpark(access: Access, queue: str, types: set[str]) -> None:
    freed = 0
    while types and freed < MAX_FREED:
        jobs: int = await access.call("unpark", queue, (sorted(types), PORTION))
        freed += jobs
        if not jobs:
            break
