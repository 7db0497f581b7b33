"""enqueue: store new jobs, all or none."""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from windlass.core.codec import encode as to_json
from windlass.core.job import Enqueued, NewJob
from windlass.store.keys import place_of
from windlass.store.kinds import kind_of
from windlass.store.redis.access import Access
from windlass.store.redis.record import Fields, Flag, encode


async def enqueue(access: Access, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """What is alike goes as one kind: its fields are sent once."""
    if not jobs:
        return []
    by_queue: dict[str, dict[Any, list[NewJob]]] = defaultdict(lambda: defaultdict(list))
    for job in jobs:
        by_queue[job.queue][kind_of(job), job.idempotency_key, job.concurrency_key].append(job)
    requests = {queue: _request(list(kinds.values())) for queue, kinds in by_queue.items()}
    replies = await access.calls("enqueue", requests)
    for queue, kinds in by_queue.items():
        access.server.seen.note(queue, [job.id for alike in kinds.values() for job in alike])
    known = {id_.decode() for reply in replies.values() for id_ in reply}
    return [Enqueued(job.id, existing=job.id in known) for job in jobs]


def _request(kinds: Sequence[Sequence[NewJob]]) -> tuple[Any, ...]:
    """The request of enqueue.lua, and the fields of each kind."""
    return [_kind(alike) for alike in kinds], *(encode(fields_of(alike[0])) for alike in kinds)


def _kind(alike: Sequence[NewJob]) -> tuple[Any, ...]:
    job = alike[0]
    return (
        flags_of(job),
        job.type,
        -job.priority,
        job.run_at,
        job.delay,
        job.max_attempts,
        job.timeout,
        job.expires_at,
        job.expires,
        [each.id for each in alike],
        [each.payload for each in alike],
    )


def fields_of(job: NewJob) -> Fields:
    """What is said once of a job."""
    rate = job.key_rate
    return Fields(
        type=job.type,
        tenant=job.tenant,
        idempotency_key=job.idempotency_key,
        key_digest=None if job.idempotency_key is None else place_of(job.queue, job.idempotency_key)[1],
        window=job.idempotency_window,
        concurrency_key=job.concurrency_key,
        line=None if job.concurrency_key is None else line_of(job.concurrency_key),
        key_limit=job.key_limit,
        key_strict=job.key_strict,
        key_rate=None if rate is None else (rate.tokens, rate.period, rate.burst),
        rate_cost=job.rate_cost,
        parent=job.parent,
        flow=job.flow,
        parents=to_json(job.parents, "parents") if job.parents else None,
        tags=to_json(job.tags, "tags") if job.tags else None,
        meta=job.meta,
    )


def line_of(key: str) -> str:
    """The digest of a concurrency key: of one length, so that it can stand before a place."""
    return blake2b(key.encode(), digest_size=16).hexdigest()


def flags_of(job: NewJob) -> int:
    """What scripts must know of a new job."""
    flags = Flag(0)
    if job.idempotency_key is not None:
        flags |= Flag.KEYED
    if job.concurrency_key is not None:
        flags |= Flag.LINED
    if job.key_strict:
        flags |= Flag.STRICT
    if job.key_rate is not None:
        flags |= Flag.RATED
    if job.rate_cost is not None:
        flags |= Flag.COSTLY
    if job.tenant is not None:
        flags |= Flag.TENANTED
    if job.parent is not None:
        flags |= Flag.CHILD
    return int(flags)
