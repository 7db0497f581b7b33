"""park: jobs whose type no worker knows are set aside, and freed when one comes.

A queue counts the pending jobs of each type, so nobody has to walk past strangers to find them, or to find others.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from windlass.store.redis.access import Access
from windlass.store.redis.workers import registered

PORTION = 100
"""Jobs in one call of a script: it keeps all others waiting."""
MOST_PARKED = 1000
"""Of one queue; the coordinator comes back."""
MOST_FREED = 10_000
"""Of one queue; the next beat or the coordinator goes on."""


class _Waiting(msgspec.Struct, frozen=True):
    """The types of a queue of which jobs wait."""

    pending: list[str]
    parked: list[str]


async def park(access: Access) -> dict[str, int]:
    """Set strangers aside: {type: jobs}. Without a live worker nobody is in anyone's way.

    Who was parked as a worker came that knows it is freed, too: its beat may have been too early to see it.
    """
    known = {type_ for worker in await registered(access) for type_ in worker.types}
    if not known:
        return {}
    waiting = await _waiting(access, await access.queue_names())
    parked: Counter[str] = Counter()
    for queue, types in waiting.items():
        if strange := sorted(set(types.pending) - known):
            parked.update(await _park(access, queue, strange))
        await _unpark(access, queue, known.intersection(types.parked))
    return dict(parked)


async def unpark(access: Access, types: Sequence[str]) -> None:
    """A worker that knows these types is here: their jobs go back to where they were."""
    names = [name.decode() for name in await access.command("SMEMBERS", "parking")]
    for queue, waiting in (await _waiting(access, names)).items():
        await _unpark(access, queue, set(types).intersection(waiting.parked))


async def _waiting(access: Access, queues: Iterable[str]) -> dict[str, _Waiting]:
    replies = await access.calls("waiting_types", dict.fromkeys(queues, ((),)))
    return {
        queue: _Waiting([name.decode() for name in pending], [name.decode() for name in parked])
        for queue, (pending, parked) in replies.items()
    }


async def _park(access: Access, queue: str, types: Sequence[str]) -> Counter[str]:
    """The queue is named first as one that has parked jobs, so that no worker misses them."""
    await access.command("SADD", "parking", queue)
    parked: Counter[str] = Counter()
    while parked.total() < MOST_PARKED:
        jobs: list[int] = await access.call("park", queue, (types, PORTION))
        parked.update({type_: count for type_, count in zip(types, jobs, strict=True) if count})
        if sum(jobs) < PORTION:
            break
    return parked


async def _unpark(access: Access, queue: str, types: set[str]) -> None:
    freed = 0
    while types and freed < MOST_FREED:
        jobs: int = await access.call("unpark", queue, (sorted(types), PORTION))
        freed += jobs
        if jobs < PORTION:
            break
