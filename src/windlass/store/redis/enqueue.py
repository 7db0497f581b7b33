"""enqueue: store new jobs, all or none."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from windlass.core.job import Enqueued, NewJob
from windlass.store.redis.access import Access
from windlass.store.redis.bulk import enqueue_bulk, portions
from windlass.store.redis.elsewhere import known_elsewhere, strays
from windlass.store.redis.intake import to_intake


async def enqueue(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """What fits into one call for one queue is one call, if the ids are made for these very jobs."""
    if not jobs:
        return []
    elsewhere = await known_elsewhere(access, jobs)
    later = strays(jobs) if any(job.queue != jobs[0].queue for job in jobs) else []
    if not elsewhere and not later:
        return await _enqueue_here(access, jobs)
    answers = {place: Enqueued(job.id, existing=True) for place, job in enumerate(jobs) if job.id in elsewhere}
    here = sorted(set(range(len(jobs))) - answers.keys() - set(later))
    answers |= zip(here, await _enqueue_here(access, [jobs[place] for place in here]), strict=True)
    later = [place for place in later if place not in answers]
    asked = [msgspec.structs.replace(jobs[place], fresh="") for place in later]
    answers |= zip(later, await enqueue(access, asked), strict=True)
    return [answers[place] for place in range(len(jobs))]


async def _enqueue_here(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Jobs whose ids no other queue knows."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, job in enumerate(jobs):
        places[job.queue].append(place)
    if len(places) == 1:
        answered = await _enqueue_by_queue(access, {jobs[0].queue: jobs})
    else:
        answered = await _enqueue_by_queue(access, {queue: [jobs[i] for i in mine] for queue, mine in places.items()})
    answers: dict[int, Enqueued] = {}
    for queue, mine in answered.items():
        access.server.seen.note(queue, [answer.id for answer in mine])
        answers |= zip(places[queue], mine, strict=True)
    return [answers[place] for place in range(len(jobs))]


async def _enqueue_by_queue(access: Access, jobs: Mapping[str, Sequence[NewJob]]) -> dict[str, list[Enqueued]]:
    if any(_is_large(mine) for mine in jobs.values()):
        return await enqueue_bulk(access, jobs)
    intakes = {queue: to_intake(mine) for queue, mine in jobs.items()}
    requests = {queue: (intake.request, *intake.blobs) for queue, intake in intakes.items()}
    if len(jobs) > 1:
        # Nothing is atomic over two queues: all of them are asked first, so that what is refused is refused by all.
        replies = await access.calls("check", requests)
        for queue, intake in intakes.items():
            intake.check(replies[queue])
    replies = await access.calls("enqueue", requests)
    return {queue: intake.answers(replies[queue]) for queue, intake in intakes.items()}


def _is_large(jobs: Sequence[NewJob]) -> bool:
    return next(portions(jobs)) is not jobs
