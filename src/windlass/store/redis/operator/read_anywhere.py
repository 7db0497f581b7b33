"""Jobs in whatever queue, also those that are moving to another one."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from windlass.core.ids import JobId
from windlass.store.redis.connection.access import Access
from windlass.store.redis.operator.move import finish_moves
from windlass.store.redis.operator.read_records import JobView, read_records

MAX_READS = 5
"""How often a job may move between our reads of two queues."""


async def read_anywhere(access: Access, ids: Iterable[JobId]) -> JobView:
    """An id does not tell its queue: jobs that are not where they were last seen are looked for in all queues."""
    wanted = list(ids)
    sight = await read_records(access, access.server.job_locations.places(wanted))
    if missing := [id_ for id_ in wanted if id_ not in sight.jobs]:
        everywhere = await _read_everywhere(access, missing)
        sight = msgspec.structs.replace(everywhere, jobs=everywhere.jobs | sight.jobs)
    return sight


async def _read_everywhere(access: Access, wanted: list[JobId]) -> JobView:
    """Unfinished moves are finished first."""
    for _ in range(MAX_READS):
        sight = await read_records(access, dict.fromkeys(await access.queue_names(), wanted))
        if not sight.in_transit(wanted):
            break
        await finish_moves(access, sorted(set(sight.moving.values())), least=0)
    return sight


async def find_moved(access: Access, ids: Iterable[JobId]) -> dict[str, list[JobId]]:
    """Jobs that were not found: the queues of those that were only on their way."""
    places: dict[str, list[JobId]] = defaultdict(list)
    for id_, seen in (await read_anywhere(access, ids)).jobs.items():
        places[seen.queue].append(id_)
    return places
