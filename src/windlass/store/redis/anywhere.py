"""Jobs wherever they are, also those that somebody moves to another queue just now."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from windlass.core.ids import JobId
from windlass.store.redis.access import Access
from windlass.store.redis.move import finish_moves
from windlass.store.redis.sight import Sight, see

MOST_LOOKS = 5
"""So often somebody may come between our looks at two queues; a moved job may also be gone from everywhere."""


async def see_anywhere(access: Access, ids: Iterable[JobId]) -> Sight:
    """An id does not tell its queue: who is not where it was seen last is looked for in all of them."""
    wanted = list(ids)
    sight = await see(access, access.server.seen.places(wanted))
    if missing := [id_ for id_ in wanted if id_ not in sight.jobs]:
        everywhere = await _see_everywhere(access, missing)
        sight = msgspec.structs.replace(everywhere, jobs=everywhere.jobs | sight.jobs)
    return sight


async def _see_everywhere(access: Access, wanted: list[JobId]) -> Sight:
    """Who is on the way is brought to where it goes, first."""
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
