"""enqueue: store new jobs, all or none."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from windlass.core.job import Enqueued, NewJob
from windlass.store.redis.access import Access
from windlass.store.redis.bulk import enqueue_bulk, portions
from windlass.store.redis.intake import to_intake


async def enqueue(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """What fits into one call for one queue is one call."""
    if not jobs:
        return []
    first = jobs[0].queue
    if all(job.queue == first for job in jobs):
        answers = (await _enqueue_by_queue(access, {first: jobs}))[first]
        access.server.seen.note(first, [answer.id for answer in answers])
        return answers
    places: dict[str, list[int]] = defaultdict(list)
    for place, job in enumerate(jobs):
        places[job.queue].append(place)
    answered = await _enqueue_by_queue(access, {queue: [jobs[i] for i in mine] for queue, mine in places.items()})
    by_place: dict[int, Enqueued] = {}
    for queue, answers in answered.items():
        access.server.seen.note(queue, [answer.id for answer in answers])
        by_place |= zip(places[queue], answers, strict=True)
    return [by_place[place] for place in range(len(jobs))]


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
