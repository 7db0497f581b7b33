"""enqueue: store new jobs, all or none."""

from collections import defaultdict
from collections.abc import Sequence

from windlass.core.job import Enqueued, NewJob
from windlass.store.redis.access import Access
from windlass.store.redis.intake import Intake, to_intake


async def enqueue(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """One queue: one call."""
    if not jobs:
        return []
    first = jobs[0].queue
    if all(job.queue == first for job in jobs):
        intake = to_intake(jobs)
        answers = intake.answers(await access.call("enqueue", first, intake.request, *intake.blobs))
        access.server.seen.note(first, [answer.id for answer in answers])
        return answers
    return await _enqueue_in_several(access, jobs)


async def _enqueue_in_several(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Nothing is atomic over two queues: all of them are asked first, so that what is refused is refused by all."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, job in enumerate(jobs):
        places[job.queue].append(place)
    intakes = {queue: to_intake([jobs[place] for place in mine]) for queue, mine in places.items()}
    requests = {queue: (intake.request, *intake.blobs) for queue, intake in intakes.items()}
    _check(intakes, await access.calls("check", requests))
    replies = await access.calls("enqueue", requests)
    answers: dict[int, Enqueued] = {}
    for queue, intake in intakes.items():
        mine_answered = intake.answers(replies[queue])
        access.server.seen.note(queue, [answer.id for answer in mine_answered])
        answers |= zip(places[queue], mine_answered, strict=True)
    return [answers[place] for place in range(len(jobs))]


def _check(intakes: dict[str, Intake], replies: dict[str, list[int]]) -> None:
    for queue, intake in intakes.items():
        intake.check(replies[queue])
