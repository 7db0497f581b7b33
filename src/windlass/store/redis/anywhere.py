"""Jobs wherever they are, also those that somebody moves to another queue just now."""

from collections import defaultdict
from collections.abc import Iterable

from windlass.core.ids import JobId
from windlass.store.redis.access import Access
from windlass.store.redis.move import finish_moves
from windlass.store.redis.sight import Sight, see

MOST_LOOKS = 5
"""So often somebody may come between our looks at two queues; a moved job may also be gone from everywhere."""


async def see_anywhere(access: Access, ids: Iterable[JobId]) -> Sight:
    """An id does not tell its queue: all of them are asked. Who is on the way is brought to where it goes, first."""
    wanted = list(ids)
    for _ in range(MOST_LOOKS):
        sight = await see(access, dict.fromkeys(await access.queue_names(), wanted))
        if not sight.in_motion(wanted):
            break
        await finish_moves(access, sorted(set(sight.leaving.values())), least=0)
    return sight


async def caught_up(access: Access, ids: Iterable[JobId]) -> dict[str, list[JobId]]:
    """Jobs that were not found: the queues of those that were only on their way."""
    places: dict[str, list[JobId]] = defaultdict(list)
    for id_, seen in (await see_anywhere(access, ids)).jobs.items():
        places[seen.queue].append(id_)
    return places
