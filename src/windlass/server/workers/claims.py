"""Claims of REST workers: POST /claims."""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random

import msgspec

from windlass.core.jobs.job import Claimed, JobError
from windlass.core.jobs.outcome import Policy, Raised, decide, is_suspect, requeue
from windlass.core.jobs.retry import DEFAULT_POLICY
from windlass.core.names import check_name
from windlass.core.own_types import OWN_TYPES
from windlass.core.tokens import Scope
from windlass.errors import BlobUnavailable, InvalidOption, InvalidPayload, LeaseLost
from windlass.server.operation import Answer, Call, Operation
from windlass.server.workers.groups import GROUP_TYPES
from windlass.server.workers.long_polls import Waiter, Want
from windlass.server.workers.payloads import claimed_job, plain_job
from windlass.server.workers.records import (
    MAX_CLAIMED,
    MAX_NUMBER,
    MAX_QUEUES,
    MAX_SLOTS,
    MAX_TYPES,
    MAX_WAIT,
    ClaimAnswer,
    ClaimBody,
    ClaimedJob,
)
from windlass.server.workers.rest_worker import PREFIX, RestWorker
from windlass.server.workers.service import WorkerService, lease_of, service_of
from windlass.store.records import ClaimRequest, QueueQuota, WorkerInfo
from windlass.version import __version__

ALONE_SECONDS = 0.25
"""Between two checks whether a worker that is to run a suspect still holds other jobs."""
MAX_HOST = 255
_random = Random()


async def claim_jobs(call: Call) -> Answer:
    """Claim jobs; wait for them if there are none. A worker's first claim opens its lease."""
    return Answer(await claim_for(call, checked_claim(call, call.body)))


async def claim_for(call: Call, body: ClaimBody) -> ClaimAnswer:
    """The answer to a claim that was checked."""
    service = service_of(call)
    worker = await service.workers.open(call.caller, body.worker, _info(body))
    service.groups.serve(body.queues)
    if worker.latest < 0 or body.claim <= worker.latest:
        # It may be repeated: it gets the jobs of the first one under a lease, which may have lapsed without a server.
        await service.workers.renew(worker)
    worker.polls, worker.latest = worker.polls + 1, max(worker.latest, body.claim)
    try:
        jobs = await _poll(call, service, worker, body)
    except LeaseLost:
        await service.workers.lose(worker)
        raise
    finally:
        worker.polls -= 1
    return ClaimAnswer(jobs=jobs, **lease_of(service.workers))


async def _poll(call: Call, service: WorkerService, worker: RestWorker, body: ClaimBody) -> list[ClaimedJob]:
    queues = tuple(queue for queue in body.queues if body.limits.get(queue, body.limit) > 0)
    if not queues or not body.limit:
        return []
    loop, want = asyncio.get_running_loop(), Want(queues, tuple(body.types))
    ends = loop.time() + body.wait
    is_last = False
    while True:
        if body.claim < worker.latest:
            return []  # a later claim was made since: the worker does not wait for this answer any more
        jobs = await _claim(call, service, worker, body)
        if jobs:
            worker.given = body.claim
        # The same claim may wait twice: its caller repeats it while this server has not noticed that the first
        # connection is dead. Both get the jobs of either, or the worker would hold jobs that it never received.
        if jobs or is_last or not await _wait(call, service, want, ends, lambda: worker.given == body.claim):
            return jobs
        is_last = worker.given == body.claim


async def _wait(call: Call, service: WorkerService, want: Want, ends: float, is_taken: Callable[[], bool]) -> bool:
    """Wait until a claim may find a job; False after the time limit, or if the caller has disconnected.

    It makes no call to the store: one poll for all waiting claims decides when to claim.
    """
    left = ends - asyncio.get_running_loop().time()
    if call.request is None or service.polls.stopping or left <= 0:
        return False
    waiter = Waiter(
        want=want,
        request=call.request,
        credential=call.state.access.credential(call.request),
        recheck=partial(call.state.access.recheck, call.request),
        is_taken=is_taken,
    )
    is_woken = await service.polls.wait(waiter, left)
    return await _is_connected(call) and is_woken


async def _is_connected(call: Call) -> bool:
    """Whether the caller still waits for the answer; raises Refused if its token is not valid any more."""
    if call.request is None:
        return True
    await call.state.access.recheck(call.request)
    return not await call.request.is_disconnected()


async def _claim(call: Call, service: WorkerService, worker: RestWorker, body: ClaimBody) -> list[ClaimedJob]:
    store = await call.app._ready()
    limit = body.limit
    if worker.alone is not None or worker.wants_alone:
        held = await store.jobs.held(worker.runner)
        if not held:
            worker.alone, limit = None, 1
        elif not any(each.claim == body.claim for each in held):  # a repeated claim takes nothing new
            await asyncio.sleep(ALONE_SECONDS)
            return []
    request = ClaimRequest(
        runner=worker.runner,
        claim=body.claim,
        quotas=tuple(QueueQuota(queue, quota) for queue in body.queues if (quota := _quota(body, queue, limit))),
        types=tuple(body.types),
        limit=limit,
        shared=True,
    )
    jobs = await _given_alone(service, worker, await store.jobs.claim(request))
    return await _delivered(call, service, worker, jobs)


async def _given_alone(service: WorkerService, worker: RestWorker, jobs: list[Claimed]) -> list[Claimed]:
    """Requeue what must not run together: a suspect is given out only when the worker holds nothing else."""
    suspects = [job for job in jobs if is_suspect(job)]
    worker.wants_alone = False
    if not suspects:
        return jobs
    store = await service.app._ready()
    claimed = {(job.id, job.attempt) for job in jobs}
    others = [job for job in await store.jobs.held(worker.runner) if (job.id, job.attempt) not in claimed]
    kept = [job for job in jobs if not is_suspect(job)] if others else suspects[:1]
    worker.wants_alone = bool(others)
    if not others:
        worker.alone = (suspects[0].id, suspects[0].attempt)
    back = [requeue(job.id, job.queue, job.attempt) for job in jobs if job not in kept]
    if back:
        await store.jobs.settle(back)
    return kept


async def _delivered(call: Call, service: WorkerService, worker: RestWorker, jobs: list[Claimed]) -> list[ClaimedJob]:
    """The jobs with their payloads; an attempt whose payload cannot be read fails."""
    delivered, failed = [], []
    for job in jobs:
        try:
            delivered.append(plain_job(job) or await claimed_job(call.app, job))
            service.note_claimed(worker, job)
        except (BlobUnavailable, InvalidPayload) as error:
            report = JobError(f"windlass.{type(error).__name__}", str(error))
            failed.append(decide(job, Raised(error, report), Policy(DEFAULT_POLICY), _random))
    if failed:
        await (await call.app._ready()).jobs.settle(failed)
    return delivered


def _quota(body: ClaimBody, queue: str, limit: int) -> int:
    return min(limit, body.limits.get(queue, limit))


def checked_claim(call: Call, body: ClaimBody) -> ClaimBody:
    """The claim with each name once; raises InvalidInput, OutsideLimits or NeedsAsgi."""
    check_name(body.worker, "worker")
    _check_range("claim", body.claim, 0, MAX_NUMBER)
    _check_range("limit", body.limit, 0, MAX_CLAIMED)
    for queue, limit in body.limits.items():
        if queue not in body.queues:
            raise InvalidOption(f"limits.{queue:.40}", "is of a queue that the claim does not name")
        _check_range(f"limits.{queue}", limit, 0, MAX_NUMBER)
    _check_range("wait", body.wait, 0, MAX_WAIT)
    if body.wait:
        call.caller.need_waiting("a claim that waits")
    _check_range("slots", body.slots, 1, MAX_SLOTS)
    _check_range("queues", len(body.queues), 1, MAX_QUEUES, " names")
    _check_range("types", len(body.types), 1, MAX_TYPES, " names")
    if len(body.host) > MAX_HOST or not body.host.isprintable():
        raise InvalidOption("host", f"must be at most {MAX_HOST} printable characters")
    for name in body.types:
        if check_name(name, "types") in OWN_TYPES:
            raise InvalidOption("types", f"{name} is a type of Windlass itself, whose jobs are not for REST workers")
    for name in body.queues:
        call.caller.need_queue(check_name(name, "queues"))
    for name in body.types:
        call.caller.need_queue(body.queues[0], name)
    return msgspec.structs.replace(body, queues=list(dict.fromkeys(body.queues)), types=sorted(set(body.types)))


def _check_range(field: str, value: float, least: float, most: float, what: str = "") -> None:
    if not least <= value <= most:
        raise InvalidOption(field, f"must be {least:,} to {most:,}{what}, not {value:,}")


def _info(body: ClaimBody) -> WorkerInfo:
    return WorkerInfo(
        id=PREFIX + body.worker,
        host=body.host,
        pid=0,
        version=__version__,
        queues=tuple(body.queues),
        types=(*body.types, *GROUP_TYPES),  # the server runs these for it
        processes=1,
        slots=body.slots,
        rest=True,
    )


OPERATIONS = (
    Operation(
        method="POST",
        path="/claims",
        scope=Scope.WORK,
        handler=claim_jobs,
        summary="Claim jobs for a worker, and wait for them",
        body=ClaimBody,
        answers={200: ClaimAnswer},
    ),
)
