"""A claimed job as a REST worker gets it: its whole payload, with the results of its parents."""

from functools import lru_cache

import msgspec

from windlass.blobs.offload import off_loop, unavailable
from windlass.client.app import App
from windlass.client.runtime.offloaded import NO_BLOBS
from windlass.core.codec import problem_of_result, readable, readable_tags
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import parent_results, with_results
from windlass.core.jobs.job import Claimed
from windlass.core.moments import SECOND, to_datetime
from windlass.core.reference import parse_reference
from windlass.errors import InvalidPayload
from windlass.observe.tracing import carrier_of
from windlass.server.workers.records import ClaimedJob


async def claimed_job(app: App, job: Claimed) -> ClaimedJob:
    """The job with its payload. Raises BlobUnavailable, and InvalidPayload for a parent's result that is not kept."""
    return _as_given(job, await whole_payload(app, job))


def plain_job(job: Claimed) -> ClaimedJob | None:
    """The same for a payload that is stored in the row and needs no results: most are."""
    if job.result_params is not None or parse_reference(job.payload) is not None:
        return None
    return _as_given(job, job.payload)


_moment = lru_cache(256)(to_datetime)
"""Jobs of a batch often share their times of claim and creation."""


def _as_given(job: Claimed, payload: str) -> ClaimedJob:
    return ClaimedJob(
        id=job.id,
        type=job.type,
        queue=job.queue,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        payload=msgspec.Raw(payload.encode()),
        priority=job.priority,
        created_at=_moment(job.created_at),
        run_at=_moment(job.run_at),
        timeout=job.timeout / SECOND if job.timeout else None,
        expires_at=None if job.expires_at is None else to_datetime(job.expires_at),
        tenant=job.tenant,
        parent=job.parent,
        flow=job.flow,
        tags=readable_tags(job.tags) if job.tags else (),
        meta=readable(job.meta) if job.meta else None,
        traceparent=carrier_of(job.meta).get("traceparent") if job.meta else None,
        schedule=job.schedule,
        tick=None if job.tick is None else to_datetime(job.tick),
        idempotency_key=job.idempotency_key,
        concurrency_key=job.concurrency_key,
        claimed_at=_moment(job.claimed_at),
        failures=job.failures,
        crashes=job.crashes,
        rescues=job.rescues,
        suspicions=job.suspicions,
        requeues=job.requeues,
        snoozes=job.snoozes,
    )


async def whole_payload(app: App, job: Claimed) -> str:
    """The stored payload, fetched if it was offloaded, with the results of its parents."""
    payload = await _whole(app, job.id, job.payload)
    if job.result_params is None:
        return payload
    results = []
    for name, (parent, text) in parent_results(job.result_params, job.parent_results).items():
        if (problem := problem_of_result(text)) is not None:
            raise InvalidPayload(name, f"gets the result of {parent}, which was not kept: {problem}")
        results.append((name, await _whole(app, parent, text)))
    return with_results(payload, results)


async def _whole(app: App, owner: JobId, stored: str) -> str:
    reference = parse_reference(stored)
    if reference is None:
        return stored
    blobs = app.offload()
    if blobs is None:
        raise unavailable(owner, reference, NO_BLOBS)
    (text,) = await off_loop(lambda wanted: blobs.fetch(owner, wanted), [reference])
    return text
