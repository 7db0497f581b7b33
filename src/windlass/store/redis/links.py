"""links: new jobs that have parents. One that could never run, or never get what it takes, is refused beforehand."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.chain import Source, check_links, rebased
from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.status import Status
from windlass.errors import InvalidOption
from windlass.store.redis.access import Access
from windlass.store.redis.anywhere import see_anywhere
from windlass.store.redis.bulk import portions
from windlass.store.redis.elsewhere import MOST_ASKED
from windlass.store.redis.intake import to_intake
from windlass.store.redis.queues import read_queues


async def checked_links(access: Access, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """The jobs as they shall be stored: links wait for those that stand. Raises InvalidOption."""
    jobs = await _on_those_that_stand(access, jobs)
    sources = await _sources(access, jobs)
    unkept = await _unkept(access, jobs, sources)
    try:
        check_links(jobs, sources, unkept)
    except InvalidOption:
        # Of those that were handed in before nothing is asked, nor of those that are answered with another job.
        known = await _known(access, jobs) | (await _standing(access, jobs)).keys()
        if not known:
            raise
        sources |= {job.id: Source(Status.BLOCKED, job.queue) for job in jobs if job.id in known}
        check_links([job for job in jobs if job.id not in known], sources, unkept)
    return jobs


async def _on_those_that_stand(access: Access, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """Another job may have the key of a parent that comes with its children: they wait for that one."""
    awaited = {parent for job in jobs for parent in job.parents}
    if not any(job.id in awaited and job.idempotency_key is not None for job in jobs):
        return jobs
    stands = await _standing(access, jobs)
    return [rebased(job, stands) for job in jobs] if stands else jobs


async def _standing(access: Access, jobs: Sequence[NewJob]) -> dict[JobId, JobId]:
    """The jobs that have the keys of these, by those that would be answered with them."""
    keyed: dict[str, list[NewJob]] = defaultdict(list)
    for job in jobs:
        if job.idempotency_key is not None:
            keyed[job.queue].append(msgspec.structs.replace(job, parents=(), takes=()))
    stands: dict[JobId, JobId] = {}
    for queue, mine in keyed.items():
        for portion in portions(mine):
            intake = to_intake(portion)
            reply = (await access.calls("check", {queue: (intake.request, *intake.blobs)}))[queue]
            answers = zip(portion, intake.answers(reply), strict=True)
            stands |= {job.id: answer.id for job, answer in answers if answer.id != job.id}
    return stands


async def _sources(access: Access, jobs: Sequence[NewJob]) -> dict[JobId, Source]:
    """The parents that do not come with their children, as far as there are any."""
    here = {job.id for job in jobs}
    wanted = dict.fromkeys(parent for job in jobs for parent in job.parents if parent not in here)
    if not wanted:
        return {}
    seen = (await see_anywhere(access, wanted)).jobs
    return {id_: Source(each.record.status, each.queue) for id_, each in seen.items()}


async def _unkept(access: Access, jobs: Sequence[NewJob], sources: Mapping[JobId, Source]) -> set[str]:
    """Queues that keep no completed jobs, of those from which anything is taken."""
    if not any(job.takes for job in jobs):
        return set()
    places = {job.id: job.queue for job in jobs} | {id_: source.queue for id_, source in sources.items()}
    wanted = {places[parent] for job in jobs for _, parent in job.takes if parent in places}
    kept = await read_queues(access, await _existing(access, wanted))
    return {name for name, each in kept.items() if each.queue.rules.retention[Status.COMPLETED] == 0}


async def _existing(access: Access, queues: Iterable[str]) -> list[str]:
    """Nothing is made by a look."""
    wanted = set(queues)
    if not wanted <= access.server.there:
        wanted &= set(await access.queue_names())
    return sorted(wanted)


async def _known(access: Access, jobs: Sequence[NewJob]) -> set[JobId]:
    """Those that were handed in before, wherever they are."""
    names, known = await access.queue_names(), set[JobId]()
    ids = [job.id for job in jobs]
    for start in range(0, len(ids), MOST_ASKED):
        portion = ids[start : start + MOST_ASKED]
        for found in (await access.calls("known", dict.fromkeys(names, (portion,)))).values():
            known.update(id_.decode() for id_ in found)
    return known
