"""enqueue: store new jobs, all or none."""

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.job import Enqueued, NewJob
from windlass.store.redis.access import Access
from windlass.store.redis.bulk import enqueue_bulk, portions
from windlass.store.redis.elsewhere import known_elsewhere, strays
from windlass.store.redis.heirs import follow, register
from windlass.store.redis.intake import Intake, Overtaken, to_intake
from windlass.store.redis.links import checked_links
from windlass.store.redis.replace import MOST_TRIES, busy

OTHER = b"other"
"""What enqueue_plain.lua answers if the queue, or one of the jobs, is not as most are."""


async def enqueue(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Links wait for those that stand; if that changes meanwhile, it is looked again."""
    if not jobs:
        return []
    if not any(job.parents for job in jobs):
        return await _enqueue(access, jobs)
    for _ in range(MOST_TRIES):
        with contextlib.suppress(Overtaken):
            return await _enqueue(access, await checked_links(access, jobs))
    raise busy(access, jobs[0].id)


async def _enqueue(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """What fits into one call for one queue is one call, if the ids are made for these very jobs."""
    queue = jobs[0].queue
    if all(job.queue == queue and job.fresh for job in jobs):
        return await _enqueue_in(access, queue, jobs)
    elsewhere = await known_elsewhere(access, jobs)
    later = strays(jobs)
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
        return await _enqueue_in(access, jobs[0].queue, jobs)
    answers: dict[int, Enqueued] = {}
    by_queue = {queue: [jobs[i] for i in mine] for queue, mine in places.items()}
    for queue, answered in (await _enqueue_by_queue(access, by_queue)).items():
        _note(access, queue, answered)
        answers |= zip(places[queue], answered, strict=True)
    return [answers[place] for place in range(len(jobs))]


async def _enqueue_in(access: Access, queue: str, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """The same, all for one queue."""
    if _is_large(jobs):
        answers = (await enqueue_bulk(access, {queue: jobs}))[queue]
    else:
        intake = to_intake(jobs)
        reply = await access.call("enqueue_plain", queue, intake.request, *intake.blobs) if intake.plain else OTHER
        if reply == OTHER:
            reply = await access.call("enqueue", queue, intake.request, *intake.blobs)
        answers = intake.answers(reply)
        if len(reply) > 1:
            await _see_to_heirs(access, {queue: (intake, reply)})
    _note(access, queue, answers)
    return answers


async def _enqueue_by_queue(access: Access, jobs: Mapping[str, Sequence[NewJob]]) -> dict[str, list[Enqueued]]:
    if any(_is_large(mine) for mine in jobs.values()):
        return await enqueue_bulk(access, jobs)
    intakes = {queue: to_intake(mine) for queue, mine in jobs.items()}
    requests = {queue: (intake.request, *intake.blobs) for queue, intake in intakes.items()}
    # Nothing is atomic over two queues: all of them are asked first, so that what is refused is refused by all.
    replies = await access.calls("check", requests)
    for queue, intake in intakes.items():
        intake.check(replies[queue])
    replies = await access.calls("enqueue", requests)
    answers = {queue: intake.answers(replies[queue]) for queue, intake in intakes.items()}
    await _see_to_heirs(access, {queue: (intake, replies[queue]) for queue, intake in intakes.items()})
    return answers


async def _see_to_heirs(access: Access, answered: Mapping[str, tuple[Intake, Sequence[Any]]]) -> None:
    """Links whose parents are elsewhere ask for them; who waited for one that was replaced is told."""
    await register(access, {queue: intake.asking(reply) for queue, (intake, reply) in answered.items()})
    await follow(access, [queue for queue, (intake, reply) in answered.items() if intake.stirs(reply)])


def _note(access: Access, queue: str, answers: Sequence[Enqueued]) -> None:
    access.server.seen.note(queue, [answer.id for answer in answers])


def _is_large(jobs: Sequence[NewJob]) -> bool:
    return len(jobs) > 1 and next(portions(jobs)) is not jobs
